"""Columns of a table as features: learnt on one graph, and the same for every graph after it.

=========  ============================================================================
number     as it is, also where people wrote it: 4833,87 €, $1,200.50, 12 %
boolean    1 or 0
date       days since 1970
category   one column per frequent value, one for all others
words      counts of words, hashed into :data:`HASHED` columns
=========  ============================================================================

A blank number, truth or date becomes the median of the others. Where the graph that the encoding
is learnt on has blanks in a column, another column marks them.
"""

from array import array
from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np
import scipy.sparse

from lgdgcn.data.columns import (
    FEATURE_ROLES,
    ROLES,
    Cells,
    CountedCells,
    kept_values,
    numbers_of,
    parser,
    written_form,
)
from lgdgcn.data.names import COMMA, as_number, is_missing, other_form
from lgdgcn.errors import InputError
from lgdgcn.runtime import require_memory

__all__ = ["HASHED", "EncodedColumn", "Encoding", "fit_column"]

HASHED = 1024  # columns for the words of one text

Block = Any  # [N, width], a numpy array or a scipy matrix


@dataclass(frozen=True)
class EncodedColumn:
    """How one column of a table becomes columns of features.

    Attributes:
        name: Its name.
        role: One of :data:`~lgdgcn.data.columns.FEATURE_ROLES`.
        fill: What a blank number is taken for.
        marked: Whether a column of its own marks the blanks.
        values: The values of a category that have columns of their own.
        grouped: Whether its other values share a column.
        written: The format of its dates, or the form of its numbers.
    """

    name: str
    role: str
    fill: float = 0.0
    marked: bool = False
    values: tuple[str, ...] = ()
    grouped: bool = False
    written: str = ""

    @property
    def feature_names(self) -> list[str]:
        """One name for each column of features."""
        if self.role == "words":
            return [f"{self.name}#{number}" for number in range(HASHED)]
        names = [self.name]
        if self.role == "category":
            names = [f"{self.name}={value}" for value in self.values]
            names += [f"{self.name} other"] if self.grouped else []
        return names + ([f"{self.name} missing"] if self.marked else [])

    def encode(self, cells: Cells) -> Block:
        """The features ``[N, width]`` of a column's cells."""
        if self.role == "words":
            return _hashed(cells)
        if self.role != "category":
            numbers = numbers_of(cells, self.role, self.written)
            blank = np.isnan(numbers)
            block = [np.where(blank, self.fill, numbers)]
        else:
            texts = _as_text(cells)
            number = {value: i for i, value in enumerate(self.values)}
            found = np.array([number.get(text, -1) for text in texts], dtype=np.int64)
            blank = np.array([is_missing(text) for text in texts], dtype=bool)
            block = [found == i for i in range(len(self.values))]
            block += [(found < 0) & ~blank] if self.grouped else []
        block += [blank] if self.marked else []
        return np.stack(block, 1).astype(np.float32)

    def unseen(self, cells: Cells | CountedCells) -> int:
        """How many cells hold a value that the encoding does not know."""
        if self.role != "category" or self.grouped:
            return 0
        known, counted = set(self.values), _counted(cells)
        return sum(count for text, count in counted.values if text not in known)

    def unfit(self, cells: Cells | CountedCells) -> tuple[int, str]:
        """How many cells cannot be read and count as blank, and the first of them."""
        parse = parser(self.role, self.written)
        if parse is None or isinstance(cells, np.ndarray):
            return 0, ""
        total, example = 0, ""
        for text, count in _counted(cells).values:
            if parse(text) is None:
                total, example = total + count, example or text
        return total, example

    def lacks_values(self, cells: Cells | CountedCells) -> bool:
        """Whether all cells are blank, in a column that had values."""
        if self.role == "category" and not self.values:
            return False
        if isinstance(cells, np.ndarray):
            return bool(np.isnan(cells).all())
        return not any(True for _ in _counted(cells).values)


