"""What a search may choose: ranges of settings, fixed settings, and where it starts."""

import tomllib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution

from lgdgcn.config import (
    AUTO,
    Settings,
    auto_scaling,
    check_belongs,
    check_used,
    check_value,
    check_width,
    nearest_width,
    preset,
    resolve,
)
from lgdgcn.errors import InputError

__all__ = ["Space", "default_space", "read_space", "space_of"]

_RANGE = "write {low = …, high = …}, if you like with log = true or a step, or {choices = […]}"


@dataclass(frozen=True)
class Space:
    """What is searched and what is not.

    Attributes:
        ranges: The searched settings, as Optuna draws them.
        settings: Settings that all trials share.
        starts: Settings to try first; what they leave out is drawn.
    """

    ranges: dict[str, BaseDistribution]
    settings: dict[str, Any]
    starts: tuple[dict[str, Any], ...] = ()

    def fixing(self, given: dict[str, Any]) -> "Space":
        """The same with some settings given, which are then not searched."""
        for name, value in given.items():
            _check(name, value)
        if {"factors", "hidden_channels"} <= given.keys():
            check_width(resolve(given))  # who names both means both
        ranges = {name: kind for name, kind in self.ranges.items() if name not in given}
        if not ranges:
            raise InputError("--set leaves nothing to search; leave some of it out, or train")
        starts = tuple({k: v for k, v in start.items() if k not in given} for start in self.starts)
        return Space(ranges, {**self.settings, **given}, starts)

    def settings_of(self, params: dict[str, Any]) -> Settings:
        """A trial's settings; ``hidden_channels`` becomes the nearest multiple of ``factors``."""
        merged = {**self.settings, **params}
        if merged.keys() & {"factors", "variant"}:  # of a model that has factors
            factors = merged.get("factors", Settings.factors)
            hidden = merged.get("hidden_channels", Settings.hidden_channels)
            merged["hidden_channels"] = nearest_width(hidden, factors)
        return resolve(merged)

    def examples(self) -> list[Settings]:
        """The settings of two trials: with the first, and with the last value of every range."""
        ends = {name: _values(kind) for name, kind in self.ranges.items()}
        return [self.settings_of({k: v[place] for k, v in ends.items()}) for place in (0, -1)]

    def inside(self, settings: dict[str, Any]) -> dict[str, Any]:
        """The searched part of some settings, brought into the ranges; what does not fit is out."""
        chosen = {}
        for name, kind in self.ranges.items():
            if name not in settings:
                continue
            value = settings[name]
            if not isinstance(kind, CategoricalDistribution):
                value = min(max(value, kind.low), kind.high)
            if _holds(kind, value):
                chosen[name] = value
        return chosen


