"""Damage to one file of a graph folder: bytes, cells, arrays, or the file itself."""

import csv
import gzip
import io
import os
import zipfile
from enum import Enum
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from attack.graphs import hostile_name
from attack.literal import read_table

__all__ = ["Kind", "damage", "flip", "spoil_arrays", "spoil_cells", "spoil_file"]


class Kind(Enum):
    """How a damaged folder is to be judged."""

    LITERAL = "as the literal reader reads it"
    SEALED = "the file has a checksum: refused, or read as it was"
    REFUSE = "must be refused"


def damage(random: Random, folder: Path) -> Kind:
    """Damage the nodes or the edges."""
    path = random.choice(sorted(folder.iterdir()))
    if (chance := random.random()) < 0.05:
        return _bomb(random, path) if chance < 0.001 else spoil_file(random, path)
    if path.suffix == ".npz":
        return random.choice([_flip_file, spoil_arrays])(random, path)
    if random.random() < 0.5:
        return spoil_cells(random, path)
    if path.suffix == ".gz" and random.random() < 0.5:
        content = flip(random, gzip.decompress(path.read_bytes()))
        path.write_bytes(gzip.compress(content, 1))
        return Kind.LITERAL
    return _flip_file(random, path)


# Bytes

PIECES = [
    b"\n",
    b"\r",
    b'"',
    b",",
    b"\t",
    b" ",
    b"#",
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"-",
    b"'",
]


def flip(random: Random, content: bytes) -> bytes:
    """Flip, insert, remove, repeat or cut bytes, up to three times."""
    for _ in range(random.randint(1, 3)):
        start = random.randrange(len(content) + 1)
        end = min(len(content), start + random.choice([1, 1, 2, 8, 100]))
        kind = random.randrange(6)
        if kind == 0 and start < len(content):
            changed = bytes([content[start] ^ (1 << random.randrange(8))])
            content = content[:start] + changed + content[start + 1 :]
        elif kind == 1:
            content = content[:start] + random.choice(PIECES) + content[start:]
        elif kind == 2:
            content = content[:start] + content[end:]
        elif kind == 3:
            content = content[:end] + content[start:]
        elif kind == 4:
            content = content[:start]
        elif kind == 5:
            content = content[:start] + random.randbytes(end - start) + content[end:]
    return content


def _flip_file(random: Random, path: Path) -> Kind:
    path.write_bytes(flip(random, path.read_bytes()))
    return Kind.SEALED if path.suffix == ".npz" else Kind.LITERAL


# Cells


def spoil_cells(random: Random, path: Path) -> Kind:
    """Rewrite a table with cells, rows or columns removed, repeated or replaced."""
    rows = read_table(path)
    for _ in range(random.randint(1, 2)):
        _spoil_table(random, rows)
    if path.suffix == ".parquet":
        columns = [pa.array(column) for column in zip(*rows[1:], strict=False)]
        names = (rows or [[]])[0][: len(columns)]
        if len(names) == len(columns):
            pq.write_table(pa.Table.from_arrays(columns, names=names), path)
        return Kind.LITERAL
    text = io.StringIO(newline="")
    delimiter = "\t" if ".tsv" in path.suffixes else ","
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
    content = text.getvalue().encode()
    path.write_bytes(gzip.compress(content, 1) if path.suffix == ".gz" else content)
    return Kind.LITERAL


def _spoil_table(random: Random, rows: list[list[str]]) -> None:
    if not rows or not (width := len(rows[0])):
        return
    row, column = random.choice(rows), random.randrange(width)
    kind = random.randrange(9)
    if kind == 0:
        row[column : column + 1] = []
    elif kind == 1:
        row.insert(column, hostile_name(random, empty=True))
    elif kind in (2, 3) and column < len(row):
        row[column] = random.choice(
            ["", "nan", "inf", "1e99", "1_0", "٣", hostile_name(random, empty=True)]
        )
    elif kind == 4:  # a column twice
        for cells in rows:
            cells += cells[column : column + 1]
    elif kind == 5:  # a column less
        for cells in rows:
            del cells[column : column + 1]
    elif kind == 6:
        rows.insert(random.randrange(len(rows) + 1), list(row))
    elif kind == 7:
        rows.remove(row)
    elif kind == 8:
        rows[0][column] = random.choice(
            ["label", "label:x", "label_x", "id", "split", "y", "1", ""]
        )


