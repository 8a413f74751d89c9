"""The paper's synthetic graphs: a union of random graphs, one for every latent factor."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from lgdgcn.data.features import csr_tensor
from lgdgcn.data.splits import check_seed, fraction_split
from lgdgcn.errors import InputError
from lgdgcn.runtime import require_memory

__all__ = ["PAPER_P", "adjacency_rows", "solve_p", "synthetic_graph"]

PAPER_P = {4: 0.164, 6: 0.110, 8: 0.082, 10: 0.065, 12: 0.055}
"""Connection probability within a class for each number of factors, at 1,000 nodes."""

MAX_EDGES = 50_000_000


def synthetic_graph(
    factors: int = 4,
    nodes: int = 1000,
    classes: int = 16,
    p: float | None = None,
    q: float = 3e-5,
    average_degree: float | None = None,
    seed: int = 0,
) -> Data:
    """Generate a graph whose edges are explained by known latent factors.

    Every factor deals the nodes into classes of equal size at random and draws an
    Erdős–Rényi graph: a pair is connected with probability ``p`` inside a class and ``q``
    across classes. The result is the union of these graphs. The features of a node are its
    adjacency row; its labels are its class in every factor.

    Args:
        factors: Number of latent factors m.
        nodes: Number of nodes N.
        classes: Classes of each factor; sizes differ by at most one node.
        p: Connection probability within a class. By default the paper's value for 4, 6, 8, 10
            or 12 factors and at most 1,000 nodes, otherwise the value that gives an average
            degree of 40 (4 % of the nodes where there are fewer than 1,000).
        q: Connection probability across classes.
        average_degree: Solve for the ``p`` that gives this expected degree.
        seed: The same seed gives the same graph and the same 0.6/0.2/0.2 split.

    Returns:
        Data with sparse ``x`` [N, N], ``edge_index``, multi-hot ``y`` [N, m * classes],
        ``y_factor`` [N, m] and the three masks.

    Example:
        >>> data = synthetic_graph(factors=4, seed=1)
        >>> data.y_factor.shape, data.y.shape
        (torch.Size([1000, 4]), torch.Size([1000, 64]))
    """
    _check_sizes(factors, nodes, classes)
    _check_probability("q", q)
    labels_size = 12 * nodes * factors * classes  # as int64 and as float32
    require_memory(labels_size, "the labels of the graph", "lower nodes, factors or classes")
    if p is not None and average_degree is not None:
        raise InputError(
            "p and average_degree were both given; they determine each other: give one"
        )
    if p is None and average_degree is None and nodes <= 1000:
        p = PAPER_P.get(factors)
    if p is None:
        target = min(40.0, 0.04 * (nodes - 1)) if average_degree is None else average_degree
        p = solve_p(target, factors=factors, nodes=nodes, classes=classes, q=q)
    _check_probability("p", p)
    share = _share_of_pairs(nodes, classes)
    expected = factors * (share * p + (1 - share) * q) * math.comb(nodes, 2)
    if expected > MAX_EDGES:
        raise InputError(
            f"the graph would have about {expected:.3g} edges, more than {MAX_EDGES:.0e}; "
            "lower p, q or nodes, or give average_degree"
        )

    rng = np.random.default_rng(check_seed(seed))
    y_factor = np.stack([rng.permutation(np.arange(nodes) % classes) for _ in range(factors)], 1)
    pairs = np.concatenate([_factor_pairs(y_factor[:, f], p, q, rng) for f in range(factors)], 1)
    edge_index = to_undirected(torch.from_numpy(pairs), num_nodes=nodes)  # sorted, each edge once
    labels = torch.from_numpy(y_factor)
    train_mask, val_mask, test_mask = fraction_split(nodes, seed=int(rng.integers(2**31)))
    return Data(
        x=adjacency_rows(edge_index, nodes),
        edge_index=edge_index,
        y=torch.nn.functional.one_hot(labels, classes).flatten(1).float(),
        y_factor=labels,
        train_mask=train_mask,
        val_mask=val_mask,
        test_mask=test_mask,
        name="synthetic",
    )


def solve_p(
    average_degree: float, *, factors: int, nodes: int, classes: int = 16, q: float = 3e-5
) -> float:
    """Return the within-class probability p that gives an expected average degree.

    A pair is in the same class of a factor with a probability s that the class sizes fix, and
    the factors are independent, so the expected degree is
    (N - 1) (1 - (1 - s p - (1 - s) q)^m), which is solved for p.
    """
    if isinstance(average_degree, bool) or not isinstance(average_degree, (int, float)):
        raise InputError(f"average_degree is {average_degree!r}; give a number")
    share = _share_of_pairs(nodes, classes)

    def degree(p: float) -> float:
        return (nodes - 1) * float(1 - (1 - share * p - (1 - share) * q) ** factors)

    if not degree(0) <= average_degree <= degree(1):
        raise InputError(
            f"average_degree is {average_degree}, but {nodes} nodes with {factors} factors of "
            f"{classes} classes and q={q} allow {degree(0):.4g} to {degree(1):.4g}; "
            "choose one in this range, or change these numbers"
        )
    per_factor = 1 - (1 - average_degree / (nodes - 1)) ** (1 / factors)
    return float(min(max((per_factor - (1 - share) * q) / share, 0.0), 1.0))


def adjacency_rows(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Return the rows of the adjacency matrix as a sparse CSR tensor [N, N] of ones.

    Args:
        edge_index: Edges in both directions, sorted by source and target.
        num_nodes: Number of nodes N.
    """
    counts = torch.bincount(edge_index[0], minlength=num_nodes)
    crow = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    ones = torch.ones(edge_index.shape[1])
    size = (num_nodes, num_nodes)
    return csr_tensor(crow, edge_index[1], ones, size)


