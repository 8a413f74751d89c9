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


@pytest.mark.filterwarnings("ignore::lgdgcn.errors.LGDWarning")
@pytest.mark.parametrize(
    "content", ["#a,#b\n#b,#c\n", "#a,#b\nx,#c\n", "#a,#b\nsource,target\nx,y"]
)
def test_a_first_edge_that_looks_like_a_comment_is_named(tmp_path, content):
    (tmp_path / "edges.csv").write_text(content)
    (tmp_path / "nodes.csv").write_text("id,label\nx,1\ny,2\n#c,2\n")
    with pytest.warns(LGDWarning, match=r"'#a,#b' above the first row is taken as a comment; if"):
        read_graph(tmp_path, "degree")


@pytest.mark.parametrize("note", ["# a, b", "#", "## a,b", "#a note", "# FromNode\tToNode"])
def test_notes_are_left_out_without_a_word(tmp_path, note):
    (tmp_path / "edges.csv").write_text(f"{note}\nx,y\ny,x\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_graph(tmp_path, "degree", require_labels=False).node_ids == ["x", "y"]


def test_comments_below_the_header_are_refused_with_a_hint(tmp_path):
    (tmp_path / "nodes.csv").write_text("id,label\na,x\nb,y\n")
    for content in ("a,b\n# note\n", "a,b\n# so, and so\n"):
        (tmp_path / "edges.csv").write_text(content)
        with pytest.raises(InputError, match=r"line 2: .*comments go above the first row"):
            read(tmp_path)
    (tmp_path / "nodes.csv").write_text("id,label\na,x\n# note\nb,y\n")
    with pytest.raises(InputError, match=r"nodes\.csv line 3: 1 cells .*comments go above"):
        read(tmp_path)


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


def test_blanks_are_layout_if_the_first_row_has_them(tmp_path):
    (tmp_path / "nodes.csv").write_text('id , label\na,\t x\n" b ",  y y \n')
    (tmp_path / "edges.csv").write_text('a, " b "\n')
    data = read(tmp_path)
    assert data.node_ids == ["a", " b "]
    assert data.classes == ["x", "y y"]
    assert named_edges(data) == pairs_of(("a", " b "))


def test_blanks_are_seen_in_a_first_row_of_several_lines(tmp_path):
    (tmp_path / "nodes.csv").write_text("id,label\na,x\n|,y\n")
    (tmp_path / "edges.csv").write_text('"\na",| ,1\na,|,2\n')
    with pytest.raises(InputError, match=r"edges\.csv line 2: unknown node '\\na'"):
        read(tmp_path)


def test_a_quote_inside_a_cell_of_the_first_row_opens_nothing(tmp_path):
    (tmp_path / "nodes.csv").write_text('id, size"\na," x "\n  \nb,2\n')
    rows = [cells for _, cells in read_delimited(tmp_path / "nodes.csv", lambda *_: None)]
    assert rows == [["id", 'size"'], ["a", " x "], ["b", "2"]]


def test_half_an_edge_of_a_node_called_like_a_comment_is_no_comment(tmp_path):
    (tmp_path / "nodes.csv").write_text("id,label\n#,x\na,y\n")
    (tmp_path / "edges.tsv").write_text("#\t\n")
    with pytest.raises(InputError, match=r"edges\.tsv line 1: 1 cells"):
        read(tmp_path)


def test_blanks_around_the_cells_of_an_edge_do_not_matter_if_the_node_has_none(tmp_path):
    (tmp_path / "nodes.csv").write_text("id,label\na,x\nb,y\nc ,x\n")
    (tmp_path / "edges.csv").write_text("source,target\na, b\na,c \n")
    assert named_edges(read(tmp_path)) == pairs_of("ab", ("a", "c "))
    (tmp_path / "edges.csv").write_text("c ,a\n")  # a first row of known nodes is no layout
    assert named_edges(read(tmp_path)) == pairs_of(("c ", "a"))


@pytest.mark.filterwarnings("ignore::lgdgcn.errors.LGDWarning")
@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ("id,label\na,x\na ,y\n", r"ids 'a' and 'a ' differ only in blanks"),
        ("id,label\na,x\nb, x\n", r"labels of column 'label' 'x' and ' x' differ only in blanks"),
        (None, r"nodes 'a' and 'a ' differ only in blanks"),
    ],
)
def test_names_that_differ_only_in_blanks_are_named(tmp_path, nodes, words):
    if nodes:
        (tmp_path / "nodes.csv").write_text(nodes)
    (tmp_path / "edges.csv").write_text("source,target\n" + ("" if nodes else "a ,b\nb,a\n"))
    with pytest.warns(LGDWarning, match=words):
        read_graph(tmp_path, "degree", require_labels=False)


