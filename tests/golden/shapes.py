"""Shapes: the keys, types and sizes of what the commands print and write, without its numbers.

``records/shapes.txt`` has a paragraph for each answer, which begins with the homes (``homes.py``)
that were asked, and a line for each key: its path, the types found there and, in brackets, the
homes whose answer has it, unless all have. ``x[].y`` is the key y of the objects in the list x; an
empty list says nothing of what would be in it.
"""

import csv
import io
import json
import re
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cli.runner import call
from golden.homes import home, plain_machine

__all__ = ["TABLE", "differences", "record"]

TABLE = Path(__file__).parent / "records" / "shapes.txt"
NODES = ["run", "two-seeds", "batches"]  # homes whose run predicts labels
EDGES = ["types", "reasons"]  # homes whose run explains edges
BY_CHANCE = {"warnings", "traits", "typical_edges", "neighbours", "most_specific_neighbours"}
BY_CHANCE |= {"shared", "predicted"}  # lists whose length hangs on the last digit of a number
NAME_OR_NOT = {"factorNames[]"}  # and texts that are there or not
MOST = 6  # nodes or edges that are asked for

Shape = dict[str, str]  # the types of what is at a path
Shapes = dict[str, dict[str, Shape]]  # by answer and home


def record() -> None:
    """Write down the shapes of today."""
    paragraphs = [_paragraph(answer, homes) for answer, homes in _shapes().items()]
    TABLE.write_text("\n".join(paragraphs), encoding="utf-8")


def differences() -> list[str]:
    """A line for every key that has come, gone or changed."""
    found: dict[tuple[str, str, str, str], list[str]] = defaultdict(list)
    was, now = _recorded(), _shapes()
    for answer in was | now:
        old_homes, new_homes = was.get(answer, {}), now.get(answer, {})
        for name in old_homes | new_homes:
            old, new = old_homes.get(name, {}), new_homes.get(name, {})
            for path in sorted(old.keys() | new.keys()):
                types = old.get(path, "not there"), new.get(path, "not there")
                if types[0] != types[1] and not (_is_unknown(path, old) or _is_unknown(path, new)):
                    found[answer, path, *types].append(name)
    return [
        f"shapes: {answer}: {path} of {', '.join(names)}: was {old}, is {new}"
        for (answer, path, old, new), names in found.items()
    ]


def _is_unknown(path: str, shape: Shape) -> bool:
    """Whether a list on the way to a path is empty."""
    lists = [path[: found.start()] for found in re.finditer(r"\[\]", path)]
    return any(one in shape and f"{one}[]" not in shape for one in lists)


# The table


def _paragraph(answer: str, homes: dict[str, Shape]) -> str:
    having: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, shape in homes.items():
        for item in shape.items():
            having[item].append(name)
    lines = [f"{answer}  [{' '.join(homes)}]"]
    for (path, types), names in sorted(having.items()):
        some = f"  [{' '.join(names)}]" if len(names) < len(homes) else ""
        lines.append(f"  {path}  {types}{some}")
    return "\n".join([*lines, ""])


def _recorded() -> Shapes:
    found: Shapes = {}
    homes: dict[str, Shape] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        *words, last = line.strip().split("  ")
        if line.startswith("  "):
            path, types = words if last.endswith("]") else [*words, last]
            for name in last[1:-1].split() if last.endswith("]") else homes:
                homes[name][path] = types
        elif line:
            found[words[0]] = homes = {name: {} for name in last[1:-1].split()}
    return found


# What is asked


def _shapes() -> Shapes:
    with plain_machine():
        return {
            answer: {name: ask(home(name)) for name in names}
            for answer, (names, ask) in ANSWERS.items()
        }


def _explained(folder: Path, *words: str) -> Any:
    outcome = call("explain", folder / "run", *words, "--json")
    assert (outcome.code, outcome.err) == (0, ""), outcome
    return json.loads(outcome.out)


def _of_factors(folder: Path) -> Shape:
    return shape_of([_explained(folder)])


def _of_nodes(folder: Path) -> Shape:
    factors = _explained(folder)["reasons"]
    names = dict.fromkeys(name for one in factors for name, _ in one["most_active_nodes"])
    return shape_of([_explained(folder, "--node", name) for name in [*names][:MOST]])


def _of_edges(folder: Path) -> Shape:
    factors = _explained(folder)["reasons"]
    ends = [edge[:2] for one in factors for edge in one["typical_edges"]]
    return shape_of([_explained(folder, "--edge", *pair) for pair in ends[:MOST]])


