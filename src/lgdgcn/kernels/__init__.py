"""Fast primitives behind one interface: the same signatures and results on every backend.

This file is the contract: one function per primitive, with its definition and its checks. The
backends are `reference` (plain torch, any device, meant to be read), `cpu` (numba) and `gpu`
(Triton). CPU tensors in float32 or float64 run on numba if it is installed, CUDA tensors in float32
on Triton if it is, everything else on plain torch; `dispatch` decides. The environment variable
`LGDGCN_BACKEND` (`torch`, `numba` or `triton`) overrides that choice.

R is the number of members: models that are trained at once, each with weights and hyper-parameters
of its own. N nodes, E edges, M factors, d numbers per factor, T iterations, k neighbours. Where a
shape begins with `*`, the axis of members may be missing.
"""

import torch
from torch import Tensor

from lgdgcn.errors import InputError
from lgdgcn.kernels.dispatch import backend
from lgdgcn.kernels.graph import Neighbours, UndirectedGraph, neighbours

__all__ = [
    "Neighbours",
    "UndirectedGraph",
    "adam",
    "aggregate",
    "covariance",
    "diversity_loss",
    "dropout",
    "edge_agreement",
    "matmul",
    "nearest",
    "neighbours",
    "propagate",
    "quadratic_forms",
    "renumber",
    "route",
    "row_sums",
    "sample",
    "square_distances",
    "sum_hops",
    "symmetrize",
    "transpose",
    "unit_length",
]


def route(
    z: Tensor,
    edge_index: Tensor,
    iterations: int = 7,
    tau: float | Tensor = 1.0,
    *,
    uniform_start: bool = False,
    normalize_last: bool = True,
) -> tuple[Tensor, Tensor]:
    """Neighbourhood routing: every edge distributes one unit of attention over the factors.

    Starting from c = z, each iteration sets p_e = softmax_m(<z[s, m], c[t, m]> / tau) on every edge
    e = (s, t), then c[t, m] = normalise(z[t, m] + sum_e p_e[m] z[s, m]). The zero vector
    normalises to itself and passes no gradient.

    Args:
        z: `[*, N, M, d]` one vector per node and factor; differentiable.
        edge_index: `[2, E]` source and target of every edge, counted as often as given.
        iterations: Number of iterations, at least 1.
        tau: Temperature of the softmax, above 0; a tensor has one for each member `[*]`.
        uniform_start: Use p = 1/M in the first iteration.
        normalize_last: Normalise the result of the last iteration too.

    Returns:
        The vectors c `[*, N, M, d]` and the last p `[*, E, M]` in the order of `edge_index`.

    Raises:
        InputError: If an argument is out of range.
    """
    if z.dim() not in (3, 4) or z.size(-2) < 1:
        raise InputError(f"z has shape {tuple(z.shape)}; it must be [*, N, M, d] with M >= 1")
    if iterations < 1:
        raise InputError(f"iterations is {iterations}; it must be at least 1")
    if not isinstance(tau, Tensor):
        if not tau > 0:
            raise InputError(f"tau is {tau}; it must be above 0")
        tau = torch.full(z.shape[:-3], tau, dtype=z.dtype, device=z.device)
    members = z if z.dim() == 4 else z.unsqueeze(0)
    units, probability = backend("route", z)(
        members, edge_index, iterations, tau.reshape(-1), uniform_start, normalize_last
    )
    return (units, probability) if z.dim() == 4 else (units.squeeze(0), probability.squeeze(0))


