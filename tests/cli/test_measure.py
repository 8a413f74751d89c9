"""``lgdgcn measure``: the table, the file, and what is refused."""

import json

from cli.conftest import write_graph
from cli.runner import call, content, train, widest_table
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


def test_without_a_name_it_lies_in_the_run_folder_until_that_is_trained_again(tmp_path):
    graph = write_graph(tmp_path / "graph")
    run = tmp_path / "run"
    assert train(run, graph=graph, epochs=2).code == 0
    outcome = call("measure", run)
    assert outcome.code == 0
    assert "Routing entropy" in outcome.out
    assert "Edge attribution" not in outcome.out  # nobody knows the true factors
    assert len(json.loads((run / "measure.json").read_text())) == len(MEASURES)
    (run / "explore.html").write_text("of the same model")
    assert train(run, "--overwrite", graph=graph, epochs=2).code == 0
    assert not {"measure.json", "explore.html"} & set(content(run))
