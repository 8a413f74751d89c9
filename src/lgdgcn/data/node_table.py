"""A table of nodes: their ids, labels and split, and every other column by its role."""

import warnings
from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

from lgdgcn.data.column_notes import listed, tell_columns, tell_new_values, tell_points
from lgdgcn.data.columns import FEATURE_ROLES, ColumnSummary, summary
from lgdgcn.data.encoding import Encoding, fit_column
from lgdgcn.data.graph_file import merged_roles
from lgdgcn.data.label_sets import label_sets
from lgdgcn.data.labels import SPLITS, split_number
from lgdgcn.data.names import is_index, is_missing, label_values, warn_of_blanks
from lgdgcn.data.other_id import OtherId, other_id, tell_other_id
from lgdgcn.data.tables import Table, number_columns, read_table
from lgdgcn.errors import InputError, LGDWarning

__all__ = [
    "LABELS",
    "LABEL_CELLS",
    "check_columns",
    "encoded_table",
    "fitted",
    "known_roles",
    "label_names",
    "node_ids",
    "read_nodes",
    "summaries",
    "with_points",
]

ID = ("id", "node_id", "node", "name")  # the first that is there; the others are features
LABEL = ("label", "class", "y")
LABELS = ("label:", "label_")  # how the names of several 0/1 columns begin
LABEL_CELLS = {"0": 0.0, "0.0": 0.0, "1": 1.0, "1.0": 1.0}
LABEL_CELLS |= dict.fromkeys(("", "-1", "-1.0"), np.nan)  # not known


def read_nodes(
    path: Path,
    given: Mapping[str, str],
    encoding: Encoding | None = None,
    delimiter: str = "",
    ends: Collection[str] = (),
) -> dict[str, Any]:
    """Everything a csv, tsv or parquet file says of the nodes, under the names ``canonical`` knows.

    Args:
        path: The file.
        given: The roles of columns that the user has named.
        encoding: How a trained model's graph was encoded; learnt from this table if ``None``.
        delimiter: What divides the cells of a text file; by default the file tells.
        ends: Some nodes that edges name: they tell which column is the id, where it is not given.

    Returns:
        ``node_ids``; ``y``, ``classes`` and masks where there are such columns; ``x`` with
        ``feature_names`` and ``encoding``; ``node_codes``, numbers of the values of categories of
        which some share a feature; and ``node_text``, free text by the column's name.
    """
    table, roles, other = _read(path, given, encoding, delimiter, ends)
    if other is not None:
        tell_other_id(path, other)
        given = other.roles(given)
    if not table.lines:
        raise InputError(f"{path} has no nodes, only the names of columns; add a line for each")
    values: dict[str, Any] = {"node_ids": node_ids(table, _of("id", roles))}
    labels = _of("label", roles)
    if len(labels) == 1 and not labels[0].lower().startswith(LABELS):
        cells = table.text[labels[0]]
        if (sets := label_sets(path, labels[0], cells)) is not None:
            values["y"], values["classes"] = sets
        else:
            values["y"] = label_values(path, labels[0], cells)
    elif labels:
        values["y"] = _label_matrix(table, labels)
        values["classes"] = label_names(labels)
    for column in _of("split", roles):
        values |= _split_masks(table, column)
    return values | _features(table, roles, given, encoding)


def label_names(columns: list[str]) -> list[str]:
    """What 0/1 columns of labels are called without ``label:`` in front."""
    prefix = len(LABELS[0])
    return [name[prefix:] if name.lower().startswith(LABELS) else name for name in columns]


def summaries(
    path: Path, given: Mapping[str, str], delimiter: str = "", ends: Collection[str] = ()
) -> list[ColumnSummary]:
    """What each column of a nodes table is taken for; the arguments are those of `read_nodes`."""
    table, roles, _ = _read(path, given, None, delimiter, ends)
    return [summary(name, cells, roles.get(name)) for name, cells in table.columns.items()]


