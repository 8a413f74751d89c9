"""Which points lie in a region: polygons in well-known binary form (WKB)."""

import struct
from typing import Any

import numpy as np

from lgdgcn.errors import InputError

__all__ = ["contains", "read_polygons"]

Array = np.ndarray[Any, Any]
POLYGON, MULTIPOLYGON = 3, 6  # kinds of geometry


def read_polygons(content: bytes) -> list[Array]:
    """All rings of a polygon or several, outer ones and holes, each as points ``[n, 2]``."""
    rings, _ = _geometry(content, 0)
    return rings


def _geometry(content: bytes, start: int) -> tuple[list[Array], int]:
    """The rings of the geometry at a place, and where it ends."""
    order = "<" if content[start] else ">"
    kind, count = struct.unpack_from(f"{order}II", content, start + 1)
    at, rings = start + 9, []
    if kind == MULTIPOLYGON:
        for _ in range(count):
            part, at = _geometry(content, at)
            rings += part
        return rings, at
    if kind != POLYGON:
        raise InputError(f"a geometry has kind {kind}; only polygons are read")
    for _ in range(count):
        (points,) = struct.unpack_from(f"{order}I", content, at)
        values = np.frombuffer(content, np.dtype(f"{order}f8"), 2 * points, at + 4)
        rings.append(values.reshape(-1, 2))
        at += 4 + 16 * points
    return rings, at


def contains(rings: list[Array], points: Array) -> Array:
    """Whether each point lies inside: a ray from it crosses the rings an odd number of times.

    Args:
        rings: Closed lines of points ``[n, 2]``; a ring within another one is a hole.
        points: Shape ``[P, 2]``.

    Example:
        >>> square = np.array([[0, 0], [0, 2], [2, 2], [2, 0], [0, 0]])
        >>> contains([square], np.array([[1, 1], [3, 1]])).tolist()
        [True, False]
    """
    inside = np.zeros(len(points), dtype=bool)
    x, y = points[:, :1], points[:, 1:]  # [P, 1]
    for ring in rings:
        (x1, y1), (x2, y2) = ring[:-1].T, ring[1:].T  # ends of the ring's sides [n]
        spans = (y1 > y) != (y2 > y)  # [P, n]
        with np.errstate(divide="ignore", invalid="ignore"):
            crossing = x1 + (y - y1) * (x2 - x1) / (y2 - y1)
        inside ^= (spans & (x < crossing)).sum(1) % 2 == 1
    return inside
