"""What differs between the outputs of two trees."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .digits import first_other_digit, ordinal, widest_gap

__all__ = ["Difference", "Epochs", "compare"]

LONGEST = 50  # letters of a text that is shown


class Epochs(dict[int, dict[str, Any]]):
    """Metrics of a training by epoch."""


@dataclass(frozen=True)
class Difference:
    """One thing that is not the same.

    Attributes:
        where: Its place in the outputs.
        text: What differs.
        digit: The first digit that does, of numbers.
    """

    where: str
    text: str
    digit: int | None = None

    def __str__(self) -> str:
        digit = "" if self.digit is None else f" ({ordinal(self.digit)} digit)"
        return f"{self.where}: {self.text}{digit}"


def compare(old: Any, new: Any, where: str = "") -> Iterator[Difference]:
    """Walk through two outputs and name all that differs.

    Args:
        old: Mappings, sequences, arrays, numbers and texts.
        new: The same of the other tree.
        where: What they are.
    """
    if isinstance(old, Epochs) and isinstance(new, Epochs):
        yield from _epochs(where, old, new)
    elif isinstance(old, np.ndarray) and isinstance(new, np.ndarray):
        yield from _arrays(where, old, new)
    elif isinstance(old, Mapping) and isinstance(new, Mapping):
        yield from _missing(where, [*old], [*new])
        for key in old:
            if key in new:
                yield from compare(old[key], new[key], f"{where}/{key}".lstrip("/"))
    elif _is_list(old) and _is_list(new):
        if len(old) != len(new):
            yield Difference(where, f"{len(old)} entries before, {len(new)} now")
        for index, pair in enumerate(zip(old, new, strict=False)):
            yield from compare(*pair, f"{where}[{index}]")
    elif _is_number(old) and _is_number(new):
        digit = first_other_digit(old, new)
        if digit is not None:
            yield Difference(where, f"{old!r} before, {new!r} now", digit)
    elif old != new:
        yield Difference(where, _both(old, new))


def _epochs(where: str, old: Epochs, new: Epochs) -> Iterator[Difference]:
    """Epochs that are missing, the first one that differs, and the first digit of all of them."""
    sides = (("now", old.keys() - new.keys()), ("before", new.keys() - old.keys()))
    missing = [f"{_spans(epochs)} missing {side}" for side, epochs in sides if epochs]
    if missing:
        yield Difference(where, f"epochs {'; '.join(missing)}")
    found = {
        epoch: parted
        for epoch in sorted(old.keys() & new.keys())
        if (parted := [*compare(old[epoch], new[epoch])])
    }
    if found:
        first, last = min(found), max(found)
        digits = [one.digit for parted in found.values() for one in parted if one.digit]
        until = f" to {last}" if last > first else ""
        text = f"epoch {first}{until}; {found[first][0]}; at worst"
        yield Difference(where, text, min(digits, default=None))


def _spans(numbers: set[int]) -> str:
    """Numbers in short: ``3-5, 9``."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def _arrays(where: str, old: np.ndarray, new: np.ndarray) -> Iterator[Difference]:
    if old.shape != new.shape:
        yield Difference(where, f"shape {[*old.shape]} before, {[*new.shape]} now")
    elif old.dtype.kind in "OU" or new.dtype.kind in "OU":
        differs = np.flatnonzero(old.astype(object) != new.astype(object))
        if len(differs):
            pair = _both(old[differs[0]], new[differs[0]])
            yield Difference(where, f"{len(differs)} of {old.size} rows; first, {pair}")
    elif (gap := widest_gap(old, new)) is not None:
        yield Difference(where, f"{gap[0]} of {old.size} numbers", gap[1])


def _missing(where: str, old: Sequence[Any], new: Sequence[Any]) -> Iterator[Difference]:
    for name, own, others in (("now", old, new), ("before", new, old)):
        if missing := [str(key) for key in own if key not in others]:
            yield Difference(where or "outputs", f"{', '.join(missing)}: missing {name}")


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _both(old: Any, new: Any) -> str:
    """Two values that are not the same; of long texts, where they begin to differ."""
    texts = repr(old), repr(new)
    letters = enumerate(zip(*texts, strict=False))
    first = next((i for i, (a, b) in letters if a != b), min(map(len, texts)))
    start = max(0, first - LONGEST // 3)
    before, now = (
        f"{'…' if start else ''}{text[start : start + LONGEST]}"
        f"{'…' if len(text) > start + LONGEST else ''}"
        for text in texts
    )
    return f"{before} before, {now} now"