def _written(folder: Path, verb: str, *words: str, made: str = "out.csv") -> str:
    """The text of a file that a command makes of a run."""
    with tempfile.TemporaryDirectory() as place:
        outcome = call(verb, folder / "run", *words, "--out", Path(place, "out.csv"))
        assert outcome.code == 0, outcome
        return Path(place, made).read_bytes().decode()


def _predictions(folder: Path, *words: str) -> Shape:
    return table_shape(_written(folder, "predict", *words))


def _edge_predictions(folder: Path, *words: str) -> Shape:
    """Of a run that predicts labels they are a second table."""
    made = "out.csv" if folder.name in EDGES else "out-edges.csv"
    more = ["--edges"] if folder.name == "batches" else []
    return table_shape(_written(folder, "predict", *more, *words, made=made))


def _measures(folder: Path) -> Shape:
    rows = json.loads(_written(folder, "measure"))
    return shape_of([{"rows": rows, "value of": {row["name"]: row["value"] for row in rows}}])


def _page(folder: Path) -> Shape:
    (data,) = re.findall(r'id="data">(.*?)</script>', _written(folder, "explore"), re.DOTALL)
    return shape_of([json.loads(data)])


def _result(folder: Path) -> Shape:
    return shape_of([json.loads((folder / "run/result.json").read_text(encoding="utf-8"))])


def _config(folder: Path) -> Shape:
    return shape_of([tomllib.loads((folder / "run/config.toml").read_text(encoding="utf-8"))])


ALL = [*NODES, *EDGES, "both"]
ANSWERS: dict[str, tuple[list[str], Callable[[Path], Shape]]] = {
    "explain --json": (ALL, _of_factors),
    "explain --node ID --json": (ALL, _of_nodes),
    "explain --edge A B --json": (ALL, _of_edges),
    "predict": (NODES, _predictions),
    "predict --proba": (NODES, lambda folder: _predictions(folder, "--proba")),
    "predict --edges": (ALL, _edge_predictions),
    "predict --edges --proba": (EDGES, lambda folder: _edge_predictions(folder, "--proba")),
    "measure.json": (NODES, _measures),
    "the JSON of explore.html": (ALL, _page),
    "result.json": (ALL, _result),
    "config.toml": (ALL, _config),
}


# What shape it has


def shape_of(values: list[Any]) -> Shape:
    """The types at every path of some JSON values that answer the same question."""
    found: dict[str, set[str]] = defaultdict(set)
    for value in values:
        _look(value, "", found)
    return {path: _types(path, types) for path, types in found.items()}


def _look(value: Any, path: str, found: dict[str, set[str]]) -> None:
    if isinstance(value, dict) and value.keys() == {"type", "shape", "data"}:
        found[path].add(f"{value['type']} of {' × '.join(map(str, value['shape']))}")
    elif isinstance(value, dict):
        if path:
            found[path].add("object")
        for key, one in value.items():
            _look(one, f"{path}.{key}" if path else key, found)
    elif isinstance(value, list):
        found[path].add(f"list of {len(value)}")
        for one in value:
            _look(one, f"{path}[]", found)
    else:
        found[path].add("null" if value is None else type(value).__name__)


def _types(path: str, types: set[str]) -> str:
    """The types in words; a list has a length where all lists at this path have the same."""
    lengths = {one for one in types if one.startswith("list of ")}
    if len(lengths) > 1 or path.rpartition(".")[2] in BY_CHANCE:
        types = types - lengths | ({"list"} if lengths else set())
    if path in NAME_OR_NOT:
        types = {"null", "str"}
    return " or ".join(sorted(types))


CELLS = {
    "blank": "",
    "whole number": r"-?\d+",
    "number of six decimals": r"-?\d+\.\d{6}",
    "text with ' before it": r"'[=+@-].*",
    "text": r"(?s).+",
}


def table_shape(text: str) -> Shape:
    """Rows, quotes and line ends of a CSV file, and what is in the cells of each column."""
    table = list(csv.reader(io.StringIO(text, newline="")))
    again = io.StringIO(newline="")
    csv.writer(again, lineterminator="\n").writerows(table)
    plain = again.getvalue() == text
    header, *rows = table
    shape = {
        "rows": str(len(rows)),
        "lines": "end in LF, cells in quotes where needed" if plain else "written otherwise",
    }
    for number, name in enumerate(header):
        kinds = {_kind(row[number]) for row in rows}
        shape[f"column {number + 1}: {name}"] = " or ".join(sorted(kinds))
    return shape


def _kind(cell: str) -> str:
    return next(kind for kind, pattern in CELLS.items() if re.fullmatch(pattern, cell))
