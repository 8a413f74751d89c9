"""What a run's files say, checked before anybody relies on it, and when two runs are the same."""

import json
import tomllib
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lgdgcn.errors import CheckpointError, InputError, LGDWarning

__all__ = ["check_same", "differences", "read_config", "read_result"]

_LARGEST = 1e15  # no score, measure or count of a run is above it


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < _LARGEST


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < _LARGEST


def _is_score(value: Any) -> bool:
    return value is None or _is_number(value)


def _are_scores(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_score, value.values()))


# What a file holds: a type, a predicate, a list of one of these, or a table of them by key; of a
# key with a question mark nothing is asked where it is missing
_CONFIG = {
    "run": {"dataset": str, "model": str, "seeds": int, "split": str},
    "settings": dict,
}
_RESULT = {
    "model": str,
    "metric": str,
    "variant": str | None,
    "runs": [
        {
            "seed": _is_count,
            "epochs": _is_count,
            "data": str,
            "val": _is_score,
            "test": _is_score,
            "scores": {"train": _are_scores, "val": _are_scores, "test": _are_scores},
            "threshold?": _is_number,
        }
    ],
    "factors": _are_scores,
    "mean": _is_score,
    "model_sha256": str,
    "warnings?": [str],
    "verdict?": {"sentence": str, "better": str | None},
}


def read_config(file: Path) -> dict[str, Any]:
    """Read the tables ``[run]`` and ``[settings]`` that only a run of this package has.

    Raises:
        InputError: The file is missing, damaged or of another program.
    """
    return _read(file, tomllib.loads, _CONFIG)


def read_result(file: Path) -> dict[str, Any]:
    """Read the results of a finished run.

    Raises:
        InputError: The file is missing, damaged or not of a run.
    """
    content = _read(file, json.loads, _RESULT)
    for run in content["runs"]:
        for split, scores in run["scores"].items():
            if content["metric"] not in scores:
                raise _damaged(file, f"runs.scores.{split} has no {content['metric'][:40]}")
    return content


def _read(file: Path, parse: Callable[[str], Any], shape: dict[str, Any]) -> dict[str, Any]:
    if not file.is_file():  # opening a pipe would wait for ever
        raise _damaged(file, "there is no such file")
    try:
        content: dict[str, Any] = parse(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(file, str(error)) from None
    if wrong := _misfit(content, shape):
        raise _damaged(file, f"{wrong} is missing or wrong" if wrong != "." else "it has no table")
    return content


def _misfit(value: Any, shape: Any, name: str = "") -> str | None:
    """The name of the first value that is not what it should be."""
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return name or "."
        for key, inner in shape.items():
            own = key.removesuffix("?")
            if own != key and own not in value:
                continue
            where = f"{name}.{own}" if name else own
            if own not in value:
                return where
            if wrong := _misfit(value[own], inner, where):
                return wrong
        return None
    if isinstance(shape, list):
        if not isinstance(value, list) or (shape != [str] and not value):
            return name
        return next((wrong for one in value if (wrong := _misfit(one, shape[0], name))), None)
    if shape is int:
        return None if type(value) is int else name  # true is no number
    is_type = isinstance(shape, type) or not callable(shape)
    fits = isinstance(value, shape) if is_type else shape(value)
    return None if fits else name


def _damaged(file: Path, cause: str) -> InputError:
    return InputError(
        f"{file} is damaged or not of a run of lgdgcn: {cause}; restore it or choose another folder"
    )


_ABSENT = object()


def differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> list[str]:
    """What differs between two nested settings, one line each; lists equal tuples, NaN equals NaN.

    Example:
        >>> differences({"lr": 0.01, "model": {"k": 3}}, {"lr": 0.02, "model": {"k": 3}})
        ['lr: 0.01 -> 0.02']
    """
    found: list[str] = []
    for key in dict.fromkeys([*old, *new]):
        a, b = old.get(key, _ABSENT), new.get(key, _ABSENT)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            found += differences(a, b, f"{prefix}{key}.")
        elif _show(a) != _show(b) and a != b:
            found.append(f"{prefix}{key}: {_show(a)} -> {_show(b)}")
    return found


def _show(value: object) -> str:
    return "(absent)" if value is _ABSENT else json.dumps(value, ensure_ascii=False, default=str)


def check_same(old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Refuse to resume a state that belongs to another configuration or other data.

    Args:
        old: What the saved run says; keys that ``new`` does not have are not compared.
        new: What this run would say. Under ``versions`` the libraries, where a difference is only
            a warning.

    Raises:
        CheckpointError: Lists everything that differs.
    """
    compared = {key: old[key] for key in new if key in old and key != "versions"}
    if found := differences(compared, {k: v for k, v in new.items() if k != "versions"}):
        raise CheckpointError(
            f"the checkpoint is of another run: {'; '.join(found)}; resume with the same settings "
            "and data, or choose another --out"
        )
    if found := differences(old.get("versions", {}), new.get("versions", {}), "versions."):
        warnings.warn(
            f"the checkpoint was written with other versions: {'; '.join(found)}; "
            "the result may differ in the last digits",
            LGDWarning,
            stacklevel=2,
        )
