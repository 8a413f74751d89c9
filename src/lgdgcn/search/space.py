"""What a search may choose: ranges of settings, fixed settings, and where it starts."""

import math
import tomllib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import optuna

from lgdgcn.config import AUTO, Settings, check_value, check_width, nearest_width, resolve
from lgdgcn.errors import InputError

__all__ = ["Space", "default_space", "read_space"]

_KEYS = {"low", "high", "log", "step", "choices"}


@dataclass(frozen=True)
class Space:
    """Ranges by setting, as a TOML file states them.

    Attributes:
        ranges: For each searched setting ``{low, high}`` with optional ``log`` or ``step``, or
            ``{choices}``.
        settings: Settings that all trials share.
        starts: Settings to try first; what they leave out is drawn.
    """

    ranges: dict[str, dict[str, Any]]
    settings: dict[str, Any]
    starts: tuple[dict[str, Any], ...] = ()

    def distributions(self) -> dict[str, optuna.distributions.BaseDistribution]:
        """The ranges as Optuna knows them."""
        return {name: _distribution(name, given) for name, given in self.ranges.items()}

    def fixing(self, given: dict[str, Any]) -> "Space":
        """The same with some settings given, which are then not searched.

        Example:
            >>> space = Space({"lr": {"low": 0.1, "high": 0.2}, "k": {"low": 1, "high": 9}}, {})
            >>> space.fixing({"k": 4})
            Space(ranges={'lr': {'low': 0.1, 'high': 0.2}}, settings={'k': 4}, starts=())
        """
        for name, value in given.items():
            _check_searched(name, value)
        if {"factors", "hidden_channels"} <= given.keys():
            check_width(resolve(given))  # who names both means both
        ranges = {name: ends for name, ends in self.ranges.items() if name not in given}
        if not ranges:
            raise InputError("--set leaves nothing to search; leave some of it out, or train")
        starts = tuple({k: v for k, v in start.items() if k not in given} for start in self.starts)
        return Space(ranges, {**self.settings, **given}, starts)

    def settings_of(self, params: dict[str, Any]) -> Settings:
        """A trial's settings; ``hidden_channels`` becomes the nearest multiple of ``factors``.

        Of a model that has factors, which its variant tells.
        """
        merged = {**self.settings, **params}
        if merged.keys() & {"factors", "variant"}:
            factors = merged.get("factors", Settings.factors)
            hidden = merged.get("hidden_channels", Settings.hidden_channels)
            merged["hidden_channels"] = nearest_width(hidden, factors)
        return resolve(merged)

    def examples(self) -> list[Settings]:
        """The settings of two trials: with the first, and with the last value of every range."""
        ends = {name: _ends(name, given) for name, given in self.ranges.items()}
        every = [{name: values[place] for name, values in ends.items()} for place in (0, -1)]
        return [self.settings_of(params) for params in every]

    def inside(self, settings: dict[str, Any]) -> dict[str, Any]:
        """The searched part of some settings, brought into the ranges; what does not fit is out."""
        chosen = {}
        for name, kind in self.distributions().items():
            if name not in settings:
                continue
            value = settings[name]
            if "choices" not in self.ranges[name]:
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
    return _checked(document, str(path))


def default_space(model: str, multi_label: bool, variant: str | None = None) -> Space:
    """The shipped search space of a model: the paper's ranges, or its variant's own."""
    folder = resources.files("lgdgcn") / "search" / "spaces"
    names = [f"{model}-{variant}", model]
    if multi_label:
        names = [
            f"{model}-{variant}-multilabel",
            f"{model}-{variant}",
            f"{model}-multilabel",
            model,
        ]
    for name in names:
        file = folder / f"{name}.toml"
        if file.is_file():
            return _checked(tomllib.loads(file.read_text(encoding="utf-8")), str(file))
    raise InputError(f"model is {model!r}, which has no search space; give one with --space")


