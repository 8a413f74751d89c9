"""What a run's ``config.toml`` and ``result.json`` say, checked before anybody relies on it."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from lgdgcn.errors import InputError

__all__ = ["read_config", "read_result"]

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
    warnings = content.get("warnings", [])
    if not isinstance(warnings, list) or not all(isinstance(text, str) for text in warnings):
        _refuse(file, "its warnings are no texts")
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


def _is_scores(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_score(score) for score in value.values())


def _is_score(value: Any) -> bool:
    return value is None or (type(value) in (int, float) and abs(value) < _LARGEST)