def edge_agreement(q: Tensor, edge_index: Tensor) -> Tensor:
    """Inner product of the vectors at the two ends of every edge.

    Args:
        q: `[*, N, D]` one vector per node; differentiable once.
        edge_index: `[2, E]` the ends of every edge, in any direction and as often as given.

    Returns:
        `[*, E]` in the order of `edge_index`.

    Raises:
        InputError: If an argument has another shape or an edge names a node that does not exist.

    Example:
        >>> q = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> edge_agreement(q, torch.tensor([[0, 1, 1], [1, 1, 0]]))
        tensor([11., 25., 11.])
    """
    if q.dim() not in (2, 3):
        raise InputError(f"q has shape {tuple(q.shape)}; it must be [*, N, D]")
    members = q if q.dim() == 3 else q.unsqueeze(0)
    out: Tensor = backend("edge_agreement", q)(members, edge_index)
    return out if q.dim() == 3 else out.squeeze(0)


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
    index, distance = backend("nearest", z)(z.detach(), k)
    return index, distance


def symmetrize(index: Tensor, keep: Tensor | None = None) -> UndirectedGraph:
    """Join i and j when either lists the other; node i of set b becomes node b*N + i.

    Args:
        index: `[B, N, k]` the points each point lists.
        keep: `[B, N, k]` which list entries count; all when None.

    Returns:
        The undirected graph over B*N nodes, without self loops or duplicates.
    """
    graph: UndirectedGraph = backend("symmetrize", index)(index, keep)
    return graph


def row_sums(weight: Tensor, row_ptr: Tensor) -> Tensor:
    """Sum the entries of every compressed row, `[nnz] -> [n]`; not differentiated."""
    sums: Tensor = backend("row_sums", weight)(weight.detach(), row_ptr)
    return sums


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
    out: Tensor = backend("aggregate", x)(x, row_ptr, source, *fixed)
    return out


def propagate(x: Tensor, row_ptr: Tensor, column: Tensor, value: Tensor, weights: Tensor) -> Tensor:
    """Average the hops of every set of rows: sum_k weights[b, k] A^k x[b], where A is symmetric.

    Args:
        x: `[B, N, C]` B sets of rows, such as the views of all members; differentiable.
        row_ptr: `[G, N+1]` row boundaries of A. Each of G matrices is for B / G sets in a row.
        column: `[G, nnz]` columns of A; one may stand in a row several times.
        value: `[G, nnz]` entries of A, the same in both directions.
        weights: `[B, K+1]` weights of hops 0 to K; differentiable.

    Returns:
        `[B, N, C]`.

    Raises:
        InputError: If the shapes do not fit.
    """
    sets, graphs = x.size(0), len(row_ptr)
    fits = x.dim() == 3 and row_ptr.size(-1) == x.size(1) + 1 and weights.dim() == 2
    if not fits or len(weights) != sets or weights.size(1) < 1:
        raise InputError(
            f"x has shape {tuple(x.shape)} and weights {tuple(weights.shape)}; they must be "
            f"[B, N, C] with N = {row_ptr.size(-1) - 1} and [B, K + 1]"
        )
    shapes = [tuple(part.shape) for part in (row_ptr, column, value)]
    if row_ptr.dim() != 2 or shapes[1] != (graphs, column.size(-1)) or shapes[2] != shapes[1]:
        raise InputError(
            f"row_ptr, column and value are {shapes}; they must be [G, N + 1] and [G, nnz]"
        )
    if graphs < 1 or sets % graphs:
        raise InputError(f"{graphs} matrices for {sets} sets; each must be for as many sets")
    out: Tensor = backend("propagate", x)(x, row_ptr, column, value.detach(), weights)
    return out


def unit_length(v: Tensor) -> Tensor:
    """Scale the last axis to Euclidean length 1; zero vectors stay zero, with zero gradient."""
    unit: Tensor = backend("unit_length", v)(v)
    return unit


