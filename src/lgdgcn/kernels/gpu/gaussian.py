# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# mypy: disable-error-code="assignment"
"""The Gaussian mixture on a GPU: distances, quadratic forms, covariance and the diversity loss.

The first three multiply tiles `[ROWS, DP]` of vectors with a factor's matrix `[DP, DP]`, in full
float32 ("ieee", not TF32). Coordinates are padded to DP, at least 16, the smallest size of such a
product. The diversity loss works on one small matrix per node and holds it in registers.
"""

from math import log1p
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from lgdgcn.kernels import reference

__all__ = ["covariance", "diversity_loss", "quadratic_forms", "square_distances"]

_ROWS = 256  # vectors per program
_MOST_COORDINATES = 64  # of a vector whose matrix still fits
_PIECE = 64  # vectors that a covariance adds up at once
_PROGRAMS = 1 << 11  # that fill a GPU
_MOST_FACTORS = 16  # of a diversity loss: unrolled loops over more take long to compile


@triton.jit
def _difference(z, row, in_rows, mean, e, D: tl.constexpr, DP: tl.constexpr):
    """Vectors minus mean e, `[rows, DP]`."""
    c = tl.arange(0, DP)[None, :]
    vectors = tl.load(z + row * D + c, in_rows & (c < D), 0.0)
    return tl.where(in_rows & (c < D), vectors - tl.load(mean + e * D + c, c < D, 0.0), 0.0)


@triton.jit
def _matrix(matrices, e, D: tl.constexpr, DP: tl.constexpr):
    """Matrix e, `[DP, DP]`."""
    b = tl.arange(0, DP)[:, None]
    c = tl.arange(0, DP)[None, :]
    return tl.load(matrices + (e * D + b) * D + c, (b < D) & (c < D), 0.0)


def _sizes(z: Tensor) -> dict[str, int]:
    padded = max(16, triton.next_power_of_2(z.size(-1)))
    return {"M": z.size(-2), "D": z.size(-1), "DP": padded, "ROWS": _ROWS}


# distances of every vector to every mean


def square_distances(z: Tensor, mean: Tensor, maps: Tensor) -> Tensor:
    """See `lgdgcn.kernels.square_distances`."""
    if z.size(-1) > _MOST_COORDINATES:
        return reference.square_distances(z, mean, maps)
    out: Tensor = _SquareDistances.apply(z, mean, maps)
    return out


class _SquareDistances(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, mean: Tensor, maps: Tensor) -> Tensor:
        z, mean, maps = z.contiguous(), mean.contiguous(), maps.contiguous()
        ctx.save_for_backward(z, mean, maps)
        out = z.new_empty(*z.shape[:-1], z.size(-2))
        _distances_forward[_vector_grid(z)](z, mean, maps, out, z[0, ..., 0].numel(), **_sizes(z))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        z, mean, maps = ctx.saved_tensors
        grad = torch.empty_like(z)
        arguments = z, mean, maps, grads[0].contiguous(), grad, z[0, ..., 0].numel()
        _distances_backward[_vector_grid(z)](*arguments, **_sizes(z))
        return grad, None, None


def _vector_grid(z: Tensor) -> tuple[int, int]:
    """Tiles of one member's vectors of all factors, and members."""
    return triton.cdiv(z.size(1) * z.size(2), _ROWS), z.size(0)


