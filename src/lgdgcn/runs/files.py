"""What a run's files say, checked before anybody relies on it, and when two runs are the same."""

import json
import tomllib
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from lgdgcn.config import Settings
from lgdgcn.errors import CheckpointError, InputError, LGDWarning

__all__ = ["check_same", "differences", "read_config", "read_result", "with_defaults"]

_RUN = {"dataset": str, "model": str, "seeds": int, "split": str}  # what every version has written
_SPLITS = ("train", "val", "test")
_LARGEST = 1e15  # no score, measure or count of a run is above it


def read_config(file: Path) -> dict[str, Any]:
    """Read the tables ``[run]`` and ``[settings]`` that only a run of this package has.

    Raises:
        InputError: The file is missing, damaged or of another program.
    """
    content = _parsed(file, tomllib.loads)
    run, settings = (content.get(table) for table in ("run", "settings"))
    if not isinstance(run, dict) or not isinstance(settings, dict):
        _refuse(file, "it has no tables [run] and [settings]")
    for key, kind in _RUN.items():
        if type(run.get(key)) is not kind:
            _refuse(file, f"[run] has no valid {key}")
    return content


def read_result(file: Path) -> dict[str, Any]:
    """Read the results of a finished run.

    Raises:
        InputError: The file is missing, damaged or not of a run.
    """
    content = _parsed(file, json.loads)
    kinds = {"model": str, "metric": str, "variant": str | None}
    if not all(key in content and isinstance(content[key], kinds[key]) for key in kinds):
        _refuse(file, "it names no model, variant and metric")
    runs = content.get("runs")
    if not isinstance(runs, list) or not runs:
        _refuse(file, "it has no runs")
    if not all(_is_run(run, content["metric"]) for run in runs):
        _refuse(file, "a run in it has no seed, epochs and scores")
    if not _is_scores(content.get("factors")) or not _is_score(content.get("mean")):
        _refuse(file, "its mean or factors are no numbers")
    texts = content.get("warnings", [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        _refuse(file, "its warnings are no texts")
    verdict = content.get("verdict")
    if verdict is not None and not _is_verdict(verdict):
        _refuse(file, "its verdict is no text")
    return content


def _parsed(file: Path, parse: Callable[[str], Any]) -> dict[str, Any]:
    if not file.is_file():  # opening a pipe would wait for ever
        _refuse(file, "there is no such file")
    try:
        content = parse(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        _refuse(file, str(error))
    if not isinstance(content, dict):
        _refuse(file, "it has no table")
    return content


def _refuse(file: Path, cause: str) -> NoReturn:
    raise InputError(
        f"{file} is damaged or not of a run of lgdgcn: {cause}; restore it or choose another folder"
    ) from None


def _is_run(run: Any, metric: str) -> bool:
    if not isinstance(run, dict) or not isinstance(run.get("scores"), dict):
        return False
    counts = [run.get("seed"), run.get("epochs")]
    if any(type(count) is not int or not 0 <= count < _LARGEST for count in counts):
        return False
    scores = [run["scores"].get(split) for split in _SPLITS]
    scored = all(_is_scores(some) and metric in some for some in scores)
    if "threshold" in run and (run["threshold"] is None or not _is_score(run["threshold"])):
        return False
    return scored and all(key in run and _is_score(run[key]) for key in ("val", "test"))


def _is_verdict(verdict: Any) -> bool:
    kinds = {"sentence": str, "better": str | None}
    return isinstance(verdict, dict) and all(
        key in verdict and isinstance(verdict[key], kind) for key, kind in kinds.items()
    )


def _is_scores(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_score(score) for score in value.values())


def _is_score(value: Any) -> bool:
    return value is None or (type(value) in (int, float) and abs(value) < _LARGEST)


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


def with_defaults(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Give settings that came after a file was written, which it does not name, their defaults."""
    defaults = Settings().as_dict()
    return {
        name: {**defaults, **table}
        if name in ("config", "settings") and isinstance(table, Mapping)
        else table
        for name, table in tables.items()
    }


def check_same(meta_old: Mapping[str, Any], meta_new: Mapping[str, Any]) -> None:
    """Refuse to resume a state that belongs to another configuration or other data.

    Args:
        meta_old: What the checkpoint says; keys that ``meta_new`` does not have (the epoch, the
            best score) are not compared, and settings that it does not have had their defaults.
        meta_new: What this run would say: ``config``, ``data`` and, where earlier versions chose
            the epoch by another score, ``selection``. Under ``versions`` the libraries, where a
            difference is only a warning.

    Raises:
        CheckpointError: Lists everything that differs.
    """
    old = {key: meta_old[key] for key in meta_new if key in meta_old}
    versions = differences(
        {"versions": old.pop("versions", {})}, {"versions": meta_new.get("versions", {})}
    )
    new = {key: value for key, value in meta_new.items() if key != "versions"}
    if found := differences(with_defaults(old), with_defaults(new)):
        raise CheckpointError(
            f"the checkpoint is of another run: {'; '.join(found)}; resume with the same settings "
            "and data, or choose another --out"
        )
    if versions:
        warnings.warn(
            f"the checkpoint was written with other versions: {'; '.join(versions)}; "
            "the result may differ in the last digits",
            LGDWarning,
            stacklevel=2,
        )
