"""Read what a command has left behind, under the names of today whatever a tree calls them."""

import csv
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .differences import Epochs

__all__ = ["described", "metrics", "result", "table", "weights"]

Renamed = Mapping[str, str]  # of today by what a tree calls it

SCORES = ("metric", "runs", "mean", "std", "factors")  # of a result that are compared
# what differs between two runs of one tree, follows from what is compared, or is advice in words
IGNORED = {"seconds", "data", "warnings", "note", "dataset", "run"}


def metrics(file: Path, renamed: Renamed) -> dict[str, Epochs]:
    """Metrics of every epoch, by seed."""
    found: dict[str, Epochs] = {}
    for line in file.read_text().splitlines():
        record = _named(json.loads(line), renamed)
        seed, epoch = record.pop("seed"), record.pop("epoch")
        found.setdefault(f"seed {seed}", Epochs())[epoch] = record
    return found


def weights(files: Mapping[str, Path], renamed: Renamed) -> dict[str, Any]:
    """Tensors of model files by name; a file that is not there has none."""
    from safetensors.numpy import load_file

    found: dict[str, Any] = {}
    for name, file in files.items():
        if file.is_file():
            found[name] = _named(load_file(file), renamed)
    return found


def result(file: Path, renamed: Renamed) -> dict[str, Any]:
    """All scores of a run."""
    found = described(file, renamed)
    return {key: value for key, value in found.items() if key in SCORES}


def described(file: Path, renamed: Renamed) -> Any:
    """A JSON file without what is never the same."""
    return _kept(json.loads(file.read_text()), renamed)


def table(file: Path, renamed: Renamed) -> dict[str, Any]:
    """The columns of a CSV file by name: numbers where all cells are numbers or empty."""
    with file.open(newline="", encoding="utf-8") as lines:
        header, *rows = csv.reader(lines)
    columns = zip(*rows, strict=True) if rows else ([] for _ in header)
    return _named(
        {key: _column(cells) for key, cells in zip(header, columns, strict=True)}, renamed
    )


def _column(cells: Iterable[str]) -> Any:
    texts = [*cells]
    try:
        return np.array([float(text) if text else np.nan for text in texts])
    except ValueError:
        return np.array(texts, dtype=object)


def _kept(value: Any, renamed: Renamed) -> Any:
    if isinstance(value, dict):
        named = _named(value, renamed)
        return {key: _kept(one, renamed) for key, one in named.items() if key not in IGNORED}
    return [_kept(one, renamed) for one in value] if isinstance(value, list) else value


def _named(values: Mapping[str, Any], renamed: Renamed) -> dict[str, Any]:
    return {renamed.get(key, key): value for key, value in values.items()}
