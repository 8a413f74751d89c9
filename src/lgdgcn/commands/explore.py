"""``lgdgcn explore``: one HTML file to walk through a run."""

import json
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lgdgcn.commands.console import out as console
from lgdgcn.commands.console import steps
from lgdgcn.commands.finished_run import FinishedRun, open_run
from lgdgcn.errors import InputError
from lgdgcn.explorer.page import to_page
from lgdgcn.explorer.payload import check_size, payload
from lgdgcn.storage import write_text
from lgdgcn.train.run_folder import RunFolder

__all__ = ["explore"]


def explore(run: Path, out: Path | None, *, show: bool, device: str) -> None:
    """Write the page of a run."""
    finished = open_run(run, device)
    own = RunFolder(run).page
    target = finished.target(out or own, own)
    check_size(finished.trained, finished.data)
    with steps() as progress:
        content = payload(
            finished.trained,
            finished.data,
            dataset=finished.source.name,
            log=_log(run),
            scores=_scores(finished),
            measures=_measures(finished, progress),
            warnings=finished.warnings,
            progress=progress,
        )
        progress("page")
        text = to_page(content)
        write_text(target, text)
    console.print(f"{target} ({len(text) / 1e6:.1f} MB)", soft_wrap=True)
    if show:
        webbrowser.open(target.resolve().as_uri())


def _log(run: Path) -> list[str]:
    file = RunFolder(run).metrics
    return file.read_text(encoding="utf-8", errors="replace").splitlines() if file.is_file() else []


def _scores(finished: FinishedRun) -> dict[str, float | None]:
    """Scores of the model that is shown and, of several seeds, the mean."""
    result = finished.result
    names = {"val": "validation", "test": "test"}
    kept = finished.best_run["scores"]
    scores = {
        f"{title} {name}": value
        for part, title in names.items()
        for name, value in kept.get(part, {}).items()
    }
    if len(result["runs"]) > 1:
        mean = f"test {result.get('metric')}, mean of {len(result['runs'])} seeds"
        scores[mean] = result.get("mean")
    return scores


def _measures(finished: FinishedRun, progress: Callable[[str], None]) -> list[dict[str, Any]]:
    """The rows that ``lgdgcn measure`` has written, or else new ones."""
    file = RunFolder(finished.folder).measures
    if file.is_file():
        try:
            rows = json.loads(file.read_text(encoding="utf-8"))
            if isinstance(rows, list) and all(isinstance(row, dict) for row in rows):
                return rows
        except (OSError, ValueError, RecursionError):
            pass
        raise InputError(f"{file} is damaged; write it again with: lgdgcn measure")
    from lgdgcn.metrics.controls import measure

    progress("measures")
    return [dict(row) for row in measure(finished.trained, finished.data)]
