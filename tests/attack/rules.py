"""The rules of reading a graph folder, each in one place: the law that the oracle judges by.

They are written again here, on purpose, instead of being imported: a change of the readers that
changes one of them must be seen.
"""

import re

import numpy as np

__all__ = [
    "ID",
    "LABEL",
    "SOURCE",
    "SPLIT",
    "TARGET",
    "as_features",
    "is_comment",
    "is_number",
    "kept",
    "labels_of",
    "number_of",
    "same_label",
]

SOURCE = ("source", "src", "from", "u", "source_id", "node1", "citing")
TARGET = ("target", "dst", "to", "v", "target_id", "node2", "cited", "dest", "destination")
ID = ("id", "node_id", "node", "name")  # the first of these that is there
LABEL = ("label", "class", "y")
SPLIT = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def kept(cell: str) -> str:
    """What of a cell counts: all of it, but for the blanks around it, quoted or not."""
    return cell.strip()


def is_comment(line: str) -> bool:
    """Whether a line above the header is a comment; below it nothing is."""
    return line.lstrip().startswith("#")


def is_number(cell: str) -> bool:
    """Whether a cell is a number as any program writes it: ASCII digits, no ``_``, no words."""
    return _NUMBER.fullmatch(cell) is not None


def number_of(cell: str) -> float | None:
    """The value of a feature cell, or ``None`` where it must be refused."""
    if not is_number(cell):
        return None
    with np.errstate(over="ignore"):
        return float(cell) if np.isfinite(np.float32(float(cell))) else None


def labels_of(cells: list[str]) -> list[str | int | None]:
    """Labels are text; integers only if every one is plain ASCII digits (and -1 is then none)."""
    present = [cell for cell in cells if cell]
    whole = all(re.fullmatch(r"0|[1-9][0-9]{0,17}|-1", cell) for cell in present)
    if not whole:
        return [cell or None for cell in cells]
    return [int(cell) if cell and cell != "-1" else None for cell in cells]


def same_label(expected: str | int | None, found: object) -> bool:
    """Whether a label came back.

    A column of ``1.0``, ``0.0`` and ``nan`` is what a table program makes of integers with gaps:
    it may come back as text or as the integers; ``0.5`` is a real number and may be refused.
    """
    if expected is None or isinstance(expected, int):
        return type(found) is type(expected) and found == expected
    if isinstance(found, str):
        return found == expected
    if expected.lower() == "nan":
        return found is None
    return isinstance(found, int) and is_number(expected) and float(expected) == found


def as_features(rows: list[list[float]]) -> np.ndarray:
    """Features of text and parquet files are single precision: [N, d]."""
    return np.array(rows, dtype=np.float64).astype(np.float32)
