"""A table of edges: which nodes it joins, and whether its first row is a header."""

import math
import warnings
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from lgdgcn.data.delimited import has_semicolons
from lgdgcn.data.edge_types import MOST_TYPES, types_of_cells
from lgdgcn.data.names import is_index, is_number, warn_of_blanks
from lgdgcn.data.tables import (
    TEXT_BYTES,
    Room,
    comment_hint,
    decimal_point,
    read_npz,
    read_rows,
    where,
)
from lgdgcn.errors import InputError, LGDNote, LGDWarning
from lgdgcn.progress import long_work

__all__ = [
    "TYPE",
    "WEIGHT",
    "UnknownNodeError",
    "end_columns",
    "extra_columns_note",
    "index_columns",
    "is_header",
    "read_edges",
    "refuse_doubtful_header",
    "role_column",
    "some_ends",
    "tell_weights",
    "weight_of",
]

SOURCE = {"source", "src", "from", "u", "source_id", "node1", "citing"}
TARGET = {"target", "dst", "to", "v", "target_id", "node2", "cited", "dest", "destination"}
WEIGHT = ("weight", "weights", "edge_weight")
TYPE = "type"
SOME_ROWS = 1000  # tell which nodes edges name
EDGE_BYTES = 140  # at the peak of the work from a row to sorted edges in both directions


class UnknownNodeError(InputError):
    """An edge names a node that is not there.

    Args:
        message: Where, and what to do.
        name: The node.
    """

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message)
        self.name = name


def read_edges(
    path: Path, ids: list[str] | None, nodes: Path | None, delimiter: str = ""
) -> dict[str, Any]:
    """Read an edge list, whose header is optional.

    The first row is a header if it names two columns (source and target, from and to, u and v, …)
    or if neither of its cells is a node. A row that could be both, because nodes are called so, is
    a header if the same edge comes again below; otherwise it is refused.

    Args:
        path: A csv, tsv or parquet file of node ids, or an npz file with ``edge_index``.
        ids: The nodes in their order; ``None`` if the edges are what names the nodes.
        nodes: The file the ids are from, for messages.
        delimiter: What divides the cells of a text file; by default the file tells.

    Returns:
        ``edge_index`` [2, E], ``node_ids`` except from an npz file, ``edge_weight`` [E] where
        there is one, and ``edge_type`` [E, T] with ``edge_type_names`` where there is a column
        ``type``: blank where it is not known, several types divided by semicolons. An edge without
        a weight gets the mean of the others, and one of weight 0 is left out.
    """
    if path.suffix == ".npz":
        arrays = read_npz(path)
        if "edge_index" not in arrays:
            raise InputError(f"{path} has {sorted(arrays)[:9]} but no edge_index; add it, [2, E]")
        wanted = ("edge_index", "edge_weight", "edge_type", "edge_type_names")
        return {key: arrays[key] for key in wanted if key in arrays}
    with long_work(f"reading {path.name}", "rows") as advance:
        numbers = {name: i for i, name in enumerate(ids or [])}
        rows = read_rows(path, advance, numbers, delimiter)
        values = _read(path, rows, numbers, ids is None, nodes, delimiter)
    if ids is None:
        warn_of_blanks(path, "nodes", numbers)
    return {**values, "node_ids": list(numbers)}


def some_ends(path: Path, delimiter: str = "") -> set[str]:
    """Nodes that the first edges of a file name; none if it cannot be read, which others say."""
    if path.suffix == ".npz":
        return set()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows = read_rows(path, lambda done, share: None, None, delimiter)
            head = [cells for _, cells in islice(rows, SOME_ROWS)]
            ends = end_columns(path, head[0]) if head else (0, 1)
    except InputError:
        return set()
    below = head[1:] or head  # the first row may be a header
    return {cells[i] for cells in below for i in ends if i < len(cells)} - {""}


