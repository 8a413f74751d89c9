"""What makes two runs the same run, so that one may go on with the other's state."""

import json
import warnings
from collections.abc import Mapping
from typing import Any

from lgdgcn.errors import CheckpointError, LGDWarning

__all__ = ["check_same", "differences"]

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


def check_same(meta_old: Mapping[str, Any], meta_new: Mapping[str, Any]) -> None:
    """Refuse to resume a state that belongs to another configuration or other data.

    Args:
        meta_old: What the checkpoint says; keys that ``meta_new`` does not have (the epoch, the
            best score) are not compared.
        meta_new: What this run would say: configuration, data hash, schema. Under ``versions``
            the libraries, where a difference is only a warning.

    Raises:
        CheckpointError: Lists everything that differs.
    """
    old = {key: meta_old[key] for key in meta_new if key in meta_old}
    versions = differences(
        {"versions": old.pop("versions", {})}, {"versions": meta_new.get("versions", {})}
    )
    new = {key: value for key, value in meta_new.items() if key != "versions"}
    if found := differences(old, new):
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
