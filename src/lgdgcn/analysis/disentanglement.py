"""Numbers for how well factors are told apart."""

import math

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

__all__ = ["both_directions", "edge_attribution", "routing_entropy"]


def routing_entropy(edge_factors: Tensor) -> float | None:
    """Mean entropy of the edges' factor probabilities as a share of its maximum.

    Args:
        edge_factors: Probabilities. Shape ``[E, M]``.

    Returns:
        1 where nothing is routed, 0 where every edge has one factor; ``None`` without edges or
        with a single factor.

    Example:
        >>> routing_entropy(torch.tensor([[0.5, 0.5], [1.0, 0.0]]))
        0.5
    """
    edges, factors = edge_factors.shape
    if edges == 0 or factors == 1:
        return None
    entropy = torch.special.entr(edge_factors.double()).sum(-1).mean()
    return float(entropy) / math.log(factors)


def both_directions(edge_index: Tensor, edge_factors: Tensor) -> tuple[Tensor, Tensor]:
    """Average the two directions of every edge.

    Args:
        edge_index: Both directions of every edge, no self loops. Shape ``[2, E]``.
        edge_factors: Probabilities. Shape ``[E, M]``.

    Returns:
        Each edge once, smaller node first ``[2, E / 2]``, and its mean probabilities.
    """
    nodes = int(edge_index.max()) + 1 if edge_index.numel() else 0
    low, high = edge_index.aminmax(dim=0)
    key, edge = torch.unique(low * nodes + high, return_inverse=True)
    total = edge_factors.new_zeros(key.numel(), edge_factors.size(1))
    total.index_add_(0, edge, edge_factors)
    count = torch.bincount(edge, minlength=key.numel()).unsqueeze(1)
    pairs = torch.stack([key // max(nodes, 1), key % max(nodes, 1)])
    return pairs, total / count


def edge_attribution(edge_index: Tensor, edge_factors: Tensor, y_factor: Tensor) -> float | None:
    """Share of edges whose strongest channel is the factor that made them.

    Only edges that share the class of exactly one factor have a known maker. Channels carry no
    names, so they are matched to factors one to one in the way that scores best: with fewer
    channels than factors some factors have no channel.

    Args:
        edge_index: Both directions of every edge. Shape ``[2, E]``.
        edge_factors: Channel probabilities. Shape ``[E, M]``.
        y_factor: Class of every node in every true factor. Shape ``[N, F]``.

    Returns:
        Accuracy; ``None`` where no edge has exactly one true factor. Where factors make equally
        many edges, random channels reach about 1 / max(M, F), a single channel for all edges
        1 / F, and nothing more than min(M, F) / F.
    """
    (source, target), mean = both_directions(edge_index, edge_factors)
    shared = y_factor[source] == y_factor[target]  # [E / 2, F]
    single = shared.sum(1) == 1
    if not single.any():
        return None
    factor = shared[single].int().argmax(1)
    channel = mean[single].argmax(1)
    counts = torch.zeros(edge_factors.size(1), y_factor.size(1), dtype=torch.int64)
    counts.index_put_((channel.cpu(), factor.cpu()), torch.tensor(1), accumulate=True)
    rows, columns = linear_sum_assignment(counts.numpy(), maximize=True)
    return counts[rows, columns].sum().item() / single.sum().item()
