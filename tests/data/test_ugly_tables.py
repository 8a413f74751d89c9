"""Small tables as people have them, and what each must give: the folders in ``ugly``."""

import tomllib
import warnings
from pathlib import Path

import pytest

from lgdgcn.data.source import GraphSource
from lgdgcn.errors import InputError, LGDWarning

CASES = sorted((Path(__file__).parent / "ugly").iterdir())
KNOWN = {"about", "options", "features", "count", "first", "last", "x", "ids", "text", "notes"}


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
def test_an_ugly_table_gives_what_is_expected(folder):
    expected = tomllib.loads((folder / "expected.toml").read_text(encoding="utf-8"))
    options = expected.pop("options", {})
    options["ignore"] = tuple(options.get("ignore", ()))
    source = GraphSource(f"{folder}/", **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LGDWarning)
        if "error" in expected:
            with pytest.raises(InputError) as refused:
                source.load(require_labels=False)
            assert expected["error"] in str(refused.value)
            return
        data = source.load(require_labels=False)
    assert expected.keys() <= KNOWN
    said = [str(w.message) for w in caught if "nodes.csv" in str(w.message)]
    assert len(said) == len(expected.get("notes", [])), said
    assert all(note in line for note, line in zip(expected.get("notes", []), said, strict=True)), (
        said
    )
    assert list(data.get("node_text") or {}) == expected.get("text", [])
    names = data.feature_names
    assert names == expected.get("features", names)
    assert len(names) == data.x.size(1) == expected.get("count", len(names))
    assert names[: len(expected.get("first", []))] == expected.get("first", [])
    assert names[-1] == expected.get("last", names[-1])
    if "x" in expected:
        assert data.x.to_dense().tolist() == expected["x"]
    assert data.node_ids == expected.get("ids", data.node_ids)
