"""What the page says of single nodes: predictions beside the truth, and the nodes most alike."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.data.labels import SPLITS, is_labelled
from lgdgcn.explorer.page import encoded
from lgdgcn.train.task import Task

__all__ = [
    "chosen",
    "confusion",
    "known_labels",
    "label_numbers",
    "latent_neighbours",
    "part_of_split",
    "predictions",
]

Array = npt.NDArray[Any]

MOST_LABELS = 32  # of one node that the page lists
MOST_CLASSES = 256  # in a confusion matrix that can still be read


def known_labels(data: Data, classes: list[Any]) -> Tensor | None:
    """The graph's labels as the model counts them, for a graph may have changed since.

    Returns:
        bool ``[N, C]``, a row without a label all ``False``; ``None`` where no node has a label.
    """
    labelled = is_labelled(data.y)
    if not labelled.any():
        return None
    number = {str(name): column for column, name in enumerate(classes)}
    column = torch.tensor([number.get(str(name), len(classes)) for name in data.classes])
    if data.y.dim() == 1:
        own = torch.nn.functional.one_hot(data.y.clamp_min(0), len(column)).bool()
    else:
        own = data.y == 1
    truth = torch.zeros(len(own), len(classes) + 1, dtype=torch.bool)  # the last is unknown
    truth[:, column] = own & labelled.unsqueeze(1)
    return truth[:, :-1]


def part_of_split(data: Data) -> dict[str, Any]:
    """The part of the split that each node is in, from 1; 0 for none."""
    part = np.zeros(data.x.size(0))
    for number, split in enumerate(SPLITS, start=1):
        if f"{split}_mask" in data:
            part[data[f"{split}_mask"].numpy()] = number
    return encoded(part, "u8")


def predictions(task: Task, logits: Tensor, truth: Tensor | None) -> dict[str, Any]:
    """Truth, prediction, most probable classes and confidence of every node."""
    probability = task.probabilities(logits)  # [N, C]
    predicted = chosen(task, logits)
    sizes = [int(labels.sum(1).max()) for labels in (predicted, truth) if labels is not None]
    width = min(max(1, *sizes), MOST_LABELS)
    listed = min(max(5, width if task.multi_label else 0), 16, probability.size(1))
    top = probability.topk(listed)
    if task.multi_label:
        confidence = torch.where(predicted, probability, torch.inf).amin(1)
        confidence[~predicted.any(1)] = 0
    else:
        confidence = probability.amax(1)
    return {
        "truth": None if truth is None else encoded(_numbers(truth, probability, width), "i32"),
        "predicted": encoded(_numbers(predicted, probability, width), "i32"),
        "top": encoded(top.indices, "i32"),
        "topProbability": encoded(top.values, "f32"),
        "confidence": encoded(confidence, "f32"),
    }


def chosen(task: Task, logits: Tensor) -> Tensor:
    """The predicted classes as bool ``[N, C]``."""
    predicted = task.predict(logits)
    if task.multi_label:
        return predicted
    return torch.nn.functional.one_hot(predicted, task.outputs).bool()


def _numbers(labels: Tensor, probability: Tensor, width: int) -> Array:
    """Class numbers of every node by falling probability, padded with -1, ``[N, width]``."""
    rank = torch.where(labels, probability, -1.0)
    values, numbers = rank.topk(min(width, labels.size(1)))
    found: Array = torch.where(values >= 0, numbers, -1).numpy()
    return found


def label_numbers(labels: Tensor) -> Array:
    """Class numbers of every node, padded with -1 ``[N, width]``, of bool ``[N, C]``."""
    width = min(max(1, int(labels.sum(1).max())), MOST_LABELS)
    return _numbers(labels, labels.double(), width)


def confusion(
    task: Task, logits: Tensor, truth: Tensor | None, data: Data
) -> dict[str, Any] | None:
    """How often each class is taken for another on the test nodes, or on all labelled ones.

    Returns:
        ``None`` where nothing is labelled or a matrix would have too many classes to be read.
    """
    if truth is None or (not task.multi_label and task.outputs > MOST_CLASSES):
        return None
    parts = "test" if data.test_mask.any() else "all"
    mask = data.test_mask if parts == "test" else is_labelled(data.y)
    actual, guessed = truth[mask], chosen(task, logits)[mask]
    if not task.multi_label:
        matrix = actual.double().T @ guessed.double()
        return {"parts": parts, "matrix": encoded(matrix, "u32")}
    counts = [actual & guessed, ~actual & guessed, actual & ~guessed]
    labels = torch.stack([count.sum(0) for count in counts], 1)
    return {"parts": parts, "labels": encoded(labels, "u32")}


# Nodes alike in a factor that no edge joins: what the latent graph adds

ROWS = 512  # nodes whose distances to all others are held at once


def latent_neighbours(
    units: Array, nearest: Array, distance: Array, edge_index: Array, count: int
) -> tuple[Array, Array]:
    """Find the nearest nodes in a factor that are not neighbours in the graph.

    Args:
        units: The factor's units. Shape ``[N, d]``.
        nearest: Nearest other nodes, nearest first. Shape ``[N, k]``.
        distance: How far they are. Shape ``[N, k]``.
        edge_index: Both directions of every edge. Shape ``[2, E]``.
        count: How many to find.

    Returns:
        Nodes, -1 where there are too few, and distances, both ``[N, count]``.
    """
    nodes, size = nearest.shape
    linked = scipy.sparse.csr_matrix(
        (np.ones(edge_index.shape[1], dtype=bool), tuple(edge_index)), (nodes, nodes)
    )
    rows = np.repeat(np.arange(nodes), size)
    apart = ~np.asarray(linked[rows, nearest.ravel()]).reshape(nodes, size)
    first = np.argsort(~apart, axis=1, kind="stable")[:, :count]  # those apart, in their order
    found = np.full((nodes, count), -1, dtype=np.int64)
    far = np.zeros((nodes, count))
    width = first.shape[1]
    keep = np.take_along_axis(apart, first, 1)
    found[:, :width] = np.where(keep, np.take_along_axis(nearest, first, 1), -1)
    far[:, :width] = np.where(keep, np.take_along_axis(distance, first, 1), 0)
    short = np.flatnonzero((found < 0).any(1)) if size < nodes - 1 else np.empty(0, dtype=np.int64)
    points = units.astype(np.float64)
    for low in range(0, len(short), ROWS):
        some = short[low : low + ROWS]
        found[some], far[some] = _search(points, some, linked, count)
    return found, far


def _search(units: Array, some: Array, linked: Any, count: int) -> tuple[Array, Array]:
    """The same for some nodes whose list is mostly neighbours, looking at every other node."""
    norm = (units**2).sum(1)
    square = np.maximum(norm[some, None] + norm - 2 * units[some] @ units.T, 0)
    square[linked[some].toarray()] = np.inf
    square[np.arange(len(some)), some] = np.inf
    order = np.sort(np.argpartition(square, min(count, len(units) - 1), axis=1)[:, :count], axis=1)
    values = np.take_along_axis(square, order, 1)
    nearest_first = np.argsort(values, axis=1, kind="stable")
    order, values = (np.take_along_axis(part, nearest_first, 1) for part in (order, values))
    found = np.full((len(some), count), -1, dtype=np.int64)
    far = np.zeros((len(some), count))
    reached = np.isfinite(values)
    found[:, : order.shape[1]] = np.where(reached, order, -1)
    far[:, : order.shape[1]] = np.sqrt(np.where(reached, values, 0))
    return found, far