def _read(
    path: Path,
    rows: Iterator[tuple[int, list[str]]],
    numbers: dict[str, int],
    growing: bool,
    nodes: Path | None,
    delimiter: str,
) -> dict[str, Any]:
    """The edges as numbers of nodes, with their weights and types if there are any.

    New nodes are given the next numbers if they are growing.
    """
    head = [row for row in (next(rows, None), next(rows, None)) if row is not None]
    first, second, header = 0, 1, None
    if head and is_header(path, [cells for _, cells in head], numbers):
        header = head.pop(0)
        first, second = end_columns(path, header[1])
    weight_at = None if header is None else role_column(path, header[1], WEIGHT, "weights")
    type_at = None if header is None else role_column(path, header[1], (TYPE,), "types")
    flat, weights, extra, room = array("q"), array("f"), False, Room(path)
    zeros = 0
    type_cells: dict[str, int] = {}  # every different cell, with its number
    types = array("q")
    names = None if header is None else header[1]
    most = 2 + (weight_at is not None) + (type_at is not None) + index_columns(names)
    commas = path.suffix != ".parquet" and has_semicolons(path, delimiter)
    for line, cells in chain(head, rows):
        room.take(EDGE_BYTES)
        extra = extra or len(cells) > most
        try:
            ends = [numbers[cells[first]], numbers[cells[second]]]
        except (IndexError, KeyError):
            pair = cells[first : first + 1] + cells[second : second + 1]
            if len(pair) < 2 or not all(name.strip() for name in pair):
                raise InputError(
                    f"{where(path, line)}: {len(cells)} cells ({', '.join(cells)[:50]!r}); "
                    f"an edge needs a source and a target{comment_hint(cells)}"
                ) from None
            if growing:
                room.left -= sum(TEXT_BYTES + len(name) for name in {*pair} - numbers.keys())
                ends = [numbers.setdefault(name, len(numbers)) for name in pair]
            else:
                ends = [_number(path, line, name, numbers, nodes) for name in pair]
        if weight_at is not None:
            weight = _weight(path, line, cells, weight_at, commas)
            if weight == 0:
                zeros += 1
                continue
            weights.append(weight)
        flat.extend(ends)
        if type_at is not None:
            cell = cells[type_at] if type_at < len(cells) else ""
            if cell not in type_cells:
                room.left -= TEXT_BYTES + len(cell)
            types.append(type_cells.setdefault(cell, len(type_cells)))
    if extra:
        known = weight_at is not None, type_at is not None
        message = extra_columns_note(path, *known, names, (first, second))
        warnings.warn(message, LGDWarning, stacklevel=4)
    edges = np.array(flat, dtype=np.int64).reshape(-1, 2)
    if header is not None and path.suffix != ".parquet":
        refuse_doubtful_header(
            path, header, numbers, growing, lambda pair: bool((edges == pair).all(1).any())
        )
    values: dict[str, Any] = {"edge_index": edges.T}
    if weight_at is not None:
        found = np.array(weights, dtype=np.float32)
        blank = np.isnan(found)
        counts = int(blank.sum()), int((~blank).sum())
        found[blank] = tell_weights(path, *counts, map(float, found[~blank]), zeros)
        values["edge_weight"] = found
    if type_at is not None:
        values |= _types(path, list(type_cells), np.array(types))
    return values


def index_columns(names: list[str] | None) -> int:
    """How many columns of a header are numbers of rows, which nobody misses."""
    return sum(map(is_index, names or ()))


def extra_columns_note(
    path: Path, weighted: bool, typed: bool, names: list[str] | None, ends: tuple[int, int]
) -> str:
    """What to say of columns that are not used.

    Args:
        path: The file.
        weighted: Whether a column holds weights.
        typed: Whether a column holds types.
        names: The header, if there is one.
        ends: Where source and target are.
    """
    known = ["source", "target", *["weight"] * weighted, *[TYPE] * typed]
    hint = "" if weighted else " (call one weight in the first line to use it)"
    listed = f"{', '.join(known[:-1])} and {known[-1]}"
    message = f"{path}: columns beyond {listed} are ignored{hint}"
    if names is None:
        return f"{message}; the first two are source and target"
    source, target = (names[i][:50] for i in ends)
    if source.strip().lower() in SOURCE and target.strip().lower() in TARGET:
        return message
    return f"{message}; source is {source!r}, target is {target!r}"


def _types(path: Path, cells: list[str], number: Any) -> dict[str, Any]:
    """Types of the edges; none if no cell has one, or nearly every edge has its own."""
    found = types_of_cells(cells, number)
    if found is None:
        message = f"{path}: column {TYPE!r} is ignored: it has more than {MOST_TYPES:,} types"
        warnings.warn(message, LGDWarning, stacklevel=5)
        return {}
    return {"edge_type": found[0], "edge_type_names": found[1]} if found[1] else {}


def role_column(path: Path, names: list[str], wanted: tuple[str, ...], what: str) -> int | None:
    """Where a header puts the only column of one of the wanted names."""
    found = [i for i, name in enumerate(names) if name.strip().lower() in wanted]
    if len(found) > 1:
        raise InputError(f"{path}: two columns are {what}; rename one")
    return found[0] if found else None


def weight_of(cell: str) -> float | None:
    """The weight that a cell holds, NaN for a blank; ``None`` if it is none that float32 holds.

    Example:
        >>> [weight_of(cell) for cell in ("2.5", "0", " ", "-1", "nan", "1e-60")]
        [2.5, 0.0, nan, None, None, None]
    """
    if not cell.strip():
        return math.nan
    if not is_number(cell, finite=True):
        return None
    weight = float(cell)
    return weight if weight == 0 or np.float32(weight) > 0 else None


