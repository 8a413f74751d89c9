"""Names that verbs use which have not moved to :mod:`lgdgcn.cli` yet."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lgdgcn.cli.console import out, percent, plain, progress, steps
from lgdgcn.cli.console import table as print_table
from lgdgcn.cli.console import warn as print_warning

if TYPE_CHECKING:
    from lgdgcn.training import Epoch

__all__ = ["epoch_progress", "out", "percent", "plain", "print_table", "print_warning", "steps"]

FIRST_EPOCH = "compiling kernels, once; first epoch"


@contextmanager
def epoch_progress(label: str, runs: int) -> "Iterator[Callable[[Epoch], None]]":
    """Show the epochs of all runs.

    The epochs that an early stop leaves out are not waited for: the bar ends at the last one.
    """
    with progress(label if runs == 1 else f"{label}, {runs} runs") as update:
        update(None, FIRST_EPOCH)
        done: dict[int, int] = {}
        left: dict[int, int] = {}
        best: dict[int, float] = {}

        def on_epoch(report: "Epoch") -> None:
            member = report.training
            epochs, epoch = member.settings.epochs, report.state.epoch
            done[member.seed] = epoch
            left[member.seed] = 0 if report.finished else epochs - epoch
            best[member.seed] = report.state.best_score
            completed = sum(done.values())
            total = completed + sum(left.values()) + (runs - len(done)) * epochs
            note = f"{completed}/{total}, loss {report.metrics['total']:.4g}"
            if all(math.isfinite(score) for score in best.values()):
                note += f", val. {percent(sum(best.values()) / len(best))}"
            if runs > 1:
                note += f", {list(left.values()).count(0)} done"
            update(completed / total, note)

        yield on_epoch
