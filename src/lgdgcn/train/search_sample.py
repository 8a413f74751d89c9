"""A part of a large graph that settings are tried on before all of it is trained on."""

import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.config import Settings
from lgdgcn.train.graph_rows import GraphRows
from lgdgcn.train.neighbourhood import induced_edges, linked_sample, some_of
from lgdgcn.train.trained import attach_edge_weights

__all__ = ["MOST_NODES", "is_searched_by_sample", "search_sample"]

WHOLE = 50_000  # nodes of the largest graph that settings are tried on whole: some minutes
MOST_NODES = 10_000  # of a sample
_LABELLED = 4_000  # training and validation nodes that it is drawn around, at most


def is_searched_by_sample(graph: Data, settings: Settings) -> bool:
    """Whether settings are tried on a part of a graph: a large one, or one trained in batches."""
    return bool(settings.batch_size) or int(graph.num_nodes or 0) > WHOLE


def search_sample(graph: Data, seed: int = 0) -> Data:
    """Return labelled nodes with some neighbours of each and all edges between them.

    Training and validation nodes are drawn in the proportion in which the graph has them; labelled
    nodes among their neighbours keep their part in the split. The labels of test nodes are left
    out. A graph that is no larger than a sample is returned as it is.

    Args:
        graph: A canonical graph, in memory or of mapped files.
        seed: Of the drawing.
    """
    if graph.num_nodes <= MOST_NODES and graph.edge_index is not None:
        return graph
    if graph.edge_index is not None:
        attach_edge_weights(graph)
    rows = GraphRows.of(graph)
    first = _labelled(graph, seed)
    nodes = linked_sample(rows.row_ptr, rows.column, MOST_NODES, seed, first)
    edge_index, entry = induced_edges(rows.row_ptr, rows.column, nodes)
    split = {name: graph[name][nodes] for name in ("train_mask", "val_mask")}
    sample = Data(
        x=rows.features(nodes), edge_index=edge_index, y=graph.y[nodes], classes=graph.classes
    )
    sample.update({**split, "test_mask": torch.zeros_like(split["train_mask"])})
    if rows.weight is not None:
        sample.edge_weight = rows.weight[entry]
    return sample


def _labelled(graph: Data, seed: int) -> Tensor:
    """Training and validation nodes, some of each if they are many, in random order."""
    both = [graph[name].nonzero().squeeze(1) for name in ("train_mask", "val_mask")]
    share = min(1.0, _LABELLED / max(1, sum(map(len, both))))
    drawn = torch.cat([some_of(nodes, -int(-len(nodes) * share // 1), seed) for nodes in both])
    order = torch.randperm(len(drawn), generator=torch.Generator().manual_seed(seed))
    return drawn[order]
