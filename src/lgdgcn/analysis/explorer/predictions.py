"""What a model predicts for every node, beside what is true."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.analysis.explorer.encoded import encoded
from lgdgcn.data.labels import SPLITS, is_labelled
from lgdgcn.train.task import Task

__all__ = ["confusion", "known_labels", "predictions"]

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
    number = {str(name): place for place, name in enumerate(classes)}
    place = torch.tensor([number.get(str(name), len(classes)) for name in data.classes])
    if data.y.dim() == 1:
        own = torch.nn.functional.one_hot(data.y.clamp_min(0), len(place)).bool()
    else:
        own = data.y == 1
    truth = torch.zeros(len(own), len(classes) + 1, dtype=torch.bool)  # the last is unknown
    truth[:, place] = own & labelled.unsqueeze(1)
    return truth[:, :-1]


def predictions(task: Task, logits: Tensor, truth: Tensor | None, data: Data) -> dict[str, Any]:
    """Truth, split, prediction, most probable classes and confidence of every node."""
    probability = task.probabilities(logits)  # [N, C]
    predicted = chosen(task, logits)
    sizes = [int(labels.sum(1).max()) for labels in (predicted, truth) if labels is not None]
    width = min(max(1, *sizes), MOST_LABELS)
    listed = min(max(5, width if task.multi_label else 0), 16, probability.size(1))
    top = probability.topk(listed)
    part = np.zeros(len(logits))
    for number, split in enumerate(SPLITS, start=1):
        part[data[f"{split}_mask"].numpy()] = number
    if task.multi_label:
        confidence = torch.where(predicted, probability, torch.inf).amin(1)
        confidence[~predicted.any(1)] = 0
    else:
        confidence = probability.amax(1)
    return {
        "truth": None if truth is None else encoded(_numbers(truth, probability, width), "i32"),
        "part": encoded(part, "u8"),
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
