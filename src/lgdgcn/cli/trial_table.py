"""How far a search for settings is, and its trials side by side."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from lgdgcn.cli.console import percent, progress
from lgdgcn.search.workers import counts

if TYPE_CHECKING:
    import optuna

__all__ = ["SHOWN", "rows_of_settings", "trial_progress"]

_SECONDS = 2.0  # between two reads of the storage
SHOWN = 5  # trials beside each other
_ENDS = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}


class Refresh(Protocol):
    """Called after every change, with a word on what is going on."""

    def __call__(self, note: str = "") -> None: ...


@contextmanager
def trial_progress(study: "optuna.Study", total: int) -> Iterator[Refresh]:
    """Show how many trials are done and the best score so far, read again whenever called."""
    last = time.monotonic()
    with progress(study.study_name, tenths=True) as update:

        def show(note: str) -> None:
            nonlocal last
            last = time.monotonic()
            trials = study.get_trials(deepcopy=False)
            states = Counter(trial.state.name for trial in trials if counts(trial))
            running = states.pop("RUNNING", 0)
            ends = ", ".join(f"{count} {_ENDS[name]}" for name, count in states.items())
            scores = [trial.value for trial in trials if trial.state.name == "COMPLETE"]
            done = f"{states.total()} of {total} trials" + (f" ({ends})" if ends else "")
            best = f"best validation {percent(max(scores, default=None))}"
            update(
                min(1.0, states.total() / total), f"{done}, {best}, {note or f'{running} running'}"
            )

        def refresh(note: str = "") -> None:
            if time.monotonic() - last >= _SECONDS:
                show(note)

        yield refresh
        show("done")


def rows_of_settings(trials: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """A row for every searched setting, its value in each trial; so they fit on any terminal."""
    names = sorted({name for params in trials for name in params})
    return [[name, *(_shown(params.get(name)) for params in trials)] for name in names]


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
