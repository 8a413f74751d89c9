"""Tables that are written block by block: CSV, or Parquet where the name says so."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from lgdgcn.errors import InputError
from lgdgcn.storage import atomic_write, write_csv

__all__ = ["CSV", "PARQUET", "Block", "check_format", "large_format", "write_blocks"]

CSV, PARQUET = ".csv", ".parquet"

# Columns by name: numbers as an array (NaN where there is none), everything else as a list.
Block = dict[str, "np.ndarray[Any, Any] | Sequence[Any]"]


def check_format(path: Path) -> None:
    """Refuse a Parquet file before any work is done where nothing can write one."""
    if path.suffix == PARQUET:
        _pyarrow()


def large_format() -> str:
    """The suffix of tables with very many rows: that of Parquet, where something can write it."""
    try:
        _pyarrow()
    except InputError:
        return CSV
    return PARQUET


def write_blocks(path: Path, blocks: Iterable[Block]) -> int:
    """Write a table completely or not at all, holding one block at a time.

    Args:
        path: The file; ``.parquet`` makes it a Parquet file, everything else CSV.
        blocks: Rows with the same columns each, at least one block.

    Returns:
        The number of rows.
    """
    blocks = iter(blocks)
    first, count = next(blocks), 0

    def counted() -> Iterator[Block]:
        nonlocal count
        for block in chain([first], blocks):
            count += len(next(iter(block.values())))
            yield block

    if path.suffix == PARQUET:
        _write_parquet(path, first, counted())
    else:
        write_csv(path, first, (row for block in counted() for row in _csv_rows(block)))
    return count


def _csv_rows(block: Block) -> Iterator[tuple[Any, ...]]:
    return zip(*map(_cells, block.values()), strict=True)


def _cells(column: Any) -> list[Any]:
    """The cells of a column: probabilities have six digits, and none is an empty cell."""
    if not isinstance(column, np.ndarray):
        return list(column)
    values: list[Any] = column.tolist()
    if column.dtype.kind != "f":
        return values
    return ["" if value != value else f"{value:.6f}" for value in values]


def _write_parquet(path: Path, first: Block, blocks: Iterable[Block]) -> None:
    pyarrow, parquet = _pyarrow()
    schema = pyarrow.schema([(name, _kind(pyarrow, column)) for name, column in first.items()])

    def fill(file: BinaryIO) -> None:
        with parquet.ParquetWriter(file, schema) as writer:
            for block in blocks:
                arrays = [
                    pyarrow.array(_plain(column), field.type, from_pandas=True)
                    for column, field in zip(block.values(), schema, strict=True)
                ]
                writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))

    atomic_write(path, fill)


def _kind(pyarrow: Any, column: Any) -> Any:
    if not isinstance(column, np.ndarray):
        return pyarrow.string()
    return pyarrow.float32() if column.dtype.kind == "f" else pyarrow.int32()


def _plain(column: Any) -> Any:
    """Numbers as they are; everything else as text that UTF-8 can hold."""
    if isinstance(column, np.ndarray):
        return column
    cells = ("" if cell is None else str(cell) for cell in column)
    return [cell.encode("utf-8", "backslashreplace").decode() for cell in cells]


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError(
            "Parquet files need pyarrow; pip install 'lgdgcn[parquet]', or name a .csv file"
        ) from None
    return pyarrow, pyarrow.parquet
