"""The rules of reading a graph folder, each in one place: the law that the oracle judges by.

They are written again here, on purpose, instead of being imported: a change of the readers that
changes one of them must be seen.
"""

import re
from collections.abc import Iterable

import numpy as np

__all__ = [
    "BLANKS",
    "ID",
    "LABEL",
    "SOURCE",
    "SPLIT",
    "TARGET",
    "WEIGHT",
    "as_features",
    "delimiter_of",
    "is_comment",
    "is_infinite",
    "is_missing",
    "is_nothing",
    "is_number",
    "is_padded",
    "labels_of",
    "may_be_real",
    "number_of",
]

SOURCE = ("source", "src", "from", "u", "source_id", "node1", "citing")
TARGET = ("target", "dst", "to", "v", "target_id", "node2", "cited", "dest", "destination")
WEIGHT = ("weight", "weights", "edge_weight")
ID = ("id", "node_id", "node", "name")  # the first of these that is there
LABEL = ("label", "class", "y")
SPLIT = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}

_NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*", re.ASCII)
_COUNTED = re.compile(r"[0-9]+(\.0*)?|-1(\.0*)?")
_INTEGER = re.compile(r"0|[1-9][0-9]{0,17}")

# Cells come back character for character, without their quotes. Blanks (spaces and tabs) around
# unquoted cells are layout if the first row has such blanks, and part of the cells if it has none.
BLANKS = " \t"


def is_padded(first_row: list[tuple[str, bool]]) -> bool:
    """Whether a text file has blanks around its cells for layout.

    Args:
        first_row: Its first row, each cell with whether it is quoted.
    """
    return any(not quoted and cell != cell.strip(BLANKS) for cell, quoted in first_row)


def is_comment(line: str) -> bool:
    """Whether a line above the first row is a comment; below it nothing is."""
    return line.lstrip(BLANKS).startswith("#")


def delimiter_of(first_line: str) -> str:
    """What divides the cells of a csv file: a comma, or a semicolon if there is no comma."""
    outside = re.sub(r'"(?:[^"]|"")*("|$)', "", first_line)  # quotes may end in a later line
    return ";" if ";" in outside and "," not in outside else ","


def is_missing(cell: str) -> bool:
    """Whether a feature cell is blank, or a word that programs write for that."""
    words = ("", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "?")
    return cell.strip().lower() in words


def is_infinite(cell: str) -> bool:
    """Whether a cell is a number that single precision does not hold."""
    infinite = cell.strip().lower().lstrip("+-") in ("inf", "infinity")
    return infinite or (is_number(cell) and number_of(cell) is None)


def is_nothing(cell: str) -> bool:
    """Whether a cell holds nothing but blanks: no id, and no label."""
    return not cell.strip()


def is_number(cell: str) -> bool:
    """Whether a cell is a number as any program writes it: ASCII digits, no ``_``, no words."""
    return _NUMBER.fullmatch(cell) is not None


def number_of(cell: str) -> float | None:
    """The value of a cell, or ``None`` where it is no finite number."""
    if not is_number(cell):
        return None
    with np.errstate(over="ignore"):
        return float(cell) if np.isfinite(np.float32(float(cell))) else None


def may_be_real(cells: Iterable[str]) -> bool:
    """Whether labels may be refused as measurements: all are numbers, one with a fraction."""
    names = [cell for cell in cells if not is_missing(cell)]
    real = any(is_number(cell) and not float(cell).is_integer() for cell in names)
    return real and all(map(is_number, names))


def labels_of(cells: list[str]) -> list[str | int | None]:
    """Labels are text as written, or integers if every one is plain ASCII digits.

    Nothing means unlabelled; so does a word for nothing in a column of numbers, such as ``nan``,
    and -1 where all others are written with digits only.
    """
    names = {cell for cell in cells if not is_nothing(cell)}
    numbers = {name for name in names if is_number(name)}
    if numbers and all(map(is_missing, names - numbers)):
        names = set(numbers)
        if all(_COUNTED.fullmatch(name) for name in names):
            names -= {name for name in names if float(name) == -1}
    if all(_INTEGER.fullmatch(name) for name in names):
        return [int(cell) if cell in names else None for cell in cells]
    return [cell if cell in names else None for cell in cells]


def as_features(rows: list[list[float]]) -> np.ndarray:
    """Features of text and parquet files are single precision: [N, d]."""
    return np.array(rows, dtype=np.float64).astype(np.float32)