def _checked(document: dict[str, Any], where: str) -> Space:
    unknown = [key for key in document if key not in ("space", "settings", "starts")]
    if unknown:
        raise InputError(f"{where}: unknown table {unknown[0]}; use space, settings and starts")
    ranges, settings = document.get("space", {}), document.get("settings", {})
    starts = document.get("starts", [])
    if not isinstance(ranges, dict) or not ranges:
        raise InputError(f"{where}: no [space] with settings to search, such as "
                         "lr = {low = 0.001, high = 0.1, log = true}")  # fmt: skip
    if not isinstance(settings, dict) or not isinstance(starts, list):
        raise InputError(f"{where}: settings must be a table and starts a list of tables")
    try:
        for name, value in settings.items():
            _check_searched(name, value)
            if name in ranges:
                raise InputError(f"{name} is in space and in settings; leave it out of one")
        for name, given in ranges.items():
            for end in _ends(name, given):
                _check_searched(name, end)
        space = Space(ranges, settings, tuple(starts))
        for start in starts:
            _check_start(start, space)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    return space


def _check_searched(name: str, value: Any) -> None:
    """Refuse what is no setting's value, or none that a search can have."""
    if name == "factors" and value == AUTO:
        raise InputError(
            f"factors is {AUTO!r}, which a search does not know; give numbers, such as those "
            "that lgdgcn train finds"
        )
    check_value(name, value)


def _check_start(start: Any, space: Space) -> None:
    if not isinstance(start, dict):
        raise InputError("starts must be tables, written [[starts]]")
    kinds = space.distributions()
    for name, value in start.items():
        _check_searched(name, value)
        if name not in kinds:
            raise InputError(f"starts names {name}, which is not searched; add it to space")
        if not _holds(kinds[name], value):
            given = space.ranges[name]
            raise InputError(f"starts has {name} = {value!r}, which its range {given} lacks")


def _holds(kind: optuna.distributions.BaseDistribution, value: Any) -> bool:
    try:
        return bool(kind._contains(kind.to_internal_repr(value)))
    except ValueError:  # none of the choices
        return False


def _ends(name: str, given: Any) -> list[Any]:
    """The values whose legality stands for the whole range."""
    if not isinstance(given, dict) or not set(given) <= _KEYS:
        raise InputError(f"{name} is {given!r}; write {{low = …, high = …}} or {{choices = […]}}")
    if "choices" in given:
        choices = given["choices"]
        if len(given) > 1 or not isinstance(choices, list) or not choices:
            raise InputError(f"{name}: choices must be a list, not empty, and stand alone")
        return choices
    if not {"low", "high"} <= set(given):
        raise InputError(f"{name} needs low and high, or choices")
    low, high, log, step = given["low"], given["high"], given.get("log", False), given.get("step")
    if not _is_number(low) or not _is_number(high):
        raise InputError(f"{name}: low and high must be numbers")
    if not low <= high:
        raise InputError(f"{name} goes from {low} to {high}; low must not be above high")
    if not isinstance(log, bool):
        raise InputError(f"{name}: log is {log!r}; write true or false")
    if log and low <= 0:
        raise InputError(f"{name} is searched on a log scale, so low must be above 0, not {low}")
    if log and step is not None:
        raise InputError(f"{name} has log and step; give one of them")
    if step is not None and not (_is_number(step) and 0 < step < math.inf):
        raise InputError(f"{name}: step is {step!r}; give a number above 0")
    if _is_whole(name) and not isinstance(step, int | None):
        raise InputError(f"{name}: step is {step!r}; give a whole number")
    return [low, high]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(name: str) -> bool:
    field = Settings.__dataclass_fields__.get(name)
    return field is not None and type(field.default) is int


def _distribution(name: str, given: dict[str, Any]) -> optuna.distributions.BaseDistribution:
    if "choices" in given:
        return optuna.distributions.CategoricalDistribution(given["choices"])
    low, high, step = given["low"], given["high"], given.get("step")
    if _is_whole(name):
        return optuna.distributions.IntDistribution(low, high, given.get("log", False), step or 1)
    return optuna.distributions.FloatDistribution(low, high, given.get("log", False), step)
