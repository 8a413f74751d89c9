"""The nodes that every node is most alike, exactly, or of very many nodes by an index."""

import importlib.util
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lgdgcn import kernels
from lgdgcn.errors import InputError, LGDNote
from lgdgcn.large.hop_table import table_folder
from lgdgcn.large.scratch import matrix_maker
from lgdgcn.progress import long_work
from lgdgcn.train.ranks import Ranks

__all__ = ["check_index", "latent_neighbours", "recall"]

EXACT_ROWS = 10_000_000  # up to so many nodes, all pairs that may be near are compared
_LISTS = 4  # times the root of the nodes: parts that an index deals them to
_PROBED = 64  # parts that a node is looked for in
_TRAINED = 64  # nodes for each part, which decide where the parts are
_ROWS = 1 << 16  # nodes that are looked for at once
_MEASURED = 200  # nodes whose neighbours are also found exactly


def check_index(nodes: int) -> None:
    """Refuse more nodes than are compared with each other where no index is installed."""
    if nodes > EXACT_ROWS and importlib.util.find_spec("faiss") is None:
        raise InputError(
            f"latent neighbours of {nodes:,} nodes need faiss: pip install 'lgdgcn[ann]', or set "
            "structure to local or none"
        )


def latent_neighbours(
    hidden: Tensor, k: int, device: torch.device, *, tells: bool = True
) -> Tensor:
    """Return the k nearest other nodes of every node, itself where fewer were found ``[N, k]``.

    Before the work that leads here, :func:`check_index` says whether it can be done.

    Args:
        hidden: What nodes are alike in, in memory or in a mapped file ``[N, C]``.
        k: Number of neighbours, 1 to N - 1.
        device: Where they are compared.
        tells: Whether it is said how many of the nearest an index finds.
    """
    if len(hidden) <= EXACT_ROWS:
        with long_work("looking for neighbours"):
            found, _ = kernels.nearest(hidden.to(device).unsqueeze(0), k)
        return found.squeeze(0).cpu()
    found = _by_index(hidden, k)
    if tells and Ranks.current().is_first:
        warnings.warn(
            f"faiss finds {recall(hidden, found):.1%} of the {k} nearest neighbours of "
            f"{len(hidden):,} nodes (measured on {_MEASURED})",
            LGDNote,
            stacklevel=2,
        )
    return found


def _by_index(hidden: Tensor, k: int) -> Tensor:
    """Search the parts of an index that are nearest to each node ``[N, k]``."""
    import faiss

    nodes, width = hidden.shape
    lists = max(1, min(int(_LISTS * nodes**0.5), nodes // _TRAINED))
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(width), width, lists)
    index.nprobe = min(lists, _PROBED)
    index.train(_points(hidden[:: max(1, nodes // (_TRAINED * lists))]))
    for low in range(0, nodes, _ROWS):
        index.add(_points(hidden[low : low + _ROWS]))
    kind = torch.int32 if nodes < 2**31 else torch.int64
    folder = table_folder(nodes * k * kind.itemsize)
    found = matrix_maker((nodes, k), kind, folder)()
    with long_work("looking for neighbours", "nodes") as advance:
        for low in range(0, nodes, _ROWS):
            high = min(nodes, low + _ROWS)
            _, near = index.search(_points(hidden[low:high]), k + 1)
            own = np.arange(low, high)[:, None]
            # itself behind all others, which it stands for where there are too few
            near = np.where(near < 0, own, near)
            order = np.argsort(near == own, axis=1, kind="stable")
            found[low:high] = np.take_along_axis(near, order, 1)[:, :k]
            advance(high, high / nodes)
    return torch.from_numpy(found)


def _points(rows: Tensor) -> "np.ndarray[Any, np.dtype[np.float32]]":
    """Rows as faiss reads them."""
    return np.ascontiguousarray(rows.numpy(), np.float32)


def recall(hidden: Tensor, found: Tensor) -> float:
    """Share of the nearest neighbours that were found, measured on some nodes.

    A node counts that is as near as the k-th nearest: of equally distant ones any may be found.

    Args:
        hidden: What nodes are alike in ``[N, C]``.
        found: The neighbours ``[N, k]``.
    """
    some = torch.arange(0, len(hidden), max(1, len(hidden) // _MEASURED))[:_MEASURED]
    points, k = hidden[some].double(), found.size(1)
    nearest = torch.full((len(some), k), torch.inf, dtype=torch.float64)
    for low, distance in _distances(points, hidden):
        inside = (some >= low) & (some < low + distance.size(1))
        distance[inside, some[inside] - low] = torch.inf  # itself
        both = torch.cat([nearest, distance], 1)
        nearest = both.topk(k, largest=False).values
    own = found[some].long()
    distance = (hidden[own].double() - points.unsqueeze(1)).square().sum(-1)
    near = (distance <= nearest[:, -1:] * (1 + 1e-6) + 1e-12) & (own != some.unsqueeze(1))
    return float(near.double().mean())


def _distances(points: Tensor, hidden: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Squared distances of some points to all, some of these at a time."""
    for low in range(0, len(hidden), _ROWS):
        block = hidden[low : low + _ROWS].double()
        square = points.square().sum(1, keepdim=True) + block.square().sum(1)
        yield low, (square - 2 * points @ block.T).clamp_min(0)