@dataclass(frozen=True)
class Encoding:
    """How a table becomes features.

    Attributes:
        columns: The columns that are features.
        text: Names of the columns that are kept as information.
        ignored: Names of the columns that are not used.
        roles: The roles that were given to columns by name.
    """

    columns: tuple[EncodedColumn, ...]
    text: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    roles: Mapping[str, str] = field(default_factory=dict)

    @property
    def feature_names(self) -> list[str]:
        """A different name for every column of features."""
        names: dict[str, None] = {}
        for column in self.columns:
            for name in column.feature_names:
                while name in names:
                    name += "'"
                names[name] = None
        return list(names)

    def with_points(self, names: Container[str]) -> "Encoding":
        """The same, but the numbers of some columns have no decimal comma."""
        columns = (
            replace(c, written="") if c.written == COMMA and c.name in names else c
            for c in self.columns
        )
        return replace(self, columns=tuple(columns))

    def points(self, table: Mapping[str, Cells | CountedCells]) -> dict[str, str]:
        """Columns of text with a decimal point, where training had a comma; a cell of each.

        Raises:
            InputError: A cell may have either.
        """
        found: dict[str, str] = {}
        for column in self.columns:
            cells = table[column.name]
            if column.written != COMMA or isinstance(cells, np.ndarray):
                continue
            cell, shown = other_form(_counted(cells).texts)
            if cell and not shown:
                comma, plain = (f"{as_number(cell, form) or 0:.12g}" for form in (COMMA, ""))
                raise InputError(
                    f"column {column.name[:50]!r} holds {cell.strip()[:50]!r}, {comma} if decimals "
                    f"follow a comma as in training, else {plain}; write {comma} or "
                    f"{plain.replace('.', ',')}"
                )
            found |= {column.name: cell} if cell else {}
        return found

    def encode(self, table: Mapping[str, Cells], what: str) -> Block:
        """The features ``[N, width]`` of a table with the columns this was learnt on.

        Args:
            table: Cells by column.
            what: The file they are from, for messages.
        """
        rows = len(next(iter(table.values())))
        wide = sum(len(c.feature_names) for c in self.columns if c.role != "words")
        require_memory(12 * rows * wide, f"{what}: {wide:,} columns of features", "ignore some")
        blocks = [column.encode(table[column.name]) for column in self.columns]
        if any(scipy.sparse.issparse(block) for block in blocks):
            return scipy.sparse.hstack(blocks, format="csr", dtype=np.float32)
        return np.concatenate(blocks, 1) if blocks else np.zeros((rows, 0), np.float32)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a file."""
        columns = []
        for column in self.columns:
            default = asdict(EncodedColumn(column.name, ""))
            columns.append({k: v for k, v in asdict(column).items() if v != default[k]})
            columns[-1]["name"] = column.name
        names = {"text": [*self.text], "ignored": [*self.ignored]}
        return {"columns": columns, **names, "roles": dict(self.roles)}

    @classmethod
    def from_dict(cls, saved: Any) -> "Encoding":
        """The inverse of :meth:`as_dict`; anything else raises ``ValueError`` or ``TypeError``."""
        kinds: dict[str, Any] = {
            f.name: type(getattr(EncodedColumn("", ""), f.name)) for f in fields(EncodedColumn)
        }
        columns = []
        for column in saved["columns"]:
            column = {k: tuple(v) if isinstance(v, list) else v for k, v in column.items()}
            if column["role"] not in FEATURE_ROLES or any(
                type(value) is not kinds[key] for key, value in column.items()
            ):
                raise ValueError(f"no column: {column}")
            columns.append(EncodedColumn(**column))
        text, ignored = (*saved["text"],), (*saved["ignored"],)
        if not all(isinstance(name, str) for name in text + ignored):
            raise ValueError("names of columns are no text")
        if any(not isinstance(v, str) for column in columns for v in column.values):
            raise ValueError("values of a category are no text")
        roles = saved["roles"]
        if not all(role in ROLES for role in roles.values()):
            raise ValueError("a role is none")
        return cls(tuple(columns), text, ignored, roles)


def fit_column(name: str, role: str, cells: Cells | CountedCells) -> EncodedColumn:
    """Learn how to encode a column of a known role.

    Raises:
        InputError: No cell of it fits the role.
    """
    if role == "words":
        return EncodedColumn(name, role)
    if isinstance(cells, np.ndarray) and role != "category":
        known = cells[~np.isnan(cells)]
        if not len(known):
            raise InputError(f"column {name[:50]!r} holds '', no {role}; correct its role")
        middle = [(len(known) - 1) // 2, len(known) // 2]
        fill = np.partition(known, middle)[middle].astype(np.float64).mean()
        return EncodedColumn(name, role, float(fill), len(known) < len(cells))
    counted = _counted(cells)
    if role == "category":
        values, rows = kept_values(counted), counted.rows
        grouped = sum(1 for _ in counted.values) > len(values)
        return EncodedColumn(name, role, 0.0, counted.known < rows, tuple(values), grouped)
    written = written_form(role, counted)
    numbers, counts = _counted_numbers(counted, role, written)
    if not len(numbers):
        found = next((cell[:50] for cell, _ in counted.values), "")
        raise InputError(f"column {name[:50]!r} holds {found!r}, no {role}; correct its role")
    marked = int(counts.sum()) < counted.rows
    return EncodedColumn(name, role, _median(numbers, counts), marked, written=written)


Numbers = np.ndarray[Any, np.dtype[np.float64]]
Counts = np.ndarray[Any, np.dtype[np.int64]]


def _counted_numbers(cells: CountedCells, role: str, written: str) -> tuple[Numbers, Counts]:
    """The different numbers that cells hold, and how often each is there."""
    parse = parser(role, written)
    assert parse is not None
    numbers, counts = array("d"), array("q")
    for cell, count in cells.values:
        if (number := parse(cell)) is not None:
            numbers.append(number)
            counts.append(count)
    return np.array(numbers, np.float64), np.array(counts, np.int64)


def _median(numbers: Numbers, counts: Counts) -> float:
    """The median of numbers of which each is there several times."""
    order = numbers.argsort(kind="stable")
    up_to = counts[order].cumsum()
    middle = np.searchsorted(up_to, [(up_to[-1] - 1) // 2, up_to[-1] // 2], side="right")
    return float(np.mean(numbers[order][middle]))


def _counted(cells: Cells | CountedCells) -> CountedCells:
    return cells if isinstance(cells, CountedCells) else CountedCells.of(_as_text(cells))


def _as_text(cells: Cells) -> Sequence[str]:
    if isinstance(cells, np.ndarray):
        return ["" if np.isnan(value) else f"{value:g}" for value in cells]
    return cells


def _hashed(cells: Cells) -> Block:
    from sklearn.feature_extraction.text import HashingVectorizer

    words = HashingVectorizer(n_features=HASHED, alternate_sign=False, norm=None)
    texts = ["" if is_missing(text) else text for text in _as_text(cells)]
    return words.transform(texts).astype(np.float32)