def matmul(x: Tensor, weight: Tensor, values: Tensor | None = None) -> Tensor:
    """Multiply features by the weights of every member.

    Args:
        x: `[N, F]` dense or `torch.sparse_csr`, shared by all members and not differentiated; or
            `[*, N, F]` dense, one for each member.
        weight: `[*, F, H]`; differentiable.
        values: `[R, nnz]` the entries of a sparse `x`, if every member has its own.

    Returns:
        `[*, N, H]`.
    """
    if values is not None:
        own: Tensor = backend("matmul", weight)(x, weight, values)
        return own
    if x.layout == torch.sparse_coo:
        x = x.to_sparse_csr()
    if x.dim() == 3 or x.requires_grad:
        return x @ weight
    members = weight if weight.dim() == 3 else weight.unsqueeze(0)
    out: Tensor = backend("matmul", weight)(x, members)
    return out if weight.dim() == 3 else out.squeeze(0)


def sum_hops(x: Tensor, weights: Tensor) -> Tensor:
    """Sum the hops of every node with weights of its own: sum_k weights[s, i, k] x[i, k].

    Args:
        x: `[n, K+1, F]` hops of n nodes.
        weights: `[S, n, K+1]` weights of S sums of each; differentiable.

    Returns:
        `[S, n, F]`.

    Raises:
        InputError: If the shapes do not fit.
    """
    if x.dim() != 3 or weights.dim() != 3 or weights.shape[1:] != x.shape[:2] or not x.size(1):
        raise InputError(
            f"x has shape {tuple(x.shape)} and weights {tuple(weights.shape)}; they must be "
            "[n, K + 1, F] and [S, n, K + 1]"
        )
    summed: Tensor = backend("sum_hops", x)(x, weights)
    return summed


def dropout(x: Tensor, rate: Tensor, seed: Tensor, epoch: Tensor, call: int) -> Tensor:
    """Zero elements at random and scale up the others.

    An element's random number is a hash of its member's seed, the epoch, the call and its index in
    the member. It does not depend on the device, the backend or the other members.

    Args:
        x: `[R, ...]`; differentiable.
        rate: `[R]` probability to drop an element, in [0, 1).
        seed: `[R]` int64.
        epoch: `[R]` int64.
        call: Number of this call within the epoch.
    """
    out: Tensor = backend("dropout", x)(x, rate, seed, epoch, call)
    return out


def sample(row_ptr: Tensor, nodes: Tensor, fan_out: int, key: int) -> tuple[Tensor, Tensor]:
    """Draw neighbours of some nodes from compressed rows, without replacement.

    A row of at most `fan_out` entries is taken whole. Every subset of a longer one is as probable
    (Floyd's algorithm). Which one it is depends on the key and the number of the node, not on the
    device, the backend, the threads or the other nodes.

    Args:
        row_ptr: `[N+1]` int64 row boundaries of the graph.
        nodes: `[n]` int64.
        fan_out: Most entries of a row, 0 for all.
        key: Number of this drawing, 0 to 2^64 - 1.

    Returns:
        Boundaries `[n+1]` and the drawn entries of the graph's rows, ascending in each.

    Example:
        >>> ptr, entry = sample(torch.tensor([0, 2, 5]), torch.tensor([1, 0]), 2, key=7)
        >>> ptr.tolist(), sorted(entry[2:].tolist())
        ([0, 2, 4], [0, 1])
    """
    if not 0 <= key < 2**64 or fan_out < 0:
        raise InputError(f"fan_out is {fan_out}, key is {key}; both must be at least 0")
    drawn: tuple[Tensor, Tensor] = backend("sample", row_ptr)(row_ptr, nodes, fan_out, key)
    return drawn


def renumber(known: Tensor, more: Tensor) -> tuple[Tensor, Tensor]:
    """Number ids by their first appearance, those that are known before.

    Args:
        known: `[n]` int64, all different.
        more: `[m]` int64, in any order and as often as given.

    Returns:
        All different ids, the known ones first, and the position of each of `more` among them.

    Example:
        >>> renumber(torch.tensor([7, 3]), torch.tensor([3, 9, 9]))
        (tensor([7, 3, 9]), tensor([1, 2, 2]))
    """
    numbered: tuple[Tensor, Tensor] = backend("renumber", known)(known, more)
    return numbered