def tell_weights(path: Path, blank: int, given: int, others: Iterable[float], zeros: int) -> float:
    """Say what is done with edges that have no weight, or weight 0.

    An edge without a weight gets the mean of the others: 1 would be much or little, depending on
    the unit. The sum is exact, so that it does not depend on the order of the edges.

    Args:
        path: The (first) file.
        blank: How many have none.
        given: How many have one above 0.
        others: These weights, as float32 holds them.
        zeros: How many have weight 0.

    Returns:
        The weight of an edge that has none.
    """
    mean = 1.0
    if blank:
        mean = math.fsum(others) / given if given else 1.0
        how = f"the mean of the others, {mean:.6g}" if given else "1, as none is given"
        message = f"{path}: {_edges(blank)} no weight: it is taken as {how}"
        warnings.warn(message, LGDNote, stacklevel=5)
    if zeros:
        message = f"{path}: {_edges(zeros)} weight 0: left out"
        warnings.warn(message, LGDWarning, stacklevel=5)
    return mean


def _edges(count: int) -> str:
    return f"{count:,} edges have" if count != 1 else "1 edge has"


def _weight(path: Path, line: int, cells: list[str], column: int, commas: bool) -> float:
    cell = cells[column] if column < len(cells) else ""
    cell = decimal_point(cell) if commas else cell
    weight = weight_of(cell)
    if weight is None:
        raise InputError(
            f"{where(path, line)}: weight is {cell[:50]!r}; give a finite number above 0, or name "
            "the column otherwise"
        )
    return weight


def _number(
    path: Path, line: int, name: str, numbers: Mapping[str, int], nodes: Path | None
) -> int:
    """The number of a node, also where it has blanks around it that the nodes file has not."""
    number = numbers.get(name, numbers.get(name.strip(" \t")))
    if number is None:
        raise UnknownNodeError(
            f"{where(path, line)}: unknown node {name[:50]!r}; "
            f"add it to {nodes.name if nodes else 'the nodes'} or remove the edge"
            f"{comment_hint([name])}",
            name,
        )
    return number


def end_columns(path: Path, names: list[str]) -> tuple[int, int]:
    """Where a header puts source and target; the first two columns if it does not say.

    Numbers of rows in front of them are none of these.
    """
    lower = [name.strip().lower() for name in names]
    columns = []
    for known in (SOURCE, TARGET):
        found = [i for i, name in enumerate(lower) if name in known]
        if found and lower.count(lower[found[0]]) > 1:
            raise InputError(f"{path}: two columns are named {names[found[0]][:50]!r}; rename one")
        columns += found[:1]
    if len(columns) < 2:
        columns = [i for i, name in enumerate(names) if not is_index(name)]
    return (columns[0], columns[1]) if len(columns) > 1 else (0, 1)


def is_header(path: Path, head: list[list[str]], numbers: Mapping[str, int]) -> bool:
    """Whether the first row names columns rather than nodes."""
    cells = head[0]
    if path.suffix == ".parquet":
        return True
    lower = {cell.lower() for cell in cells}
    if lower & SOURCE and lower & TARGET:
        return True
    indexed = len(cells) > 2 and is_index(cells[0])
    ends = cells[1:3] if indexed else cells[:2]
    if len(ends) < 2 or any(cell in numbers or is_number(cell) for cell in (cells[0], *ends)):
        return False
    if indexed:
        return True  # no edge begins so
    if not numbers and not (len(head) > 1 and all(map(is_number, head[1][:2]))):
        return False  # no nodes file: only words above numbers are a header
    if not (numbers and all(map(is_number, islice(numbers, 100)))):
        why = "neither is a node" if numbers else "the next row is numbers"
        names = f"{cells[0][:50]!r} and {cells[1][:50]!r}"
        message = f"{path}: {names} are taken as a header, since {why}"
        warnings.warn(message, LGDWarning, stacklevel=5)
    return True


def refuse_doubtful_header(
    path: Path,
    header: tuple[int, list[str]],
    numbers: Mapping[str, int],
    growing: bool,
    has_edge: Callable[[list[int]], bool],
) -> None:
    """Refuse a header that may be an edge, unless the file has this edge anyway.

    Args:
        path: The file.
        header: Line and cells of its first row.
        numbers: The numbers of the nodes.
        growing: Whether the edges are what names the nodes.
        has_edge: Whether an edge between two numbers is there, in this direction.
    """
    line, cells = header
    if is_index(cells[0]):
        return  # no edge begins so
    ends = [numbers[cell] for cell in cells[:2] if cell in numbers]
    if len(ends) < (1 if growing else 2):
        return  # an edge would name a node that is not there
    if len(ends) == 2 and (has_edge(ends) or has_edge(ends[::-1])):
        return
    taken = {name.lower() for name in numbers}
    others = (("source", "target"), ("from", "to"), ("src", "dst"), ("node1", "node2"))
    names = next((",".join(pair) for pair in others if not set(pair) & taken), "another header")
    raise InputError(
        f"{where(path, line)}: {','.join(cells[:2])[:50]!r} may be a header or an edge, for nodes "
        f"are called so; if it is the header, write {names} instead, if an edge, write {names} "
        "above it"
    )
