"""Propagated features of all nodes, computed once and read by the rows of a batch."""

import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from lgdgcn.data.node_arrays import new_array, node_array
from lgdgcn.large.rows import GraphRows
from lgdgcn.progress import Advance
from lgdgcn.runtime import available_memory

__all__ = ["HopTable", "hop_table", "left_variance", "row_ranges", "table_bytes", "table_folder"]

Array = np.ndarray[Any, Any]

_PROBES = 16  # random signs of a node
_ENTRIES = 1 << 20  # neighbours, and numbers of features, that are read at once
_IN_MEMORY = 1 << 29  # bytes; larger tables are mapped files, so that memory has a bound


@dataclass(frozen=True)
class HopTable:
    r"""The hops :math:`\hat{A}^k X` of every node's features, or one weighted sum of them.

    The hops of a node stand beside each other, so that reading them is one access to memory, or to
    the disk, instead of K + 1.

    Attributes:
        hops: ``[N, K + 1, F]``, of a sum ``[N, 1, F]``, in memory or in a mapped file.
    """

    hops: Tensor

    def rows(self, nodes: Tensor) -> Tensor:
        """All hops of some nodes ``[n, K + 1, F]``."""
        return self.hops[nodes]

    def spread(self, shares: Tensor) -> Tensor:
        """Standard deviation over the nodes of every feature's weighted sum of hops ``[F]``."""
        nodes, hops, features = self.hops.shape
        step = max(1, _ENTRIES // (hops * features))
        like = self.hops.new_ones(1, dtype=torch.float64)
        weights = shares.to(like) if hops > 1 else like
        total, square = (like.new_zeros(features) for _ in range(2))
        for chunk in torch.split(self.hops, step):
            sums = weights @ chunk.double()
            total += sums.sum(0)
            square += sums.square().sum(0)
        mean = total / nodes
        variance = (square / nodes - mean.square()).clamp_min(0)
        return torch.where(variance > 1e-14 * mean.square(), variance, 0).sqrt()


def table_bytes(graph: GraphRows, hops: int, summed: bool) -> int:
    """Size of a table with what is needed beside it while it is made: its hops by themselves."""
    matrices = min(3, hops + 2) if summed else (2 * hops + 2 if hops else 1)
    return graph.num_nodes * graph.num_features * graph.dtype.itemsize * matrices


def table_folder(size: int) -> Path | None:
    """Where tables of so many bytes are written; ``None`` if they are kept in memory."""
    fits = size < min(_IN_MEMORY, available_memory() / 4)
    return None if fits else Path(tempfile.gettempdir())


def hop_table(
    graph: GraphRows,
    hops: int,
    shares: Tensor | None = None,
    folder: Path | None = None,
    advance: Advance = lambda done, share: None,
) -> HopTable:
    """Propagate the features of all nodes, some rows at a time.

    Args:
        graph: The graph.
        hops: Number of hops K.
        shares: Weights of the hops ``[K + 1]``, if only their sum is wanted.
        folder: Where the matrices are written; in memory if ``None``. The files have no name, so
            they are gone when the table is.
        advance: Called with how many rows are done.
    """
    size = (graph.num_nodes, graph.num_features)
    cuts = row_ranges(graph.row_ptr.numpy(), graph.num_features)
    root = _roots(graph, cuts)
    weights = [] if shares is None else shares.tolist()
    total = None if shares is None else new_array(size, graph.dtype, folder)
    now, kept = new_array(size, graph.dtype, folder), []
    rounds = hops + 1 + (total is None and hops > 0)
    done, workers = 0, max(1, torch.get_num_threads())

    def each_range(work: Callable[[int, int], None]) -> None:
        """Let threads do some rows at a time."""
        nonlocal done
        with ThreadPoolExecutor(workers) as pool:
            for part in [pool.submit(work, low, high) for low, high in pairwise(cuts)]:
                part.result()
                done += 1
                advance(done, done / (rounds * (len(cuts) - 1)))

    def fill(low: int, high: int) -> None:
        """Find some rows of hop k."""
        if k == 0:
            rows = graph.features(torch.arange(low, high))
            now[low:high] = (rows.to_dense() if rows.layout != torch.strided else rows).numpy()
        else:
            now[low:high] = _next_hop(graph, root, low, high, before)
        if total is not None:
            total[low:high] += weights[k] * now[low:high]

    # 1. each hop by itself: neighbours are looked up in one and written to the next
    for k in range(hops + 1):
        before, now = now, now if k == 0 else new_array(size, graph.dtype, folder)
        each_range(fill)
        if total is None:
            kept.append(now)
    if total is not None or hops == 0:
        matrix = now if total is None else total
        return HopTable(torch.from_numpy(matrix).unsqueeze(1))
    # 2. the hops of a node beside each other, in one pass: a file is written to the disk once
    table = new_array((size[0], hops + 1, size[1]), graph.dtype, folder)

    def join(low: int, high: int) -> None:
        table[low:high] = np.stack([hop[low:high] for hop in kept], 1)

    each_range(join)
    return HopTable(torch.from_numpy(table))


def left_variance(graph: GraphRows, hops: int, folder: Path | None = None) -> Tensor:
    r"""How much of the variance of what is dropped the average over hops leaves, by node ``[N]``.

    What is dropped before it is propagated is averaged over the nodes that it reaches. A sum
    :math:`\sum_j P_{ij} x_j` of numbers that are alike and dropped independently varies
    :math:`\sum_j P_{ij}^2 / (\sum_j P_{ij})^2` times as much as if all were dropped together. P has
    equal weights of the hops; random signs z estimate the sum, as E (P z)_i^2 = sum_j P_ij^2.
    """
    generator = np.random.Generator(np.random.Philox(key=0))
    ranges = list(pairwise(row_ranges(graph.row_ptr.numpy(), 1 + _PROBES)))
    probes = node_array((graph.num_nodes, 1 + _PROBES), torch.int8)
    for low, high in ranges:
        signs = generator.integers(0, 2, (high - low, _PROBES), np.int8) * 2 - 1
        probes[low:high, 0] = 1
        probes[low:high, 1:] = torch.from_numpy(signs)
    like = replace(
        graph,
        features=lambda nodes: probes[nodes].to(graph.dtype),
        num_features=1 + _PROBES,
    )
    total = hop_table(like, hops, torch.ones(hops + 1), folder).hops[:, 0].numpy()
    share = node_array((graph.num_nodes,), graph.dtype).numpy()
    for low, high in ranges:
        square = np.square(total[low:high, 1:]).mean(1) / np.square(total[low:high, 0])
        share[low:high] = np.minimum(square, 1)
    return torch.from_numpy(share)


def _next_hop(graph: GraphRows, root: Array, low: int, high: int, now: Array) -> Array:
    row_ptr = graph.row_ptr[low : high + 1].numpy()
    entries = slice(row_ptr[0], row_ptr[-1])
    column = graph.column[entries].numpy()
    value = root[column]
    if graph.weight is not None:
        value = value * graph.weight[entries].numpy()
    parts = (value, column, (row_ptr - row_ptr[0]).astype(column.dtype))
    own = root[low:high, None]
    sums = csr_array(parts, shape=(high - low, len(root))) @ now
    after: Array = own * (sums + own * now[low:high])
    return after


def _roots(graph: GraphRows, cuts: list[int]) -> Array:
    """One over the root of every node's degree ``[N]``."""
    roots = node_array((graph.num_nodes,), graph.dtype)
    for low, high in pairwise(cuts):
        roots[low:high] = graph.degrees(torch.arange(low, high)).rsqrt()
    return roots.numpy()


def row_ranges(row_ptr: Array, features: int) -> list[int]:
    """Boundaries of ranges of rows with about as many neighbours and features each."""
    nodes = len(row_ptr) - 1
    goals = np.arange(_ENTRIES, max(int(row_ptr[-1]), nodes * features), _ENTRIES)
    # the first row before which there are so many neighbours, or so many features
    cuts = np.minimum(np.searchsorted(row_ptr, goals), -(-goals // max(1, features)))
    return sorted({0, *cuts.tolist(), nodes})
