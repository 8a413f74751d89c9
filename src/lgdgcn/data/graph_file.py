"""``graph.toml`` in a graph's folder: what its columns are, in the user's own words.

.. code-block:: toml

    [columns]
    key = "id"
    age = "number"
    genre = "label"
    title = "text"

    [files]
    delimiter = "|"
"""

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lgdgcn.config import to_toml
from lgdgcn.data.columns import ROLES, ColumnSummary
from lgdgcn.errors import InputError

__all__ = ["GRAPH_FILE", "GraphFile", "merged_roles", "proposal", "read_graph_file"]

GRAPH_FILE = "graph.toml"
SINGLE = ("id", "label", "split")  # roles that an option of the command line gives to one column


@dataclass(frozen=True)
class GraphFile:
    """What a user has written down of a graph's files.

    Attributes:
        roles: The roles of columns of the nodes table, by name.
        delimiter: What is between two cells of a csv file; empty to see it from the file.
    """

    roles: Mapping[str, str] = field(default_factory=dict)
    delimiter: str = ""


def read_graph_file(folder: Path) -> GraphFile:
    """Read ``graph.toml``; a folder without one has nothing written down.

    Raises:
        InputError: The file is damaged, or says what nobody understands.
    """
    path = folder / GRAPH_FILE
    if not path.exists():
        return GraphFile()
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read ({error}); correct or remove it") from None
    for table, values in document.items():
        if table not in ("columns", "files") or not isinstance(values, dict):
            raise InputError(f"{path}: {table[:50]!r} is not one of the tables [columns], [files]")
    roles, files = document.get("columns", {}), document.get("files", {})
    for name, role in roles.items():
        if role not in ROLES:
            close = difflib.get_close_matches(str(role).lower(), ROLES, n=1)
            hint = f"did you mean {close[0]}?" if close else f"choose from {', '.join(ROLES)}"
            raise InputError(
                f"{path}: column {name[:50]!r} has the role {str(role)[:50]!r}; {hint}"
            )
    delimiter = files.pop("delimiter", "")
    if files:
        raise InputError(f"{path}: [files] has {next(iter(files))[:50]!r}; only delimiter is known")
    if not isinstance(delimiter, str) or delimiter not in ("", ",", ";", "\t", "|", " "):
        raise InputError(f"{path}: delimiter is {delimiter!r}; use one of , ; | a tab or a blank")
    return GraphFile(roles, delimiter)


def merged_roles(written: Mapping[str, str], options: Mapping[str, str]) -> dict[str, str]:
    """The roles in a file with those that a command names, which win.

    A column that another one replaces as the id, label or split is not used: it would be no
    feature that new nodes have.

    Example:
        >>> merged_roles({"y": "label", "age": "number"}, {"genre": "label"})
        {'y': 'ignore', 'age': 'number', 'genre': 'label'}
    """
    replaced = {role for role in options.values() if role in SINGLE}
    kept = {name: "ignore" if role in replaced else role for name, role in written.items()}
    return {**kept, **options}


def proposal(found: Iterable[ColumnSummary]) -> str:
    """The ``graph.toml`` that writes down what was understood of the columns."""
    names = ", ".join(ROLES)
    about = f"# What the columns are. Roles: {names[: names.index('category')].rstrip(', ')},\n"
    about += f"# {names[names.index('category') :]}\n"
    return about + to_toml("columns", {column.name: column.role for column in found})
