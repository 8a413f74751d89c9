"""What is tried on a graph without settings of its own."""

from itertools import zip_longest
from typing import Any

from lgdgcn.config import (
    auto_scaling,
    belongs,
    check_width,
    default_variant,
    has_own_preset,
    model_and_variant,
    portfolio,
    preset,
    resolve,
    with_fitting_width,
)
from lgdgcn.search.families import families_with
from lgdgcn.search.race import Candidate

__all__ = ["candidates"]


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
