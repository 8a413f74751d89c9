"""Which column of a nodes table is the id, where its name does not tell: edges name its cells."""

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lgdgcn.data.tables import read_rows
from lgdgcn.errors import LGDNote

__all__ = ["BLANKS", "OtherId", "other_id", "tell_other_id"]

BLANKS = " \t"  # that may be around a name in the edges
HALF, NEARLY_ALL = 0.5, 0.95  # of the nodes that edges name


@dataclass(frozen=True)
class OtherId:
    """A column that edges name, where another one seemed to be the id.

    Attributes:
        name: Its name.
        instead_of: The other one; empty if it was the number of the row.
    """

    name: str
    instead_of: str

    def roles(self, given: Mapping[str, str]) -> dict[str, str]:
        """The roles that are given, with the id; numbers of nodes are no feature, names may be."""
        unused = {} if self.instead_of.lower() in ("", "name") else {self.instead_of: "ignore"}
        return {**given, **unused, self.name: "id"}


def other_id(
    paths: Sequence[Path],
    roles: Mapping[str, str],
    given: Mapping[str, str],
    ends: Collection[str],
    known: Collection[str],
    delimiter: str,
) -> OtherId | None:
    """Find the column that holds the nodes which edges name, where the id does not.

    Args:
        paths: The files of the table.
        roles: The roles that are known from the names of columns.
        given: Those that the user has named.
        ends: Some nodes that edges name.
        known: Ids, at least those among the ends.
        delimiter: What divides the cells of a text file; by default the file tells.
    """
    if _share(ends, known) >= HALF:
        return None
    wanted = {*ends, *(end.strip(BLANKS) for end in ends)}
    found: dict[str, set[str]] = {}
    for row in _cells(paths, delimiter):
        for name, cell in row.items():
            if cell in wanted:
                found.setdefault(name, set()).add(cell)
    taken = {name for name, role in roles.items() if role != "ignore"} | given.keys()
    shares = {name: _share(ends, some) for name, some in found.items() if name not in taken}
    for name in sorted(shares, key=lambda name: -shares[name]):
        if shares[name] < NEARLY_ALL:
            break
        ids = [row.get(name, "") for row in _cells(paths, delimiter)]
        if len(set(ids)) == len(ids) and all(cell.strip() for cell in ids):
            own = next((name for name, role in roles.items() if role == "id"), "")
            return OtherId(name, own)
    return None


def tell_other_id(path: Path, other: OtherId) -> None:
    """Say that another column is the id than one would think."""
    instead = f"column {other.instead_of[:40]!r}" if other.instead_of else "the numbers of rows"
    warnings.warn(
        f"{path}: column {other.name[:40]!r} is taken as the id, since it holds the nodes that "
        f"edges name, and not {instead} (--id names another)",
        LGDNote,
        stacklevel=5,
    )


def _share(ends: Collection[str], known: Collection[str]) -> float:
    """The share of some nodes that are known, perhaps without blanks around them."""
    there = sum(end in known or end.strip(BLANKS) in known for end in ends)
    return there / len(ends) if ends else 1.0


def _cells(paths: Sequence[Path], delimiter: str) -> Iterator[dict[str, str]]:
    """The cells of every row of a table, by column."""
    for path in paths:
        rows = read_rows(path, lambda done, share: None, delimiter=delimiter)
        _, names = next(rows, (0, []))
        yield from (dict(zip(names, cells, strict=False)) for _, cells in rows)
