"""What the measures take: checked once, then plain arrays."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.special import entr
from torch import Tensor

from lgdgcn.errors import InputError
from lgdgcn.metrics.arrays import Array
from lgdgcn.reasons.edges import Edges

__all__ = ["Inputs", "checked"]

ROUNDING = 0.02  # of a sum of probabilities in half precision


@dataclass(frozen=True)
class Inputs:
    """What is measured.

    Attributes:
        units: Units, finite. Shape ``[N, M, d]``.
        pairs: Edges, each once. Shape ``[2, P]``.
        pair_factors: Mean probabilities of both directions. Shape ``[P, M]``.
        pair_entropy: Mean entropy of both directions in nats. Shape ``[P]``.
        y_factor: Class in every known factor, -1 where unknown. Shape ``[N, F]``, F may be 0.
        y: Class, -1 where unknown, ``[N]``; ``None`` without single labels.
    """

    units: Array
    pairs: Array
    pair_factors: Array
    pair_entropy: Array
    y_factor: Array
    y: Array | None


def checked(
    units: Any, edge_index: Any, edge_factors: Any, y_factor: Any = None, y: Any = None
) -> Inputs:
    """Turn tensors or arrays into :class:`Inputs`, or say what is wrong with them."""
    vectors = _real("units", units, 3)
    nodes, factors, channels = vectors.shape
    if not nodes or not factors or not channels:
        raise InputError(f"units has shape {list(vectors.shape)}; give at least one of each")
    chances = _real("edge_factors", edge_factors, 2)
    edges = torch.as_tensor(edge_index).cpu()
    if edges.dim() != 2 or edges.size(0) != 2 or chances.shape != (edges.size(1), factors):
        raise InputError(
            f"edge_index has shape {list(edges.shape)} and edge_factors {list(chances.shape)}; "
            f"give [2, E] and [E, {factors}]"
        )
    if edges.is_floating_point() and edges.numel():
        raise InputError(f"edge_index has type {edges.dtype}; give whole numbers")
    if edges.numel() and not 0 <= int(edges.min()) <= int(edges.max()) < nodes:
        raise InputError(f"edge_index names nodes outside 0..{nodes - 1}")
    if (chances < 0).any():
        raise InputError("edge_factors are probabilities; some are negative")
    if (worst := np.abs(chances.sum(1) - 1).max(initial=0)) > ROUNDING:
        raise InputError(f"edge_factors are probabilities; a row is {worst:.2g} off a sum of 1")
    once = Edges.of(edges.long(), nodes)
    return Inputs(
        units=vectors,
        pairs=once.ends,
        pair_factors=once.once(chances),
        pair_entropy=once.once(entr(chances).sum(1)),
        y_factor=_classes("y_factor", y_factor, nodes, 2),
        y=None if y is None or np.ndim(_plain(y)) != 1 else _classes("y", y, nodes, 1),
    )


def _plain(values: Any) -> Array:
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)


def _real(name: str, values: Any, axes: int) -> Array:
    array = _plain(values.float() if _is_half(values) else values).astype(np.float64)
    if array.ndim != axes:
        raise InputError(f"{name} has shape {list(array.shape)}; give {axes} axes")
    if not np.isfinite(array).all():
        raise InputError(f"{name} has values that are NaN or infinite; nothing can be measured")
    return array


def _is_half(values: Any) -> bool:
    return isinstance(values, Tensor) and values.dtype == torch.bfloat16


def _classes(name: str, values: Any, nodes: int, axes: int) -> Array:
    if values is None:
        return np.empty((nodes, 0), dtype=np.int64)
    array = _plain(values)
    if array.ndim != axes or len(array) != nodes:
        raise InputError(f"{name} has shape {list(array.shape)}; give one row for {nodes} nodes")
    if array.dtype.kind not in "iub":
        raise InputError(f"{name} has type {array.dtype}; give whole numbers, -1 where unknown")
    return array.astype(np.int64)
