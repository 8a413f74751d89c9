"""The table a search shows while it runs: how many trials are done, and the best so far."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import optuna
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lgdgcn.commands.console import percent
from lgdgcn.tune.workers import counts

__all__ = ["SHOWN", "rows_of_settings", "trial_progress"]

_SECONDS = 2.0  # between two reads of the storage
SHOWN = 5  # trials beside each other
_ENDS = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}


class Refresh(Protocol):
    """Called after every change, with a word on what is going on."""

    def __call__(self, note: str = "") -> None: ...


@contextmanager
def trial_progress(study: "optuna.Study", total: int) -> Iterator[Refresh]:
    """Show the state of a study on standard error, read again whenever called.

    On a terminal as a table; else as a line for every tenth of the trials.
    """
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        lines = _ProgressLines(study, total, console)
        yield lines.refresh
        lines.print_new()
        return
    start = time.monotonic()
    last = start - _SECONDS
    with Live(console=console, transient=True, auto_refresh=False) as live:

        def refresh(note: str = "") -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= _SECONDS:
                last = now
                live.update(_table(study, total, now - start, note), refresh=True)

        yield refresh


class _ProgressLines:
    """Prints how far a study is, once for every tenth of its trials."""

    def __init__(self, study: "optuna.Study", total: int, console: Console) -> None:
        self.study, self.total, self.console = study, total, console
        self.printed = 0  # tenths
        self.last = time.monotonic()

    def refresh(self, note: str = "") -> None:
        if time.monotonic() - self.last >= _SECONDS:
            self.print_new()

    def print_new(self) -> None:
        self.last = time.monotonic()
        trials = self.study.get_trials(deepcopy=False)
        done = sum(counts(trial) and trial.state.is_finished() for trial in trials)
        tenth = min(10, 10 * done // self.total)
        if tenth > self.printed:
            self.printed = tenth
            scores = (trial.value for trial in trials if trial.state.name == "COMPLETE")
            best = percent(max(scores, default=None))
            text = f"{10 * tenth} %: {done} of {self.total} trials, best validation {best}"
            self.console.print(text, soft_wrap=True)


def _table(study: "optuna.Study", total: int, seconds: float, note: str) -> Group:
    trials = study.get_trials(deepcopy=False)
    states = Counter(trial.state.name for trial in trials if counts(trial))
    running = states.pop("RUNNING", 0)
    ends = ", ".join(f"{count} {_ENDS[name]}" for name, count in states.items())
    done = f"{states.total()} of {total} trials" + (f" ({ends})" if ends else "")
    now = note or f"{running} running"
    title = f"{study.study_name}: {done}, {now}, {seconds / 60:.1f} min"
    best = sorted(
        (trial for trial in trials if trial.state.name == "COMPLETE"),
        key=lambda trial: trial.value,
        reverse=True,
    )[:SHOWN]
    table = Table(box=SIMPLE_HEAD)
    table.add_column("trial")
    for trial in best:
        table.add_column(str(trial.number), justify="right")
    table.add_row("validation", *(percent(trial.value) for trial in best))
    for row in rows_of_settings([trial.params for trial in best]):
        table.add_row(*row)
    return Group(Text(title, style="bold"), *([table] if best else []))


def rows_of_settings(trials: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """A row for every searched setting, its value in each trial; so they fit on any terminal."""
    names = sorted({name for params in trials for name in params})
    return [[name, *(_shown(params.get(name)) for params in trials)] for name in names]


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
