"""What a user sees: the only module that prints.

Results go to standard output; notes, warnings, errors and progress to standard error. With
``--json`` standard output is one JSON object, and what is said beside it goes to standard error.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, Task, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from lgdgcn.errors import LGDNote, LGDWarning, one_line, printable

__all__ = [
    "Update",
    "as_json",
    "begin",
    "duration",
    "error",
    "percent",
    "plain",
    "progress",
    "say",
    "show_warning",
    "silence",
    "steps",
    "table",
    "warn",
    "work_progress",
]

SHOWN_AFTER = 1.0  # seconds; what is done by then needs no bar
TENTHS = 10  # lines that tell of long work where there is no terminal

# Shows how far work is: the share that is done, if that is known, and a few words.
Update = Callable[[float | None, str], None]


class _SafeConsole(Console):
    """Shows names out of files of others, wherever they stand: no character steers the terminal."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Make text of a line, or of a cell of a table."""
        return super().render_str(printable(text), **options)


# Names of graphs and folders are shown as they are: no [markup], no :emoji:. A file or pipe has no
# width, so tables in it are as wide as what they hold.
_PLAIN: Mapping[str, Any] = {"highlight": False, "markup": False, "emoji": False}
_width = None if sys.stdout.isatty() else 1000
out = _SafeConsole(**_PLAIN, width=_width)
_err = _SafeConsole(**_PLAIN, stderr=True)
_shown: set[str] = set()  # Python forgets what it has shown whenever a library changes a filter


def begin(*, quiet: bool = False, as_json: bool = False) -> None:
    """Begin a command.

    Args:
        quiet: Say nothing but warnings, errors and JSON.
        as_json: Keep standard output for one JSON object.
    """
    _shown.clear()
    out.quiet = quiet
    out.stderr = as_json


def silence() -> None:
    """Print nothing more, as another process prints for this one."""
    out.quiet = True


def say(text: str = "") -> None:
    """Print a line, or several, as long as they are."""
    out.print(text, soft_wrap=True)


def warn(text: str) -> None:
    """Print what a reader of the results should know, in one line below them."""
    if out.quiet:
        error(f"warning: {text}")
    else:
        say(f"warning: {one_line(text)}")


def error(message: object) -> None:
    """Print what went wrong, in one line."""
    _err.print(f"lgdgcn: {one_line(message)}", soft_wrap=True)


def show_warning(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    """Print a warning of ours in one line, once; those of libraries only where one debugs."""
    if str(message) in _shown:
        return
    _shown.add(str(message))
    is_note = issubclass(category, LGDNote)
    is_ours = issubclass(category, LGDWarning) and not (is_note and out.quiet)
    if is_ours or os.environ.get("LGDGCN_DEBUG"):
        error(f"{'note' if is_note else 'warning'}: {message}")


def as_json(value: object) -> None:
    r"""Print one JSON object; control characters, which a terminal would obey, as ``\u009b``."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    safe = (c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)
    sys.stdout.write("".join(safe) + "\n")


def table(
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
    drawn = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for number, name in enumerate(header):
        is_long = number == text_columns - 1 > 0  # the last column of text, which may be wrapped
        left = number < text_columns
        drawn.add_column(name, justify="left" if left else "right", no_wrap=not is_long)
    for row in rows:
        drawn.add_row(*row)
    out.print(title, style="bold")
    out.print(drawn, width=None if out.is_terminal else width)


def percent(value: float | None, spread: float | None = None) -> str:
    """Format a share: ``83.5``, with its spread ``83.5 ± 0.4``, or a dash."""
    if value is None:
        return "–"
    return f"{100 * value:.1f}" + (f" ± {100 * spread:.1f}" if spread is not None else "")


def plain(value: float | None, digits: int = 4) -> str:
    """Format a number, or a dash."""
    return "–" if value is None else f"{value:.{digits}f}"


def duration(seconds: float) -> str:
    """Format a time that is left.

    Example:
        >>> duration(7.4), duration(754), duration(8000)
        ('7 s', '12 min 34 s', '2 h 13 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


class _Bar(BarColumn):
    """A bar, where it is known how much there is to do."""

    def render(self, task: Task) -> Any:
        return Text() if task.total is None else super().render(task)


class _Display(Progress):
    """A line on the terminal for everything that is going on and takes longer than it may."""

    def make_tasks_table(self, tasks: Iterable[Task]) -> Table:
        return super().make_tasks_table(
            task for task in tasks if (task.elapsed or 0) >= task.fields["after"]
        )


_display = _Display(
    TextColumn("{task.description}", markup=False),
    _Bar(bar_width=8),
    TimeElapsedColumn(),
    TextColumn("{task.fields[note]}", markup=False, style="dim"),
    console=_err,
    transient=True,
)


@contextmanager
def progress(what: str, *, after: float = 0.0, tenths: bool = False) -> Iterator[Update]:
    """Show work on a terminal's standard error, beside all other work.

    Args:
        what: What is done.
        after: Seconds that it may take without being shown.
        tenths: Where there is no terminal, print a line for every tenth.
    """
    if out.quiet:
        yield lambda share, note: None
    elif _err.is_terminal:
        line = _display.add_task(printable(what), total=None, note="", after=after)
        _display.start()

        def update(share: float | None, note: str) -> None:
            total = None if share is None else 1.0
            _display.update(line, completed=share or 0.0, total=total, note=printable(note))

        try:
            yield update
        finally:
            _display.remove_task(line)
            if not _display.tasks:
                _display.stop()
    else:
        said = 0

        def say_tenths(share: float | None, note: str) -> None:
            nonlocal said
            if tenths and share is not None and (tenth := int(TENTHS * share)) > said:
                said = tenth
                _err.print(f"{100 * tenth // TENTHS} %: {note}", soft_wrap=True)

        yield say_tenths


@contextmanager
def steps(*, lines: bool = False) -> Iterator[Callable[[str], None]]:
    """Show what is being done, one thing after the other.

    Args:
        lines: Where there is no terminal, print a line for each.
    """
    with progress("") as update:

        def on_step(name: str) -> None:
            update(None, name)
            if lines and not (out.quiet or _err.is_terminal):
                _err.print(name, soft_wrap=True)

        yield on_step


@contextmanager
def work_progress(what: str, unit: str) -> Iterator[Callable[[int, float | None], None]]:
    """Show work of a library module, if it takes longer than a second.

    Args:
        what: What is done, such as ``reading edges.csv``.
        unit: What is counted, such as ``rows``; without one only the time is shown.
    """
    start = time.monotonic()
    with progress(what, after=SHOWN_AFTER) as update:

        def advance(done: int, share: float | None) -> None:
            seconds = time.monotonic() - start
            note = f"{done:,} {unit}, {done / max(seconds, 1e-9):,.0f} a second" if unit else ""
            if share is not None and 0.01 < share < 1:
                note += f", {duration(seconds * (1 - share) / share)} left"
            update(share, note)

        yield advance
