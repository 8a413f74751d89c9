"""Time and memory of the new tree over those of the old one, measured in turns."""

import shutil
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from .measurements import Measured, Timing, user_timings, work_timings
from .trees import Tree

__all__ = ["compare_speed"]


def compare_speed(
    old: Tree,
    new: Tree,
    folder: Path,
    say: Callable[[str], None],
    *,
    device: str,
    repeats: int,
    word: str,
    quick: bool,
) -> list[str]:
    """Measure both trees in turns, and return the table of ratios.

    Args:
        old: The old tree.
        new: The new tree.
        folder: Where graphs and runs are kept; what was measured is not, for it is of this hour.
        say: Told what was measured.
        device: Where steps are trained.
        repeats: How often each tree is measured.
        word: Only what has it in its name.
        quick: Only what takes seconds.
    """
    shutil.rmtree(folder / "speed", ignore_errors=True)
    timings = [*work_timings(device, folder / "graphs"), *user_timings(folder / "graphs")]
    lines = []
    for timing in timings:
        if word not in timing.name or (quick and timing.is_long):
            continue
        measured: dict[str, list[Measured]] = {"old": [], "new": []}
        for repeat in range(repeats):
            for tree in (old, new) if repeat % 2 == 0 else (new, old):
                own = folder / "speed" / tree.name
                own.mkdir(parents=True, exist_ok=True)
                measured[tree.name].append(timing.measure(tree, own))
        lines += _rows(timing, measured["old"], measured["new"])
        say(f"{timing.name}: measured")
    header = f"{'what':44} {'old':>10} {'new':>10}  new / old"
    return ["", f"time and memory, {device}, {repeats} of each in turns", header, *lines]


def _rows(timing: Timing, old: Sequence[Measured], new: Sequence[Measured]) -> list[str]:
    """A line for every quantity; where one could not be measured, why."""
    for name, measured in (("old", old), ("new", new)):
        for one in measured:
            if isinstance(one, str):
                return [f"{timing.name:44} left out: the {name} tree says: {one}"]
    rows = []
    for quantity in [key for key in old[0] if key in new[0]]:
        before = [one[quantity] for one in old if not isinstance(one, str)]
        now = [one[quantity] for one in new if not isinstance(one, str)]
        ratios = [b / a for a, b in zip(before, now, strict=True) if a]
        middle, late = statistics.median(before), statistics.median(now)
        title = f"{timing.name}, {quantity}"
        ratio = f"{late / middle:.3f}  ({min(ratios):.3f} to {max(ratios):.3f})" if ratios else "-"
        rows.append(f"{title:44} {middle:10.4g} {late:10.4g}  {ratio}")
    return rows or [f"{timing.name:44} left out: the trees measure nothing alike"]
