"""Columns of a table of nodes in which every cell is a number or blank."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lgdgcn.data.names import NUMBER, is_code, is_missing, is_number
from lgdgcn.data.packing.engine import literal
from lgdgcn.data.packing.node_cells import NodeCells
from lgdgcn.data.tables import holds, is_infinite
from lgdgcn.errors import InputError
from lgdgcn.progress import long_work

__all__ = ["Numbers", "number"]

FIRST = 1000  # rows that mostly tell which columns are words
BATCH = 1 << 21  # numbers that are read at a time
GROUP = 64  # columns in a question: the engine keeps many values of each at once
TOO_LARGE = "3.4028235677973366e38"  # what float32 rounds to infinity

Array = np.ndarray[Any, np.dtype[np.float32]]


def number(cell: str) -> str:
    """The SQL of a cell as a number that float32 holds, else null."""
    written = f"regexp_full_match({cell}, {literal(NUMBER.pattern)})"
    value = f"TRY_CAST({cell} AS DOUBLE)"
    return f"CASE WHEN {written} AND abs({value}) < {TOO_LARGE} THEN {value} END"


@dataclass
class _NumberFile:
    """Numbers of some columns, read from the engine once and kept in a file.

    The file is made of blocks of rows, in each of which a column is one piece: both a column and
    some rows can be read without reading all.

    Attributes:
        path: The file, float32, NaN for blanks.
        names: The columns in it; an empty name stands for one that turned out to be words.
        blocks: First row and count of rows of each block.
    """

    path: Path
    names: list[str]
    blocks: list[tuple[int, int]] = field(default_factory=list)

    @classmethod
    def write(cls, nodes: NodeCells, path: Path, names: list[str]) -> "_NumberFile":
        """Read the numbers of some columns.

        Raises:
            InputError: One is infinite, in a column of numbers.
        """
        words, infinite, made = set[str](), dict[str, str](), cls(path, names)
        cells = [nodes.column(name) for name in names]
        inner = ", ".join(f"{number(c)} AS v{c}, {c} AS t{c}" for c in cells)
        outer = ", ".join(
            f"v{c}, CASE WHEN v{c} IS NULL AND t{c} <> '' THEN t{c} END" for c in cells
        )
        sql = f"SELECT rowid, {outer} FROM (SELECT rowid, {inner} FROM nodes)"
        with open(path, "wb") as file, long_work("reading numbers", "rows") as advance:
            for start, batch in nodes.in_order(sql, BATCH // (1 + len(names))):
                block = np.empty((len(names), len(batch[0])), np.float32)
                for i, name in enumerate(names):
                    values, text = batch[2 * i], batch[2 * i + 1]
                    block[i] = values.to_numpy(zero_copy_only=False)
                    if text.null_count < len(text) and name not in words:
                        complaint = _judge(nodes, name, block[i], text, start, words)
                        infinite |= {name: infinite.get(name, complaint)} if complaint else {}
                file.write(block.tobytes())
                made.blocks.append((start, block.shape[1]))
                advance(start + block.shape[1], (start + block.shape[1]) / nodes.rows)
        for name, complaint in infinite.items():
            if name not in words:
                raise InputError(complaint)
        made.names = ["" if name in words else name for name in names]
        return made

    def column(self, name: str) -> Array:
        """One column ``[N]``."""
        at, pieces = self.names.index(name), []
        for start, rows in self.blocks:
            offset = 4 * (start * len(self.names) + at * rows)
            pieces.append(np.fromfile(self.path, np.float32, rows, offset=offset))
        return np.concatenate(pieces)

    def rows(self, first: int, count: int) -> dict[str, Array]:
        """Some rows of all columns ``[count]``, by name."""
        pieces = []
        for start, rows in self.blocks:
            low, high = max(first, start), min(first + count, start + rows)
            if low < high:
                size, offset = rows * len(self.names), 4 * start * len(self.names)
                block = np.fromfile(self.path, np.float32, size, offset=offset)
                pieces.append(block.reshape(len(self.names), rows)[:, low - start : high - start])
        joined = np.concatenate(pieces, 1)
        return {name: joined[i] for i, name in enumerate(self.names) if name}


class Numbers:
    """The columns of a table in which every cell is a number or blank.

    Args:
        nodes: The table.
        folder: Where files of them are kept.
    """

    def __init__(self, nodes: NodeCells, folder: Path) -> None:
        names = [name for name in nodes.names if name not in nodes.as_text]
        words = set(_words_at_first(nodes, names))
        names = [name for name in names if name not in words and not _is_code(nodes, name)]
        self._files = [
            _NumberFile.write(nodes, folder / f"numbers-{at}.tmp", names[at : at + GROUP])
            for at in range(0, len(names), GROUP)
        ]
        self._home = {name: file for file in self._files for name in file.names if name}

    def __contains__(self, name: str) -> bool:
        return name in self._home

    def column(self, name: str) -> Array:
        """One column ``[N]``, NaN for blanks."""
        return self._home[name].column(name)

    def rows(self, first: int, count: int) -> dict[str, Array]:
        """Some rows of all columns ``[count]``, by name."""
        return {k: v for file in self._files for k, v in file.rows(first, count).items()}

    def remove(self) -> None:
        """Remove the files."""
        for file in self._files:
            file.path.unlink()


def _words_at_first(nodes: NodeCells, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        cells = nodes.engine.rows(f"SELECT {nodes.column(name)} FROM nodes LIMIT {FIRST}")
        if any(_is_word(cell) for (cell,) in cells):
            yield name


def _is_code(nodes: NodeCells, name: str) -> bool:
    """Whether a column holds codes; most columns of numbers have no cell such as 01."""
    zero = f"SELECT 1 FROM nodes WHERE regexp_full_match({nodes.column(name)}, '0[0-9]+') LIMIT 1"
    return nodes.engine.one(zero) is not None and is_code(nodes.counted(name).texts)


def _is_word(cell: str) -> bool:
    return not (is_missing(cell) or is_number(cell, finite=True) or is_infinite(cell))


def _judge(
    nodes: NodeCells, name: str, block: Array, text: Any, start: int, words: set[str]
) -> str:
    """Look at cells that the engine does not take for numbers as Python does.

    Returns:
        What to say of the first infinite one, if the column is no words.
    """
    complaint = ""
    found = np.flatnonzero(text.is_valid().to_numpy(zero_copy_only=False))
    for i, cell in zip(found.tolist(), text.drop_null().to_pylist(), strict=True):
        if is_number(cell, finite=True):
            block[i] = float(cell)
        elif is_infinite(cell):
            complaint = complaint or f"{nodes.where(start + i)}: {holds(name, cell)}"
        elif not is_missing(cell):
            words.add(name)
            break
    return complaint