def test_an_empty_cell_is_not_a_blank_line(tmp_path):
    (tmp_path / "edges.csv").write_text("0,2\n")
    (tmp_path / "nodes.csv").write_text('label\nx\n""\ny\n\n')  # as pandas writes a missing label
    data = read(tmp_path)
    assert data.y.tolist() == [0, -1, 1]
    (tmp_path / "nodes.csv").write_text("label\nx\n\ny\n")
    with pytest.raises(InputError, match=r'line 3: a blank line .*write "" for an empty cell'):
        read(tmp_path)


@pytest.mark.parametrize("line", ['"a b" "c"', '  "a b"\t c '])
def test_quotes_in_a_file_separated_by_blanks(tmp_path, line):
    (tmp_path / "edges.tsv").write_text(f"source target\n{line}\n".replace("\t", " "))
    assert read(tmp_path, require_labels=False).node_ids == ["a b", "c"]
    (tmp_path / "edges.tsv").write_text('source target\n"a b c\n')
    with pytest.raises(InputError, match="line 2: not valid csv"):
        read(tmp_path, require_labels=False)


@pytest.mark.parametrize(
    ("nodes", "edges"),
    [
        ("id,label,{}\na,x,1\nb,y,1e99\n", "a,b\n"),
        ("id,label,{0},{0}\na,x,1,2\n", "a,a\n"),
        ("id,label\n{0},x\n{0},y\n", "a,b\n"),
        ("id,label\na,x\nb,y\n", "a,{}\n"),
        ("id,label\na,{0}\nb,{0}\n", "a,b\n"),
        ("id,{}\na,0.5\nb,1\n", "a,b\n"),
    ],
)
def test_messages_stay_short_whatever_the_names(tmp_path, nodes, edges):
    (tmp_path / "nodes.csv").write_text(nodes.format("x" * 100_000))
    (tmp_path / "edges.csv").write_text(edges.format("x" * 100_000))
    with pytest.raises(InputError) as caught:
        read(tmp_path, None, require_labels=True)
    assert len(str(caught.value)) < 600 + len(str(tmp_path))


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


@pytest.mark.parametrize("mark", [b"\xef", b"\xef\xbb"])
def test_half_a_byte_order_mark_is_no_text(tmp_path, mark):
    path = tmp_path / "t.csv"
    path.write_bytes(mark)
    with pytest.raises(InputError, match="not UTF-8"):
        list(read_delimited(path, lambda *_: None))


def test_a_quote_within_a_name_hides_no_padding(tmp_path):
    (tmp_path / "nodes.csv").write_text('si"ze ,"y",id\n1 , x, a \n2 , z, b \n')
    (tmp_path / "edges.csv").write_text("a,b\n")
    assert read(tmp_path, None, require_labels=False).node_ids == ["a", "b"]


def test_semicolons_divide_cells_where_there_is_no_comma(tmp_path):
    (tmp_path / "nodes.csv").write_text('"a,b";id;y\n1,5;n1;x\n2;n2;z\n')
    (tmp_path / "edges.csv").write_text("n1;n2\n")
    data = read(tmp_path, None, require_labels=False)
    assert data.node_ids == ["n1", "n2"]
    assert data.x.view(-1).tolist() == [1.5, 2]
    (tmp_path / "nodes.csv").write_text('id,"a\n;b"\nn1,1\nn2,2\n')  # a name of two lines
    assert read(tmp_path, None, require_labels=False).feature_names == ["a\n;b"]


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


@pytest.mark.parametrize("coding", ["utf-16", "utf-16-be"])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_utf16_is_named(tmp_path, coding, suffix):
    path, mark = tmp_path / f"t{suffix}", "" if coding == "utf-16" else "\ufeff"
    content = f"{mark}a,b\n".encode(coding)
    path.write_bytes(gzip.compress(content) if suffix == ".csv.gz" else content)
    with pytest.raises(InputError, match=r"not UTF-8 but UTF-16 text.*save it as 'CSV UTF-8'"):
        list(read_delimited(path, lambda *_: None))
