"""Which nodes of a graph a model is scored on, and their labels in the model's own numbers."""

import warnings
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.data.labels import is_labelled
from lgdgcn.data.validate import fingerprint
from lgdgcn.errors import InputError, LGDWarning
from lgdgcn.train.trained import TrainedModel

__all__ = ["renumbered", "unseen_nodes"]


def unseen_nodes(graph: Data, truth: Tensor, fitted: Data | None) -> Tensor:
    """Choose the nodes to score: test nodes, or else labelled ones that the fit has not used.

    Args:
        graph: The canonical graph that is scored.
        truth: Its labels, numbered as the model's are.
        fitted: The canonical graph that the model was fitted on, where that is known.

    Returns:
        bool ``[N]``.
    """
    named = graph.train_mask | graph.val_mask
    if fitted is not None:
        used = fitted.train_mask | fitted.val_mask
        named = used if _same_nodes(graph, fitted) else named & False
    if graph.test_mask.any():
        if fitted is not None and (shared := int((graph.test_mask & named).sum())):
            warnings.warn(
                f"{shared} of the {int(graph.test_mask.sum())} test nodes were used by fit: "
                "the score says little of unseen nodes",
                LGDWarning,
                stacklevel=3,
            )
        return torch.as_tensor(graph.test_mask)
    if fitted is None and not named.any():
        warnings.warn(
            "no test nodes are named: all labelled nodes are scored, with those the model was "
            "trained on where they are among them; set test_mask",
            LGDWarning,
            stacklevel=3,
        )
    mask = torch.as_tensor(is_labelled(truth) & ~named)
    if not mask.any():
        raise InputError(
            "there are no test nodes: fit has used every labelled node; "
            "set test_mask, or give y with labels of other nodes"
        )
    return mask


def _same_nodes(first: Data, second: Data) -> bool:
    """Whether two canonical graphs have the same nodes, by their edges or else their features."""
    if first.edge_index.numel():
        same = first.x.size(0) == second.x.size(0)
        return same and torch.equal(first.edge_index, second.edge_index)
    features = [fingerprint(Data(x=data.x, edge_index=data.edge_index)) for data in (first, second)]
    return features[0] == features[1]


def renumbered(y: Tensor, classes: list[Any], trained: TrainedModel) -> Tensor:
    """Number canonical labels of any graph as the model's outputs are."""
    if trained.task.multi_label:
        if y.dim() == 1 or y.size(1) != trained.task.outputs:
            columns = trained.task.outputs
            raise InputError(f"y has shape {list(y.shape)}; the model knows {columns} labels")
        numbered = list(range(trained.task.outputs))
        if numbered in (classes, trained.classes):  # columns without names
            return y
        if sorted(map(str, classes)) != sorted(map(str, trained.classes)):
            raise InputError(
                f"the labels are {classes[:5]} and so on, those of the model {trained.classes[:5]}"
            )
        names = [str(name) for name in classes]
        return y[:, [names.index(str(name)) for name in trained.classes]]
    if y.dim() == 2:
        raise InputError(f"y has shape {list(y.shape)}; the model knows one class per node")
    number = {str(name): index for index, name in enumerate(trained.classes)}
    for name in classes:
        if str(name) not in number:
            raise InputError(f"y holds {name!r}, which is not one of the model's classes")
    index = torch.tensor([*(number[str(name)] for name in classes), -1])  # -1 stays -1
    return index[y]
