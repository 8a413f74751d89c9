"""What reading a graph gives, as lines of text that are the same on every machine.

What a reader takes from its files is exact: small arrays are written out, of large ones a hash is
kept, both with type and shape. Features made from the structure are computed and differ in their
last digits between machines, eigenvectors even in their signs: a few numbers that do not depend
on either stand for them, and are compared with a tolerance.
"""

import hashlib
import json
import math
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from lgdgcn.data.encoding import Encoding
from lgdgcn.data.spectral import SPECTRAL_NAMES
from lgdgcn.errors import InputError, LGDNote, LGDWarning

__all__ = ["Outcome", "changes", "outcome_of"]

Outcome = dict[str, Any]  # text by attribute of the graph, or why it is refused; and the notes

LONGEST, LONGEST_TEXT = 100, 300  # characters of an array, or of text, that is written out
ENDS = {"refused", "crashed"}  # instead of a graph
CLOSE = 1e-3  # between numbers that are computed
# the words in which another library says what is wrong, which its next version may change
OTHERS_WORDS = re.compile(
    r"((?:cannot be read.*?|not valid csv|make no CSR matrix) )\(.*\)(?=; |$)"
)


def outcome_of(read: Callable[[], Data], made: bool = False) -> Outcome:
    """Read a graph, and say what came of it.

    Args:
        read: Returns the graph.
        made: Whether its features are made from the structure and must be rounded.
    """
    outcome: Outcome = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            outcome |= _described(read(), made)
        except InputError as error:
            outcome["refused"] = OTHERS_WORDS.sub(r"\1(…)", str(error))
        except Exception as error:
            outcome["crashed"] = type(error).__name__
    said = [
        f"{'note' if issubclass(one.category, LGDNote) else 'warning'}: {one.message}"
        for one in caught
        if issubclass(one.category, LGDWarning)
    ]
    if said:
        outcome["notes"] = list(dict.fromkeys(said))
    return outcome


def changes(old: Outcome, new: Outcome) -> list[str]:
    """What differs between two outcomes, one line for each array or note."""
    if old.keys() & ENDS != new.keys() & ENDS:
        return [f"was {_end(old)}, is {_end(new)}"]
    found = []
    for key in sorted({*old, *new} - {"notes"}):
        was, now = old.get(key), new.get(key)
        close = isinstance(was, list) and isinstance(now, list) and len(was) == len(now)
        if close and all(map(_is_close, was, now)):
            continue
        if was != now:
            found.append(f"{key} was {_shown(was)}, is {_shown(now)}")
    was, now = old.get("notes", []), new.get("notes", [])
    found += [f"no longer said: {line}" for line in was if line not in now]
    found += [f"newly said: {line}" for line in now if line not in was]
    if not found and was != now:
        found.append(f"said in another order: {_shown(was)}, now {_shown(now)}")
    return found


def _described(graph: Data, made: bool) -> Outcome:
    """Every attribute of a graph but its name, which is that of the folder."""
    values = graph.to_dict()
    del values["name"]
    outcome: Outcome = {}
    if made or graph.get("feature_names") == SPECTRAL_NAMES:
        x = values.pop("x")
        outcome["x"] = f"{_kind(x)} made from the structure"
        outcome["x in short"] = _in_short(x, graph.edge_index)
    return outcome | {key: _text(value) for key, value in values.items()}


def _text(value: Any) -> str:
    if isinstance(value, torch.Tensor) and value.layout == torch.sparse_csr:
        parts = (value.crow_indices(), value.col_indices(), value.values())
        return f"{_kind(value)} sparse: {'; '.join(map(_text, parts))}"
    if isinstance(value, torch.Tensor):
        value = value.numpy()
    if isinstance(value, np.ndarray):
        return f"{_kind(value)} {_entries(value)}"
    if isinstance(value, Encoding):
        value = value.as_dict()
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, default=_text)
    return text if len(text) <= LONGEST_TEXT else f"{len(value)} entries {_hash(text.encode())}"


def _kind(array: Any) -> str:
    """Type and shape, such as ``float32[3, 2]``."""
    return f"{str(array.dtype).removeprefix('torch.')}{list(array.shape)}"


def _entries(array: np.ndarray) -> str:
    """The entries of a small array; the hash of another one."""
    if array.size <= LONGEST:
        text = " ".join(map(_number, array.ravel()))
        if len(text) <= LONGEST:
            return text
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), array.dtype.type(np.nan), array)  # of many, one NaN
    return _hash(np.ascontiguousarray(array).tobytes())


def _number(value: Any) -> str:
    """The shortest digits that are this number, in Python's own form: that of numpy has changed."""
    if value.dtype.kind == "f":
        return repr(float(np.format_float_scientific(value, unique=True)))
    return str(int(value))


def _hash(content: bytes) -> str:
    return f"#{hashlib.sha256(content).hexdigest()[:10]}"


def _in_short(x: torch.Tensor, edge_index: torch.Tensor) -> list[float]:
    """Numbers that neither rounding nor the choice of eigenvectors changes.

    Of degree features ``[N, 17]`` and spectral ones ``[N, 33]`` one column is the logarithm of the
    degree. Its sum is weighted by the number of the row, so that the order of rows matters. The
    other columns of degree features are 0 or 1. Of those that are eigenvectors, their number, their
    mean square and the sum of their eigenvalues are the same whichever of equal value are chosen.
    """
    table, (source, target) = x.double().numpy(), edge_index.numpy()
    nodes, width = table.shape
    rows = np.arange(1, nodes + 1)
    if width != len(SPECTRAL_NAMES):
        return _rounded([rows @ table[:, 0], rows @ table[:, 1:] @ np.arange(1, width)])
    degree = np.bincount(source, minlength=nodes)
    mean = degree.mean()
    vectors = table[:, :-1]
    scaled = vectors / np.sqrt(np.maximum(degree + mean, 1e-9))[:, None]
    product = (scaled[source] * scaled[target]).sum() + mean / nodes * (scaled.sum(0) ** 2).sum()
    numbers = [np.any(vectors, axis=0).sum(), (vectors**2).sum() / nodes, product / nodes]
    return _rounded([*numbers, rows @ table[:, -1]])


def _rounded(numbers: list[Any]) -> list[float]:
    return [float(f"{number:.5g}") for number in numbers]


def _is_close(was: float, now: float) -> bool:
    return math.isclose(was, now, rel_tol=CLOSE, abs_tol=CLOSE)


def _end(outcome: Outcome) -> str:
    ends = [f"{key} ({outcome[key]})" for key in outcome if key in ENDS]
    return ends[0] if ends else f"read, x {_shown(outcome.get('x'))}"


def _shown(value: Any) -> str:
    text = "absent" if value is None else str(value)
    return text if len(text) <= 700 else f"{text[:400]} … {text[-200:]}"
