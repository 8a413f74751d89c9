"""A second opinion: a slow, plain reader of graph folders, written from the documentation.

It judges damaged files, for which nobody knows the graph that was meant. It reads everything at
once and gives up at the first thing it does not understand.
"""

import csv
import gzip
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from attack.dialects import Written
from attack.graphs import Graph
from attack.rules import (
    BLANKS,
    ID,
    LABEL,
    SOURCE,
    SPLIT,
    TARGET,
    WEIGHT,
    as_features,
    delimiter_of,
    is_comment,
    is_infinite,
    is_missing,
    is_nothing,
    is_number,
    is_padded,
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
    named = nodes.suffix == ".parquet"
    written = original if nodes.suffix == ".npz" else _nodes(read_table(nodes), named)
    if edges.suffix == ".npz":
        written.graph.edges = original.graph.edges
        ends = [end for edge in original.graph.edges for end in edge]
        _must(all(end < len(written.graph.ids) for end in ends), "edges of removed nodes")
    else:
        named = edges.suffix == ".parquet"
        written.graph.edges = _edges(read_table(edges, written.graph.ids), written, named)
    return written


def read_table(path: Path, known: Collection[str] = ()) -> list[list[str]]:
    """All rows as text, the header first.

    Args:
        path: A text or parquet file.
        known: For edges, the ids of the nodes: a first line that begins with one is no comment.
    """
    try:
        if path.suffix == ".parquet":
            return _parquet(path)
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
        return _rows(content.decode("utf-8-sig"), ".tsv" in path.suffixes, known)
    except Exception as error:  # whatever a library makes of a damaged file
        raise UnreadableError(f"{path.name}: {error}") from error


def _rows(text: str, tabs: bool, known: Collection[str]) -> list[list[str]]:
    lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)
    while lines and (is_nothing(lines[0]) or is_comment(lines[0])):
        blanks = "\t" if "\t" in lines[0].strip() else "[ \t]"
        divider = blanks if tabs else delimiter_of(lines[0])
        if re.split(divider, lines[0].rstrip("\r\n"))[0] in known:
            break
        del lines[0]
    if not lines:
        return []
    if tabs and "\t" not in lines[0].strip():
        return [_split(line) for line in lines if not is_nothing(line)]
    text, delimiter = "".join(lines), "\t" if tabs else delimiter_of(lines[0])
    first = next(_parse(text, delimiter, padded=False), [])
    padded = is_padded(first) and not all(cell in known for cell, _ in first[:2])
    rows = []
    for row in _parse(text, delimiter, padded):
        if len(row) > 1 or row[0][1] or not is_nothing(row[0][0]):
            rows.append([c.strip(BLANKS) if padded and not quoted else c for c, quoted in row])
    return rows


def _split(line: str) -> list[str]:
    if '"' not in line:
        return re.split(r"[ \t]+", line.strip(BLANKS + "\r\n"))
    return next(csv.reader([line.strip()], delimiter=" ", skipinitialspace=True, strict=True))


def _parse(text: str, delimiter: str, padded: bool) -> Iterator[list[tuple[str, bool]]]:
    """The rows of a text, character by character; each cell with whether it was quoted."""
    place, row = 0, []
    while place < len(text):
        start = place
        while padded and text[start : start + 1] == " ":
            start += 1
        quoted = text[start : start + 1] == '"'
        if quoted:
            match = re.compile(r'"((?:[^"]|"")*)"', re.DOTALL).match(text, start)
            _must(match is not None, "an open quote")
            cell, place = match[1].replace('""', '"'), match.end()
        else:
            match = re.compile(f"[^{delimiter}\r\n]*").match(text, place)
            cell, place = match[0], match.end()
        row.append((cell, quoted))
        end = re.compile(f"{delimiter}|\r\n|\r|\n|$").match(text, place)
        _must(end is not None, "text behind a quote")
        place = end.end()
        if end[0] != delimiter:
            yield row
            row = []
    if row:  # the text ends with a delimiter
        yield [*row, ("", False)]


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
        return value.decode()
    whole = isinstance(value, bool) or (isinstance(value, float) and value.is_integer())
    return str(int(value) if whole else value)


def _nodes(rows: list[list[str]], named: bool) -> Written:
    _must(bool(rows), "no header")
    header, *rows = rows
    _must(named or not all(map(is_number, header)), "a header of numbers")
    _must("" not in header[1:] and len(set(header)) == len(header), "column names")
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
    ids = _take(columns, ID)
    index = columns.pop("", None)  # a first column without a name is an index
    ids = ids or index or [str(i) for i in range(len(rows))]
    _must(not any(map(is_nothing, ids)) and len(set(ids)) == len(ids), "ids")
    if label_sets:
        _must(not any(name.lower() == "label" for name in columns), "two kinds of label")
        for cells in zip(*label_sets.values(), strict=True):
            _must(_is_label_row(cells), "label cells")
    labels = None if label_sets else _take(columns, LABEL)
    splits = _take(columns, ("split",))
    if splits is not None:
        splits = [cell.strip().lower() for cell in splits]
        _must(all(not cell or cell in SPLIT for cell in splits), "split names")
        splits = [SPLIT.get(cell, "") for cell in splits]
    graph = Graph(ids, np.zeros((len(ids), 0)), [], labels, label_sets or None, splits)
    plain = {}
    for name, cells in columns.items():
        words = [c for c in cells if not (is_number(c) or is_missing(c) or is_infinite(c))]
        _must(bool(words) or not any(map(is_infinite, cells)), "infinite features")
        if all(map(is_number, cells)):
            plain[name] = as_features([[number_of(cell) for cell in cells]])[0]
    if len(plain) == len(columns) and plain:
        return Written(graph, np.stack(list(plain.values()), 1))
    return Written(graph, None, plain=plain)


def _is_label_row(cells: tuple[str, ...]) -> bool:
    numbers = {cell.strip().removesuffix(".0") for cell in cells}
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
    weigh: list[int] = []
    if rows and (named or _is_header(rows[0], number, written)):
        lower = [name.lower() for name in rows.pop(0)]
        weigh = [i for i, name in enumerate(lower) if name.strip() in WEIGHT]
        _must(len(weigh) < 2, "two columns of weights")
        sources = [i for i, name in enumerate(lower) if name in SOURCE]
        targets = [i for i, name in enumerate(lower) if name in TARGET]
        if sources and targets:
            first, second = sources[0], targets[0]
    edges = []
    for row in rows:
        _must(len(row) > max(first, second), f"edge {row}")
        ends = [number.get(c, number.get(c.strip(BLANKS))) for c in (row[first], row[second])]
        _must(None not in ends, f"edge {row}")
        edges.append((ends[0], ends[1]))
    written.graph.weights = [_weight(row, weigh[0]) for row in rows] if weigh else None
    return edges


def _weight(row: list[str], column: int) -> float:
    value = number_of(row[column]) if column < len(row) else None
    _must(value is not None and np.float32(value) > 0, f"weight of {row}")
    return float(np.float32(value))


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
