"""Edges in one form: both directions, sorted, each once, perhaps with a weight."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from lgdgcn.errors import InputError

__all__ = ["node_numbers", "undirected_edges"]


def undirected_edges(
    edge_index: Any, num_nodes: int, weight: Any = None
) -> tuple[Tensor, Tensor | None, int]:
    """Bring edges to one form.

    Args:
        edge_index: Node numbers ``[2, E]``, any edge in one direction or both, any number of times.
        num_nodes: N.
        weight: A weight for each of them, or ``None``.

    Returns:
        Every edge in both directions, sorted and unique, without self loops; their weights or
        ``None``; and how many edges were there in one direction only.
    """
    edge_index = node_numbers(edge_index)
    outside = (edge_index < 0) | (edge_index >= num_nodes)
    if outside.any():
        limits = f"is outside 0..{num_nodes - 1} (the graph has {num_nodes} nodes)"
        _refuse_edge(edge_index, outside, limits)
    weight = None if weight is None else _edge_weights(weight, edge_index.shape[1])
    no_loop = edge_index[0] != edge_index[1]
    source, target = edge_index[:, no_loop]
    forward, number = torch.unique(source * num_nodes + target, return_inverse=True)
    both = torch.unique(
        torch.cat([forward, forward % num_nodes * num_nodes + forward // num_nodes])
    )
    edges = torch.stack([both // num_nodes, both % num_nodes])
    if weight is not None:
        total = torch.zeros(len(forward), dtype=torch.float64)
        total.index_add_(0, number, weight[no_loop].double())
        listed = [_looked_up(forward, total, ends[0] * num_nodes + ends[1])
                  for ends in (edges, edges.flip(0))]  # fmt: skip
        weight = torch.stack(listed).nanmean(0).float()
    return edges, weight, len(both) - len(forward)


def _looked_up(keys: Tensor, values: Tensor, wanted: Tensor) -> Tensor:
    """The values of sorted keys, NaN for those that are not there."""
    index = torch.searchsorted(keys, wanted).clamp(max=max(len(keys) - 1, 0))
    if not len(keys):
        return values.new_full(wanted.shape, torch.nan)
    return torch.where(keys[index] == wanted, values[index], values.new_tensor(torch.nan))


def _edge_weights(weight: Any, edges: int) -> Tensor:
    """Weights of the edges as they were given, checked ``[E]``."""
    try:
        checked = torch.as_tensor(weight).detach().cpu().float().reshape(-1)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"edge_weight cannot be read ({error}); give one for each edge") from None
    if len(checked) != edges:
        raise InputError(f"edge_weight has {len(checked)} entries for {edges} edges; give one each")
    bad = ~(checked.isfinite() & (checked > 0))
    if bad.any():
        first = int(bad.nonzero()[0])
        raise InputError(
            f"edge_weight[{first}] is {checked[first].item()}; weights must be finite and above 0"
        )
    return checked


def node_numbers(edge_index: Any) -> Tensor:
    """``edge_index`` as int64 [2, E], whatever its numbers are."""
    if edge_index is None:
        raise InputError("edge_index is missing; give [2, E] node numbers (E may be 0)")
    if not isinstance(edge_index, Tensor):
        try:
            edge_index = torch.from_numpy(np.array(edge_index))
        except (TypeError, ValueError) as error:
            raise InputError(f"edge_index cannot be read ({error}); give [2, E] ints") from None
    if hasattr(edge_index, "as_tensor"):  # torch_geometric.EdgeIndex
        edge_index = edge_index.as_tensor()
    if edge_index.layout != torch.strided:
        raise InputError("edge_index is a sparse matrix; give its [2, E] indices")
    edge_index = edge_index.detach().cpu()
    if not edge_index.numel():
        return torch.empty(2, 0, dtype=torch.int64)
    if edge_index.dim() != 2 or edge_index.shape[0] != 2:
        columns = edge_index.dim() == 2 and edge_index.shape[1] == 2
        hint = "its transpose" if columns else "[2, E] node numbers"
        raise InputError(f"edge_index has shape {list(edge_index.shape)}; give {hint}")
    if edge_index.dtype == torch.bool or edge_index.is_complex():
        raise InputError(f"edge_index has type {edge_index.dtype}; give int64 node numbers")
    if edge_index.is_floating_point():
        odd = edge_index != edge_index.floor()  # NaN differs from itself
        why = f"is not an integer (type {edge_index.dtype})"
        _refuse_edge(edge_index, odd if odd.any() else torch.ones_like(odd), why)
    return torch.as_tensor(edge_index.long())


def _refuse_edge(edge_index: Tensor, bad: Tensor, why: str) -> None:
    column, row = (int(i) for i in bad.t().nonzero()[0])
    raise InputError(
        f"edge_index[{row}, {column}] = {edge_index[row, column].item()} {why}; correct this edge"
    )
