"""Points in blocks of sixteen near ones, with the boxes that hold them."""

import math
from typing import NamedTuple

import numpy as np
import torch
from numba import njit
from torch import Tensor

from lgdgcn.kernels.cpu_arrays import Array, to_numpy
from lgdgcn.kernels.numba_order import GROUP, sort_points
from lgdgcn.kernels.numba_sixteen import LANES
from lgdgcn.kernels.threads import in_parallel

__all__ = ["Blocks", "arrange"]


class Blocks(NamedTuple):
    """B sets of points: sixteen points are a block, sixteen blocks a group, sixteen groups a band.

    Sets are filled up to whole groups with points infinitely far away. Boxes of no point have
    their low corner at infinity and the high one at minus infinity.

    Attributes:
        order: `[B, groups, 16, 16]` number of each point in its set, ascending in every block.
        points: `[B, groups, 16, d, 16]`.
        low: `[B, groups, d, 16]` low corners of the boxes of a group's blocks.
        high: `[B, groups, d, 16]` high corners.
        first: `[B, groups, 16]` lowest number in every block.
        group_low: `[B, bands, d, 16]` low corners of the boxes of a band's groups.
        group_high: `[B, bands, d, 16]` high corners.
        group_first: `[B, groups]` lowest number in every group.
    """

    order: Array
    points: Array
    low: Array
    high: Array
    first: Array
    group_low: Array
    group_high: Array
    group_first: Array


def arrange(z: Tensor) -> Blocks:
    """Put sets of points `[B, N, d]` into blocks."""
    sets, size, width = z.shape
    groups = -(-size // GROUP)
    bands = -(-groups // LANES)

    # torch aligns to cache lines
    def empty(*shape: int, dtype: torch.dtype = z.dtype) -> Array:
        return to_numpy(torch.empty(sets, *shape, dtype=dtype))

    def full(value: float, *shape: int) -> Array:
        return to_numpy(torch.full((sets, *shape), value, dtype=z.dtype))

    blocks = Blocks(
        order=empty(groups, LANES, LANES, dtype=torch.int32),
        points=empty(groups, LANES, width, LANES),
        low=full(math.inf, groups, width, LANES),
        high=full(-math.inf, groups, width, LANES),
        first=empty(groups, LANES, dtype=torch.int32),
        group_low=full(math.inf, bands, width, LANES),
        group_high=full(-math.inf, bands, width, LANES),
        group_first=empty(groups, dtype=torch.int32),
    )
    in_parallel(_arrange_sets, range(sets + 1), to_numpy(z), *blocks)
    return blocks


@njit
def _sort(numbers: Array) -> None:
    """Sort the few numbers of a block."""
    for stop in range(1, len(numbers)):
        number, at = numbers[stop], stop
        while at > 0 and numbers[at - 1] > number:
            numbers[at] = numbers[at - 1]
            at -= 1
        numbers[at] = number


@njit
def _fill_block(
    z: Array, numbers: Array, points: Array, low: Array, high: Array, place: int
) -> None:
    """Copy points `[16, d]` as `[d, 16]` and widen the box at a place of `[d, 16]` to hold them."""
    for p in range(LANES):
        if numbers[p] < len(z):
            row = z[numbers[p]]
            for j in range(len(row)):
                points[j, p] = row[j]
                if row[j] < low[j, place]:  # never a NaN, which is nobody's neighbour
                    low[j, place] = row[j]
                if row[j] > high[j, place]:
                    high[j, place] = row[j]
        else:
            for j in range(len(points)):
                points[j, p] = np.inf


@njit(nogil=True, cache=True)
def _arrange_sets(
    start: int,
    stop: int,
    z: Array,
    order: Array,
    points: Array,
    low: Array,
    high: Array,
    first: Array,
    group_low: Array,
    group_high: Array,
    group_first: Array,
) -> None:
    """Fill sets start to stop of all that `Blocks` has; boxes come empty."""
    for b in range(start, stop):
        numbers = order[b].reshape(-1)
        for i in range(len(numbers)):
            numbers[i] = i
        sort_points(z[b], numbers[: z.shape[1]])
        for g in range(low.shape[1]):
            group_first[b, g] = len(numbers)
            for c in range(LANES):
                _sort(order[b, g, c])
                first[b, g, c] = order[b, g, c, 0]
                group_first[b, g] = min(group_first[b, g], first[b, g, c])
                _fill_block(z[b], order[b, g, c], points[b, g, c], low[b, g], high[b, g], c)
            band, place = g // LANES, g % LANES
            for j in range(low.shape[2]):
                for c in range(LANES):
                    group_low[b, band, j, place] = min(
                        group_low[b, band, j, place], low[b, g, j, c]
                    )
                    group_high[b, band, j, place] = max(
                        group_high[b, band, j, place], high[b, g, j, c]
                    )
