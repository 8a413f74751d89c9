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
        if not isinstance(content, dict):
            raise ValueError("it is no table")
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
    run = _entry(content, "run", dict)
    for name in ("dataset", "model", "split"):
        _entry(run, name, str)
    for name in ("root", "features", "label", "id"):
        _entry({name: None} | run, name, str, type(None))
    _texts(run, "ignore")
    _entry(run, "seeds", int)
    _entry(content, "settings", dict)


def _check_result(content: dict[str, Any]) -> None:
    for name in ("model", "metric", "model_sha256"):
        _entry(content, name, str)
    _entry(content, "variant", str, type(None))
    _check_score(content, "mean")
    _check_scores(_entry(content, "factors", dict))
    if not _entry(content, "runs", list):
        raise ValueError("it has no runs")
    for run in content["runs"]:
        for name in ("seed", "epochs"):
            if _entry(run, name, int) < 0:
                raise ValueError(f"{name} is {run[name]}")
        _entry(run, "data", str)
        for name in ("val", "test"):
            _check_score(run, name)
        _check_score({"threshold": None} | run, "threshold")
        for split in ("train", "val", "test"):
            scores = _entry(_entry(run, "scores", dict), split, dict)
            _check_score(scores, content["metric"])
            _check_scores(scores)
    _texts(content, "warnings")
    if "ranking" in content:
        search = _entry(content, "search", dict)
        _entry(search, "metric", str)
        _entry(search, "splits", int)
        for row in _entry(content, "ranking", list):
            _entry(row, "model", str)
            _entry(row, "epochs", int)
            _entry(row, "tried", int)
            for name in ("validation", "noise"):
                _check_score({name: None} | row, name)
    if "verdict" in content:
        _entry(content["verdict"], "sentence", str)
        _entry(content["verdict"], "better", str, type(None))


_WORDS = {dict: "table", list: "list", str: "text", int: "whole number", float: "number"}


def _entry(table: Any, name: str, *kinds: type) -> Any:
    """An entry of a table, of one of these types; true is no number."""
    if not isinstance(table, dict):
        raise TypeError(f"{str(table)[:40]!r} is no table")
    value = table[name]
    if type(value) not in kinds or (type(value) is int and value > _LARGEST):
        raise TypeError(f"{name} is {str(value)[:40]!r}, no {_WORDS[kinds[0]]}")
    return value


def _texts(table: dict[str, Any], name: str) -> None:
    """Refuse an entry that is no list of texts, where it is there."""
    texts = _entry({name: []} | table, name, list)
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(f"{name} is no list of texts")


def _check_scores(table: dict[str, Any]) -> None:
    for name in table:
        _check_score(table, name)


def _check_score(table: Any, name: str) -> None:
    value = _entry(table, name, float, int, type(None))
    if value is not None and not abs(value) < _LARGEST:
        raise ValueError(f"{name} is {value}, no score")