@triton.jit
def _distances_forward(
    z, mean, maps, out, count,
    M: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Write the distances `[count, M]` of the vectors `[count, D]` of one member."""
    member = tl.program_id(1).to(tl.int64)
    z += member * count * D
    out += member * count * M
    mean += member * (M * D)
    maps += member * (M * D * D)
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]).to(tl.int64)
    in_rows = row < count
    for e in range(M):
        diff = _difference(z, row, in_rows, mean, e, D, DP)
        image = tl.dot(diff, tl.trans(_matrix(maps, e, D, DP)), input_precision="ieee")
        total = tl.sum(image * image, 1, keep_dims=True)
        tl.store(out + row * M + e, total, in_rows)


@triton.jit
def _distances_backward(
    z, mean, maps, out_grad, grad, count,
    M: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Write the gradient `[count, D]` of the vectors of one member: 2 A^T A (z - mean), summed."""
    member = tl.program_id(1).to(tl.int64)
    z += member * count * D
    grad += member * count * D
    out_grad += member * count * M
    mean += member * (M * D)
    maps += member * (M * D * D)
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]).to(tl.int64)
    in_rows = row < count
    total = tl.zeros((ROWS, DP), tl.float32)
    for e in range(M):
        diff = _difference(z, row, in_rows, mean, e, D, DP)
        matrix = _matrix(maps, e, D, DP)
        image = tl.dot(diff, tl.trans(matrix), input_precision="ieee")
        image *= 2 * tl.load(out_grad + row * M + e, in_rows, 0.0)
        total += tl.dot(image, matrix, input_precision="ieee")
    c = tl.arange(0, DP)[None, :]
    tl.store(grad + row * D + c, total, in_rows & (c < D))


# quadratic forms of every vector with its own factor's matrix


def quadratic_forms(z: Tensor, mean: Tensor, matrices: Tensor) -> Tensor:
    """See `lgdgcn.kernels.quadratic_forms`."""
    if z.size(-1) > _MOST_COORDINATES:
        return reference.quadratic_forms(z, mean, matrices)
    out: Tensor = _QuadraticForms.apply(z, mean, matrices)
    return out


class _QuadraticForms(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, mean: Tensor, matrices: Tensor) -> Tensor:
        z, mean, matrices = z.contiguous(), mean.contiguous(), matrices.contiguous()
        ctx.save_for_backward(z, mean, matrices)
        out = z.new_empty(z.shape[:-1])
        arguments = z, mean, matrices, out, out, z.size(1)
        _forms_kernel[_factor_grid(z)](*arguments, **_sizes(z), BACKWARD=False)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        z, mean, matrices = ctx.saved_tensors
        grad = torch.empty_like(z)
        arguments = z, mean, matrices, grads[0].contiguous(), grad, z.size(1)
        _forms_kernel[_factor_grid(z)](*arguments, **_sizes(z), BACKWARD=True)
        return grad, None, None


def _factor_grid(z: Tensor) -> tuple[int, int]:
    """Tiles of one factor's vectors, and factors of all members."""
    return triton.cdiv(z.size(1), _ROWS), z.size(0) * z.size(2)


@triton.jit
def _forms_kernel(
    z, mean, matrices, out_grad, out, nodes,
    M: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, ROWS: tl.constexpr,
    BACKWARD: tl.constexpr,
):  # fmt: skip
    """Write the forms `[nodes, M]` of one factor of one member, or the gradient `[nodes, M, D]`.

    The gradient of d^T A d is (A + A^T) d.
    """
    member, factor = (tl.program_id(1) // M).to(tl.int64), tl.program_id(1) % M
    node = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]).to(tl.int64)
    in_rows = node < nodes
    row = (member * nodes + node) * M + factor
    pair = member * M + factor
    diff = _difference(z, row, in_rows, mean, pair, D, DP)
    matrix = _matrix(matrices, pair, D, DP)
    if BACKWARD:
        matrix += tl.trans(matrix)
    image = tl.dot(diff, matrix, input_precision="ieee")
    if BACKWARD:
        c = tl.arange(0, DP)[None, :]
        image *= tl.load(out_grad + row, in_rows, 0.0)
        tl.store(out + row * D + c, image, in_rows & (c < D))
    else:
        tl.store(out + row, tl.sum(image * diff, 1, keep_dims=True), in_rows)


# covariance


