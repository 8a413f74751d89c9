"""Reference backend: plain torch, any device, any floating point type.

The functions are the definitions of `lgdgcn.kernels` written down as simply as memory allows. The
compiled backends are tested against them and leave to them what they do not cover.
"""

from typing import Any

import torch
from torch import Tensor

from lgdgcn.kernels.graph import UndirectedGraph, neighbours

__all__ = [
    "adam",
    "aggregate",
    "covariance",
    "diversity_loss",
    "dropout",
    "edge_agreement",
    "matmul",
    "nearest",
    "propagate",
    "quadratic_forms",
    "renumber",
    "route",
    "row_sums",
    "sample",
    "square_distances",
    "symmetrize",
    "unit_length",
]

_TILE = 1 << 20  # distances held at once: two buffers of 4 MiB in float32


class _UnitLength(torch.autograd.Function):
    """v / ||v||; the zero vector stays zero and passes no gradient.

    A function of its own because autograd's rsqrt needs ||v||^-3, which overflows long before
    the gradient itself does.
    """

    @staticmethod
    def forward(ctx: Any, v: Tensor) -> Tensor:
        wide = _wide(v)
        # the direction does not depend on this scale, which keeps the squares in range
        largest = wide.abs().amax(-1, keepdim=True)
        usable = largest >= torch.finfo(wide.dtype).tiny
        scaled = wide / torch.where(usable, largest, 1)
        inverse = torch.where(usable, scaled.square().sum(-1, keepdim=True).rsqrt(), 0)
        unit = scaled * inverse
        ctx.save_for_backward(unit, inverse / torch.where(usable, largest, 1))
        return unit.to(v.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        unit, inverse = ctx.saved_tensors
        grad = grads[0].to(unit.dtype)
        back: Tensor = (grad - unit * (grad * unit).sum(-1, keepdim=True)) * inverse
        return back.to(grads[0].dtype)


def unit_length(v: Tensor) -> Tensor:
    """See `lgdgcn.kernels.unit_length`."""
    unit: Tensor = _UnitLength.apply(v)  # type: ignore[no-untyped-call]
    return unit


def _wide(x: Tensor) -> Tensor:
    """Half precision is computed in float32; everything else as given."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def route(
    z: Tensor,
    edge_index: Tensor,
    iterations: int,
    tau: Tensor,
    uniform_start: bool,
    normalize_last: bool,
) -> tuple[Tensor, Tensor]:
    """See `lgdgcn.kernels.route`."""
    neighbours(edge_index, z.size(1))  # checks the ids once per edge_index
    units = own = _wide(z)  # [R, N, M, d]
    source, target = edge_index.long()
    inverse_temperature = tau.to(own.dtype).reciprocal().view(-1, 1, 1)
    incoming = own.index_select(1, source)  # [R, E, M, d]
    p = own.new_full((own.size(0), source.numel(), own.size(2)), 1.0 / own.size(2))  # [R, E, M]
    for step in range(iterations):
        if step > 0 or not uniform_start:
            score = (incoming * units.index_select(1, target)).sum(-1) * inverse_temperature
            p = score.softmax(-1)
        units = own.index_add(1, target, p.unsqueeze(-1) * incoming)
        if step < iterations - 1 or normalize_last:
            units = unit_length(units)
    return units.to(z.dtype), p.to(z.dtype)


def edge_agreement(q: Tensor, edge_index: Tensor) -> Tensor:
    """See `lgdgcn.kernels.edge_agreement`."""
    neighbours(edge_index, q.size(1))  # checks the ids once per edge_index
    vectors = _wide(q)  # [R, N, D]
    source, target = (_rows(vectors, ids) for ids in edge_index.long())
    return (source * target).sum(-1).to(q.dtype)


def _rows(x: Tensor, index: Tensor) -> Tensor:
    """Rows `[R, E, D]` of every member, by the operation whose gradient is deterministic there."""
    return x[:, index] if x.is_cuda else x.index_select(1, index)


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
    # overflow counts as infinitely far, and the point itself sorts last of all: NaN after infinity
    square.nan_to_num_(nan=torch.inf, posinf=torch.inf)
    square.diagonal(offset=tile.start).fill_(torch.nan)
    value, index = square.topk(k, largest=False)
    _repair_ties(square, value[:, -1:], index)
    index = index.sort(-1).values
    value, order = square.gather(1, index).sort(stable=True)
    return index.gather(1, order), value


def _repair_ties(square: Tensor, last: Tensor, index: Tensor) -> None:
    """Where more than k points are as near as the k-th, take those with the lowest indices."""
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


def symmetrize(index: Tensor, keep: Tensor | None) -> UndirectedGraph:
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
    return UndirectedGraph(row_ptr, pair % n, count.to(torch.uint8))


def row_sums(weight: Tensor, row_ptr: Tensor) -> Tensor:
    """See `lgdgcn.kernels.row_sums`."""
    before = torch.zeros(weight.numel() + 1, dtype=torch.float64, device=weight.device)
    torch.cumsum(weight.double(), 0, out=before[1:])  # sum of all entries before each
    return (before[row_ptr[1:]] - before[row_ptr[:-1]]).to(weight.dtype)


def aggregate(
    x: Tensor, row_ptr: Tensor, source: Tensor, weight: Tensor, left: Tensor, right: Tensor
) -> Tensor:
    """See `lgdgcn.kernels.aggregate`."""
    scaled = _wide(x) * right.to(_wide(x).dtype).unsqueeze(1)  # [n, d]
    target = torch.repeat_interleave(row_ptr.diff(), output_size=source.numel())  # [nnz]
    sent = scaled.index_select(0, source) * weight.to(scaled.dtype).unsqueeze(1)  # [nnz, d]
    total = scaled.index_add(0, target, sent)
    return (total * left.to(scaled.dtype).unsqueeze(1)).to(x.dtype)


def propagate(x: Tensor, row_ptr: Tensor, column: Tensor, value: Tensor, weights: Tensor) -> Tensor:
    """See `lgdgcn.kernels.propagate`."""
    if not x.numel():
        return x * weights[:, :1, None]
    parts = zip(x.chunk(len(value)), weights.chunk(len(value)), strict=True)
    graphs = zip(row_ptr, column, value, strict=True)
    averages = [_propagate(*part, *graph) for part, graph in zip(parts, graphs, strict=True)]
    return torch.cat(averages)


def _propagate(
    x: Tensor, weights: Tensor, row_ptr: Tensor, column: Tensor, value: Tensor
) -> Tensor:
    """Average the hops of all sets along one matrix."""
    hop, wide = _wide(x), _wide(x).dtype
    target = torch.repeat_interleave(row_ptr.diff(), output_size=column.numel())  # [nnz]
    share = value.to(wide).unsqueeze(-1)  # [nnz, 1]
    scale = weights.to(wide)[..., None, None]  # [B, K + 1, 1, 1]
    total = scale[:, 0] * hop
    for k in range(1, weights.size(1)):
        sent = hop.index_select(1, column) * share  # [B, nnz, C]
        hop = torch.zeros_like(hop).index_add(1, target, sent)
        total = total + scale[:, k] * hop
    return total.to(x.dtype)


def matmul(x: Tensor, weight: Tensor, values: Tensor | None = None) -> Tensor:
    """See `lgdgcn.kernels.matmul`."""
    if values is not None:
        rows = torch.repeat_interleave(x.crow_indices().diff(), output_size=values.size(-1))
        terms = values.unsqueeze(-1) * weight[:, x.col_indices()]  # [R, nnz, H]
        return terms.new_zeros(len(weight), x.size(0), weight.size(-1)).index_add(1, rows, terms)
    if x.layout != torch.sparse_csr:
        return x @ weight
    members, features, width = weight.shape
    side_by_side = weight.transpose(0, 1).reshape(features, members * width)
    return (x @ side_by_side).view(-1, members, width).transpose(0, 1)


def sum_hops(x: Tensor, weights: Tensor) -> Tensor:
    """See `lgdgcn.kernels.sum_hops`."""
    total = weights[..., :1] * x[:, 0]  # [S, n, F]
    for k in range(1, x.size(1)):
        total = torch.addcmul(total, weights[..., k : k + 1], x[:, k])
    return total


def dropout(x: Tensor, rate: Tensor, seed: Tensor, epoch: Tensor, call: int) -> Tensor:
    """See `lgdgcn.kernels.dropout`."""
    first = _mix(_low(seed) + 0x9E3779B9 * (call + 1))  # [R]
    second = _mix(_mix(_low(epoch) + first) ^ _low(seed >> 32))
    shape = (-1, *[1] * (x.dim() - 1))
    element = torch.arange(x[0].numel(), device=x.device).view(1, *x.shape[1:])
    random = _mix(_mix(element ^ first.view(shape)) + second.view(shape))  # in 0..2^32-1
    keep = random >= (rate.double() * 2.0**32).long().view(shape)
    scale = (1 / (1 - rate.to(_wide(x).dtype))).view(shape)
    return torch.where(keep, (x * scale).to(x.dtype), 0)


def _low(x: Tensor) -> Tensor:
    """The lower 32 bits."""
    return x & 0xFFFFFFFF


def _mix(x: Tensor) -> Tensor:
    """Hash 32-bit numbers held in int64; products may overflow, but their low half is right."""
    x = _low(x)
    x = _low((x ^ (x >> 16)) * 0x7FEB352D)
    x = _low((x ^ (x >> 15)) * 0x846CA68B)
    return x ^ (x >> 16)


def sample(row_ptr: Tensor, nodes: Tensor, fan_out: int, key: int) -> tuple[Tensor, Tensor]:
    """See `lgdgcn.kernels.sample`."""
    start, degree = row_ptr[nodes], row_ptr[nodes + 1] - row_ptr[nodes]
    count = degree.clamp(max=fan_out) if fan_out else degree
    ptr = torch.cat([count.new_zeros(1), count.cumsum(0)])
    row = torch.repeat_interleave(count)
    # 1. as if all rows were short: their first entries
    entry = start[row] + torch.arange(len(row), device=row.device) - ptr[row]
    # 2. Floyd's draws for the long ones, a column at a time
    is_long = (degree > count).nonzero().squeeze(1)
    node, last = nodes[is_long], degree[is_long] - fan_out
    own = _mix(_low(node) ^ (key & 0xFFFFFFFF))
    own = _mix(own + (key >> 32) + (node >> 32) * 0x9E3779B9)
    drawn = node.new_full((len(node), fan_out), -1)
    for s in range(fan_out if len(node) else 0):
        j = last + s
        value = (_mix(own + 0x9E3779B9 * (s + 1)) * (j + 1)) >> 32
        taken = (drawn == value.unsqueeze(1)).any(1)
        drawn[:, s] = torch.where(taken, j, value)
    places = ptr[is_long].unsqueeze(1) + torch.arange(fan_out, device=ptr.device)
    entry[places] = start[is_long].unsqueeze(1) + drawn.sort(1).values
    return ptr, entry


def renumber(known: Tensor, more: Tensor) -> tuple[Tensor, Tensor]:
    """See `lgdgcn.kernels.renumber`."""
    every = torch.cat([known, more])
    unique, number = torch.unique(every, return_inverse=True)
    place = torch.arange(len(every), device=every.device)
    first = place.new_full((len(unique),), len(every)).scatter_reduce(0, number, place, "amin")
    order = first.argsort()
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order), device=order.device)
    return unique[order], rank[number[len(known) :]]


def transpose(row_ptr: Tensor, column: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """See `lgdgcn.kernels.transpose`."""
    row = torch.repeat_interleave(row_ptr.diff(), output_size=len(column))
    by_column, order = column.sort(stable=True)
    numbers = torch.arange(len(row_ptr), device=row_ptr.device)
    return torch.searchsorted(by_column, numbers), row[order], value[order]


def covariance(z: Tensor, centre: Tensor) -> Tensor:
    """See `lgdgcn.kernels.covariance`."""
    diff = (z - centre.unsqueeze(1)).transpose(1, 2)  # [R, M, N, d]
    return diff.mT @ diff / z.size(1)


def quadratic_forms(z: Tensor, mean: Tensor, matrices: Tensor) -> Tensor:
    """See `lgdgcn.kernels.quadratic_forms`."""
    diff = (z - mean.unsqueeze(1)).transpose(1, 2)  # [R, M, N, d]
    return (diff @ matrices * diff).sum(-1).transpose(1, 2)


def square_distances(z: Tensor, mean: Tensor, maps: Tensor) -> Tensor:
    """See `lgdgcn.kernels.square_distances`."""
    factors, size = z.shape[-2:]
    side_by_side = maps.movedim(-1, -3).flatten(-2)  # [R, d, M * d]
    images = (z.flatten(-3, -2) @ side_by_side).view(*z.shape[:-1], factors, size)
    centres = (maps @ mean.unsqueeze(-1)).squeeze(-1)  # [R, M, d]
    return (images - centres[:, None, None]).square().sum(-1)


def diversity_loss(log_rows: Tensor, jitter: float) -> Tensor:
    """See `lgdgcn.kernels.diversity_loss`."""
    log_norm = 0.5 * torch.logsumexp(2 * log_rows, dim=-1, keepdim=True)
    # float64, because in float32 the jitter is no larger than the rounding of the products
    rows = (log_rows - log_norm).exp().double()
    eye = torch.eye(rows.size(-1), dtype=rows.dtype, device=rows.device)
    gram = (rows @ rows.mT + jitter * eye) / (1 + jitter)  # the diagonal stays 1
    loss = rows.new_zeros(rows.size(0))
    while gram.size(-1):  # M steps of elimination over all matrices at once
        pivot = gram[:, :1, :1]
        loss = loss - pivot[:, 0, 0].log()
        gram = gram[:, 1:, 1:] - gram[:, 1:, :1] * gram[:, :1, 1:] / pivot
    return loss.to(log_rows.dtype)


def adam(
    param: Tensor,
    grad: Tensor,
    mean: Tensor,
    square: Tensor,
    lr: Tensor,
    decay: Tensor,
    step: Tensor,
) -> None:
    """See `lgdgcn.kernels.adam`."""
    shape = (-1, *[1] * (param.dim() - 1))
    steps = step.double()
    first, second = 1 - 0.9**steps, 1 - 0.999**steps  # [R] bias corrections
    grad = torch.addcmul(grad, param, decay.to(param.dtype).view(shape))
    mean.lerp_(grad, 0.1)
    square.mul_(0.999).addcmul_(grad, grad, value=0.001)
    step_size = (lr.double() / first).to(param.dtype).view(shape)
    denominator = square.sqrt().div_(second.sqrt().to(param.dtype).view(shape)).add_(1e-8)
    param.sub_(mean / denominator * step_size)
