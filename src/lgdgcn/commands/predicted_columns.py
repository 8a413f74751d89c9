"""The columns of a prediction: what the model says of nodes and edges, and what is known."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.commands.table_file import Block
from lgdgcn.data.label_sets import joined
from lgdgcn.data.labels import SPLITS, is_labelled, label_pieces
from lgdgcn.models import NodeOutput
from lgdgcn.train.trained import TrainedModel

__all__ = [
    "all_probabilities",
    "edge_columns",
    "known_columns",
    "known_of",
    "node_columns",
    "with_text",
]


def node_columns(trained: TrainedModel, output: NodeOutput) -> Block:
    """What the model says of every node, by the name of the column."""
    probabilities = trained.task.probabilities(output.logits).cpu()
    predicted = trained.task.predict(output.logits).cpu()
    if trained.task.multi_label:
        labels = _label_sets(predicted, trained.classes)
        chosen = probabilities.masked_fill(~predicted.bool(), torch.inf).amin(1)
        chosen = chosen.masked_fill(chosen == math.inf, math.nan)  # of no label at all
    else:
        labels = [trained.classes[number] for number in predicted.tolist()]
        chosen = probabilities.amax(1)
    columns: Block = {"label": labels, "probability": chosen.numpy()}
    factors = trained.dominant_factors(output)
    return columns if factors is None else columns | {"factor": factors.cpu().numpy() + 1}


def known_columns(data: Data) -> list[str]:
    """Which columns the graph itself has: those in which it says something of any node."""
    has_split = any(bool(data[f"{split}_mask"].any()) for split in SPLITS)
    has_label = any(len(piece) for piece in label_pieces(data.y))
    names = {"true_label": has_label, "split": has_split}
    return [name for name, has in names.items() if has]


def known_of(data: Data, names: list[str]) -> Block:
    """What the graph itself says of every node, in these columns."""
    columns: Block = {}
    if "true_label" in names:
        if data.y.dim() == 2:
            found: list[Any] = _label_sets(data.y > 0, data.classes)
        else:
            found = [data.classes[number] for number in data.y.tolist()]
        known = zip(found, is_labelled(data.y).tolist(), strict=True)
        columns["true_label"] = [name if has_label else "" for name, has_label in known]
    if "split" in names:
        number = sum((i + 1) * data[f"{name}_mask"].long() for i, name in enumerate(SPLITS))
        split = ("", *SPLITS)
        columns["split"] = [split[one] for one in torch.as_tensor(number).tolist()]
    return columns


def all_probabilities(trained: TrainedModel, output: NodeOutput) -> Block:
    """A column ``p:NAME`` for every class or label."""
    by_class = trained.task.probabilities(output.logits).cpu().t().contiguous().numpy()
    names = (f"p:{name}" for name in trained.classes)
    return dict(zip(names, by_class, strict=True))


def edge_columns(source: list[Any], target: list[Any], factors: Tensor) -> Block:
    """The ends of edges, their likeliest factor and the probability of each ``[P, M]``."""
    shares = factors.cpu().numpy()
    columns: Block = {"source": source, "target": target}
    columns["factor"] = np.asarray(factors.argmax(1).cpu() + 1)
    return columns | {f"p{m + 1}": shares[:, m] for m in range(shares.shape[1])}


def with_text(columns: Block, text: Mapping[str, Sequence[str]]) -> Block:
    """Add what the nodes table says in words; the ids stay the column ``node``."""
    return columns | {f"{name}_text" if name == "node" else name: c for name, c in text.items()}


def _label_sets(chosen: Tensor, names: list[Any]) -> list[str]:
    """The names of each node's labels, joined."""
    return [joined(name for name, is_one in zip(names, row, strict=True) if is_one)
            for row in chosen.tolist()]  # fmt: skip
