"""What a run's files say is either as a run writes it or refused: nothing in between crashes."""

import copy
import json
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest

from lgdgcn.cli import explore, train_table
from lgdgcn.data.source import GraphSource
from lgdgcn.errors import InputError
from lgdgcn.runs.files import read_config, read_result

SCORES = {"micro_f1": 0.5, "macro_f1": None}
RUN = {"seed": 0, "val": 0.5, "test": None, "epochs": 8, "seconds": 0.1, "data": "ab"}
RUN["threshold"] = 0.3
RUN["scores"] = {"train": SCORES, "val": SCORES, "test": SCORES}
RESULT = {"dataset": "cora", "model": "lgdgcn", "variant": "paper", "metric": "micro_f1"}
RESULT |= {"runs": [RUN, RUN | {"seed": 1}], "mean": 0.5, "std": None}
RESULT["model_sha256"] = "ab"
RESULT["warnings"] = ["the first epoch was kept"]
RESULT["verdict"] = {"sentence": "GCN is better", "better": "gcn"}
RANKED = {"model": "mlp", "tried": 4, "epochs": 200, "validation": 0.5, "noise": 0.1}
RESULT |= {"ranking": [RANKED, RANKED], "search": {"metric": "accuracy", "splits": 5}}
RESULT["factors"] = {"routing_entropy": 0.9, "edge_attribution": None}
ODD = [None, True, 3, -1, 10**400, 1e308, float("nan"), "x", "", [], [3], {}, {"x": []}]


def places(value, path=()):
    """Every place in a nested value."""
    yield path
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(item, (*path, key))


def with_value(path, new):
    """The result with another value at one place; ``...`` removes it."""
    result = copy.deepcopy(RESULT)
    *above, last = path
    inner = result
    for key in above:
        inner = inner[key]
    if new is ...:
        del inner[last]
    else:
        inner[last] = new
    return result


def use(result):
    """Everything that is shown of a result."""
    train_table.print_results(GraphSource("cora"), [result], Path("run"), notes=True)
    best = max(result["runs"], key=lambda run: run["val"] or 0)
    explore._scores(SimpleNamespace(result=result, best_run=best))


def test_a_result_with_any_other_value_anywhere(tmp_path):
    file, refused = tmp_path / "result.json", 0
    file.write_text(json.dumps(RESULT))
    assert read_result(file) == RESULT
    use(RESULT)
    paths = [path for path in places(RESULT) if path]
    for path, new in product(paths, [*ODD, ...]):
        file.write_text(json.dumps(with_value(path, new)))
        try:
            result = read_result(file)
        except InputError:
            refused += 1
        else:
            if result["model"] == "lgdgcn":  # as whoever resumes a run has checked
                use(result)
    assert refused > len(paths)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "3", "null", '"x"', '{"runs": []}', '{"runs": {}}', "[" * 10**5, "\0"]
)
def test_a_result_of_any_other_shape(tmp_path, text):
    (tmp_path / "result.json").write_text(text)
    with pytest.raises(InputError, match=r"result\.json is damaged"):
        read_result(tmp_path / "result.json")


@pytest.mark.parametrize("name", ["absent", "folder"])
@pytest.mark.parametrize("read", [read_config, read_result])
def test_files_that_are_not_there(tmp_path, name, read):
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=f"{name} is damaged .* no such file"):
        read(tmp_path / name)
