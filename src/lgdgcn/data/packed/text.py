"""Columns of text of a packed graph: Arrow files, mapped into memory."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from lgdgcn.errors import InputError

__all__ = ["TextTable", "arrow", "row_numbers"]


def arrow() -> Any:
    """The ``pyarrow`` module; where it is missing, the error says what to install."""
    try:
        import pyarrow
        import pyarrow.compute
    except ImportError:
        raise InputError(
            "ids and text of a packed graph need pyarrow; pip install 'lgdgcn[scale]'"
        ) from None
    return pyarrow


def row_numbers(rows: Any, count: int) -> "np.ndarray[Any, Any]":
    """Numbers of rows as they are, without listing all others; those of a slice or mask."""
    if isinstance(rows, np.ndarray) and rows.dtype.kind in "iu" and (rows >= 0).all():
        return rows
    numbers: np.ndarray[Any, Any] = np.arange(count)[rows]
    return numbers


class TextTable:
    """Columns of text in an Arrow IPC file, of which only the asked cells are read."""

    def __init__(self, table: Any) -> None:
        self._table = table

    @classmethod
    def open(cls, path: Path) -> "TextTable":
        """Map a file into memory."""
        stat = path.stat()
        return _opened(path, stat.st_size, stat.st_mtime_ns)

    def cells(self, column: str, rows: Any) -> list[str]:
        """The cells of some rows: numbers ``[n]``, or a slice."""
        if column not in self._table.column_names:
            raise InputError(f"there is no column of text {column[:50]!r} in the packed graph")
        found = self._table.column(column)
        if isinstance(rows, slice) and rows.step in (None, 1):
            start, stop, _ = rows.indices(len(found))
            some = found.slice(start, max(0, stop - start))
        else:
            some = found.take(arrow().array(row_numbers(rows, len(found))))
        cells: list[str] = some.to_pylist()
        return cells

    def find(self, column: str, cells: Sequence[str]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The first row of each cell, -1 where there is none: int64 ``[n]``."""
        rows = np.full(len(cells), -1, np.int64)
        values = arrow().array(list(cells), self._table.schema.field(column).type)
        start = 0
        for batch in self._table.column(column).chunks:  # one pass, whatever the number of cells
            number = arrow().compute.index_in(values, value_set=batch)
            here = number.fill_null(-1).to_numpy(zero_copy_only=False)
            rows = np.where((rows < 0) & (here >= 0), here + start, rows)
            start += len(batch)
        return rows


@lru_cache(maxsize=16)
def _opened(path: Path, size: int, changed: int) -> TextTable:
    """Size and time are part of the key: another file of the same name is opened anew."""
    pyarrow = arrow()
    try:
        with pyarrow.memory_map(str(path)) as file:
            return TextTable(pyarrow.ipc.open_file(file).read_all())
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{path} is damaged ({reason}); pack the graph again") from None
