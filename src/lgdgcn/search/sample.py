"""What settings are tried on: a part of a large graph, several splits of one with few labels."""

import math
from copy import copy

import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.config import Settings
from lgdgcn.data.node_arrays import nodes_of
from lgdgcn.large.batch_input import lacks_table
from lgdgcn.large.neighbourhood import induced_edges, linked_sample, some_of
from lgdgcn.large.rows import GraphRows
from lgdgcn.train.memory import TooLargeError, check_memory
from lgdgcn.train.prepared import attach_edge_weights

__all__ = [
    "MOST_NODES",
    "is_for_graph",
    "is_searched_by_sample",
    "repeated_splits",
    "search_sample",
]

WHOLE = 20_000  # nodes of the largest graph that settings are tried on whole: some minutes
FEW = 300  # validation nodes; a score of fewer is drawn anew on other splits
MOST_SPLITS = 5
MOST_NODES = 10_000  # of a sample
_LABELLED = 2_000  # training nodes, and validation nodes, that it is drawn around, at most
_NEIGHBOURS = 200_000  # nodes whose latent neighbours are found within a minute or two


def is_searched_by_sample(graph: Data, settings: Settings) -> bool:
    """Whether settings are tried on a part of a graph: a large one, or one trained in batches."""
    return bool(settings.batch_size) or int(graph.num_nodes or 0) > WHOLE


def is_for_graph(graph: Data, settings: Settings, model: str, device: torch.device) -> bool:
    """Whether settings that do well on a sample can be used for the whole graph.

    Not if it has so many nodes that looking for latent neighbours would take longer than all the
    rest, if it does not fit into memory, or if batches lack a table that batch norm needs.
    """
    if settings.structure in ("global", "both") and int(graph.num_nodes or 0) > _NEIGHBOURS:
        return False
    if settings.batch_size:
        return not lacks_table(GraphRows.of(graph), settings)
    try:
        check_memory(graph, [settings], model, device)
    except TooLargeError:
        return False
    return True


def search_sample(graph: Data, seed: int = 0, most: int | None = None) -> Data:
    """Return labelled nodes with some neighbours of each and all edges between them.

    It is drawn around training nodes and validation nodes, all of them where they are few; labelled
    nodes among their neighbours keep their part in the split. Other nodes have no label in it. A
    graph that is no larger than a sample is returned as it is.

    Args:
        graph: A canonical graph, in memory or of mapped files.
        seed: Of the drawing.
        most: Nodes of the sample; :data:`MOST_NODES` if ``None``.
    """
    most = MOST_NODES if most is None else most
    if graph.num_nodes <= most and graph.edge_index is not None:
        return graph
    if graph.edge_index is not None:
        attach_edge_weights(graph)
    rows = GraphRows.of(graph)
    split = ("train_mask", "val_mask")
    labelled = min(_LABELLED, most // 4)
    first = torch.cat([some_of(nodes_of(graph[name]), labelled, seed).long() for name in split])
    nodes = linked_sample(rows, most, seed, first)
    edge_index, entry = induced_edges(rows, nodes)
    masks = {name: graph[name][nodes] for name in split}
    sample = Data(x=rows.features(nodes), edge_index=edge_index, classes=graph.classes, **masks)
    sample.y = _seen(graph.y[nodes], masks["train_mask"] | masks["val_mask"])
    sample.test_mask = torch.zeros_like(masks["train_mask"])
    if rows.weight is not None:
        sample.edge_weight = rows.weight[entry]
    if "edge_reasons" in graph:
        sample.edge_reasons = graph.edge_reasons[entry]
    return sample


def _seen(y: Tensor, mask: Tensor) -> Tensor:
    """Labels, or label sets, of some nodes; the others' are unknown."""
    unknown = torch.nan if y.is_floating_point() else -1
    return y.where(mask.view(-1, *[1] * (y.dim() - 1)), unknown)


def repeated_splits(graph: Data, seed: int = 0) -> list[Data]:
    """Return a graph with its own split and, where it has few validation nodes, with others.

    There are as many as make :data:`FEW` validation nodes together, at most :data:`MOST_SPLITS` and
    no more than :data:`WHOLE` nodes in all. The others part the training and validation nodes
    anew, of every class as many to each as in the graph's own split. No test node is among them.

    Args:
        graph: A canonical graph in memory.
        seed: Of the first new split; others have the next ones.
    """
    judged, nodes = int(graph.val_mask.sum()), int(graph.num_nodes or 1)
    count = min(MOST_SPLITS, math.ceil(FEW / max(1, judged)), max(1, WHOLE // nodes))
    return [graph, *(_split_anew(graph, seed + i) for i in range(1, count))]


def _split_anew(graph: Data, seed: int) -> Data:
    """Draw which of the training and validation nodes are trained on, class by class."""
    both = graph.train_mask | graph.val_mask
    # label sets are one stratum: too few nodes have the same one
    stratum = graph.y if graph.y.dim() == 1 else torch.zeros(len(both), dtype=torch.long)
    generator = torch.Generator().manual_seed(seed)
    train = torch.zeros_like(both)
    for label in stratum[both].unique():
        nodes = (both & (stratum == label)).nonzero().flatten()
        trained = int(graph.train_mask[nodes].sum())
        train[nodes[torch.randperm(len(nodes), generator=generator)[:trained]]] = True
    other = copy(graph)
    other.train_mask, other.val_mask = train, both & ~train
    return other
