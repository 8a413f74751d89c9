"""Tables and progress bars."""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

if TYPE_CHECKING:
    from lgdgcn.train.loop import Run

__all__ = ["epoch_progress", "out", "percent", "print_table"]

# Names of graphs and folders are shown as they are: no [markup], no :emoji:. A file or pipe has no
# width, so tables in it are as wide as what they hold.
_width = None if sys.stdout.isatty() else 1000
out = Console(highlight=False, markup=False, emoji=False, width=_width)
_err = Console(stderr=True, highlight=False)


def percent(value: float | None, spread: float | None = None) -> str:
    """Format a share: ``83.5``, with its spread ``83.5 ± 0.4``, or a dash."""
    if value is None:
        return "–"
    return f"{100 * value:.1f}" + (f" ± {100 * spread:.1f}" if spread is not None else "")


def print_table(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], text_columns: int = 1
) -> None:
    """Print a table, the first columns left, the others right."""
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for number, name in enumerate(header):
        table.add_column(name, justify="left" if number < text_columns else "right")
    for row in rows:
        table.add_row(*row)
    out.print(table)


@contextmanager
def epoch_progress(label: str, runs: int) -> "Iterator[Callable[[Run, dict[str, Any]], None]]":
    """Show one bar per run on a terminal's standard error.

    It jumps to its end when training stops early.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("[dim]{task.fields[note]}"),
    )
    hidden = not _err.is_terminal
    with Progress(*columns, console=_err, transient=True, disable=hidden) as progress:
        tasks: dict[int, TaskID] = {}

        def on_epoch(run: "Run", metrics: dict[str, Any]) -> None:
            if run.seed not in tasks:
                text = label if runs == 1 else f"{label}, run {len(tasks) + 1} of {runs}"
                total = run.settings.epochs
                tasks[run.seed] = progress.add_task(text, total=total, note="")
            note = f"loss {metrics['total']:.3f}"
            if math.isfinite(run.progress.best_score):
                best = percent(run.progress.best_score)
                note += f", validation {best} at epoch {run.progress.best_epoch}"
            done = run.progress.epoch
            total = done if run.finished else run.settings.epochs
            progress.update(tasks[run.seed], completed=done, total=total, note=note)

        yield on_epoch
