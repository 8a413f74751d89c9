"""The one form of a graph that the rest of the package relies on, and the checks that lead to it.

Everything a user hands over goes through :func:`canonical` once, on the CPU, before any model or
device sees it; code behind it never checks again.
"""

import hashlib
import warnings
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.data.features import canonical_features, sparse_features
from lgdgcn.data.labels import (
    SPLITS,
    canonical_labels,
    canonical_masks,
    check_trainable,
    is_labelled,
    stratified_split,
)
from lgdgcn.data.spectral import SPECTRAL_NAMES, spectral_features
from lgdgcn.errors import InputError, LGDWarning
from lgdgcn.progress import long_work

__all__ = ["canonical", "fingerprint", "with_features"]

MASKS = tuple(f"{split}_mask" for split in SPLITS)
DEGREE_BUCKETS = 16  # fixed, so that a model trained on one graph fits another


def canonical(data: Data, require_labels: bool | None = None) -> Data:
    """Check a graph and return a new one in the form the package relies on.

    The input is never changed. Unlabelled nodes are taken out of all three masks without a
    message. Edge attributes are dropped with a warning: the model has no use for them.

    Args:
        data: Any graph with ``x`` and ``edge_index``; labels and splits as
            :func:`~lgdgcn.data.labels.canonical_labels` and
            :func:`~lgdgcn.data.labels.canonical_masks` accept them. Without any split the labelled
            nodes are split 60/20/20 by class, always the same way, with a warning.
        require_labels: ``True`` (training) refuses a graph without labels. ``None`` accepts it,
            but checks the labels if there are any. ``False`` (prediction) also accepts labels and
            splits too poor to train on, and makes no split.

    Returns:
        A graph on the CPU with

        * ``x``: [N, d] float64 where it was float64, else float32 (also for half, bfloat16,
          integer and Boolean features); dense and contiguous, or sparse CSR if it was sparse;
        * ``edge_index``: int64 [2, E], both directions of each edge, sorted by source then target,
          no duplicates, no self loops;
        * ``y``: int64 [N] in 0..C-1, -1 unlabelled; or float32 0/1 [N, L], NaN rows unlabelled;
        * ``classes``: the original label of each class or column (empty if there is no label);
        * ``train_mask``, ``val_mask``, ``test_mask``: bool [N], disjoint, labelled nodes only;

        and every other attribute as it was.

    Raises:
        InputError: The graph cannot be used; the message names the value found and the fix.
    """
    if not isinstance(data, Data):
        raise InputError(f"expected a torch_geometric.data.Data, found {type(data).__name__}")
    values = data.to_dict()
    x = canonical_features(values.pop("x", None))
    num_nodes = x.shape[0]
    declared = values.pop("num_nodes", None)
    if declared is not None and declared != num_nodes:
        raise InputError(f"num_nodes is {declared} but x has {num_nodes} rows; make them equal")
    with long_work("checking the edges"):
        edge_index, directed = _edges(values.pop("edge_index", None), num_nodes)
    if directed:
        warnings.warn("edge_index was directed: made undirected", LGDWarning, stacklevel=2)
    y, classes = canonical_labels(values.pop("y", None), num_nodes, values.pop("classes", None))
    labelled = is_labelled(y)
    masks = canonical_masks(values, num_nodes)
    if masks is None and require_labels is not False and labelled.any():
        warnings.warn(
            "no split was given: labelled nodes are split 60/20/20 by class", LGDWarning, 2
        )
        masks = stratified_split(y)
    if masks is None:
        masks = {name: torch.zeros(num_nodes, dtype=torch.bool) for name in MASKS}
    masks = {name: mask & labelled for name, mask in masks.items()}
    if labelled.any() and require_labels is not False:
        check_trainable(y, classes, masks)
    elif require_labels:
        raise InputError("y is missing or empty: training needs labels, at least two classes")

    graph = Data(x=x, edge_index=edge_index, y=y, classes=classes, **masks)
    handled = {*masks, *(f"{split}_idx" for split in SPLITS)}
    dropped = [key for key in values if "edge" in key or key.startswith("adj")]
    if dropped:
        warnings.warn(f"edge attributes are not used: {', '.join(dropped)}", LGDWarning, 2)
    for key, value in values.items():
        if key not in handled and key not in dropped:
            graph[key] = value
    return graph