def _factor_pairs(labels: Any, p: float, q: float, rng: np.random.Generator) -> Any:
    """Draw the connected pairs of one factor [2, P]: p within its classes, q across them."""
    within = []
    for label in range(labels.max() + 1):
        members = np.flatnonzero(labels == label)
        within.append(members[_random_pairs(len(members), p, rng)])
    across = _random_pairs(len(labels), q, rng)
    across = across[:, labels[across[0]] != labels[across[1]]]
    return np.concatenate([*within, across], axis=1)


def _random_pairs(n: int, probability: float, rng: np.random.Generator) -> Any:
    """Draw each pair i < j of n items independently: time and memory follow the pairs drawn."""
    total = math.comb(n, 2)
    hits: list[Any] = []
    last = -1  # the pair hit last: gaps between hits of a Bernoulli sequence are geometric
    while probability > 0 and last < total:
        gaps = rng.geometric(probability, size=int((total - last) * probability * 1.1) + 16)
        found = last + np.cumsum(np.minimum(gaps, total + 1))
        hits.append(found[found < total])
        last = int(found[-1])
    code = np.concatenate(hits) if hits else np.empty(0, np.int64)
    j = ((1 + np.sqrt(1.0 + 8.0 * code)) / 2).astype(np.int64)  # pair code = j (j - 1) / 2 + i
    return np.stack([code - j * (j - 1) // 2, j])


def _share_of_pairs(nodes: int, classes: int) -> float:
    """Return the share of node pairs that are in the same class of one factor."""
    size, larger = divmod(nodes, classes)
    pairs = larger * math.comb(size + 1, 2) + (classes - larger) * math.comb(size, 2)
    return pairs / math.comb(nodes, 2)


def _check_sizes(factors: int, nodes: int, classes: int) -> None:
    _check_whole("factors", factors, 1, 256)
    _check_whole("nodes", nodes, 5, 1_000_000)
    _check_whole("classes", classes, 1, nodes // 2)


def _check_whole(key: str, value: int, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InputError(f"{key} is {value!r}; give a whole number from {low} to {high}")


def _check_probability(key: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise InputError(f"{key} is {value!r}; give a probability from 0 to 1")
