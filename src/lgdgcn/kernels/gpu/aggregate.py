# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
"""The latent graph on a GPU: union of neighbour lists, row sums and aggregation.

All shapes are static, they depend on the sizes of the inputs only: the host never has to wait for a
number, and a CUDA graph can record the launches.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from lgdgcn.kernels.graph import UndirectedGraph

__all__ = ["aggregate", "row_sums", "symmetrize"]

_ENTRIES = 512  # list entries per program
_ROWS = 16  # rows aggregated per program, of up to 16 columns
_WARPS = 4
_SUMMED_ROWS = 32
_COLUMNS = 64  # at most, per program

_CHUNK = tl.constexpr(16)  # entries of every row at once
_SHORT = tl.constexpr(64)  # entries of a row after which the whole program works on that row
_WIDE = tl.constexpr(128)  # entries of a long row at once


# union of neighbour lists


def symmetrize(index: Tensor, keep: Tensor | None) -> UndirectedGraph:
    """See `lgdgcn.kernels.symmetrize`: row i holds its own list, then who lists it.

    The result has `2 B N k` entries whatever the lists hold. Of a pair that lists each other, the
    entry in one's own list counts, the other is padding; so are entries that do not count.
    """
    sets, size, k = index.shape
    n = sets * size
    lists = index.contiguous()
    kept = lists if keep is None else keep.contiguous().view(torch.uint8)
    ends = torch.empty(n * k, dtype=torch.uint8, device=index.device)
    target = torch.empty(n * k, dtype=torch.int32, device=index.device)
    shape: dict[str, Any] = {"K": k, "KPAD": triton.next_power_of_2(k)}
    shape["ROWS"] = max(1, _ENTRIES // shape["KPAD"])
    grid = (triton.cdiv(n + 1, shape["ROWS"]),)
    with torch.cuda.device_of(index):
        _mark_kernel[grid](lists, kept, ends, target, n, size, HAS_KEEP=keep is not None, **shape)
    target, order = torch.sort(target, stable=True)
    row_ptr = torch.empty(n + 1, dtype=torch.int64, device=index.device)
    source = torch.empty(2 * n * k, dtype=torch.int64, device=index.device)
    both_ends = torch.empty(2 * n * k, dtype=torch.uint8, device=index.device)
    union = row_ptr, source, both_ends
    steps = (n * k).bit_length()
    with torch.cuda.device_of(index):
        _write_kernel[grid](lists, ends, target, order, *union, n, size, steps, **shape)
    return UndirectedGraph(*union)


@triton.jit(do_not_specialize=["n", "size"])
def _mark_kernel(
    index, keep, ends, target, n, size,
    HAS_KEEP: tl.constexpr, K: tl.constexpr, KPAD: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Count the ends that list each entry, and name the row that its reverse goes to."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    own = (row % size)[:, None]
    first = (row - row % size)[:, None]
    column = tl.arange(0, KPAD)[None, :]
    entry = row[:, None] * K + column
    mask = (row < n)[:, None] & (column < K)
    other = tl.load(index + entry, mask, 0)
    counts = mask & (other != own)
    if HAS_KEEP:
        counts = counts & (tl.load(keep + entry, mask, 0) != 0)
    mutual = tl.zeros([ROWS, KPAD], tl.int1)
    for e in range(0, K):
        # an earlier entry of the same list, and an entry of the other's list
        mine, theirs = row[:, None] * K + e, (first + other) * K + e
        again = (tl.load(index + mine, (row < n)[:, None], 0) == other) & (e < column)
        back = tl.load(index + theirs, mask, 0) == own
        if HAS_KEEP:
            again = again & (tl.load(keep + mine, (row < n)[:, None], 0) != 0)
            back = back & (tl.load(keep + theirs, mask, 0) != 0)
        counts = counts & ~again
        mutual = mutual | back
    number = counts.to(tl.int32) + (counts & mutual).to(tl.int32)
    tl.store(ends + entry, number.to(tl.uint8), mask)
    # padding goes to the list's own row, where it is spread evenly
    goal = tl.where(number == 1, first + other, row[:, None])
    tl.store(target + entry, goal.to(tl.int32), mask)


@triton.jit(do_not_specialize=["n", "size", "steps"])
def _write_kernel(
    index, ends, target, order, row_ptr, source, both_ends, n, size, steps,
    K: tl.constexpr, KPAD: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Write every entry into its own row and, in sorted order, into the row of its target."""
    # a row begins after K entries of every row before it, and the reverse entries sent to them
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    low = tl.zeros([ROWS], tl.int64)  # entries with a smaller target, by bisection
    high = (low + n) * K
    for _ in range(0, steps):
        middle = (low + high) // 2
        smaller = (low < high) & (tl.load(target + middle, low < high, 0) < row)
        low = tl.where(smaller, middle + 1, low)
        high = tl.where(smaller, high, middle)
    tl.store(row_ptr + row, row * K + low, row <= n)

    # the list of every row
    column = tl.arange(0, KPAD)[None, :]
    entry = row[:, None] * K + column
    mask = (row < n)[:, None] & (column < K)
    number = tl.load(ends + entry, mask, 0)
    listed = tl.load(index + entry, mask, 0) + (row - row % size)[:, None]
    to = entry + low[:, None]
    tl.store(source + to, tl.where(number > 0, listed, row[:, None]), mask)
    tl.store(both_ends + to, number, mask)

    # the reverse entries: the one at sorted position `entry` goes after its target's own list
    sorted_entry = tl.load(order + entry, mask, 0)
    number = tl.load(ends + sorted_entry, mask, 0)
    to = (tl.load(target + entry, mask, 0).to(tl.int64) + 1) * K + entry
    tl.store(source + to, sorted_entry // K, mask)
    tl.store(both_ends + to, (number == 1).to(tl.uint8), mask)


# row sums


def row_sums(weight: Tensor, row_ptr: Tensor) -> Tensor:
    """See `lgdgcn.kernels.row_sums`; summed in float64."""
    n = row_ptr.numel() - 1
    total = torch.empty(n, dtype=weight.dtype, device=weight.device)
    grid = (triton.cdiv(n, _SUMMED_ROWS),)
    with torch.cuda.device_of(weight):
        _row_sums_kernel[grid](weight.contiguous(), row_ptr, total, n, ROWS=_SUMMED_ROWS)
    return total


@triton.jit(do_not_specialize=["n"])
def _row_sums_kernel(weight, row_ptr, total, n, ROWS: tl.constexpr):
    """Sum ROWS rows side by side, then what long rows have left one after the other."""
    base = tl.program_id(0).to(tl.int64) * ROWS
    row = base + tl.arange(0, ROWS)
    begin = tl.load(row_ptr + row, row < n, 0)
    length = tl.load(row_ptr + row + 1, row < n, 0) - begin
    longest = tl.max(length, 0)
    sums = tl.zeros([ROWS, _CHUNK], tl.float64)
    for start in range(0, tl.minimum(longest, _SHORT), _CHUNK):
        at = start + tl.arange(0, _CHUNK)[None, :]
        mask = at < length[:, None]
        sums += tl.load(weight + begin[:, None] + at, mask, 0.0).to(tl.float64)
    result = tl.sum(sums, 1)
    if longest > _SHORT:
        for r in range(0, ROWS):
            if base + r < n:
                stop = tl.load(row_ptr + base + r + 1)
                wide = tl.zeros([_WIDE], tl.float64)
                for start in range(tl.load(row_ptr + base + r) + _SHORT, stop, _WIDE):
                    entry = start + tl.arange(0, _WIDE)
                    wide += tl.load(weight + entry, entry < stop, 0.0).to(tl.float64)
                result += tl.where(row == base + r, tl.sum(wide, 0), 0.0)
    tl.store(total + row, result, row < n)


# aggregation


def aggregate(
    x: Tensor, row_ptr: Tensor, source: Tensor, weight: Tensor, left: Tensor, right: Tensor
) -> Tensor:
    """See `lgdgcn.kernels.aggregate`."""
    diagonals = left.to(x.dtype).contiguous(), right.to(x.dtype).contiguous()
    out: Tensor = _Aggregate.apply(x, row_ptr, source, weight.to(x.dtype).contiguous(), *diagonals)
    return out


class _Aggregate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, *operator: Tensor) -> Tensor:
        ctx.save_for_backward(*operator)
        return _gather(x, *operator)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        *rows, left, right = ctx.saved_tensors
        # A is symmetric, so the transpose only swaps the two diagonals
        return _gather(grads[0], *rows, right, left), None, None, None, None, None


