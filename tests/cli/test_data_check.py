"""``lgdgcn data check``: what a user is told of a folder before anything is trained."""

import pytest

from cli.runner import call, rows, train, widest_table

NODES = """key,genre,part,age
a,rock,train,20
b,jazz,train,30
c,rock,val,25
d,jazz,test,35
"""
EDGES = "source,target,weight\na,b,1\nb,c,2\nc,d,3\n"
NAMED = ["--id", "key", "--label", "genre", "--split", "part"]


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "mine"
    place.mkdir()
    (place / "nodes.csv").write_text(NODES)
    (place / "edges.csv").write_text(EDGES)
    return place


def test_scaling_and_direction_have_a_line_each(folder):
    outcome = call("data", "check", f"{folder}/", *NAMED)
    assert outcome.code == 0, outcome
    lines = outcome.out.splitlines()
    assert sum("scaling = standard" in line for line in lines) == 1
    assert sum("edges are listed in one direction: taken in both" in line for line in lines) == 1
    (folder / "edges.csv").write_text(EDGES + "b,a,1\nc,b,2\nd,c,3\n")
    assert "one direction" not in call("data", "check", f"{folder}/", *NAMED).out


def test_columns_by_other_names_are_pointed_at(folder):
    outcome = call("data", "check", f"{folder}/")
    assert outcome.err.count("column 'key' is taken as the id") == 1
    named = call("data", "check", f"{folder}/", "--id", "key")
    assert (named.code, named.out) == (0, outcome.out)
    assert "labels of nodes cannot be learnt: it has no labels" in outcome.out
    assert "lgdgcn train --task edges" in outcome.out
    assert "column 'part' reads like a split" in outcome.err
    named = call("data", "check", f"{folder}/", *NAMED)
    assert "reads like" not in named.err
    assert "cannot be trained" not in named.out


def test_a_wide_table_is_summed_up(folder):
    extra = [f"c{i}" for i in range(100)]
    lines = NODES.splitlines()
    table = [lines[0] + "," + ",".join(extra), *(line + ",1" * 100 for line in lines[1:])]
    (folder / "nodes.csv").write_text("\n".join(table) + "\n")
    outcome = call("data", "check", f"{folder}/", *NAMED)
    assert rows(outcome.out)["… 64 more"][0] == "number"
    assert "c99" not in outcome.out
    assert widest_table(outcome.out) <= 80
    assert call("data", "check", f"{folder}/", *NAMED, "--write").code == 0
    assert 'c99 = "number"' in (folder / "graph.toml").read_text()
    assert call("data", "check", f"{folder}/").code == 0  # names are written down now


def test_sets_of_labels_come_back_as_they_are_predicted(folder):
    sets = ["red", "blue|red", "blue", "green|red"]
    ids = [f"n{i}" for i in range(40)]
    cells = [f"{name},{sets[i % 4]},kind{i % 4}" for i, name in enumerate(ids)]
    (folder / "nodes.csv").write_text("\n".join(["id,label,f", *cells]) + "\n")
    ring = [f"{a},{b}" for a, b in zip(ids, ids[4:] + ids[:4], strict=True)]
    (folder / "edges.csv").write_text("\n".join(["source,target", *ring]) + "\n")
    run = folder.parent / "run"
    outcome = train(run, "--model", "mlp", graph=f"{folder}/", epochs=150)
    assert outcome.code == 0, outcome
    assert "are taken as sets of 3 labels" in outcome.err
    again = call("predict", run)
    assert (again.code, again.err) == (0, "")  # what training has said is not said again
    lines = (run / "predictions.csv").read_text().splitlines()
    header = lines[0].split(",")
    found = [dict(zip(header, line.split(","), strict=True)) for line in lines[1:]]
    assert [row["true_label"] for row in found] == [sets[i % 4] for i in range(40)]
    assert [row["label"] for row in found] == [row["true_label"] for row in found]


def test_weights_with_decimal_commas(folder):
    (folder / "edges.csv").write_text(EDGES.replace(",", ";").replace(";1", ";1,5"))
    outcome = call("data", "check", f"{folder}/", *NAMED)
    assert rows(outcome.out)["edge weights"] == ["1.5 to 3"]