# Arrays


def spoil_arrays(random: Random, path: Path) -> Kind:
    """Replace one array by something that no graph has."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    count = len(arrays.get("ids", arrays.get("x", arrays.get("x_indptr", [0])[1:])))
    changes = [change for name in arrays for change in _changes(name, arrays[name], count)]
    name, value = random.choice(changes)
    np.savez(path, **{**arrays, name: value})
    return Kind.REFUSE


def _changes(name: str, array: np.ndarray, count: int) -> list[tuple[str, Any]]:
    values: list[Any] = [np.array([{}], dtype=object)]
    if array.size and array.dtype.kind != "U" and name not in ("x_indices", "x_indptr"):
        values.append(array.astype(complex))
    if name == "edge_index":
        values += [
            np.int64(0),
            np.array([[0], [10**6]]),
            np.array([[0], [-1]]),
            np.array([[0.5], [0]]),
        ]
        values += [np.zeros((3, 2), np.int64), np.array([["a"], ["b"]]), np.array([[np.nan], [0]])]
    elif name == "x":
        values += [
            array[None],
            array[:-1],
            np.full(array.shape, np.nan),
            np.float32(1),
            array[:, :0],
        ]
    elif name == "ids":
        values += [array[:-1], np.zeros(count, "U0"), np.arange(count) + 0.5, array[None]]
        values += [np.full(count, "x")] if count > 1 else []
    elif name == "y":
        values += [array[:-1], np.full(count, 0.5), np.full(count, -7), np.int64(1)]
    elif name == "x_shape":
        values += [
            np.array([count]),
            np.array([-1, 2]),
            np.array(["a", "b"]),
        ]
    elif name == "x_indptr":
        values += [array[:-1], array + 1, array - 1, np.full(len(array), 2**40)]
    elif name.endswith(("_mask", "_idx")):
        values += [
            np.zeros((1, 1), bool),
            np.full(count + 1, True),
            np.array([count + 1]),  # one entry is a mask of the only node
            np.array([-1]),
        ]
    return [(name, value) for value in values]


# The file itself


def spoil_file(random: Random, path: Path) -> Kind:
    """Put something else in its place, or a second file beside it."""
    kind = random.randrange(5)
    if kind == 0:
        name = path.name.partition(".")[0]
        other = ".tsv" if path.name.endswith(".csv.gz") else ".csv.gz"
        path.with_name(name + other).write_bytes(b"")
        return Kind.REFUSE
    path.unlink()
    if kind == 1:
        path.mkdir()
    elif kind == 2:
        os.mkfifo(path)
    elif kind == 3:
        path.symlink_to(path)
    elif path.name.startswith("nodes"):
        path.write_bytes(b"")
    return Kind.REFUSE


def _bomb(random: Random, path: Path) -> Kind:
    """A small file that asks for all the memory there is."""
    stem = path.name.partition(".")[0]
    path.unlink()
    if random.random() < 0.5:  # one line without an end
        content = gzip.compress(b"a" * (1 << 27), 1)
        path.with_name(f"{stem}.csv.gz").write_bytes(content)
        return Kind.REFUSE
    header = io.BytesIO()  # text of no width: a billion names in no bytes
    shape = {"descr": "<U0", "fortran_order": False, "shape": (10**9,)}
    np.lib.format.write_array_header_1_0(header, shape)
    with zipfile.ZipFile(path.with_name(f"{stem}.npz"), "w") as archive:
        archive.writestr("ids.npy", header.getvalue())
    return Kind.REFUSE
