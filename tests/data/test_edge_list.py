"""Whether the first row of an edge list is a header."""

import warnings

import pytest

from lgdgcn.data.user_graph import read_graph
from lgdgcn.errors import InputError, LGDWarning


@pytest.fixture
def read(tmp_path):
    """A function that reads edges between given nodes and returns their names."""

    def named(edges, *ids):
        if ids:
            lines = ["id,label", *(f"{name},{i % 2}" for i, name in enumerate(ids))]
            (tmp_path / "nodes.csv").write_text("\n".join(lines))
        (tmp_path / "edges.csv").write_text(edges)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LGDWarning)
            data = read_graph(tmp_path, "degree", require_labels=False)
        pairs = data.edge_index.t().tolist()
        return {tuple(sorted(data.node_ids[i] for i in pair)) for pair in pairs}

    return named


NAMES = ["source", "target", "x"]


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ("from,to\nsource,x\n", {("source", "x")}),
        ("from,to\nsource,target\n", {("source", "target")}),
        ("source,target\nsource,target\nx,target\n", {("source", "target"), ("target", "x")}),
        ("source,target\nx,target\ntarget,source\n", {("source", "target"), ("target", "x")}),
        ("x,source\nsource,target\n", {("source", "x"), ("source", "target")}),
        ("Source,Target\nsource,x\n", {("source", "x")}),
    ],
)
def test_nodes_called_source_and_target(read, edges, expected):
    assert read(edges, *NAMES) == expected


@pytest.mark.parametrize(
    ("edges", "ids"),
    [
        ("source,target\nsource,x\n", NAMES),
        ("source,target\nx,target\nsource,x\n", []),
        ("source,target,weight\nx,target,1\n", NAMES),
        ("source,target\n", NAMES),
        ("u,v\nv,w\nw,u\n", list("uvw")),
        ("u,v\nv,w\n", []),  # a path, if the first row is an edge
    ],
)
def test_a_row_that_may_be_a_header_or_an_edge_is_refused(read, edges, ids):
    with pytest.raises(InputError, match=r"edges\.csv line 1: .*may be a header or an edge") as one:
        read(edges, *ids)
    header = str(one.value).rpartition("write ")[2].partition(" ")[0]
    assert read(f"{header}\n{edges}", *ids)  # as the message says, if it is an edge
    below = edges.partition("\n")[2]
    if below:
        assert read(f"{header}\n{below}", *ids)  # and if it is the header


def test_one_node_called_so_is_no_doubt(read):
    assert read("source,target\nsource,x\n", "source", "x") == {("source", "x")}


def test_words_above_numbers_are_a_header_and_that_is_said(tmp_path):
    (tmp_path / "edges.csv").write_text("ann,bob\n1,2\n2,1\n")
    with pytest.warns(LGDWarning, match="'ann' and 'bob' are taken as a header, since the next"):
        read_graph(tmp_path, "degree", require_labels=False)


@pytest.mark.parametrize("header", ["source,source,target", "a,Target,target,source"])
def test_two_columns_of_one_name(read, header):
    with pytest.raises(InputError, match=r"edges\.csv: two columns are named"):
        read(f"{header}\na,b,c,d\n", *"abcd")


@pytest.mark.parametrize("edges", ["a,b\n ,a\n", 'a,b\n"",a\n'])
def test_an_edge_without_a_name(read, edges):
    with pytest.raises(InputError, match=r"line 2: .*an edge needs a source and a target"):
        read(edges)
