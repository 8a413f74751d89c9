"""Feature matrices, dense or sparse."""

import torch
from torch import Tensor

__all__ = ["row_normalized"]


def row_normalized(x: Tensor) -> Tensor:
    """Scale every row to absolute sum 1; zero rows stay zero and sparse matrices stay sparse.

    Example:
        >>> row_normalized(torch.tensor([[1.0, 3.0], [0.0, 0.0]])).tolist()
        [[0.25, 0.75], [0.0, 0.0]]
    """
    if x.layout != torch.sparse_csr:
        total = x.abs().sum(1, keepdim=True)
        return x / torch.where(total > 0, total, 1)
    row = torch.repeat_interleave(x.crow_indices().diff())
    total = x.values().new_zeros(x.size(0)).index_add(0, row, x.values().abs())
    values = x.values() / torch.where(total > 0, total, 1)[row]
    return torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), values, x.shape)
