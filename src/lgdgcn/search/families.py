"""What takes part in a race and how long it may be, without loading anything heavy."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from lgdgcn.config import (
    Settings,
    auto_scaling,
    belongs,
    check_width,
    default_variant,
    has_own_preset,
    model_and_variant,
    model_name,
    portfolio,
    preset,
    resolve,
    with_fitting_width,
)
from lgdgcn.errors import InputError

__all__ = ["FAMILIES", "Candidate", "budget_of", "candidates", "families_with", "limit_of"]

FAMILIES = ("mlp", "gcn", "appnp", "gat", "gcnii", "grand", "reasons", "lgdgcn")
"""What is tried on a graph without settings of its own, the simplest model first.

A family added here takes part in every race; its settings are a table of ``portfolio.toml``.
"""

USUAL_LIMIT = "30m"
_TIME = r"\s*([0-9]+(?:\.[0-9]+)?)\s*([smh])\s*"
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Candidate:
    """A model with its settings."""

    model: str
    settings: Settings

    @property
    def name(self) -> str:
        """What ``--model`` calls it."""
        return model_name(self.model, self.settings.variant)


def families_with(own: Iterable[str]) -> list[str]:
    """The families that have all of these settings, ours first.

    Raises:
        InputError: There is none.
    """
    names = [*own]
    families = [
        model
        for model in reversed(FAMILIES)
        if all(belongs(name, model, "ours" if model == "lgdgcn" else None) for name in names)
    ]
    if not families:
        raise InputError(f"no model has all of the settings {', '.join(names)}; leave some out")
    return families


def candidates(
    graph: str, name: str | None, own: dict[str, Any], *, multi_label: bool
) -> list[Candidate]:
    """What to try of a model: the settings of the graph where it has some, else a portfolio.

    Of all families it is the first of each, ours before the others, then the second: so a part of
    the list is of as many families as it can be.

    Args:
        graph: Name that presets go by.
        name: The model, as ``--model`` has it; ``None`` for every family that has all settings of
            ``own``.
        own: What the user gives; all candidates have it.
        multi_label: Whether nodes have sets of labels.
    """
    if name is None:
        models = families_with(own)
        rounds = zip_longest(
            *(candidates(graph, model, own, multi_label=multi_label) for model in models)
        )
        return [one for turn in rounds for one in turn if one is not None]
    model, variant = model_and_variant(name)
    used = variant or default_variant(model)
    shipped = preset(graph, model, used, multi_label=multi_label)
    if belongs("factors", model):
        own = with_fitting_width(shipped, own)
    entries: list[dict[str, Any]] = [{}]
    if not has_own_preset(graph, model, used, multi_label=multi_label):
        entries = portfolio(model, used, multi_label=multi_label)
    unknown = auto_scaling(graph)
    found = [resolve({"variant": used}, shipped, unknown, entry, own) for entry in entries]
    if belongs("factors", model):
        for settings in found:
            check_width(settings)
    # what the user gives may make some the same
    return [Candidate(model, settings) for settings in dict.fromkeys(found)]


def budget_of(text: str | None) -> int | None:
    """Read ``--budget``: a number of settings to try, or ``none``, which is 0, for no search.

    Where nobody gives one it is ``None``: all there are.

    Example:
        >>> budget_of("40"), budget_of("none"), budget_of(None)
        (40, 0, None)
    """
    if text is None:
        return None
    if text.strip().lower() == "none":
        return 0
    if re.fullmatch(r"\s*[1-9][0-9]{0,8}\s*", text):
        return int(text)
    if re.fullmatch(_TIME, text):
        raise InputError(
            f"--budget {text} is a time: --budget is a number of settings to try, or none; a limit "
            f"in time is --time-limit {text.strip()}"
        )
    raise InputError(f"--budget is {text[:50]!r}; give a number of settings to try, or none")


def limit_of(text: str | None, name: str = "--time-limit") -> float | None:
    """Read ``--time-limit`` in seconds: ``30s``, ``5m``, ``1h``, or ``none`` for no limit.

    Where nobody gives one it is :data:`USUAL_LIMIT`, which no graph of moderate size needs.

    Args:
        text: The limit.
        name: What errors call it.

    Example:
        >>> limit_of("5m"), limit_of("none")
        (300.0, None)
    """
    text = USUAL_LIMIT if text is None else text
    if text.strip().lower() == "none":
        return None
    found = re.fullmatch(_TIME, text)
    seconds = float(found[1]) * _UNITS[found[2]] if found else math.nan
    if not 0 < seconds < math.inf:
        raise InputError(f"{name} is {text[:50]!r}; write 30s, 5m, 1h or none")
    return seconds
