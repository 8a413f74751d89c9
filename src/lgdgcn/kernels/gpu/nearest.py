# mypy: allow-untyped-calls
"""Exact nearest neighbours on a GPU: bound whole groups of points, then look into few of them.

    1. prepare_points   the points in the forms that the other steps read
    2. bound_groups     matrix products give every query a lower bound of its squared distance to
                        each group of points
    3. select_groups    the k-th smallest upper bound limits how far the k nearest points can be, so
                        only groups whose lower bound is within that limit are selected
    4. measure_groups   distances to the points of those groups in full float32, and the k nearest

Step 2 is the only one that touches all N^2 pairs, and the tensor cores do it. The kernels are in
`nearest_kernels`; here are the sizes of their tiles, the buffers and the launches.
"""

from typing import NamedTuple

import torch
import triton
from torch import Tensor

from lgdgcn.kernels import reference
from lgdgcn.kernels.gpu.nearest_kernels import (
    UNROLL,
    bound_groups,
    measure_groups,
    prepare_points,
    select_groups,
)

__all__ = ["nearest"]

_TILE = 128  # points bounded at once
_GROUPS = ((1 << 13, 16), (1 << 16, 32))  # (N, points per bound): up to N points; then a whole tile
_QUERIES = 128  # queries per bounding and selecting program
_WARPS = 8  # of a bounding program
_MEASURED = 16  # queries per measuring program
_LANES = 8  # threads that measure the points of one query
_LIST_SIZE = 64  # groups listed per query; a query with more reads all its bounds again
_BOUNDS = 1 << 26  # bounds held at once, if that is enough for
_JOBS = 1 << 10  # programs that fill a GPU
_UNORDERED = 1 << 13  # points of a set up to which putting them in order does not pay
_MOST_NEIGHBOURS = 64
_MOST_COORDINATES = 128


class _Division(NamedTuple):
    """How a set of points is padded and divided."""

    padded: int  # points, a multiple of everything below
    depth: int  # coordinates on the tensor cores
    width: int  # coordinates when measuring, in vectors of four
    tile: int  # points bounded at once
    group: int  # consecutive points that share a bound


class _Points(NamedTuple):
    """The points in the forms that bounding and measuring want.

    All but `given` are shifted and scaled, the same for all points of a set. Within a tile, `high`,
    `low` and `half_square` are ordered so that a group's points lie apart: then every thread of a
    matrix product holds whole groups.
    """

    high: Tensor  # [B, padded, depth] in float16
    low: Tensor  # [B, padded, depth] what that leaves over
    half_square: Tensor  # [B, padded] half the squared length; infinite where there is no bound
    largest_square: Tensor  # [B, groups] largest squared length in a group
    given: Tensor  # [B, groups, width / 4, group, 4] as given


def nearest(z: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """See `lgdgcn.kernels.nearest`; long lists and long vectors go to the reference."""
    sets, size, width = z.shape
    if k > _MOST_NEIGHBOURS or width > _MOST_COORDINATES:
        return reference.nearest(z, k)
    division = _divide(size, width)
    index = torch.empty(sets, size, k, dtype=torch.int64, device=z.device)
    distance = torch.empty(sets, size, k, dtype=torch.float32, device=z.device)
    # a job is one tile of queries; as many at once as the bound on the buffer allows
    jobs = sets * triton.cdiv(size, _QUERIES)
    step = max(_JOBS, _BOUNDS // (division.padded // division.group * _QUERIES))
    with torch.cuda.device_of(z):
        points, order = z.detach().float().contiguous(), None
        if size > _UNORDERED:
            order = _along_widest_direction(points)
            points = points.gather(1, order.unsqueeze(-1).expand_as(points))
            order = order.int()
        forms = _prepare(points, division)
        for first in range(0, jobs, step):
            _search(forms, order, division, first, min(step, jobs - first), index, distance)
    return index, distance


def _along_widest_direction(points: Tensor) -> Tensor:
    """The order of the points `[B, N]` along the direction in which they differ most.

    Near points are then in few groups. Any order gives the same result; ties stay in given order.
    """
    centred = (points - points.mean(1, keepdim=True)).nan_to_num()
    direction = centred[:, ::64].abs().mean(1).unsqueeze(-1)  # [B, d, 1]
    for _ in range(3):  # power iteration
        direction = centred.mT @ (centred @ direction)
        direction = direction / direction.abs().amax(1, keepdim=True).clamp_min(1e-30)
    return (centred @ direction).squeeze(-1).nan_to_num().argsort(dim=1, stable=True)


def _divide(size: int, width: int) -> _Division:
    group = next((group for most, group in _GROUPS if size <= most), _TILE)
    multiple = max(_TILE, _QUERIES, UNROLL.value * group)
    padded = triton.cdiv(size, multiple) * multiple
    depth = max(16, triton.next_power_of_2(width))
    return _Division(padded, depth, triton.cdiv(width, 4) * 4, _TILE, group)


def _prepare(z: Tensor, division: _Division) -> _Points:
    sets, size, width = z.shape
    padded, depth = division.padded, division.depth
    points = _Points(
        z.new_empty(sets, padded, depth, dtype=torch.float16),
        z.new_empty(sets, padded, depth, dtype=torch.float16),
        z.new_empty(sets, padded),
        z.new_empty(sets, padded // division.group),
        z.new_empty(sets, padded, division.width),
    )
    grid = (sets * padded // division.tile,)
    prepare_points[grid](z, *points, size, width, *division, num_warps=4)
    return points


def _search(
    points: _Points,
    order: Tensor | None,
    division: _Division,
    first: int,
    jobs: int,
    index: Tensor,
    distance: Tensor,
) -> None:
    """Fill the lists of the queries of some jobs, from job `first` on."""
    size, k = index.shape[1:]
    lower = points.half_square.new_empty(jobs, division.padded // division.group, _QUERIES)
    chosen = torch.empty(jobs, _LIST_SIZE, _QUERIES, dtype=torch.int32, device=lower.device)
    count = torch.empty(jobs, _QUERIES, dtype=torch.int32, device=lower.device)
    limit = lower.new_empty(jobs, _QUERIES)
    sizes = first, size, *division, _QUERIES
    stages = 3 if division.depth <= 64 else 2  # as many as fit into shared memory
    bound_groups[(jobs,)](*points[:3], lower, *sizes, num_warps=_WARPS, num_stages=stages)
    select_groups[(jobs,)](
        *points[2:4], lower, chosen, count, limit, *sizes, k, _LIST_SIZE, num_warps=_QUERIES // 32
    )
    grid = (jobs * (_QUERIES // _MEASURED),)
    selected = chosen, count, limit
    layout = k, _LIST_SIZE, _MEASURED, _LANES, order is not None
    warps = max(1, _MEASURED * _LANES // 32)
    given_index = count if order is None else order  # not read if there is no order
    measure_groups[grid](
        points.given, given_index, lower, *selected, index, distance, *sizes, *layout,
        num_warps=warps,
    )  # fmt: skip