def _gather(x: Tensor, *operator: Tensor) -> Tensor:
    n, width = x.shape
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    columns = min(_COLUMNS, triton.next_power_of_2(width))
    rows = max(1, _ROWS * 16 // max(16, columns))
    grid = triton.cdiv(n, rows), triton.cdiv(width, columns)
    arguments = x.contiguous(), *operator, out, n, width, rows, columns
    with torch.cuda.device_of(x):
        _aggregate_kernel[grid](*arguments, num_warps=_WARPS)
    return out


@triton.jit(do_not_specialize=["n"])
def _aggregate_kernel(
    x, row_ptr, source, weight, left, right, out, n, width,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Write a tile `[ROWS, COLUMNS]` of L (A + I) R x."""
    base = tl.program_id(0).to(tl.int64) * ROWS
    row = base + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    exists = column < width
    begin = tl.load(row_ptr + row, row < n, 0)
    length = tl.load(row_ptr + row + 1, row < n, 0) - begin
    longest = tl.max(length, 0)

    # the first entries of all rows side by side, [ROWS, _CHUNK, COLUMNS] at a time
    sums = tl.zeros([ROWS, _CHUNK, COLUMNS], tl.float32)
    for start in range(0, tl.minimum(longest, _SHORT), _CHUNK):
        at = start + tl.arange(0, _CHUNK)[None, :]
        entry = begin[:, None] + at
        share = tl.load(weight + entry, at < length[:, None], 0.0)
        used = share != 0.0  # padding is not fetched
        sender = tl.load(source + entry, used, 0)
        share *= tl.load(right + sender, used, 0.0)
        mask = used[:, :, None] & exists[None, None, :]
        sent = tl.load(x + sender[:, :, None] * width + column[None, None, :], mask, 0.0)
        sums += share[:, :, None] * sent
    result = tl.sum(sums, 1)

    # what long rows have left, one row after the other, [_WIDE, COLUMNS] at a time
    if longest > _SHORT:
        for r in range(0, ROWS):
            if base + r < n:
                stop = tl.load(row_ptr + base + r + 1)
                wide = tl.zeros([_WIDE, COLUMNS], tl.float32)
                for start in range(tl.load(row_ptr + base + r) + _SHORT, stop, _WIDE):
                    entry = start + tl.arange(0, _WIDE)
                    share = tl.load(weight + entry, entry < stop, 0.0)
                    used = share != 0.0
                    sender = tl.load(source + entry, used, 0)
                    share *= tl.load(right + sender, used, 0.0)
                    mask = used[:, None] & exists[None, :]
                    sent = tl.load(x + sender[:, None] * width + column[None, :], mask, 0.0)
                    wide += share[:, None] * sent
                result += tl.where((row == base + r)[:, None], tl.sum(wide, 0)[None, :], 0.0)

    # the node itself, then the left diagonal
    mask = (row < n)[:, None] & exists[None, :]
    own = tl.load(x + row[:, None] * width + column[None, :], mask, 0.0)
    result += tl.load(right + row, row < n, 0.0)[:, None] * own
    result *= tl.load(left + row, row < n, 0.0)[:, None]
    tl.store(out + row[:, None] * width + column[None, :], result, mask)