def covariance(z: Tensor, centre: Tensor) -> Tensor:
    """See `lgdgcn.kernels.covariance`; the pieces are summed in fixed order."""
    if z.size(-1) > _MOST_COORDINATES:
        return reference.covariance(z, centre)
    members, nodes, factors, size = z.shape
    pieces = min(triton.cdiv(nodes, _PIECE), max(1, _PROGRAMS // (members * factors)))
    sizes = {**_sizes(z), "ROWS": _PIECE}
    sums = z.new_empty(members, factors, pieces, sizes["DP"], sizes["DP"])
    _covariance_kernel[pieces, members * factors](
        z.contiguous(), centre.contiguous(), sums, nodes, pieces, **sizes
    )
    return sums.sum(2)[..., :size, :size] / nodes


@triton.jit
def _covariance_kernel(
    z, centre, out, nodes, pieces,
    M: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Write the sum of outer products over a piece of the nodes, `[DP, DP]`."""
    member, factor = (tl.program_id(1) // M).to(tl.int64), tl.program_id(1) % M
    pair = member * M + factor
    total = tl.zeros((DP, DP), tl.float32)
    for start in range(tl.program_id(0) * ROWS, nodes, pieces * ROWS):
        node = (start + tl.arange(0, ROWS)[:, None]).to(tl.int64)
        row = (member * nodes + node) * M + factor
        diff = _difference(z, row, node < nodes, centre, pair, D, DP)
        total += tl.dot(tl.trans(diff), diff, input_precision="ieee")
    b = tl.arange(0, DP)[:, None]
    c = tl.arange(0, DP)[None, :]
    tl.store(out + (pair * pieces + tl.program_id(0)) * (DP * DP) + b * DP + c, total)


# Diversity loss. A program takes some nodes. Loops over the M rows of their matrices are unrolled:
# the rows are a tuple of M tiles [nodes, columns], a triangular factor is a tuple of M (M + 1) / 2
# vectors [nodes], row after row: entry (i, j) is number i (i + 1) / 2 + j.


def diversity_loss(log_rows: Tensor, jitter: float) -> Tensor:
    """See `lgdgcn.kernels.diversity_loss`."""
    if log_rows.size(-1) > _MOST_FACTORS:
        return reference.diversity_loss(log_rows, jitter)
    loss: Tensor = _DiversityLoss.apply(log_rows, jitter)
    return loss


class _DiversityLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, log_rows: Tensor, jitter: float) -> Tensor:
        log_rows = log_rows.contiguous()
        ctx.save_for_backward(log_rows)
        ctx.jitter = jitter
        loss = log_rows.new_empty(log_rows.size(0))
        grid, sizes = _node_tiles(log_rows)
        constant = log_rows.size(1) * log1p(jitter)  # the loss divides the matrix by 1 + jitter
        _loss_forward[grid](log_rows, loss, loss.numel(), CONSTANT=constant, JITTER=jitter, **sizes)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (log_rows,) = ctx.saved_tensors
        back = torch.empty_like(log_rows)
        grid, sizes = _node_tiles(log_rows)
        _loss_backward[grid](
            log_rows, grads[0].contiguous(), back, back.size(0), JITTER=ctx.jitter, **sizes
        )
        return back, None


def _node_tiles(log_rows: Tensor) -> tuple[tuple[int], dict[str, int]]:
    """Grid and constants; a program is one warp, so that it never waits for others."""
    count, size, _ = log_rows.shape
    padded = triton.next_power_of_2(size)
    nodes = min(32, 128 // padded)
    sizes = {"SIZE": size, "PADDED": padded, "NODES": nodes, "num_warps": 1}
    return (triton.cdiv(count, nodes),), sizes


@triton.jit
def _loss_forward(
    log_ptr, loss_ptr, count, CONSTANT: tl.constexpr, JITTER: tl.constexpr,
    SIZE: tl.constexpr, PADDED: tl.constexpr, NODES: tl.constexpr,
):  # fmt: skip
    """Write -log det = 2 sum of log(1 / diagonal of the Cholesky factor)."""
    node = tl.program_id(0).to(tl.int64) * NODES + tl.arange(0, NODES)
    rows = _unit_rows(log_ptr, tl.minimum(node, count - 1), SIZE, PADDED)
    lower = _cholesky(rows, JITTER, SIZE)
    inverse = lower[0]
    for i in tl.static_range(1, SIZE):
        inverse *= lower[i * (i + 3) // 2]
    tl.store(loss_ptr + node, 2.0 * tl.log(inverse) + CONSTANT, mask=node < count)


@triton.jit
def _loss_backward(
    log_ptr, grad_ptr, back_ptr, count, JITTER: tl.constexpr,
    SIZE: tl.constexpr, PADDED: tl.constexpr, NODES: tl.constexpr,
):  # fmt: skip
    """Write the gradient of the logarithms."""
    node = tl.program_id(0).to(tl.int64) * NODES + tl.arange(0, NODES)
    rows = _unit_rows(log_ptr, tl.minimum(node, count - 1), SIZE, PADDED)
    solved = _solve(_cholesky(rows, JITTER, SIZE), rows, SIZE)
    grad = tl.load(grad_ptr + node, mask=node < count, other=0.0).to(tl.float64)
    column = tl.arange(0, PADDED)
    inside = (node < count)[:, None] & (column < SIZE)[None, :]
    at = node[:, None] * (SIZE * SIZE) + column[None, :]
    # d loss / d rows = -2 gram^-1 rows, then through the division by each row's length
    for i in tl.static_range(SIZE):
        through = -2.0 * grad[:, None] * rows[i] * solved[SIZE - 1 - i]
        back = through - rows[i] * rows[i] * tl.sum(through, axis=1)[:, None]
        tl.store(back_ptr + at + i * SIZE, back, mask=inside)


@triton.jit
def _unit_rows(log_ptr, node, SIZE: tl.constexpr, PADDED: tl.constexpr):
    """The rows scaled to length 1, in float64."""
    column = tl.arange(0, PADDED)
    at = log_ptr + node[:, None] * (SIZE * SIZE) + column[None, :]
    rows = ()
    for i in tl.static_range(SIZE):
        log_row = tl.load(at + i * SIZE, mask=(column < SIZE)[None, :], other=float("-inf"))
        log_row = log_row.to(tl.float64)
        row = tl.exp(log_row - tl.max(log_row, axis=1)[:, None])
        rows += (row * tl.rsqrt(tl.sum(row * row, axis=1))[:, None],)
    return rows


@triton.jit
def _cholesky(rows, JITTER: tl.constexpr, SIZE: tl.constexpr):
    """Lower factor of the jittered Gram matrix, with its diagonal inverted."""
    lower = ()
    for i in tl.static_range(SIZE):
        for j in tl.static_range(i + 1):
            rest = tl.sum(rows[i] * rows[j], axis=1) + (JITTER if i == j else 0.0)
            for k in tl.static_range(j):
                rest -= lower[i * (i + 1) // 2 + k] * lower[j * (j + 1) // 2 + k]
            if i == j:
                lower += (tl.rsqrt(rest),)
            else:
                lower += (rest * lower[j * (j + 3) // 2],)
    return lower


@triton.jit
def _solve(lower, rows, SIZE: tl.constexpr):
    """Solve gram x = rows by two triangular systems; the rows of x are returned last one first."""
    half = ()
    for i in tl.static_range(SIZE):
        rest = rows[i]
        for k in tl.static_range(i):
            rest -= lower[i * (i + 1) // 2 + k][:, None] * half[k]
        half += (rest * lower[i * (i + 3) // 2][:, None],)
    solved = ()
    for i in tl.static_range(SIZE - 1, -1, -1):
        rest = half[i]
        for k in tl.static_range(SIZE - 1, i, -1):
            rest -= lower[k * (k + 1) // 2 + i][:, None] * solved[SIZE - 1 - k]
        solved += (rest * lower[i * (i + 3) // 2][:, None],)
    return solved
