"""csv and tsv: what was written comes back, and only layout is left out."""

import csv
import gzip
import io
import warnings

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lgdgcn.data.delimited import read_delimited
from lgdgcn.data.user_graph import read_graph
from lgdgcn.errors import InputError, LGDWarning

SHAPES = ["csv", "csv.gz", "tsv", "tsv.gz"]


def write(folder, stem, shape, rows, quoting=csv.QUOTE_MINIMAL, head="", end="\n"):
    """A table as Python's own writer makes it."""
    text = io.StringIO()
    delimiter = "\t" if "tsv" in shape else ","
    csv.writer(text, delimiter=delimiter, quoting=quoting, lineterminator=end).writerows(rows)
    content = (head + text.getvalue()).encode()
    content = gzip.compress(content) if shape.endswith("gz") else content
    (folder / f"{stem}.{shape}").write_bytes(content)


def read(folder, features="degree", **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LGDWarning)
        return read_graph(folder, features, **options)


def named_edges(data):
    """The edges by their nodes' names, each once."""
    pairs = data.edge_index.t().tolist()
    return {frozenset((data.node_ids[a], data.node_ids[b])) for a, b in pairs}


def pairs_of(*pairs):
    return {frozenset(pair) for pair in pairs}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("head", ["", "# a note, with a comma\n\n  # and another\n", "\ufeff"])
def test_hashtags_are_ids(tmp_path, shape, quoting, header, head):
    ids = ["#a", "b", "#c", "# d"]
    rows = [[name, label] for name, label in zip(ids, "xyxy", strict=True)]
    write(tmp_path, "nodes", shape, [["id", "label"], *rows], quoting, head)
    edges = [["#a", "b"], ["b", "#c"], ["#c", "# d"]]
    first = [["source", "target"]] if header else []
    write(tmp_path, "edges", shape, first + edges, quoting, head)
    data = read(tmp_path)
    assert data.node_ids == ids
    assert named_edges(data) == pairs_of(*edges)


names = st.text(
    st.one_of(
        st.sampled_from(
            list("#\"', \t\r\n;|\\-1=._\ufeff\u00a0\u2028\x0b\x1f\x00\u00e9\u0301\u00b2\u0663")
        ),
        st.characters(exclude_categories=["Cs"]),
    ),
    min_size=1,
    max_size=6,
).filter(lambda name: name.strip())


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    ids=st.lists(names, min_size=2, max_size=6, unique=True),
    labels=st.lists(names.filter(lambda n: not any(c.isdigit() for c in n)), min_size=6),
    shape=st.sampled_from(SHAPES),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
)
@example([" a", "a", "a ", "\ta"], list("xyzuvw"), "csv", csv.QUOTE_MINIMAL, "\n")
@example(
    ["\u00e9", "e\u0301"], ["nan", "NaN", " x", "x", "x ", "#x"], "tsv", csv.QUOTE_MINIMAL, "\r"
)
@example(["a\r\nb", "a\nb", "a\rb"], list("xyzuvw"), "csv", csv.QUOTE_ALL, "\r\n")
def test_any_text_comes_back(tmp_path_factory, ids, labels, shape, quoting, end):
    if any(char in name for name in ids + labels for char in "\r\n"):
        quoting = csv.QUOTE_ALL  # the writer quotes only the line end that it uses itself
    folder = tmp_path_factory.mktemp("graph")
    rows = [[name, label, str(i)] for i, (name, label) in enumerate(zip(ids, labels, strict=False))]
    write(folder, "nodes", shape, [["id", "label", "f"], *rows], quoting, end=end)
    pairs = [[ids[0], name] for name in ids[1:]]
    write(folder, "edges", shape, [["from", "to"], *pairs], quoting, end=end)
    data = read(folder, None, require_labels=False)
    assert data.node_ids == ids
    assert named_edges(data) == pairs_of(*pairs)
    assert [data.classes[i] for i in data.y.tolist()] == labels[: len(ids)]
    assert data.x.view(-1).tolist() == list(range(len(ids)))


def test_a_quote_inside_a_cell_of_the_first_row_opens_nothing(tmp_path):
    (tmp_path / "nodes.csv").write_text('id, size"\na," x "\n  \nb,2\n')
    rows = [cells for _, cells in read_delimited(tmp_path / "nodes.csv", lambda *_: None)]
    assert rows == [["id", 'size"'], ["a", " x "], ["b", "2"]]


@pytest.mark.parametrize(
    "row",
    ['"a\nb ",x', '"say ""hi"" ",x', '"say ""hi""",x '],
    ids=ascii,
)
def test_blanks_in_quotes_stay_beside_blanks_that_are_layout(tmp_path, row):
    """A padded header means padded cells, but what is in quotes is as it was written."""
    path = tmp_path / "t.csv"
    path.write_text(f"id, label\n{row}\n", newline="")
    (_, cells) = [*read_delimited(path, lambda *_: None)][1]
    expected = next(csv.reader(io.StringIO(row, newline=""), skipinitialspace=True))
    assert cells[0] == expected[0]
    assert cells[1] == expected[1].strip()


@pytest.mark.parametrize(
    ("first", "cells"),
    [
        ("a\tb;c", ["a\tb", "c"]),
        ("a\tb,c", ["a\tb", "c"]),
        ("a\tb|c", ["a", "b|c"]),
        ("a b\tc", ["a b", "c"]),
        ('"a,b;c"\t"d|e"', ["a,b;c", "d|e"]),
        ('"a\tb"|c', ["a\tb", "c"]),
        ("red|blue,x", ["red|blue", "x"]),
        ("red|blue;x", ["red|blue", "x"]),
        ("a \t", ["a"]),
        ("a", ["a"]),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_the_first_row_tells_what_divides_cells(tmp_path, first, cells, suffix):
    path = tmp_path / f"t{suffix}"
    path.write_bytes(gzip.compress(first.encode()) if suffix == ".csv.gz" else first.encode())
    assert list(read_delimited(path, lambda *_: None)) == [(1, cells)]


@pytest.mark.parametrize("lines", [0, 3, 5000])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_line_that_is_not_utf8_is_named(tmp_path, lines, end):
    path = tmp_path / "t.csv"
    path.write_bytes((f"a,b{end}" * lines + f"K\u00f6ln,b{end}a,b{end}").encode("latin1"))
    with pytest.raises(InputError, match=f"not UTF-8 text in line {lines + 1}; .*Windows-1252"):
        list(read_delimited(path, lambda *_: None))
