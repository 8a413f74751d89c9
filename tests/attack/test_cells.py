"""Cells of text files: what was written comes back, character for character."""

import csv

from hypothesis import example, given, settings
from hypothesis import strategies as st

from attack.graphs import WORDS
from lgdgcn.storage import csv_cell, write_csv

text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
cells = st.one_of(st.sampled_from(WORDS), text)


@settings(max_examples=150, deadline=None)
@given(rows=st.lists(st.tuples(cells, cells)))
@example(rows=[("=1+1", "@x"), ("-1", "+1"), ("a\rb", "a\nb")])
def test_a_table_of_ours_is_read_as_written(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("cells") / "table.csv"
    write_csv(path, ["first", "second"], rows)
    with path.open(encoding="utf-8", newline="") as file:
        found = list(csv.reader(file, strict=True))
    assert found[1:] == [[csv_cell(cell) for cell in row] for row in rows]
