"""Drawings of separate parts, side by side: the largest in the middle, the others in rings."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["drawn_in", "pack", "unit_square"]

Array = npt.NDArray[Any]

FILLED = 0.8  # of a ring's disc by the part in it, as a share of the radius
SPREAD = 0.6  # a ring this full is spread over the whole turn
WITHIN = 0.95  # share of nodes that is never drawn in
MARGIN = 0.2  # how far beyond these the others may lie


def pack(position: Array, starts: Array) -> Array:
    """Move parts of a drawing next to each other without overlap.

    Args:
        position: Nodes, part by part, larger parts first. Shape ``[N, 2]``.
        starts: First node of every part, and N.

    Returns:
        New positions ``[N, 2]``: a part of n nodes fills a disc with an area of n.
    """
    result = np.zeros_like(position)
    centres = _centres(np.sqrt(np.diff(starts)))
    for centre, (low, high) in zip(centres, pairwise(starts), strict=True):
        part = position[low:high] - (position[low:high].max(0) + position[low:high].min(0)) / 2
        reach = np.sqrt((part**2).sum(1).max())
        room = math.sqrt(high - low) * (FILLED if low else 1)
        result[low:high] = centre + part * (room / reach if reach > 0 else 0)
    return result


def _centres(radii: Array) -> Array:
    """Centres of discs that fall in size: the first at the origin, the others in rings."""
    centres = np.zeros((len(radii), 2))
    inner, first = radii[0], 1
    while first < len(radii):
        ring = inner + radii[first]
        angles = _filled(radii[first:], ring)
        full = angles[-1] + _angle(2 * radii[first], ring)
        if full > SPREAD * 2 * math.pi:
            angles = angles * (2 * math.pi / full)
        turn = angles - angles[-1] / 2  # 0 is below
        last = first + len(angles)
        centres[first:last] = ring * np.stack([np.sin(turn), -np.cos(turn)], 1)
        inner, first = ring + radii[first], last
    return centres


def _filled(radii: Array, ring: float) -> Array:
    """Angles of as many discs as one ring holds, the first at 0."""
    angles = [0.0]
    for before, radius in pairwise(radii):
        angle = angles[-1] + _angle(before + radius, ring)
        if angle + _angle(radius + radii[0], ring) > 2 * math.pi:
            break
        angles.append(angle)
    return np.array(angles)


def _angle(gap: float, ring: float) -> float:
    """The angle at which two points of a ring are this far apart."""
    return 2 * math.asin(min(1.0, gap / (2 * ring)))


def drawn_in(position: Array) -> Array:
    """Bring what lies far outside nearer to the rest; most of the picture stays as it is."""
    centre = np.median(position, axis=0)
    offset = position - centre
    radius = np.sqrt((offset**2).sum(1, keepdims=True))
    rim = max(float(np.quantile(radius, WITHIN)), 1e-12)
    outside = np.maximum(radius / rim - 1, 0)
    limited = rim * (1 + MARGIN * np.tanh(outside / MARGIN))
    nearer: Array = centre + offset * limited / np.maximum(radius, rim)
    return np.where(radius > rim, nearer, position)


def unit_square(position: Array) -> Array:
    """Fill [-1, 1] x [-1, 1], keeping the shape; a single point comes to rest in the middle."""
    low, high = position.min(0), position.max(0)
    reach = float((high - low).max()) / 2
    centred: Array = (position - (low + high) / 2) / (reach if reach > 0 else 1.0)
    return centred.clip(-1, 1).astype(np.float32)
