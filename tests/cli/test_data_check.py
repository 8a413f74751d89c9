"""``lgdgcn data check``: what a user is told of a folder before anything is trained."""

import pytest

from cli.runner import call, rows, widest_table

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
    assert "reasons or types of its edges can be found: lgdgcn train" in outcome.out
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
