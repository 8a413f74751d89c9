"""Reasons of the edges of a graph in canonical form, with all that the graph knows of them."""

import warnings

import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.data.source import GraphSource
from lgdgcn.data.spectral import SPECTRAL_NAMES
from lgdgcn.errors import InputError
from lgdgcn.reasons.agreement_columns import node_columns
from lgdgcn.reasons.edge_reasons import EdgeReasons
from lgdgcn.reasons.edges import Edges
from lgdgcn.reasons.fit import fit_edges, known_labels
from lgdgcn.reasons.structure import Structure, describe_edges
from lgdgcn.runtime import check_cpu

__all__ = [
    "check_edges_device",
    "describe_graph",
    "fit_graph",
    "known_types",
    "load_edges",
    "seen_labels",
]


def check_edges_device(device: str) -> None:
    """Refuse a device that has no part in the reasons of edges."""
    check_cpu(device, "reasons of edges are computed")


def load_edges(source: GraphSource) -> Data:
    """Read a graph for its edges; it may lack labels, features and a split."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* has no features: they are made")
        return source.load(require_labels=False)


def describe_graph(data: Data, count: int, seed: int = 0) -> Structure:
    """Find what a graph says about its edges, for one or more fits to shown types.

    Features that were made from the structure are left out: the model sees the structure itself.

    Args:
        data: A graph from :func:`~lgdgcn.data.validate.canonical`.
        count: Number of types.
        seed: Of all random choices.
    """
    made = data.get("feature_names") == SPECTRAL_NAMES
    return describe_edges(
        Edges.of_graph(data),
        count,
        x=None if made else _matrix(data.x),
        labels=known_labels(seen_labels(data), data.x.size(0)),
        columns=node_columns(data),
        seed=seed,
    )


def fit_graph(
    data: Data,
    *,
    shown: Tensor | None = None,
    num_factors: int | None = None,
    structure: Structure | None = None,
    seed: int = 0,
) -> EdgeReasons:
    """Find the reasons of a graph's edges; where types of some are known, the types of all.

    Args:
        data: A graph from :func:`~lgdgcn.data.validate.canonical`.
        shown: The types to learn from ``[E, T]``; all that are known by default.
        num_factors: Number of reasons where no type is known; by default held-out edges decide.
        structure: From :func:`describe_graph`, so that fits to different types share it.
        seed: Of all random choices.
    """
    types = known_types(data) if shown is None else shown
    if types is not None and structure is None and num_factors is None:
        structure = describe_graph(data, types.size(1), seed)
    return fit_edges(
        data.edge_index,
        data.x.size(0),
        y=seen_labels(data),
        shown=types,
        type_names=None if types is None else data.edge_type_names,
        num_factors=num_factors,
        structure=structure,
        columns=() if types is not None else node_columns(data),
        seed=seed,
    )


def known_types(data: Data) -> Tensor | None:
    """The types of a canonical graph's edges, 0/1 ``[E, T]``; None where none is known.

    Raises:
        InputError: All known types are the same one.
    """
    types: Tensor | None = data.get("edge_type")
    if types is None or not bool(types.any()):
        return None
    occurring = types.any(0).nonzero().flatten().tolist()
    if len(occurring) < 2:
        name = str(data.edge_type_names[occurring[0]])[:50]
        raise InputError(
            f"{name!r} is the only known type of edges: give some edges another type, or no edge "
            "any to find reasons"
        )
    return types


def seen_labels(data: Data) -> Tensor | None:
    """Labels without those of validation and test nodes, which must not decide anything."""
    y: Tensor | None = data.get("y")
    if y is None or y.ndim != 1:
        return y
    return y.masked_fill(data.val_mask | data.test_mask, -1)


def _matrix(x: Tensor) -> object:
    """Features as an array or, where they are sparse, as a matrix of scipy."""
    if x.layout != torch.sparse_csr:
        return x
    parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    return scipy.sparse.csr_matrix(parts, tuple(x.shape))
