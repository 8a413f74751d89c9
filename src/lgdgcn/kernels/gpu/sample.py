# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
"""Neighbours drawn on a GPU: one program draws for a few nodes, each in a row of registers."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from lgdgcn.kernels import reference

__all__ = ["sample"]

_TILE = 128  # draws held by a program; ranking them compares each with each
_LARGEST = 64  # draws of a node; more would not fit

# Constants above 2**31 are made as int64 tensors: some releases of Triton refuse to read a Python
# number of that size beside an int32, and which operand is one is for the compiler to decide.


def sample(row_ptr: Tensor, nodes: Tensor, fan_out: int, key: int) -> tuple[Tensor, Tensor]:
    """See `lgdgcn.kernels.sample`."""
    if not 0 < fan_out <= _LARGEST or not nodes.numel():
        return reference.sample(row_ptr, nodes, fan_out, key)
    start = row_ptr[nodes]
    degree = row_ptr[nodes + 1] - start
    ptr = torch.zeros(len(nodes) + 1, dtype=torch.int64, device=nodes.device)
    torch.cumsum(degree.clamp(max=fan_out), 0, out=ptr[1:])
    entry = torch.empty(int(ptr[-1]), dtype=torch.int64, device=nodes.device)
    padded = triton.next_power_of_2(fan_out)
    rows = max(1, _TILE // padded)
    _draw_kernel[(triton.cdiv(len(nodes), rows),)](
        nodes.contiguous(), start, degree, ptr, entry, len(nodes), key & 0xFFFFFFFF, key >> 32,
        FAN_OUT=fan_out, PADDED=padded, ROWS=rows,
    )  # fmt: skip
    return ptr, entry


@triton.jit
def _mix(x):
    """Hash 32-bit numbers held in int64; only the low half of a product is kept."""
    low = tl.full([1], 0xFFFFFFFF, tl.int64)
    x = x & low
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & low
    x = ((x ^ (x >> 15)) * tl.full([1], 0x846CA68B, tl.int64)) & low
    return x ^ (x >> 16)


@triton.jit(do_not_specialize=["count", "first", "second"])
def _draw_kernel(
    nodes, starts, degrees, ptr, entry, count, first, second,
    FAN_OUT: tl.constexpr, PADDED: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Write the drawn entries of a few nodes in ascending order."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < count
    node = tl.load(nodes + row, inside, 0)
    start = tl.load(starts + row, inside, 0)
    degree = tl.load(degrees + row, inside, 0)
    drawn = tl.minimum(degree, FAN_OUT)
    low, golden = tl.full([1], 0xFFFFFFFF, tl.int64), tl.full([1], 0x9E3779B9, tl.int64)
    own = _mix((node & low) ^ first.to(tl.int64))
    own = _mix(own + second.to(tl.int64) + (node >> 32) * golden)
    # 1. Floyd: draw s is from the first j + 1 entries; one that is taken becomes j
    slot = tl.arange(0, PADDED)[None, :]
    chosen = tl.full([ROWS, PADDED], -1, tl.int64)
    for s in range(FAN_OUT):
        j = degree - drawn + s
        value = (_mix(own + golden * (s + 1)) * (j + 1)) >> 32
        value = tl.where(degree <= FAN_OUT, s, value)  # a short row is taken whole
        taken = tl.max((chosen == value[:, None]).to(tl.int32), 1) > 0
        value = tl.where(taken, j, value)
        chosen = tl.where(slot == s, value[:, None], chosen)
    # 2. each goes to the place that so many smaller ones come before
    counts = slot < drawn[:, None]
    listed = tl.where(counts, chosen, degree[:, None])
    smaller = (listed[:, None, :] < listed[:, :, None]).to(tl.int32)  # [ROWS, one, other]
    rank = tl.sum(smaller, 2)
    low = tl.load(ptr + row, inside, 0)[:, None]
    tl.store(entry + low + rank, start[:, None] + chosen, counts & inside[:, None])