def transpose(row_ptr: Tensor, column: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """List the entries of a square matrix column by column.

    Args:
        row_ptr: `[n+1]` int64 row boundaries.
        column: `[nnz]` int64 columns.
        value: `[nnz]` entries.

    Returns:
        Boundaries of the columns `[n+1]`, and by column the rows and entries `[nnz]`; rows ascend.

    Example:
        >>> transpose(torch.tensor([0, 2, 3]), torch.tensor([1, 0, 1]), torch.tensor([5.0, 6, 7]))
        (tensor([0, 1, 3]), tensor([0, 0, 1]), tensor([6., 5., 7.]))
    """
    turned: tuple[Tensor, Tensor, Tensor] = backend("transpose", row_ptr)(row_ptr, column, value)
    return turned


def covariance(z: Tensor, centre: Tensor) -> Tensor:
    """Mean outer product of every factor's deviations from its centre; not differentiated.

    Args:
        z: `[*, N, M, d]` vectors.
        centre: `[*, M, d]`.

    Returns:
        `[*, M, d, d]`.
    """
    if z.dim() == 3:
        return covariance(z.unsqueeze(0), centre.unsqueeze(0)).squeeze(0)
    out: Tensor = backend("covariance", z)(z.detach(), centre.detach())
    return out


def quadratic_forms(z: Tensor, mean: Tensor, matrices: Tensor) -> Tensor:
    """Quadratic form v^T A v of every vector's deviation v from its own factor's mean.

    Args:
        z: `[*, N, M, d]` vectors; the only differentiable argument.
        mean: `[*, M, d]`.
        matrices: `[*, M, d, d]`, symmetric or not.

    Returns:
        `[*, N, M]`.
    """
    if z.dim() == 3:
        return quadratic_forms(z.unsqueeze(0), mean.unsqueeze(0), matrices.unsqueeze(0)).squeeze(0)
    out: Tensor = backend("quadratic_forms", z)(z, mean.detach(), matrices.detach())
    return out


def square_distances(z: Tensor, mean: Tensor, maps: Tensor) -> Tensor:
    """Squared length of A (z - mean), for every vector z and every mean with its matrix A.

    Args:
        z: `[*, N, M, d]` vectors; the only differentiable argument.
        mean: `[*, M, d]` means.
        maps: `[*, M, d, d]` one matrix per mean.

    Returns:
        `[*, N, M, M]`; the last axis is the mean.
    """
    if z.dim() == 3:
        return square_distances(z.unsqueeze(0), mean.unsqueeze(0), maps.unsqueeze(0)).squeeze(0)
    out: Tensor = backend("square_distances", z)(z, mean.detach(), maps.detach())
    return out


def diversity_loss(log_rows: Tensor, jitter: float) -> Tensor:
    """Negative log-determinant of the Gram matrix of unit-length rows given by their logarithms.

    Args:
        log_rows: `[..., M, M]` logarithms of rows of any positive length; differentiable.
        jitter: Multiple of the identity that is added to the Gram matrix before it is divided by
            1 + jitter, which keeps it positive definite with a diagonal of 1.

    Returns:
        `[...]`, at least 0.
    """
    size = log_rows.size(-1)
    loss: Tensor = backend("diversity_loss", log_rows)(log_rows.reshape(-1, size, size), jitter)
    return loss.view(log_rows.shape[:-2])


def adam(
    param: Tensor,
    grad: Tensor,
    mean: Tensor,
    square: Tensor,
    lr: Tensor,
    decay: Tensor,
    step: Tensor,
) -> None:
    """One step of Adam with L2 penalty on every member's parameter, in place.

    Args:
        param: `[R, ...]`.
        grad: `[R, ...]` gradient.
        mean: `[R, ...]` running mean of the gradient.
        square: `[R, ...]` running mean of its square.
        lr: `[R]` learning rates.
        decay: `[R]` L2 penalties.
        step: `[R]` number of this step, from 1.
    """
    backend("adam", param)(param, grad, mean, square, lr, decay, step)
