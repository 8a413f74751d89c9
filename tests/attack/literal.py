"""A second opinion: a slow, plain reader of graph folders, written from the documentation.

It judges damaged files, for which nobody knows the graph that was meant. It reads everything at
once and gives up at the first thing it does not understand.
"""

import csv
import gzip
import io
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from attack.dialects import Written
from attack.graphs import Graph
from attack.rules import (
    ID,
    LABEL,
    SOURCE,
    SPLIT,
    TARGET,
    as_features,
    is_comment,
    is_number,
    kept,
    number_of,
)

__all__ = ["UnreadableError", "read_literally", "read_table"]


class UnreadableError(Exception):
    """The folder is no graph."""


def read_literally(folder: Path, original: Written) -> Written:
    """Read a folder of text and parquet files.

    Args:
        folder: The folder.
        original: What an npz file in it, which is not damaged, holds.

    Raises:
        UnreadableError: It must be refused.
    """
    (nodes,), (edges,) = (list(folder.glob(f"{stem}.*")) for stem in ("nodes", "edges"))
    written = original if nodes.suffix == ".npz" else _nodes(read_table(nodes))
    if edges.suffix == ".npz":
        written.graph.edges = original.graph.edges
        ends = [end for edge in original.graph.edges for end in edge]
        _must(all(end < len(written.graph.ids) for end in ends), "edges of removed nodes")
    else:
        named = edges.suffix == ".parquet"
        written.graph.edges = _edges(read_table(edges), written, named)
    return written


def read_table(path: Path) -> list[list[str]]:
    """All rows as text, the header first."""
    try:
        if path.suffix == ".parquet":
            return _parquet(path)
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
        return _rows(content.decode("utf-8-sig"), ".tsv" in path.suffixes)
    except Exception as error:  # whatever a library makes of a damaged file
        raise UnreadableError(f"{path.name}: {error}") from error


def _rows(text: str, tabs: bool) -> list[list[str]]:
    lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)
    while lines and (not lines[0].strip() or is_comment(lines[0])):
        del lines[0]
    if tabs and lines and "\t" not in lines[0].strip():
        return [line.split() for line in lines if line.strip()]
    source = io.StringIO("".join(lines), newline="")
    how = {"delimiter": "\t" if tabs else ",", "skipinitialspace": True, "strict": True}
    rows = [[kept(cell) for cell in row] for row in csv.reader(source, **how)]
    return [row for row in rows if len(row) > 1 or any(row)]


def _parquet(path: Path) -> list[list[str]]:
    with pq.ParquetFile(path) as file:
        table = file.read()
    columns = [[_text(value) for value in column.to_pylist()] for column in table.columns]
    return [list(table.schema.names), *(list(row) for row in zip(*columns, strict=True))]


def _text(value: Any) -> str:
    """Nothing for null, 3 for 3.0, bytes as the text they are."""
    if value is None or value != value:
        return ""
    if isinstance(value, bytes):
        return kept(value.decode())
    whole = isinstance(value, bool) or (isinstance(value, float) and value.is_integer())
    return kept(str(int(value) if whole else value))


def _nodes(rows: list[list[str]]) -> Written:
    _must(bool(rows), "no header")
    header, *rows = rows
    _must(not all(map(is_number, header)), "a header of numbers")
    _must("" not in header and len(set(header)) == len(header), "column names")
    _must(all(len(row) == len(header) for row in rows), "ragged rows")
    _must(bool(rows), "no nodes")
    columns = {name: [row[i] for row in rows] for i, name in enumerate(header)}
    label_sets = {
        name[len("label:") :]: columns.pop(name)
        for name in header
        if name.lower().startswith(("label:", "label_"))
    }
    several = sum(name.lower().startswith(("label:", "label_")) for name in header)
    _must(len(label_sets) == several, "two label columns of one name")
    ids = _take(columns, ID) or [str(i) for i in range(len(rows))]
    _must("" not in ids and len(set(ids)) == len(ids), "ids")
    if label_sets:
        _must(not any(name.lower() == "label" for name in columns), "two kinds of label")
        for cells in zip(*label_sets.values(), strict=True):
            _must(_is_label_row(cells), "label cells")
    labels = None if label_sets else _take(columns, LABEL)
    splits = _take(columns, ("split",))
    if splits is not None:
        _must(all(not cell or cell.lower() in SPLIT for cell in splits), "split names")
        splits = [SPLIT[cell.lower()] if cell else "" for cell in splits]
    values = [[number_of(cell) for cell in row] for row in zip(*columns.values(), strict=True)]
    _must(bool(columns) and all(None not in row for row in values), "features")
    x = as_features(values)
    return Written(Graph(ids, x, [], labels, label_sets or None, splits), x)


def _is_label_row(cells: tuple[str, ...]) -> bool:
    numbers = {cell.removesuffix(".0") for cell in cells}
    return numbers <= {"0", "1"} or numbers <= {"", "-1"}


def _take(columns: dict[str, list[str]], names: tuple[str, ...]) -> list[str] | None:
    """Remove the column that has the first of these names, in any case."""
    for name in names:
        for column in columns:
            if column.lower() == name:
                return columns.pop(column)
    return None


def _edges(rows: list[list[str]], written: Written, named: bool) -> list[tuple[int, int]]:
    number = {name: i for i, name in enumerate(written.graph.ids)}
    first, second = 0, 1
    if rows and (named or _is_header(rows[0], number, written)):
        lower = [name.lower() for name in rows.pop(0)]
        sources = [i for i, name in enumerate(lower) if name in SOURCE]
        targets = [i for i, name in enumerate(lower) if name in TARGET]
        if sources and targets:
            first, second = sources[0], targets[0]
    for row in rows:
        known = len(row) > max(first, second) and row[first] in number and row[second] in number
        _must(known, f"edge {row}")
    return [(number[row[first]], number[row[second]]) for row in rows]


def _is_header(row: list[str], number: dict[str, int], written: Written) -> bool:
    """Whether the first row names columns; said of two nodes called so, either may be meant."""
    lower = {cell.lower() for cell in row}
    words = bool(lower & set(SOURCE) and lower & set(TARGET))
    known = [cell in number for cell in row[:2]]
    if len(known) < 2 or all(known):
        if words:
            written.excuses.append("a first row that reads like a header and like an edge")
        return False
    return words or not (any(known) or any(map(is_number, row[:2])))


def _must(holds: bool, what: str) -> None:
    if not holds:
        raise UnreadableError(what)
