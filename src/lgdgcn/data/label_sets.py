"""Sets of labels in one column, ``red|blue``, as predictions are written."""

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from lgdgcn.errors import LGDNote

__all__ = ["joined", "label_sets"]

_PART = re.compile(r"(?:\\.|[^\\|]|\\$)+", re.DOTALL)


def joined(names: Any) -> str:
    r"""Names of labels in one cell, ``|`` between them; within a name it is ``\|``.

    A backslash is written twice, so that what was joined can be taken apart.

    Example:
        >>> print(joined(["a", "b|c", "d"]))
        a|b\|c|d
    """
    return "|".join(str(name).replace("\\", "\\\\").replace("|", "\\|") for name in names)


def _taken_apart(cell: str) -> list[str]:
    r"""The inverse of :func:`joined`; blanks around a name do not count.

    Example:
        >>> _taken_apart(r"a | b\|c|d")
        ['a', 'b|c', 'd']
    """
    parts = (re.sub(r"\\(.)", r"\1", part, flags=re.DOTALL) for part in _PART.findall(cell))
    return [part.strip() for part in parts if part.strip()]


def label_sets(
    path: Path, column: str, cells: list[str]
) -> tuple[np.ndarray[Any, Any], list[str]] | None:
    """Read a column whose cells hold several labels, and say so.

    Where taking the cells apart gives more names than there are different cells, ``|`` is taken
    for a letter of the names: each cell is one class.

    Args:
        path: The file, for messages.
        column: Its name.
        cells: Empty where a node is not labelled.

    Returns:
        A 0/1 matrix ``[N, L]`` with rows of NaN for unlabelled nodes, and the names of the
        labels; ``None`` where every node has one class.
    """
    different = sorted({cell for cell in cells if cell.strip()})
    several = [cell for cell in different if len(_taken_apart(cell)) > 1]
    if not several:
        return None
    sets = {cell: _taken_apart(cell) for cell in different}
    names = sorted({name for parts in sets.values() for name in parts})
    where = f"{path}: labels of column {column[:50]!r}"
    if len(names) > len(different):
        said = f"{where} such as {several[0][:50]!r} are taken as one class each"
        warnings.warn(said, LGDNote, stacklevel=3)
        return None
    number = {name: i for i, name in enumerate(names)}
    matrix = np.zeros((len(cells), len(names)), dtype=np.float32)
    for row, cell in enumerate(cells):
        if cell.strip():
            matrix[row, [number[name] for name in sets[cell]]] = 1
        else:
            matrix[row] = np.nan
    said = f"{where} such as {several[0][:50]!r} are taken as sets of {len(names)} labels"
    warnings.warn(said, LGDNote, stacklevel=3)
    return matrix, names
