"""A sparse graph of any size whose units form clusters: planted classes with words of their own."""

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

from lgdgcn.data.features import csr_tensor

__all__ = ["clustered_graph"]

FEATURES, CLASSES, WORDS = 500, 7, 20
SAME_CLASS, OWN_WORDS = 0.8, 0.8  # share of edges within a class, of words from its vocabulary

Array = npt.NDArray[np.int64]


def clustered_graph(nodes: int, degree: int = 4, seed: int = 0) -> Data:
    """Draw a canonical graph of seven classes with bags of 20 words out of 500.

    Args:
        nodes: Number of nodes N.
        degree: Neighbours per node, on average; N * degree columns of ``edge_index`` before
            duplicates and self loops go.
        seed: Seed of everything drawn.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(CLASSES, size=nodes)
    row_ptr = torch.arange(0, nodes * WORDS + 1, WORDS)
    ones = torch.ones(nodes * WORDS)
    x = csr_tensor(row_ptr, torch.from_numpy(_words(rng, y)).flatten(), ones, (nodes, FEATURES))
    data = Data(x=x, edge_index=torch.from_numpy(_edges(rng, y, degree)), y=torch.from_numpy(y))
    order = torch.from_numpy(rng.permutation(nodes))
    train, val = min(20 * CLASSES, nodes // 4), min(500, nodes // 4)
    parts = (order[:train], order[train : train + val], order[train + val :])
    for name, part in zip(("train_mask", "val_mask", "test_mask"), parts, strict=True):
        data[name] = torch.zeros(nodes, dtype=torch.bool).index_fill_(0, part, True)
    data.name = str(nodes)
    data.classes = list(range(CLASSES))
    return data


def _words(rng: np.random.Generator, y: Array) -> Array:
    """Distinct ascending words ``[N, 20]``, mostly from the vocabulary of the node's class.

    One word is drawn from each of 20 equal shares of the vocabulary; word w belongs to class
    w mod 7.
    """
    share = FEATURES // WORDS
    drawn = rng.integers(share, size=(len(y), WORDS))
    start = np.arange(WORDS) * share
    offset = (y[:, None] - start) % CLASSES  # the first word of the class in every share
    count = (share - 1 - offset) // CLASSES + 1
    own = offset + drawn % count * CLASSES
    return start + np.where(rng.random(drawn.shape) < OWN_WORDS, own, drawn)


def _edges(rng: np.random.Generator, y: Array, degree: int) -> Array:
    """Both directions of N * degree / 2 drawn edges, sorted by source, without duplicates."""
    nodes = len(y)
    a = rng.integers(nodes, size=nodes * degree // 2)
    members = np.argsort(y, kind="stable")
    size = np.bincount(y, minlength=CLASSES)
    start = size.cumsum() - size
    mate = members[start[y[a]] + (rng.random(len(a)) * size[y[a]]).astype(np.int64)]
    b = np.where(rng.random(len(a)) < SAME_CLASS, mate, rng.integers(nodes, size=len(a)))
    a, b = a[a != b], b[a != b]
    pair = np.unique(np.concatenate([a * nodes + b, b * nodes + a]))
    return np.stack([pair // nodes, pair % nodes])