def _read(
    path: Path,
    given: Mapping[str, str],
    encoding: Encoding | None,
    delimiter: str,
    ends: Collection[str] = (),
) -> tuple[Table, dict[str, str], OtherId | None]:
    """The table, the roles of its columns that are known, and another id than its name tells."""
    roles: dict[str, str] = {}
    if encoding is not None:
        encoding = encoding.with_points(number_columns(path))

    def text_columns(names: list[str]) -> set[str]:
        known, text = known_roles(names, given, encoding)
        roles.update(known)
        return text

    table = read_table(path, text_columns, delimiter, learning=encoding is None)
    if encoding is not None or "id" in given.values():
        return table, roles, None
    own = _of("id", roles)
    known = set(table.text[own[0]] if own else map(str, range(len(table.lines))))
    other = other_id([path], roles, given, ends, known, delimiter)
    if other is None:
        return table, roles, None
    del table  # before the next one takes its room
    table, roles, _ = _read(path, other.roles(given), None, delimiter)
    return table, roles, other


def known_roles(
    names: list[str], given: Mapping[str, str], encoding: Encoding | None
) -> tuple[dict[str, str], set[str]]:
    """The roles that are known without a look at the cells, and which columns must be text."""
    learnt = () if encoding is None else encoding.columns
    if encoding is not None:
        given = merged_roles(encoding.roles, given)
    roles = _known_roles(names, given, learning=encoding is None)
    text = {name for name, role in roles.items() if role != "number"}
    return roles, text | {c.name for c in learnt if c.role != "number" or c.written}


def _of(role: str, roles: Mapping[str, str]) -> list[str]:
    return [name for name, its_role in roles.items() if its_role == role]


def _known_roles(names: list[str], given: Mapping[str, str], learning: bool) -> dict[str, str]:
    """Roles that are given, or read from a column's name, in the order of the columns."""
    absent = [name for name in given if name not in names]
    if not learning:  # a graph to be predicted needs no labels
        absent = [name for name in absent if given[name] == "id"]
    if absent:
        there = ", ".join(repr(name[:30]) for name in names[:8])
        role = given[absent[0]]
        raise InputError(f"there is no column {absent[0][:50]!r} ({role}); the first are {there}")

    def first(role: str, candidates: tuple[str, ...]) -> list[str]:
        if role in given.values():
            return []
        free = [name for name in names if name not in given]
        found = [name for one in candidates for name in free if name.lower() == one]
        if len(found) > 1 and found[0].lower() == found[1].lower():
            raise InputError(f"has both {found[0]!r} and {found[1]!r}; rename one")
        return found[:1]

    roles = dict(given)
    own_id = first("id", ID)
    roles |= dict.fromkeys(own_id, "id")
    index = [name for name in takewhile(is_index, names) if name not in given]
    roles |= dict.fromkeys(index, "ignore")
    if index[:1] == names[:1] and not (own_id or "id" in given.values()):
        roles[names[0]] = "id"
    roles |= dict.fromkeys(first("split", ("split",)), "split")
    if "label" not in given.values():
        label = first("label", LABEL)
        several = [n for n in names if n.lower().startswith(LABELS) and n not in given]
        if several and label and label[0].lower() == "label":
            both = f"{label[0]!r} and {several[0][:50]!r}"
            raise InputError(f"has both {both}; keep one kind of label")
        roles |= dict.fromkeys(several or label, "label")
    for role in ("id", "split"):
        if len(_of(role, roles)) > 1:
            raise InputError(f"two columns have the role {role}: {listed(_of(role, roles))}")
    return {name: roles[name] for name in names if name in roles}


def _features(
    table: Table, roles: Mapping[str, str], given: Mapping[str, str], encoding: Encoding | None
) -> dict[str, Any]:
    """The other columns: features, and text that is kept as information."""
    columns = {
        name: cells
        for name, cells in table.columns.items()
        if roles.get(name) not in ("id", "label", "split")
    }
    if encoding is None:
        found = [summary(name, cells, roles.get(name)) for name, cells in columns.items()]
        try:
            encoding = replace(fitted(found, columns), roles=given)
        except InputError as error:
            raise InputError(f"{table.path}: {error}") from None
        tell_columns(table.path, found, encoding)
        return _encoded(table.path, columns, encoding)
    return encoded_table(table.path, columns, encoding)


def encoded_table(path: Path, columns: Mapping[str, Any], encoding: Encoding) -> dict[str, Any]:
    """Features of a table by the encoding of another one, and its free text.

    Raises:
        InputError: The columns are not those of the other table.
    """
    check_columns(encoding, columns)
    here = with_points(path, encoding, columns)
    tell_new_values(path, here, columns)
    values = _encoded(path, columns, here)
    return values | ({"encoding": encoding} if "encoding" in values else {})