def with_features(data: Data, kind: str) -> Data:
    """Give a graph without features some, made from its structure; replaces ``x`` if there is one.

    Args:
        data: A graph with ``edge_index``; N is ``num_nodes``, else the rows of x or y, else the
            largest edge id + 1.
        kind: ``"degree"``: log(1 + degree) and a one-hot bucket of its logarithm, dense [N, 17],
            the same for every graph. ``"identity"``: one column per node, sparse [N, N]; for this
            graph only. ``"spectral"``: see :func:`~lgdgcn.data.spectral.spectral_features`; for
            this graph only, too.

    Returns:
        A shallow copy of ``data`` with ``x``.
    """
    if kind not in ("spectral", "degree", "identity"):
        raise InputError(f"--features is {kind!r}; choose spectral, degree or identity")
    num_nodes = _count_nodes(data)
    if num_nodes < 1:
        raise InputError(f"the graph has {num_nodes} nodes; give at least one")
    edge_index, _ = _edges(data.edge_index, num_nodes)
    if kind == "identity":
        x = sparse_features(scipy.sparse.identity(num_nodes, dtype=np.float32))
    elif kind == "spectral":
        x = spectral_features(edge_index, num_nodes)
    else:
        degree = torch.bincount(edge_index[0], minlength=num_nodes).float()  # [N]
        bucket = degree.add(1).log2().floor().long().clamp(max=DEGREE_BUCKETS - 1)
        one_hot = torch.nn.functional.one_hot(bucket, DEGREE_BUCKETS).float()
        x = torch.cat([degree.log1p().unsqueeze(1), one_hot], dim=1)  # [N, 1 + buckets]
    graph = Data(**data.to_dict())
    graph.x = x
    for key in ("feature_names", "encoding"):  # of columns that are no longer there
        if key in graph:
            del graph[key]
    if kind == "spectral":
        graph.feature_names = list(SPECTRAL_NAMES)
    return graph


def fingerprint(data: Data) -> str:
    """The sha256 of what training depends on: features, edges, labels and masks.

    Args:
        data: A graph from :func:`canonical`; another form of the same graph has another hash.
    """
    digest = hashlib.sha256()
    for key in ("x", "edge_index", "y", *MASKS):
        value = getattr(data, key, None)
        if value is None:
            parts = []
        elif value.layout == torch.sparse_csr:
            parts = [value.crow_indices(), value.col_indices(), value.values()]
        else:
            parts = [value]
        for part in parts:
            array = np.ascontiguousarray(part.detach().cpu().numpy())
            digest.update(f"{key} {array.dtype.str} {array.shape}\n".encode())
            digest.update(array.reshape(-1).view(np.uint8).data)
    digest.update(repr(list(getattr(data, "classes", []))).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _edges(edge_index: Any, num_nodes: int) -> tuple[Tensor, bool]:
    """The edges in both directions, sorted and unique, and whether one direction was missing."""
    edge_index = _node_numbers(edge_index)
    outside = (edge_index < 0) | (edge_index >= num_nodes)
    if outside.any():
        limits = f"is outside 0..{num_nodes - 1} (the graph has {num_nodes} nodes)"
        _refuse_edge(edge_index, outside, limits)
    source, target = edge_index[:, edge_index[0] != edge_index[1]]
    forward = torch.unique(source * num_nodes + target)
    both = torch.unique(torch.cat([forward, target * num_nodes + source]))
    return torch.stack([both // num_nodes, both % num_nodes]), len(both) > len(forward)


def _node_numbers(edge_index: Any) -> Tensor:
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


def _count_nodes(data: Data) -> int:
    """N for a graph that may have no features."""
    values = data.to_dict()
    if values.get("num_nodes") is not None:
        return int(values["num_nodes"])
    for key in ("x", "y"):
        if values.get(key) is not None:
            shape = getattr(values[key], "shape", None)
            return len(values[key]) if shape is None else int(shape[0]) if len(shape) else 0
    edge_index = _node_numbers(values.get("edge_index"))
    if not edge_index.numel():
        raise InputError("the graph has no nodes: no num_nodes, x, y or edges; set num_nodes")
    num_nodes = int(edge_index.max()) + 1
    if num_nodes > 10_000_000 and num_nodes > 100 * edge_index.shape[1]:
        raise InputError(
            f"edge_index names node {num_nodes - 1} in only {edge_index.shape[1]} edges; "
            "number the nodes from 0 without gaps, or set num_nodes"
        )
    return num_nodes
