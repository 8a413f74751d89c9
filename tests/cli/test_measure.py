"""``lgdgcn measure``: the table, the file, and what is refused."""

import json

from cli.runner import call, content, widest_table
from lgdgcn.metrics import MEASURES


def test_the_table_and_the_file(finished, tmp_path):
    folder, _ = finished
    before = content(folder)
    outcome = call("measure", folder, "--out", tmp_path / "m.json")
    assert (outcome.code, outcome.err) == (0, "")
    rows = json.loads((tmp_path / "m.json").read_text())
    assert [row["name"] for row in rows] == list(MEASURES)
    for row in rows:
        assert row["title"] in outcome.out
        assert f"{row['value']:.4f}" in outcome.out
    assert widest_table(outcome.out) <= 80
    assert content(folder) == before
    result = json.loads((folder / "result.json").read_text())
    values = {row["name"]: row["value"] for row in rows}
    assert result["factors"] == {name: values[name] for name in result["factors"]}
