"""What ``config.toml`` and ``result.json`` of a run say, checked before anybody relies on it."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lgdgcn.data.source import GraphSource
from lgdgcn.errors import InputError

__all__ = ["no_run", "read_config", "read_result"]

_TABLES = ("edges.*", "nodes.*", "manifest.json")  # of a graph
_LARGEST = 1e15  # no score, measure or count of a run is above it


def no_run(folder: Path) -> str:
    """What to do where no finished run is; a graph may have been given in place of its run."""
    if any(any(folder.glob(name)) for name in _TABLES):
        run = Path("runs") / GraphSource(f"{folder}/").name
        return f"{folder} is a graph, not a run; train one with: lgdgcn train {folder}/ --out {run}"
    return f"{folder} holds no finished run; train one with: lgdgcn train GRAPH --out {folder}"


def read_config(file: Path) -> dict[str, Any]:
    """Read the tables ``[run]`` and ``[settings]`` that only a run of this package has.

    Raises:
        InputError: The file is missing, damaged or of another program.
    """
    return _read(file, tomllib.loads, _check_config)


def read_result(file: Path) -> dict[str, Any]:
    """Read the results of a finished run.

    Raises:
        InputError: The file is missing, damaged or not of a run.
    """
    return _read(file, json.loads, _check_result)


def _read(
    file: Path, parse: Callable[[str], Any], check: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    try:
        if not file.is_file():  # opening a pipe would wait for ever
            raise ValueError("there is no such file")
        content: dict[str, Any] = parse(file.read_text(encoding="utf-8"))
        check(content)
    except KeyError as error:
        cause = f"it has no {error}"
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        cause = str(error)[:200]
    else:
        return content
    raise InputError(
        f"{file} is damaged or not of a run of lgdgcn: {cause}; restore it or choose another folder"
    )


def _check_config(content: dict[str, Any]) -> None:
    run = _is(content["run"], dict)
    for name in ("dataset", "model", "split"):
        _is(run[name], str)
    for name in ("root", "features", "label", "id"):
        _is(run.get(name), str, type(None))
    for name in _is(run.get("ignore", []), list):
        _is(name, str)
    _is(run["seeds"], int)
    _is(content["settings"], dict)


def _check_result(content: dict[str, Any]) -> None:
    for name in ("model", "metric", "model_sha256"):
        _is(content[name], str)
    _is(content["variant"], str, type(None))
    _check_scores([content["mean"], *_is(content["factors"], dict).values()])
    if not _is(content["runs"], list):
        raise ValueError("it has no runs")
    for run in content["runs"]:
        for name in ("seed", "epochs"):
            if _is(run[name], int) < 0:
                raise ValueError(f"{name} is {run[name]}")
        _is(run["data"], str)
        _check_scores([run["val"], run["test"], run.get("threshold")])
        for split in ("train", "val", "test"):
            scores = _is(run["scores"][split], dict)
            _check_scores([*scores.values(), scores[content["metric"]]])
    for text in _is(content.get("warnings", []), list):
        _is(text, str)
    if "verdict" in content:
        _is(content["verdict"]["sentence"], str)
        _is(content["verdict"]["better"], str, type(None))


def _is(value: Any, *kinds: type) -> Any:
    """Return a value of one of these types; true is no number."""
    if type(value) not in kinds or (type(value) is int and value > _LARGEST):
        raise TypeError(f"{str(value)[:40]!r} is no {kinds[0].__name__}")
    return value


def _check_scores(values: list[Any]) -> None:
    for value in values:
        if value is not None and not abs(_is(value, int, float)) < _LARGEST:
            raise ValueError(f"{value} is no score")
