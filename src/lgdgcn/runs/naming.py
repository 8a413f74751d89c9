"""Where a run goes if nobody says it, and what its ``config.toml`` says of its graph."""

import re
from pathlib import Path
from typing import Any

from lgdgcn.data.source import GraphSource
from lgdgcn.errors import InputError
from lgdgcn.runs.folder import Run

__all__ = ["default_folder", "run_header"]


def default_folder(graph: str, model: str, *, resume: bool = False) -> Path:
    """``runs/GRAPH-MODEL``, numbered so that nothing is overwritten.

    Without the name of a model it is ``runs/GRAPH``. Resuming takes the newest unfinished one.
    """
    full = f"{graph}-{model}" if model else graph
    name = re.sub(r"[^A-Za-z0-9._]+", "-", full)[:64].strip("-") or "graph"
    number = 1
    taken: list[Path] = []
    while (path := Path("runs") / (name if number == 1 else f"{name}-{number}")).exists():
        taken.append(path)
        number += 1
    unfinished = [old for old in taken if not _is_finished(old)]
    if resume and not unfinished:
        raise InputError(f"no unfinished run of {name} in runs; name its folder with --out")
    return unfinished[-1] if resume else path


def _is_finished(folder: Path) -> bool:
    """Whether nothing is left to do, not even checkpoints to remove."""
    runs = [Run.open(run) for run in (folder, *(folder / "compared").glob("*"))]
    return all(run.is_finished for run in runs)


def run_header(source: GraphSource, model: str, seeds: range) -> dict[str, Any]:
    """What ``config.toml`` says in its table ``[run]``: all that is needed to read the graph."""
    header = {"dataset": source.address, "model": model, "seeds": len(seeds), "split": source.split}
    header |= {"first_seed": seeds[0]} if seeds[0] else {}
    header |= {"root": source.root} if source.root else {}
    return header | {key: value for key, value in source.options.items() if key != "split"}
