"""Cells of text files: what was written comes back, character for character."""

import csv
import io
import warnings

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from attack.graphs import WORDS
from attack.rules import is_nothing, labels_of, may_be_real
from lgdgcn.data.user_graph import read_graph
from lgdgcn.errors import LGDWarning
from lgdgcn.storage import csv_cell, write_csv

text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
cells = st.one_of(st.sampled_from(WORDS), text)
names = cells.filter(lambda cell: not is_nothing(cell))
nodes = st.lists(st.tuples(names, cells), min_size=1, max_size=6, unique_by=lambda node: node[0])


@pytest.mark.parametrize(("suffix", "delimiter"), [("csv", ","), ("tsv", "\t")])
@settings(max_examples=100, deadline=None)
@given(nodes=nodes, quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
@example(nodes=[("#tag", "1_0"), ("b", "#10")], quoting=csv.QUOTE_MINIMAL)
@example(nodes=[("a\r\nb", "a\rb"), ("a\nb", "a\nb")], quoting=csv.QUOTE_MINIMAL)
@example(nodes=[("a", "1e5"), ("b", "None")], quoting=csv.QUOTE_MINIMAL)
@example(nodes=[(" a", "007"), ("a ", "7")], quoting=csv.QUOTE_MINIMAL)
@example(nodes=[("é", "12345678901234567890"), ("e\u0301", "12345678901234567891")], quoting=1)
def test_ids_and_labels_come_back(tmp_path_factory, suffix, delimiter, nodes, quoting):
    labels = [label for _, label in nodes]
    assume(not may_be_real(labels))
    assume(not {"source", "target"} <= {name for name, _ in nodes})  # the header may be an edge
    folder = tmp_path_factory.mktemp("cells")
    tables = {
        "nodes": [["id", "label", "size"], *([*node, "1"] for node in nodes)],
        "edges": [["source", "target"], *([name, nodes[0][0]] for name, _ in nodes)],
    }
    for name, rows in tables.items():
        file = io.StringIO(newline="")
        csv.writer(file, delimiter=delimiter, quoting=quoting).writerows(rows)
        (folder / f"{name}.{suffix}").write_text(file.getvalue(), encoding="utf-8", newline="")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LGDWarning)
        data = read_graph(folder, require_labels=False)
    assert data.node_ids == [name for name, _ in nodes]
    assert data.edge_index[0].tolist() == [0] * (len(nodes) - 1) + [*range(1, len(nodes))]
    found = [None if number < 0 else data.classes[number] for number in data.y.tolist()]
    assert found == labels_of(labels)


@settings(max_examples=150, deadline=None)
@given(rows=st.lists(st.tuples(cells, cells)))
@example(rows=[("=1+1", "@x"), ("-1", "+1"), ("a\rb", "a\nb")])
def test_a_table_of_ours_is_read_as_written(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("cells") / "table.csv"
    write_csv(path, ["first", "second"], rows)
    with path.open(encoding="utf-8", newline="") as file:
        found = list(csv.reader(file, strict=True))
    assert found[1:] == [[csv_cell(cell) for cell in row] for row in rows]
