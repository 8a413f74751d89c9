"""Small graphs as a user would bring them."""

from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from lgdgcn import LGDClassifier

__all__ = ["SPLITS", "arrays", "as_data", "fitted", "replaced", "saved"]

SPLITS = ("train_mask", "val_mask", "test_mask")


def arrays(nodes: int = 12) -> dict[str, np.ndarray]:
    """A ring for each of three classes, with features that show the class."""
    index = np.arange(nodes)
    x = np.random.default_rng(0).random((nodes, 4)).astype(np.float32)
    x[index, index % 3] += 1
    ring = np.stack([index, (index + 3) % nodes])
    edges = np.concatenate([ring, ring[::-1]], axis=1)
    masks = {split: index // 3 % 3 == i for i, split in enumerate(SPLITS)}
    return {"x": x, "y": index % 3, "edge_index": edges, **masks}


def changed(changes: dict[str, object]) -> dict[str, object]:
    """The graph of :func:`arrays` with other arrays, or, where they are ``None``, without them."""
    return {key: value for key, value in (arrays() | changes).items() if value is not None}


def saved(folder: Path, **changes: object) -> Path:
    """The graph as npz files."""
    content = changed(changes)
    folder.mkdir(parents=True)
    np.savez(folder / "edges.npz", edge_index=content.pop("edge_index"))
    np.savez(folder / "nodes.npz", **content)
    return folder


def as_data(**changes: object) -> Data:
    """The graph as a user of Python has it; all but texts as tensors."""

    def tensor(value):
        is_numeric = isinstance(value, np.ndarray) and value.dtype.kind != "U"
        return torch.from_numpy(value) if is_numeric else value

    return Data(**{key: tensor(value) for key, value in changed(changes).items()})


def fitted(graph: Data, **options: object) -> LGDClassifier:
    """A model trained for a few steps; a loss that is not finite would be an error."""
    usual = {"factors": 2, "hidden_channels": 8, "epochs": 3, "device": "cpu", "budget": "none"}
    return LGDClassifier(**{**usual, **options}).fit(graph)


def replaced(file: Path, old: str, new: str, count: int = -1) -> None:
    """Replace text in a file, which must be there."""
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, count))
