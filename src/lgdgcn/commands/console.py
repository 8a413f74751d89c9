"""Tables and progress bars."""

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from lgdgcn.errors import one_line, printable
from lgdgcn.progress import Advance

if TYPE_CHECKING:
    from lgdgcn.train.state import EpochReport, Member

__all__ = [
    "duration",
    "epoch_progress",
    "out",
    "percent",
    "plain",
    "print_table",
    "print_warning",
    "say_step",
    "steps",
    "work_progress",
]


class _SafeConsole(Console):
    """Shows names out of files of others, wherever they stand: no character steers the terminal."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Make text of a line, or of a cell of a table."""
        return super().render_str(printable(text), **options)


# Names of graphs and folders are shown as they are: no [markup], no :emoji:. A file or pipe has no
# width, so tables in it are as wide as what they hold.
_width = None if sys.stdout.isatty() else 1000
out = _SafeConsole(highlight=False, markup=False, emoji=False, width=_width)
_err = Console(stderr=True, highlight=False)
_bar_shown = Lock()
_epochs: Progress | None = None  # the bar of epochs that is shown now
FIRST_EPOCH = "compiling kernels, once; first epoch"
SHOWN_AFTER = 1.0  # seconds; what is done by then needs no bar


def percent(value: float | None, spread: float | None = None) -> str:
    """Format a share: ``83.5``, with its spread ``83.5 ± 0.4``, or a dash."""
    if value is None:
        return "–"
    return f"{100 * value:.1f}" + (f" ± {100 * spread:.1f}" if spread is not None else "")


def plain(value: float | None, digits: int = 4) -> str:
    """Format a number, or a dash."""
    return "–" if value is None else f"{value:.{digits}f}"


def print_table(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    text_columns: int = 1,
    width: int | None = None,
) -> None:
    """Print a table, the first columns left, the others right; headings fit 80 columns.

    Args:
        title: A line above it.
        header: Its headings.
        rows: Its cells.
        text_columns: How many columns are left; if there are several, the last may be wrapped.
        width: How wide it may be in a file or pipe, which has no width.
    """
    table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for number, name in enumerate(header):
        is_long = number == text_columns - 1 > 0  # the last column of text, which may be wrapped
        left = number < text_columns
        table.add_column(name, justify="left" if left else "right", no_wrap=not is_long)
    for row in rows:
        table.add_row(*row)
    out.print(title, style="bold")
    out.print(table, width=None if out.is_terminal else width)


def print_warning(text: str) -> None:
    """Print what a reader of the results should know, in one line below them."""
    out.print(f"warning: {one_line(text)}", soft_wrap=True)


@contextmanager
def epoch_progress(label: str, runs: int) -> "Iterator[Callable[[Member, EpochReport], None]]":
    """Show one bar for all runs on a terminal's standard error.

    The epochs that an early stop leaves out are not waited for: the bar ends at the last one. What
    is done beside epochs, such as scoring in the end, is a note behind it.
    """
    global _epochs
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=12),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("[dim]{task.fields[note]}"),
    )
    with (
        _one_bar() as shown,
        Progress(*columns, console=_err, transient=True, disable=not shown) as progress,
    ):
        text = label if runs == 1 else f"{label}, {runs} runs"
        task = progress.add_task(text, total=None, note=FIRST_EPOCH)
        done: dict[int, int] = {}
        left: dict[int, int] = {}
        best: dict[int, float] = {}

        def on_epoch(member: "Member", report: "EpochReport") -> None:
            epochs, epoch = member.settings.epochs, report.state.epoch
            done[member.seed] = epoch
            left[member.seed] = 0 if report.finished else epochs - epoch
            best[member.seed] = report.state.best_score
            note = f"loss {report.metrics['total']:.4g}"
            if all(math.isfinite(score) for score in best.values()):
                note += f", val. {percent(sum(best.values()) / len(best))}"
            if runs > 1:
                note += f", {list(left.values()).count(0)} done"
            completed = sum(done.values())
            total = completed + sum(left.values()) + (runs - len(done)) * epochs
            progress.update(task, completed=completed, total=total, note=note)

        _epochs = progress if shown else None
        try:
            yield on_epoch
        finally:
            _epochs = None


@contextmanager
def steps() -> Iterator[Callable[[str], None]]:
    """Show what is being done, and for how long, on a terminal's standard error."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with (
        _one_bar() as shown,
        Progress(*columns, console=_err, transient=True, disable=not shown) as progress,
    ):
        task = progress.add_task("", total=None)

        def on_step(name: str) -> None:
            progress.update(task, description=escape(printable(name)))

        yield on_step


def say_step(text: str) -> None:
    """Say on standard error that a step of long work is done, where no bar shows it."""
    if not _err.is_terminal:
        _err.print(text, soft_wrap=True, markup=False)


@contextmanager
def work_progress(what: str, unit: str) -> Iterator[Advance]:
    """Show work on a terminal's standard error, if it takes longer than a second.

    Args:
        what: What is done, such as ``reading edges.csv``.
        unit: What is counted, such as ``rows``; without one only the time is shown.
    """
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        *([BarColumn(), TaskProgressColumn()] if unit else []),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
    )
    with _one_bar() as shown:
        if not shown:
            with _noted_beside_epochs(escape(what)) as advance:
                yield advance
            return
        progress = Progress(*columns, console=_err, transient=True)
        task = progress.add_task(escape(printable(what)), total=None, note="")
        begin = time.monotonic()

        def advance(done: int, share: float | None) -> None:
            rate = done / max(time.monotonic() - begin, 1e-9)
            note = f"{done:,} {unit}, {rate:,.0f} a second"
            if share is not None and 0.01 < share < 1:
                left = (time.monotonic() - begin) * (1 - share) / share
                note += f", {duration(left)} left"
            total = None if share is None else 1.0
            progress.update(task, completed=share or 0.0, total=total, note=note)

        timer = Timer(SHOWN_AFTER, progress.start)
        timer.daemon = True
        timer.start()
        try:
            yield advance
        finally:
            timer.cancel()
            timer.join()  # it may be showing the bar just now
            if progress.live.is_started:
                progress.stop()


@contextmanager
def _noted_beside_epochs(what: str) -> Iterator[Advance]:
    """Show work as the note of the bar of epochs, if that is shown."""
    bar = _epochs
    if bar is None:
        yield lambda done, share: None
        return
    [task] = bar.tasks
    before = task.fields["note"]

    def advance(done: int, share: float | None) -> None:
        if share is not None:
            bar.update(task.id, note=f"{what}, {share:.0%}")

    bar.update(task.id, note=what)
    try:
        yield advance
    finally:
        bar.update(task.id, note=before)


def duration(seconds: float) -> str:
    """A time for a progress bar.

    Example:
        >>> duration(7.4), duration(754), duration(8000)
        ('7 s', '12 min 34 s', '2 h 13 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


@contextmanager
def _one_bar() -> Iterator[bool]:
    """Whether a bar may be shown: only on a terminal, and only one at a time."""
    shown = _err.is_terminal and _bar_shown.acquire(blocking=False)
    try:
        yield shown
    finally:
        if shown:
            _bar_shown.release()
