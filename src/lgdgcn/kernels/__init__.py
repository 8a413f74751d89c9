"""Fast primitives behind one interface: the same signatures and results on every backend.

CPU tensors in float32 or float64 run on numba when it is installed; everything else runs on plain
torch. The environment variable `LGDGCN_BACKEND` (`torch` or `numba`) overrides that choice.
"""

import os
from functools import cache
from importlib import import_module
from types import ModuleType

import torch
from torch import Tensor

from lgdgcn.errors import InputError
from lgdgcn.kernels import reference
from lgdgcn.kernels.reference import unit_length
from lgdgcn.kernels.structure import Neighbours, Union, neighbours

__all__ = [
    "Neighbours",
    "Union",
    "aggregate",
    "nearest",
    "neighbours",
    "route",
    "symmetrize",
    "unit_length",
]

_CHOICES = ("torch", "numba")


def route(
    z: Tensor,
    edge_index: Tensor,
    iterations: int = 7,
    tau: float = 1.0,
    *,
    uniform_start: bool = False,
    normalize_last: bool = True,
) -> tuple[Tensor, Tensor]:
    """Neighbourhood routing: every edge spreads one unit of attention over the channels.

    With c = z, each iteration sets p_e = softmax_m(<z[s, m], c[t, m]> / tau) on every edge
    e = (s, t), then c[t, m] = normalise(z[t, m] + sum_e p_e[m] z[s, m]). The zero vector
    normalises to itself and passes no gradient.

    Args:
        z: `[N, M, d]` one vector per node and channel; differentiable.
        edge_index: `[2, E]` source and target of every edge, counted as often as given.
        iterations: Number of iterations, at least 1.
        tau: Temperature of the softmax, above 0.
        uniform_start: Use p = 1/M in the first iteration.
        normalize_last: Normalise the result of the last iteration too.

    Returns:
        The vectors c `[N, M, d]` and the last p `[E, M]` in the order of `edge_index`.

    Raises:
        InputError: If an argument is out of range.
    """
    if z.dim() != 3 or z.size(1) < 1:
        raise InputError(f"z has shape {tuple(z.shape)}; it must be [N, M, d] with M >= 1")
    if iterations < 1:
        raise InputError(f"iterations is {iterations}; it must be at least 1")
    if not tau > 0:
        raise InputError(f"tau is {tau}; it must be above 0")
    backend = _backend(z.device, z.dtype)
    units: Tensor
    units, chance = backend.route(z, edge_index, iterations, tau, uniform_start, normalize_last)
    return units, chance


def nearest(z: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Exact k nearest other points of every point, by Euclidean distance.

    Args:
        z: `[B, N, d]` B sets of points; never differentiated.
        k: Number of neighbours, 1 to N-1.

    Returns:
        Indices `[B, N, k]` and squared distances `[B, N, k]`, nearest first; of equally distant
        points the lower index comes first. Distances of half precision points are float32.

    Raises:
        InputError: If k is out of range.
    """
    if z.dim() != 3:
        raise InputError(f"z has shape {tuple(z.shape)}; it must be [B, N, d]")
    if not 1 <= k <= z.size(1) - 1:
        raise InputError(f"k is {k}; with {z.size(1)} points it must be 1 to {z.size(1) - 1}")
    index: Tensor
    index, distance = _backend(z.device, z.dtype).nearest(z, k)
    return index, distance


def symmetrize(index: Tensor, keep: Tensor | None = None) -> Union:
    """Join i and j when either lists the other; node i of set b becomes node b*N + i.

    Args:
        index: `[B, N, k]` the points each point lists.
        keep: `[B, N, k]` which list entries count; all when None.

    Returns:
        The undirected graph over B*N nodes, without self loops or duplicates.
    """
    union: Union = _backend(index.device).symmetrize(index, keep)
    return union


def aggregate(
    x: Tensor, row_ptr: Tensor, source: Tensor, weight: Tensor, left: Tensor, right: Tensor
) -> Tensor:
    """Apply L (A + I) R to x, where A is symmetric and L, R are diagonal.

    Args:
        x: `[n, d]` rows to mix; the only differentiable argument.
        row_ptr: `[n+1]` row boundaries of A.
        source: `[nnz]` columns of A.
        weight: `[nnz]` entries of A, the same in both directions.
        left: `[n]` diagonal of L.
        right: `[n]` diagonal of R.

    Returns:
        `[n, d]` rows left_i * (right_i x_i + sum_e weight_e right_s x_s), s = source_e.
    """
    fixed = weight.detach(), left.detach(), right.detach()
    out: Tensor = _backend(x.device, x.dtype).aggregate(x, row_ptr, source, *fixed)
    return out


def _backend(device: torch.device, dtype: torch.dtype = torch.float32) -> ModuleType:
    wanted = os.environ.get("LGDGCN_BACKEND") or None
    if wanted not in (None, *_CHOICES):
        raise InputError(f"LGDGCN_BACKEND is {wanted!r}; choose one of {', '.join(_CHOICES)}")
    if wanted == "torch":
        return reference
    if wanted == "numba" and device.type != "cpu":
        raise InputError(f"LGDGCN_BACKEND is 'numba' but the tensor is on {device}; choose torch")
    if device.type != "cpu" or dtype not in (torch.float32, torch.float64):
        return reference
    compiled, reason = _compiled()
    if compiled is None and wanted == "numba":
        raise InputError(f"LGDGCN_BACKEND is 'numba' but {reason}; choose torch")
    return compiled or reference


@cache
def _compiled() -> tuple[ModuleType | None, str]:
    try:
        return import_module("lgdgcn.kernels.cpu"), ""
    except (ImportError, RuntimeError) as error:  # numba refuses to load without a cache folder
        return None, str(error)
