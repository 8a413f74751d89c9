"""Training curves out of a run's log."""

import json
from collections.abc import Iterable
from typing import Any

__all__ = ["training_curves"]

MOST_SEEDS = 5
MOST_POINTS = 400  # of one curve
LARGEST = 1e300  # a page can draw nothing above it, nor what is no number


def training_curves(lines: Iterable[str]) -> list[dict[str, Any]]:
    """Every loss term and score by epoch, for the first few seeds.

    Args:
        lines: Of ``metrics.jsonl``; what is no record of an epoch is left out.

    Returns:
        ``{"seed", "epochs": [...], "terms": {name: [...]}}`` for each seed; long ones are thinned
        to every n-th epoch and the last.

    Example:
        >>> training_curves(['{"seed": 0, "epoch": 1, "total": 2.5}', "torn"])
        [{'seed': 0, 'epochs': [1], 'terms': {'total': [2.5]}}]
    """
    runs: dict[int, dict[int, dict[str, Any]]] = {}
    for line in lines:
        try:
            record = json.loads(line)
            epochs = runs.setdefault(int(record.pop("seed")), {})
            epochs[int(record.pop("epoch"))] = record
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            continue
    return [_curve(seed, runs[seed]) for seed in sorted(runs)[:MOST_SEEDS] if runs[seed]]


def _curve(seed: int, records: dict[int, dict[str, Any]]) -> dict[str, Any]:
    epochs = sorted(records)
    step = -(-len(epochs) // (MOST_POINTS - 1))
    kept = epochs[::step]
    if kept[-1] != epochs[-1]:
        kept.append(epochs[-1])
    names = dict.fromkeys(name for epoch in kept for name in records[epoch])
    terms = {name: [_number(records[epoch].get(name)) for epoch in kept] for name in names}
    return {"seed": seed, "epochs": kept, "terms": terms}


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and abs(value) < LARGEST else None
