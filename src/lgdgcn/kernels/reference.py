"""Reference backend: plain torch, any device, any floating point type."""

from typing import Any

import torch
from torch import Tensor

from lgdgcn.kernels.structure import Union, neighbours

__all__ = ["aggregate", "nearest", "route", "symmetrize", "unit_length"]

_TILE = 1 << 20  # distances held at once: two buffers of 4 MiB in float32


class _UnitLength(torch.autograd.Function):
    """v / ||v||; the zero vector stays zero and passes no gradient.

    A function of its own because autograd's rsqrt needs ||v||^-3, which overflows long before
    the gradient itself does.
    """

    @staticmethod
    def forward(ctx: Any, v: Tensor) -> Tensor:
        square = (v * v).sum(-1, keepdim=True)
        usable = square >= torch.finfo(v.dtype).tiny
        inverse = torch.where(usable, torch.where(usable, square, 1).rsqrt(), 0)
        unit = v * inverse
        ctx.save_for_backward(unit, inverse)
        return unit

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        unit, inverse = ctx.saved_tensors
        (grad,) = grads
        back: Tensor = (grad - unit * (grad * unit).sum(-1, keepdim=True)) * inverse
        return back


def unit_length(v: Tensor) -> Tensor:
    """Scale the last axis to Euclidean length 1; zero vectors stay zero, with zero gradient."""
    unit: Tensor = _UnitLength.apply(v)  # type: ignore[no-untyped-call]
    return unit


def _wide(x: Tensor) -> Tensor:
    """Half precision is computed in float32; everything else as given."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def route(
    z: Tensor,
    edge_index: Tensor,
    iterations: int,
    tau: float,
    uniform_start: bool,
    normalize_last: bool,
) -> tuple[Tensor, Tensor]:
    """See `lgdgcn.kernels.route`."""
    neighbours(edge_index, z.size(0))  # checks the ids once per edge_index
    units = own = _wide(z)  # [N, M, d]
    source, target = edge_index.long()
    incoming = own.index_select(0, source)  # [E, M, d]
    chance = own.new_full((source.numel(), own.size(1)), 1.0 / own.size(1))  # [E, M]
    for step in range(iterations):
        if step > 0 or not uniform_start:
            score = (incoming * units.index_select(0, target)).sum(-1) / tau
            chance = score.softmax(-1)
        units = own.index_add(0, target, chance.unsqueeze(-1) * incoming)
        if step < iterations - 1 or normalize_last:
            units = unit_length(units)
    return units.to(z.dtype), chance.to(z.dtype)


def nearest(z: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """See `lgdgcn.kernels.nearest`."""
    points = _wide(z.detach())
    sets, size, _ = points.shape
    index = torch.empty(sets, size, k, dtype=torch.int64, device=z.device)
    distance = points.new_empty(sets, size, k)
    rows = max(1, _TILE // size)
    for b in range(sets):
        columns = points[b].t().contiguous()  # [d, N]
        start = 0
        while start < size:
            tile = slice(start, min(start + rows, size))
            try:
                index[b, tile], distance[b, tile] = _nearest_in_tile(columns, tile, k)
            except torch.OutOfMemoryError:
                if rows == 1:
                    raise
                rows = rows // 2  # smaller tiles give the same result
                continue
            start = tile.stop
    return index, distance


def _nearest_in_tile(columns: Tensor, tile: slice, k: int) -> tuple[Tensor, Tensor]:
    queries = columns[:, tile]
    square = columns.new_zeros(queries.size(1), columns.size(1))  # [rows, N]
    difference = torch.empty_like(square)
    for query, point in zip(queries, columns, strict=True):
        torch.sub(query.unsqueeze(1), point, out=difference)
        square.addcmul_(difference, difference)
    # overflow is far away, and the node itself is farther still: NaN sorts after infinity
    square.nan_to_num_(nan=torch.inf, posinf=torch.inf)
    square.diagonal(offset=tile.start).fill_(torch.nan)
    value, index = square.topk(k, largest=False)
    _repair_ties(square, value[:, -1:], index)
    index = index.sort(-1).values
    value, order = square.gather(1, index).sort(stable=True)
    return index.gather(1, order), value


def _repair_ties(square: Tensor, last: Tensor, index: Tensor) -> None:
    """Where more than k points are as near as the k-th, let the lowest indices win."""
    k = index.size(1)
    tied = ((square <= last).sum(1) > k).nonzero().squeeze(1)
    # few rows at a time: the running count below is int64
    step = max(1, _TILE // (8 * square.size(1)))
    for start in range(0, tied.numel(), step):
        rows = tied[start : start + step]
        nearer = square[rows] < last[rows]
        equal = square[rows] == last[rows]
        free = k - nearer.sum(1, keepdim=True)
        chosen = nearer | (equal & (equal.cumsum(1) <= free))
        index[rows] = chosen.nonzero()[:, 1].view(-1, k)


def symmetrize(index: Tensor, keep: Tensor | None) -> Union:
    """See `lgdgcn.kernels.symmetrize`."""
    sets, size, _ = index.shape
    n = sets * size
    node = torch.arange(n, device=index.device)
    target = node.view(sets, size, 1).expand_as(index)
    source = index + node[::size].view(-1, 1, 1)
    listed = source != target if keep is None else keep & (source != target)
    target, source = target[listed], source[listed]
    forward = torch.unique(target * n + source)
    backward = forward % n * n + forward // n
    # each direction is in either list at most once: two counts mean both ends list each other
    pair, count = torch.unique(torch.cat([forward, backward]), return_counts=True)
    row_ptr = pair.new_zeros(n + 1)
    torch.cumsum(torch.bincount(pair // n, minlength=n), 0, out=row_ptr[1:])
    return Union(row_ptr, pair % n, count == 2)


def aggregate(
    x: Tensor, row_ptr: Tensor, source: Tensor, weight: Tensor, left: Tensor, right: Tensor
) -> Tensor:
    """See `lgdgcn.kernels.aggregate`."""
    scaled = _wide(x) * right.to(_wide(x).dtype).unsqueeze(1)  # [n, d]
    target = torch.repeat_interleave(row_ptr.diff(), output_size=source.numel())  # [nnz]
    sent = scaled.index_select(0, source) * weight.to(scaled.dtype).unsqueeze(1)  # [nnz, d]
    total = scaled.index_add(0, target, sent)
    return (total * left.to(scaled.dtype).unsqueeze(1)).to(x.dtype)
