"""A few edges whose types are shown, the others hidden."""

import numpy as np
import torch
from torch import Tensor

from lgdgcn.data.splits import check_seed
from lgdgcn.errors import InputError
from lgdgcn.reasons.edges import Edges

__all__ = ["shown_types"]


def shown_types(edge_index: Tensor, edge_type: Tensor, share: float, seed: int = 0) -> Tensor:
    """Hide all types but those of a share of the pairs with exactly one type.

    Which pairs are drawn depends on the seed and on which pairs have one type, not on which type
    that is.

    Args:
        edge_index: Both directions of each edge. Shape ``[2, E]``.
        edge_type: 0/1, equal in both directions. Shape ``[E, T]``.
        share: Share of the pairs with one type, 0 to 1, that is shown.
        seed: The same seed shows the same pairs.

    Returns:
        ``edge_type`` with the rows of hidden edges 0, equal in both directions. Shape ``[E, T]``.
    """
    if not 0 <= share <= 1:
        raise InputError(f"the share of shown types is {share}; give a number from 0 to 1")
    edges = Edges.of(edge_index)
    single = np.flatnonzero(edges.once(edge_type).sum(1) == 1)
    order = np.random.default_rng(check_seed(seed)).permutation(single)
    is_shown = np.zeros(len(edges), dtype=bool)
    is_shown[order[: round(share * len(single))]] = True
    return edge_type * torch.from_numpy(edges.both(is_shown))[:, None]
