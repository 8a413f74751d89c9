"""A table of edges: which nodes it joins, and whether its first row is a header."""

import warnings
from array import array
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from lgdgcn.data.names import is_number, warn_of_blanks
from lgdgcn.data.tables import TEXT_BYTES, Room, comment_hint, read_npz, read_rows, where
from lgdgcn.errors import InputError, LGDWarning
from lgdgcn.progress import long_work

__all__ = ["read_edges"]

SOURCE = {"source", "src", "from", "u", "source_id", "node1", "citing"}
TARGET = {"target", "dst", "to", "v", "target_id", "node2", "cited", "dest", "destination"}
WEIGHT = ("weight", "weights", "edge_weight")
EDGE_BYTES = 140  # at the peak of the work from a row to sorted edges in both directions


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
        ``edge_index`` [2, E], ``node_ids`` except from an npz file, and ``edge_weight`` [E] where
        there is one.
    """
    if path.suffix == ".npz":
        arrays = read_npz(path)
        if "edge_index" not in arrays:
            raise InputError(f"{path} has {sorted(arrays)[:9]} but no edge_index; add it, [2, E]")
        return {key: arrays[key] for key in ("edge_index", "edge_weight") if key in arrays}
    with long_work(f"reading {path.name}", "rows") as advance:
        numbers = {name: i for i, name in enumerate(ids or [])}
        rows = read_rows(path, advance, numbers, delimiter)
        edge_index, weight = _read(path, rows, numbers, ids is None, nodes)
    if ids is None:
        warn_of_blanks(path, "nodes", numbers)
    weights = {} if weight is None else {"edge_weight": weight}
    return {"edge_index": edge_index, "node_ids": list(numbers), **weights}


def _read(
    path: Path,
    rows: Iterator[tuple[int, list[str]]],
    numbers: dict[str, int],
    growing: bool,
    nodes: Path | None,
) -> tuple[np.ndarray[Any, np.dtype[np.int64]], Any]:
    """The edges as numbers of nodes, and their weights or ``None``.

    New nodes are given the next numbers if they are growing.
    """
    head = [row for row in (next(rows, None), next(rows, None)) if row is not None]
    first, second, header = 0, 1, None
    if head and _is_header(path, [cells for _, cells in head], numbers):
        header = head.pop(0)
        first, second = _columns(path, header[1])
    weight_at = None if header is None else _weight_column(path, header[1])
    flat, weights, extra, room = array("q"), array("f"), False, Room(path)
    most = 2 if weight_at is None else 3
    for line, cells in chain(head, rows):
        room.take(EDGE_BYTES)
        try:
            flat.extend((numbers[cells[first]], numbers[cells[second]]))
        except (IndexError, KeyError):
            pair = cells[first : first + 1] + cells[second : second + 1]
            if len(pair) < 2 or not all(name.strip() for name in pair):
                raise InputError(
                    f"{where(path, line)}: {len(cells)} cells ({', '.join(cells)[:50]!r}); "
                    f"an edge needs a source and a target{comment_hint(cells)}"
                ) from None
            if not growing:
                flat.extend([_number(path, line, name, numbers, nodes) for name in pair])
            for name in pair if growing else ():
                if name not in numbers:
                    room.left -= TEXT_BYTES + len(name)
                flat.append(numbers.setdefault(name, len(numbers)))
        if weight_at is not None:
            weights.append(_weight(path, line, cells, weight_at))
        extra = extra or len(cells) > most
    if extra:
        known = "source and target" if weight_at is None else "source, target and weight"
        hint = " (call one weight in the first line to use it)" if weight_at is None else ""
        message = f"{path}: columns beyond {known} are ignored{hint}"
        warnings.warn(message, LGDWarning, stacklevel=4)
    edges = np.array(flat, dtype=np.int64).reshape(-1, 2)
    if header is not None and path.suffix != ".parquet":
        _refuse_doubtful_header(path, header, numbers, growing, edges)
    return edges.T, None if weight_at is None else np.array(weights, dtype=np.float32)


def _weight_column(path: Path, names: list[str]) -> int | None:
    found = [i for i, name in enumerate(names) if name.strip().lower() in WEIGHT]
    if len(found) > 1:
        raise InputError(f"{path}: two columns are weights; rename one")
    return found[0] if found else None


def _weight(path: Path, line: int, cells: list[str], column: int) -> float:
    cell = cells[column] if column < len(cells) else ""
    if not is_number(cell, finite=True) or not np.float32(float(cell)) > 0:
        raise InputError(
            f"{where(path, line)}: weight is {cell[:50]!r}; give a finite number above 0, or name "
            "the column otherwise"
        )
    return float(cell)


def _number(
    path: Path, line: int, name: str, numbers: Mapping[str, int], nodes: Path | None
) -> int:
    """The number of a node, also where it has blanks around it that the nodes file has not."""
    number = numbers.get(name, numbers.get(name.strip(" \t")))
    if number is None:
        raise InputError(
            f"{where(path, line)}: unknown node {name[:50]!r}; "
            f"add it to {nodes.name if nodes else 'the nodes'} or remove the edge"
            f"{comment_hint([name])}"
        )
    return number


def _columns(path: Path, names: list[str]) -> tuple[int, int]:
    """Where a header puts source and target; the first two columns if it does not say."""
    lower = [name.strip().lower() for name in names]
    columns = []
    for known in (SOURCE, TARGET):
        found = [i for i, name in enumerate(lower) if name in known]
        if found and lower.count(lower[found[0]]) > 1:
            raise InputError(f"{path}: two columns are named {names[found[0]][:50]!r}; rename one")
        columns += found[:1]
    return (columns[0], columns[1]) if len(columns) == 2 else (0, 1)


def _is_header(path: Path, head: list[list[str]], numbers: Mapping[str, int]) -> bool:
    """Whether the first row names columns rather than nodes."""
    cells = head[0]
    if path.suffix == ".parquet":
        return True
    lower = {cell.lower() for cell in cells}
    if lower & SOURCE and lower & TARGET:
        return True
    known = [cell in numbers for cell in cells[:2]]
    if len(known) < 2 or any(known) or any(map(is_number, cells[:2])):
        return False
    if not numbers and not (len(head) > 1 and all(map(is_number, head[1][:2]))):
        return False  # no nodes file: only words above numbers are a header
    if not (numbers and all(map(is_number, islice(numbers, 100)))):
        why = "neither is a node" if numbers else "the next row is numbers"
        names = f"{cells[0][:50]!r} and {cells[1][:50]!r}"
        message = f"{path}: {names} are taken as a header, since {why}"
        warnings.warn(message, LGDWarning, stacklevel=5)
    return True


def _refuse_doubtful_header(
    path: Path,
    header: tuple[int, list[str]],
    numbers: Mapping[str, int],
    growing: bool,
    edges: np.ndarray[Any, np.dtype[np.int64]],
) -> None:
    """Refuse a header that may be an edge, unless the file has this edge anyway."""
    line, cells = header
    ends = [numbers[cell] for cell in cells[:2] if cell in numbers]
    if len(ends) < (1 if growing else 2):
        return  # an edge would name a node that is not there
    if len(ends) == 2 and any((edges == pair).all(1).any() for pair in (ends, ends[::-1])):
        return
    taken = {name.lower() for name in numbers}
    others = (("source", "target"), ("from", "to"), ("src", "dst"), ("node1", "node2"))
    names = next((",".join(pair) for pair in others if not set(pair) & taken), "another header")
    raise InputError(
        f"{where(path, line)}: {','.join(cells[:2])[:50]!r} may be a header or an edge, for nodes "
        f"are called so; if it is the header, write {names} instead, if an edge, write {names} "
        "above it"
    )
