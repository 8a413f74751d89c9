"""Feature matrices: the forms they may come in, and the two they are kept in."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from lgdgcn.errors import InputError

__all__ = [
    "canonical_features",
    "csr_tensor",
    "degree_features",
    "features_without_edges",
    "row_normalized",
    "select_columns",
    "sparse_features",
    "sparse_if_mostly_zero",
]

_SPARSE = 0.1  # share of entries that are not 0, below which sparse products are faster
_DEGREE_BUCKETS = 16  # fixed, so that a model trained on one graph fits another
_LARGE = 100_000  # entries of a matrix for which that matters

WAY_OUT = (
    "use --features spectral, --features degree or --features identity (Python: with_features)"
)


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
    return csr_tensor(x.crow_indices(), x.col_indices(), values, (x.size(0), x.size(1)))


def select_columns(x: Tensor, columns: Sequence[int]) -> Tensor:
    """The given columns in the given order; sparse matrices stay sparse.

    Example:
        >>> select_columns(torch.tensor([[1.0, 3.0, 5.0]]), [2, 0]).tolist()
        [[5.0, 1.0]]
    """
    if x.layout != torch.sparse_csr:
        return x[:, torch.tensor(columns)]
    parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    return sparse_features(scipy.sparse.csr_matrix(parts, shape=x.shape)[:, columns])


def features_without_edges(x: Tensor, edge_index: Tensor, held: Tensor) -> Tensor:
    """Take edges out of features that are rows of the adjacency matrix, or degrees.

    Other features stay as they are.

    Args:
        x: Features, dense or sparse. Shape ``[N, F]``.
        edge_index: All edges of a canonical graph. Shape ``[2, E]``.
        held: The edges to take out, in both directions. Shape ``[2, h]``.

    Example:
        >>> pair = torch.tensor([[0, 1], [1, 0]])
        >>> features_without_edges(torch.tensor([[0.0, 3.0], [3.0, 0.0]]), pair, pair).tolist()
        [[0.0, 0.0], [0.0, 0.0]]
    """
    nodes = x.size(0)
    if x.size(1) != nodes:
        return _degrees_without_edges(x, edge_index, held)
    is_sparse = x.layout == torch.sparse_csr
    if is_sparse:
        row, column = torch.repeat_interleave(x.crow_indices().diff()), x.col_indices()
    else:
        row, column = x.nonzero().t()
    entry, off_diagonal = row * nodes + column, row != column
    edges = edge_index[0] * nodes + edge_index[1]  # sorted, as entries are
    if not torch.equal(entry[off_diagonal], edges):
        return x
    if is_sparse:
        values = x.values().masked_fill(torch.isin(entry, held[0] * nodes + held[1]), 0)
        return csr_tensor(x.crow_indices(), column, values, (nodes, nodes))
    return x.index_put((held[0], held[1]), x.new_zeros(()))


def degree_features(edge_index: Tensor, num_nodes: int) -> Tensor:
    """log(1 + degree) and a one-hot bucket of its logarithm ``[N, 17]``."""
    degree = torch.bincount(edge_index[0], minlength=num_nodes).float()  # [N]
    bucket = degree.add(1).log2().floor().long().clamp(max=_DEGREE_BUCKETS - 1)
    one_hot = torch.nn.functional.one_hot(bucket, _DEGREE_BUCKETS).float()
    return torch.cat([degree.log1p().unsqueeze(1), one_hot], dim=1)


def _degrees_without_edges(x: Tensor, edge_index: Tensor, held: Tensor) -> Tensor:
    nodes = x.size(0)
    if x.layout != torch.strided or x.size(1) != 1 + _DEGREE_BUCKETS:
        return x
    if not torch.equal(x.float(), degree_features(edge_index, nodes)):
        return x
    gone = torch.isin(edge_index[0] * nodes + edge_index[1], held[0] * nodes + held[1])
    return degree_features(edge_index[:, ~gone], nodes).to(x.dtype)


def canonical_features(x: Any) -> Tensor:
    """``x`` checked and copied: dense or CSR, float32 or float64, finite, N ≥ 1 and d ≥ 1."""
    if x is None:
        raise InputError(f"x is missing: the graph has no features; {WAY_OUT}")
    if hasattr(x, "to_torch_sparse_csr_tensor"):  # torch_sparse.SparseTensor
        x = x.to_torch_sparse_csr_tensor()
    sparse = scipy.sparse.issparse(x) or (isinstance(x, Tensor) and x.layout != torch.strided)
    try:
        if not (sparse or isinstance(x, Tensor)):
            x = np.asarray(x)
        _check_shape(list(x.shape))
        return sparse_features(x) if sparse else _dense_features(x)
    except InputError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"x cannot be read as a matrix ({reason}); give numbers [N, d]") from None


def _check_shape(shape: list[int]) -> None:
    if len(shape) != 2:
        raise InputError(f"x has shape {shape}; give [N, d], one row of features per node")
    if shape[0] == 0:
        raise InputError(f"x has shape {shape}: the graph has no nodes; give at least one")
    if shape[1] == 0:
        raise InputError(f"x has shape {shape}: the graph has no features; {WAY_OUT}")


def _dense_features(x: Any) -> Tensor:
    """A tensor or array as a new contiguous tensor."""
    if not isinstance(x, Tensor):
        x = torch.from_numpy(np.array(x, dtype=_numpy_type(x.dtype), order="C"))
    x = x.detach().cpu()
    dense = x.to(_float_type(x.dtype)).clone(memory_format=torch.contiguous_format)
    bad = ~torch.isfinite(dense)
    if bad.any():
        row, column = (int(i) for i in bad.nonzero()[0])
        _refuse_values(int(bad.sum()), row, column, float(dense[row, column]))
    return torch.as_tensor(dense)


def sparse_features(x: Any) -> Tensor:
    """Through scipy, whose checks and clean-up never make the matrix dense."""
    if isinstance(x, Tensor):
        x = x.detach().cpu()
        if x.layout != torch.sparse_csr:
            x = x.to_sparse_coo().coalesce()
        values = x.values().to(_float_type(x.dtype)).numpy()
        if x.layout == torch.sparse_csr:
            parts = (values, x.col_indices().numpy(), x.crow_indices().numpy())
            matrix = scipy.sparse.csr_matrix(parts, shape=x.shape, copy=True)
        else:
            row, column = x.indices().numpy()
            matrix = scipy.sparse.csr_matrix((values, (row, column)), shape=x.shape)
    else:
        matrix = scipy.sparse.csr_matrix(x.astype(_numpy_type(x.dtype)), copy=True)
    matrix.check_format(full_check=True)
    matrix.sum_duplicates()
    bad = ~np.isfinite(matrix.data)
    if bad.any():
        first = int(bad.argmax())
        row = int(np.searchsorted(matrix.indptr, first, side="right")) - 1
        _refuse_values(int(bad.sum()), row, int(matrix.indices[first]), float(matrix.data[first]))
    matrix.eliminate_zeros()
    rows, columns = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
    row_ptr, column = torch.from_numpy(rows), torch.from_numpy(columns)
    return csr_tensor(row_ptr, column, torch.from_numpy(matrix.data.copy()), matrix.shape)


def sparse_if_mostly_zero(x: Tensor) -> Tensor:
    """Return a large matrix that is mostly 0, such as counts of words, as a sparse one.

    The same numbers, but a product with 1 % of them takes a twentieth of the time.
    """
    if x.layout != torch.strided or x.numel() < _LARGE:
        return x
    if int(x.count_nonzero()) > _SPARSE * x.numel():
        return x
    return sparse_features(scipy.sparse.csr_matrix(x.numpy()))


def csr_tensor(row_ptr: Tensor, column: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """A checked sparse CSR tensor, without torch's note that the layout is in beta state."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(row_ptr, column, values, shape, check_invariants=True)


def _float_type(dtype: torch.dtype) -> torch.dtype:
    if dtype.is_complex:
        raise InputError(f"x has type {dtype}; give real numbers")
    return torch.float64 if dtype == torch.float64 else torch.float32


def _numpy_type(dtype: np.dtype[Any]) -> type[np.floating[Any]]:
    if dtype.kind not in "biuf":
        raise InputError(f"x has type {dtype}; give real numbers")
    return np.float64 if dtype.kind == "f" and dtype.itemsize >= 8 else np.float32


def _refuse_values(count: int, row: int, column: int, value: float) -> None:
    raise InputError(
        f"x has {count} values that are NaN or infinite, the first is {value} at row {row}, "
        f"column {column}; replace or remove them"
    )
