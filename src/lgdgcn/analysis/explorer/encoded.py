"""Arrays inside JSON."""

import base64
from typing import Any

import numpy as np

__all__ = ["encoded"]

TYPES = {"u8": "<u1", "u16": "<u2", "u32": "<u4", "i32": "<i4", "f32": "<f4"}


def encoded(values: Any, kind: str) -> dict[str, Any]:
    """An array as ``{"type", "shape", "data"}``, its bytes in base64, little endian, row by row.

    Args:
        values: Numbers that the type can hold; they are rounded where it has whole ones only.
        kind: ``u8``, ``u16``, ``u32``, ``i32`` or ``f32``.

    Example:
        >>> encoded([[1, 2]], "u8")
        {'type': 'u8', 'shape': [1, 2], 'data': 'AQI='}
    """
    array = np.asarray(values)
    if kind != "f32" and array.dtype.kind == "f":
        array = array.round()
    data = np.ascontiguousarray(array, dtype=TYPES[kind])
    return {
        "type": kind,
        "shape": list(array.shape),
        "data": base64.b64encode(data.tobytes()).decode("ascii"),
    }
