"""An output that cannot be written is refused before the work; more in golden/records."""

import pytest

from cli.conftest import write_graph
from cli.runner import GRAPH, SMALL, call, content
from lgdgcn.data.source import GraphSource


def test_a_table_may_lie_beside_those_of_the_graph(mine, tmp_path):
    _, run, _ = mine
    graph = write_graph(tmp_path / "graph")
    assert call("predict", run, "--graph", graph, "--out", graph / "predicted.csv").code == 0


@pytest.mark.parametrize(
    ("args", "place"),
    [
        (["predict", "RUN"], "file/p.csv"),
        (["predict", "RUN"], "p.csv"),
        (["measure", "RUN"], "absent/m.json"),
        (["explore", "RUN"], "."),
        (["train", GRAPH, *SMALL, "--compare", "gcn"], "run"),
        (["tune", GRAPH, "--trials", 1], "file"),
        (["reproduce", "table1", "--quick"], "file"),
    ],
    ids=lambda one: one[0] if isinstance(one, list) else one,
)
def test_what_cannot_be_written_is_refused_before_the_work(
    finished, tmp_path, monkeypatch, args, place
):
    """More places are in golden/records/refusals.txt."""
    (tmp_path / "file").write_text("mine")
    for name in ("p-edges.csv", "run/compared/gcn/model.safetensors"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr(GraphSource, "load", lambda *args, **more: pytest.fail("the work began"))
    words = [finished[0] if word == "RUN" else word for word in args]
    outcome = call(*words, "--out", tmp_path / place)
    assert outcome.code == 2, outcome
    assert content(tmp_path) == {"file": b"mine"}