def read_space(path: Path) -> Space:
    """Read a search space from a TOML file with ``[space]``, ``[settings]`` and ``[[starts]]``."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: not a TOML file ({error})") from None
    try:
        return _space(document)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def default_space(model: str, multi_label: bool, variant: str | None = None) -> Space:
    """The shipped search space of a model: the paper's ranges, or its variant's own."""
    folder = resources.files("lgdgcn") / "search" / "spaces"
    endings = ("-multilabel", "") if multi_label else ("",)
    names = [f"{name}{ending}.toml" for name in (f"{model}-{variant}", model) for ending in endings]
    file = next(folder / name for name in names if (folder / name).is_file())
    return _space(tomllib.loads(file.read_text(encoding="utf-8")))


def space_of(
    model: str,
    variant: str | None,
    graph: str,
    given: dict[str, Any],
    file: Space | None = None,
    *,
    multi_label: bool = False,
) -> Space:
    """What is searched on a graph; its settings stand on the model's preset for any graph.

    Args:
        model: The model.
        variant: Its variant, if it has any.
        graph: Name that presets of the graph go by.
        given: Settings that are not searched, as the user gives them.
        file: The user's own space instead of the model's.
        multi_label: Whether nodes have sets of labels.

    Raises:
        InputError: Something is named that the model does not have, or that no trial would use.
    """
    named = dict(given) if file is None else {**given, **file.settings, **file.ranges}
    check_belongs(named, model, variant)
    space = (file or default_space(model, multi_label, variant)).fixing(given)
    shipped = preset("", model, variant, multi_label=multi_label)
    settings = {k: v for k, v in shipped.items() if k not in space.ranges} | space.settings
    unknown = auto_scaling(graph)  # no preset was made for this graph
    if unknown and not named.keys() & {"scaling", "normalize_features"}:
        settings.pop("normalize_features", None)
        settings |= unknown
    settings |= {} if variant is None else {"variant": variant}
    space = Space(space.ranges, settings, space.starts)
    check_used(named, space.examples(), model, multi_label=multi_label)
    return space


def _space(document: dict[str, Any]) -> Space:
    if unknown := document.keys() - {"space", "settings", "starts"}:
        raise InputError(f"unknown table {min(unknown)}; use space, settings and starts")
    ranges, settings = document.get("space"), document.get("settings", {})
    starts = document.get("starts", [])
    if not isinstance(ranges, dict) or not ranges:
        raise InputError("no [space] with settings to search, such as "
                         "lr = {low = 0.001, high = 0.1, log = true}")  # fmt: skip
    if not isinstance(settings, dict):
        raise InputError("settings must be a table")
    for name, value in settings.items():
        _check(name, value)
        if name in ranges:
            raise InputError(f"{name} is in space and in settings; leave it out of one")
    kinds = {name: _range(name, given) for name, given in ranges.items()}
    if not isinstance(starts, list) or not all(isinstance(start, dict) for start in starts):
        raise InputError("starts must be tables, written [[starts]]")
    for name, value in (pair for start in starts for pair in start.items()):
        _check(name, value)
        if name not in kinds:
            raise InputError(f"starts names {name}, which is not searched; add it to space")
        if not _holds(kinds[name], value):
            raise InputError(f"starts has {name} = {value!r}, which {ranges[name]} lacks")
    return Space(kinds, settings, tuple(starts))


def _range(name: str, given: Any) -> BaseDistribution:
    """The distribution of a range; Optuna says what is wrong with it."""
    if name == "metric":
        raise InputError("metric cannot be searched, for trials are compared by it")
    kind: Any = optuna.distributions.FloatDistribution
    try:
        if "choices" in given:
            kind = CategoricalDistribution
        elif type(getattr(Settings, name, None)) is int:
            kind = optuna.distributions.IntDistribution
        ends = given["choices"] if "choices" in given else (given["low"], given["high"])
        values, is_logged = list(ends), given.get("log", False)
    except (AttributeError, KeyError, TypeError):
        raise InputError(f"{name} is {given!r}; {_RANGE}") from None
    for value in values:
        _check(name, value)
    try:
        found: BaseDistribution = kind(**given)
    except ValueError as error:
        raise InputError(f"{name}: {error}") from None
    except (ArithmeticError, TypeError):
        raise InputError(f"{name} is {given!r}; {_RANGE}") from None
    if not isinstance(is_logged, bool):
        raise InputError(f"{name}: log is {is_logged!r}; write true or false")
    return found


def _check(name: str, value: Any) -> None:
    """Refuse what is no setting's value, or none that a search can have."""
    if name == "variant":
        raise InputError("variant is part of the model: choose it with --model, as lgdgcn-paper")
    if name == "checkpoint_every":
        raise InputError("checkpoint_every is for lgdgcn train: a search keeps none; leave it out")
    if name == "factors" and value == AUTO:
        raise InputError(
            f"factors is {AUTO!r}, which a search does not know; give numbers, such as those "
            "that lgdgcn train finds"
        )
    check_value(name, value)


def _values(kind: BaseDistribution) -> list[Any]:
    """The values whose legality stands for a whole range."""
    if isinstance(kind, CategoricalDistribution):
        return list(kind.choices)
    return [kind.low, kind.high]


def _holds(kind: BaseDistribution, value: Any) -> bool:
    try:
        return bool(kind._contains(kind.to_internal_repr(value)))
    except ValueError:  # none of the choices
        return False
