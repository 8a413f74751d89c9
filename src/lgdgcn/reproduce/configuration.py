"""What stands behind a number: the exact configuration, and the command that repeats it."""

import shlex
from collections.abc import Iterator, Sequence

from lgdgcn.config import Settings, preset, resolve, to_toml
from lgdgcn.reproduce.cell import Cell
from lgdgcn.reproduce.exhibits import Curves, Exhibit, Table

__all__ = ["command", "configurations", "settings_line"]


def configurations(exhibit: Exhibit) -> list[str]:
    """Describe every cell of an exhibit once, in four lines, with all the places it stands in."""
    places: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    cells: dict[tuple[str, tuple[int, ...]], Cell] = {}
    for place, cell in _places(exhibit):
        known = places.setdefault((cell.key, cell.seeds), [])
        cells[cell.key, cell.seeds] = cell
        if place not in known:
            known.append(place)
    return [
        "\n".join(
            [
                f"# {'; '.join(places[key])}",
                f"# cell {cell.key}: {cell.model} on {cell.graph}, {cell.split} split, "
                f"seeds {_listed(cell.seeds)}",
                settings_line(cell.settings) or "# all settings at their defaults",
                command(cell),
            ]
        )
        for key, cell in cells.items()
    ]


def settings_line(settings: Settings) -> str:
    """The settings that differ from the defaults, as TOML on one line.

    Example:
        >>> settings_line(Settings(k=7, graph="knn"))
        'graph = "knn", k = 7'
    """
    usual = Settings().as_dict()
    own = {key: value for key, value in settings.as_dict().items() if value != usual[key]}
    return ", ".join(to_toml("settings", own).splitlines()[1:])


def command(cell: Cell) -> str:
    """The command that trains a cell's seeds; it starts from the shipped preset, as a user would.

    Example:
        >>> command(Cell("my-graph", "lgdgcn", Settings(k=7), (0, 1)))
        'lgdgcn train my-graph --model lgdgcn --seeds 2 --set k=7'
    """
    settings = cell.settings.as_dict()
    variant = None if settings["variant"] == "paper" else settings["variant"]
    chosen = {"variant": variant} if variant else {}
    given = resolve(preset(cell.graph.lower(), cell.model, variant), chosen).as_dict()
    words = ["lgdgcn", "train", cell.graph, "--model", cell.model]
    words += ["--variant", variant] if variant else []
    words += ["--split", cell.split] if cell.split != "standard" else []
    words += ["--seeds", str(max(cell.seeds, default=0) + 1)]
    for key, value in settings.items():
        if value != given[key] and key != "checkpoint_every":
            text = str(value).lower() if isinstance(value, bool) else str(value)
            words += ["--set", f"{key}={text}"]
    return shlex.join(words)


def _places(exhibit: Exhibit) -> Iterator[tuple[str, Cell]]:
    if isinstance(exhibit, Table):
        for row in exhibit.rows:
            for column, entry in zip(exhibit.columns, row.entries, strict=True):
                yield f"{row.label} / {column} / {row.group}", entry.cell
    elif isinstance(exhibit, Curves):
        for panel in exhibit.panels:
            for series in panel.series:
                for value, entry in zip(series.values, series.entries, strict=True):
                    yield f"{panel.title}, {value:g}", entry.cell
    else:
        for view in exhibit.views:
            yield view.title, view.cell


def _listed(seeds: Sequence[int]) -> str:
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))
