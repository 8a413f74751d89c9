"""The one form of a graph that the rest of the package relies on, and the checks that lead to it.

Everything a user hands over goes through :func:`canonical` once, on the CPU, before any model or
device sees it; code behind it never checks again.
"""

import hashlib
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch_geometric.data import Data

from lgdgcn.data.edge_types import canonical_edge_types
from lgdgcn.data.edges import node_numbers, undirected_edges
from lgdgcn.data.features import canonical_features, degree_features, sparse_features
from lgdgcn.data.labels import (
    SPLITS,
    canonical_labels,
    canonical_masks,
    check_trainable,
    is_labelled,
    stratified_split,
)
from lgdgcn.data.spectral import SPECTRAL_NAMES, spectral_features
from lgdgcn.errors import InputError, LGDWarning, UnlabelledError
from lgdgcn.progress import long_work

__all__ = ["canonical", "fingerprint", "with_features"]

MASKS = tuple(f"{split}_mask" for split in SPLITS)


def canonical(data: Data, require_labels: bool | None = None, *, listed_once: bool = False) -> Data:
    """Check a graph and return a new one in the form the package relies on.

    The input is never changed. Unlabelled nodes are taken out of all three masks without a
    message. Edge attributes other than ``edge_weight`` and ``edge_type`` are dropped with a
    warning.

    Args:
        data: Any graph with ``x`` and ``edge_index``; labels and splits as
            :func:`~lgdgcn.data.labels.canonical_labels` and
            :func:`~lgdgcn.data.labels.canonical_masks` accept them. Without any split the labelled
            nodes are split 60/20/20 by class, always the same way, with a warning.
        require_labels: ``True`` (training) refuses a graph without labels. ``None`` accepts it,
            but checks the labels if there are any. ``False`` (prediction) also accepts labels and
            splits too poor to train on, and makes no split.
        listed_once: Whether the edges are a list, which may name each of them in one direction;
            the graph then says so in an attribute of this name instead of a warning. Edges of
            which none is there in both directions are such a list anyway.

    Returns:
        A graph on the CPU with

        * ``x``: [N, d] float64 where it was float64, else float32 (also for half, bfloat16,
          integer and Boolean features); dense and contiguous, or sparse CSR if it was sparse;
        * ``edge_index``: int64 [2, E], both directions of each edge, sorted by source then target,
          no duplicates, no self loops;
        * ``edge_weight``: float32 [E] above 0, if there was one. That of an edge listed several
          times in one direction is the sum, that of both directions their mean;
        * ``edge_type``: uint8 0/1 [E, T], if there was one, equal in both directions; a row of
          zeros is a type not known; with the T names ``edge_type_names`` (see
          :func:`~lgdgcn.data.edge_types.canonical_edge_types`);
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
        given = values.pop("edge_index", None), values.pop("edge_weight", None)
        edge_index, edge_weight, one_way = undirected_edges(given[0], num_nodes, given[1])
        types = values.pop("edge_type", None), values.pop("edge_type_names", None)
        if types[0] is not None:
            types = canonical_edge_types(*types, given[0], edge_index, num_nodes)
    # a list that has no edge in both directions names each of them once, and means no direction
    listed_once = listed_once or one_way == edge_index.shape[1] // 2
    if one_way and not listed_once:
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
        raise UnlabelledError("y is missing or empty: training needs labels, at least two classes")

    graph = Data(x=x, edge_index=edge_index, y=y, classes=classes, **masks)
    if edge_weight is not None:
        graph.edge_weight = edge_weight
    if types[0] is not None:
        graph.edge_type, graph.edge_type_names = types
    if one_way and listed_once:
        graph.listed_once = True
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
    edge_index, *_ = undirected_edges(data.edge_index, num_nodes)
    if kind == "identity":
        x = sparse_features(scipy.sparse.identity(num_nodes, dtype=np.float32))
    elif kind == "spectral":
        x = spectral_features(edge_index, num_nodes)
    else:
        x = degree_features(edge_index, num_nodes)
    graph = Data(**data.to_dict())
    graph.x = x
    for key in ("feature_names", "encoding"):  # of columns that are no longer there
        if key in graph:
            del graph[key]
    if kind == "spectral":
        graph.feature_names = list(SPECTRAL_NAMES)
    return graph


def fingerprint(data: Data, edges: tuple[int, Iterable[Any]] | None = None) -> str:
    """The sha256 of what training depends on: features, edges, labels and masks.

    Args:
        data: A graph from :func:`canonical`; another form of the same graph has another hash.
        edges: Number of edges, and ``edge_index`` in pieces, of a graph that does not have it.
    """
    own: Callable[[], str] | None = data.get("own_fingerprint")
    if own is not None:  # of a graph that is not read whole
        return own()
    digest = hashlib.sha256()
    for key in ("x", "edge_index", "y", *MASKS, "edge_weight"):
        value = getattr(data, key, None)
        if key == "edge_index" and edges is not None:
            digest.update(f"{key} {np.dtype(np.int64).str} {(2, edges[0])}\n".encode())
            for piece in edges[1]:
                digest.update(piece.view(np.uint8).data)
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


def _count_nodes(data: Data) -> int:
    """N for a graph that may have no features."""
    values = data.to_dict()
    if values.get("num_nodes") is not None:
        return int(values["num_nodes"])
    for key in ("x", "y"):
        if values.get(key) is not None:
            shape = getattr(values[key], "shape", None)
            return len(values[key]) if shape is None else int(shape[0]) if len(shape) else 0
    edge_index = node_numbers(values.get("edge_index"))
    if not edge_index.numel():
        raise InputError("the graph has no nodes: no num_nodes, x, y or edges; set num_nodes")
    num_nodes = int(edge_index.max()) + 1
    if num_nodes > 10_000_000 and num_nodes > 100 * edge_index.shape[1]:
        raise InputError(
            f"edge_index names node {num_nodes - 1} in only {edge_index.shape[1]} edges; "
            "number the nodes from 0 without gaps, or set num_nodes"
        )
    return num_nodes