def with_points(path: Path, encoding: Encoding, columns: Mapping[str, Any]) -> Encoding:
    """The encoding that reads this table: without decimal commas where it shows points instead.

    Raises:
        InputError: A column shows neither.
    """
    try:
        found = encoding.points(columns)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    tell_points(path, found)
    return encoding.with_points(found)


def _encoded(path: Path, columns: Mapping[str, Any], encoding: Encoding) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if encoding.columns:
        values["x"] = encoding.encode(columns, str(path))
        values["feature_names"] = encoding.feature_names
        values["encoding"] = encoding
        grouped = [column.name for column in encoding.columns if column.grouped]
        if grouped:
            values["node_codes"] = {name: _codes(columns[name]) for name in grouped}
    text = {name: list(map(str, columns[name])) for name in encoding.text if name in columns}
    return values | ({"node_text": text} if text else {})


def _codes(cells: Any) -> np.ndarray[Any, Any]:
    """A number for each different cell, those included that share a feature; -1 for blanks."""
    texts = np.array([str(cell) for cell in cells])
    blank = np.array([is_missing(text) for text in texts.tolist()])
    return np.where(blank, -1, np.unique(texts, return_inverse=True)[1])


def fitted(found: list[ColumnSummary], columns: Mapping[str, Any]) -> Encoding:
    """Learn how to encode the columns of a table."""
    names = {role: tuple(c.name for c in found if c.role == role) for role in ("text", "ignore")}
    features = [c for c in found if c.role in FEATURE_ROLES]
    fitted = tuple(fit_column(c.name, c.role, columns[c.name]) for c in features)
    return Encoding(fitted, names["text"], names["ignore"])


def check_columns(encoding: Encoding, columns: Mapping[str, Any]) -> None:
    """Refuse a table that has not the columns of the training."""
    known = [column.name for column in encoding.columns]
    missing = [name for name in known if name not in columns]
    new = [name for name in columns if name not in {*known, *encoding.text, *encoding.ignored}]
    if missing or new:
        parts = [("missing", missing), ("new", new)]
        raise InputError(
            "the feature columns are not those the model was trained with: "
            + "; ".join(f"{what} {listed(some)}" for what, some in parts if some)
            + "; rename, add or remove columns"
        )
    if [name for name in columns if name in known] != known:
        warnings.warn(
            "the feature columns are in another order than the model's: matched by name",
            LGDWarning,
            stacklevel=5,
        )


def node_ids(table: Table, column: list[str]) -> list[str]:
    """The ids of the nodes, which are all different; row numbers without such a column."""
    if not column:
        return [str(i) for i in range(len(table.lines))]
    seen: dict[str, int] = {}
    for row, name in enumerate(table.text[column[0]]):
        if not name.strip():
            raise InputError(f"{table.where(row)}: the id is empty; give every node an id")
        if seen.setdefault(name, row) != row:
            raise InputError(
                f"{table.where(row)}: id {name[:50]!r} is already on line "
                f"{table.lines[seen[name]]}; ids must be unique"
            )
    warn_of_blanks(table.path, "ids", seen)
    return list(seen)


def _label_matrix(table: Table, columns: list[str]) -> np.ndarray[Any, Any]:
    matrix = np.empty((len(table.lines), len(columns)), dtype=np.float32)
    for j, name in enumerate(columns):
        for row, cell in enumerate(table.text[name]):
            if cell not in LABEL_CELLS:
                raise InputError(
                    f"{table.where(row)}: column {name[:50]!r} holds {cell[:50]!r}; "
                    "use 0, 1 or nothing"
                )
            matrix[row, j] = LABEL_CELLS[cell]
    return matrix


def _split_masks(table: Table, column: str) -> dict[str, Any]:
    numbers = np.empty(len(table.lines), dtype=np.int64)
    for row, cell in enumerate(table.text[column]):
        try:
            numbers[row] = split_number(cell)
        except InputError as error:
            raise InputError(f"{table.where(row)}: {error}") from None
    return {f"{split}_mask": numbers == i for i, split in enumerate(SPLITS)}
