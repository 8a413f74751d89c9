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


@pytest.mark.parametrize("index", ["", " ", "Unnamed: 0", "Unnamed: 0.1", "__index_level_0__"])
@pytest.mark.parametrize("names", ["a,b", "from,to", "source,target"])
@pytest.mark.parametrize("ids", ["012", ""])
def test_numbers_of_rows_are_no_ends(tmp_path, recwarn, index, names, ids):
    (tmp_path / "edges.csv").write_text(f"{index},{names}\n0,1,2\n1,2,0\n2,2,1\n")
    if ids:
        (tmp_path / "nodes.csv").write_text("id,f\n" + "".join(f"{i},7\n" for i in ids))
    data = read_graph(tmp_path, "degree", require_labels=False)
    pairs = {tuple(sorted(data.node_ids[i] for i in pair)) for pair in data.edge_index.t().tolist()}
    assert pairs == {("1", "2"), ("0", "2")}
    assert not recwarn.list


def test_numbers_of_rows_beside_names(read):
    edges = ",a,b\n0,x,y\n1,y,z\n"
    assert read(edges) == read(edges, *"xyz") == {("x", "y"), ("y", "z")}


@pytest.mark.parametrize("edges", [",a,b\n0,a,b\n", ",4,5\n0,a,b\n", ",a\na,b\n"])
def test_a_first_edge_without_a_source_is_no_header(read, edges):
    with pytest.raises(InputError, match=r"line 1: .*an edge needs a source and a target"):
        read(edges, *"ab")


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        ("row,who,whom\n0,0,1\n", r"; source is 'row', target is 'who'$"),
        (",row,who,whom\n0,0,1,1\n", r"; source is 'row', target is 'who'$"),
        ("0,0,1\n", r"; the first two are source and target$"),
        (
            "x,source,target\n0,0,1\n",
            r"are ignored \(call one weight in the first line to use it\)$",
        ),
    ],
)
def test_which_columns_are_taken_is_said_where_others_are_not(tmp_path, edges, words):
    (tmp_path / "nodes.csv").write_text("id,f\n0,7\n1,8\n")
    (tmp_path / "edges.csv").write_text(edges)
    with pytest.warns(LGDWarning, match=words):
        read_graph(tmp_path, require_labels=False)
