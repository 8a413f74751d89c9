"""Which graph a command works on: a data set by name, a generated one, or a user's folder."""

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from lgdgcn.config import parse_assignments
from lgdgcn.data.catalogue import is_known
from lgdgcn.data.labels import is_labelled
from lgdgcn.data.registry import load
from lgdgcn.data.splits import sized_split
from lgdgcn.data.user_graph import read_graph
from lgdgcn.data.validate import canonical, with_features
from lgdgcn.errors import InputError, LGDWarning

__all__ = ["GraphSource"]

MASKS = ("train_mask", "val_mask", "test_mask")
STORED_SPLITS = {"chameleon_filtered": 10}  # these sets come with several, chosen by seed


@dataclass(frozen=True)
class GraphSource:
    """Where a graph comes from and how it is split.

    Attributes:
        dataset: ``cora``, ``synthetic:factors=8,seed=1`` or the path of a folder. The name of a
            data set means the data set; a folder of the same name is written ``./cora``.
        root: Folder to look for data sets in.
        split: ``standard`` or ``random``; a random split depends on the seed.
        features: ``degree`` or ``identity`` to make features from the structure.
    """

    dataset: str
    root: str | None = None
    split: str = "standard"
    features: str | None = None

    def __post_init__(self) -> None:
        if self.root is not None:
            object.__setattr__(self, "root", str(Path(self.root).resolve()))

    @property
    def is_folder(self) -> bool:
        """Whether the graph is the user's own; a name with a slash is always a path."""
        if "/" in self.dataset or "\\" in self.dataset:
            return True
        return not is_known(self.dataset.partition(":")[0]) and os.path.isdir(self.dataset)

    @property
    def name(self) -> str:
        """Short name of the graph, for presets and run folders."""
        if self.is_folder:
            return Path(self.dataset).resolve().name
        return self.dataset.partition(":")[0].lower()

    @property
    def address(self) -> str:
        """The data set as any other working folder would have to name it."""
        return str(Path(self.dataset).resolve()) if self.is_folder else self.dataset

    @property
    def preset_name(self) -> str:
        """Name that presets go by, with the generator's options; a user's folder has none."""
        return "" if self.is_folder else self.dataset.lower()

    @property
    def varies_with_seed(self) -> bool:
        """Whether another seed means another split."""
        return self.split == "random" or (not self.is_folder and self.name in STORED_SPLITS)

    def load(self, seed: int = 0, require_labels: bool | None = True) -> Data:
        """Read the graph in canonical form; ``seed`` matters to random and stored splits.

        ``require_labels`` is that of :func:`~lgdgcn.data.validate.canonical`.
        """
        if self.is_folder:
            if self.split != "standard":
                raise InputError("--split random is for named data sets; use a split column")
            return _with_factors(read_graph(self.dataset, self.features, require_labels))
        name, options = self._options()
        if os.path.isdir(name):
            said = f"{name} is the data set, not the folder {name} here; write ./{name} for that"
            warnings.warn(said, LGDWarning, stacklevel=2)
        if self.split == "random" and name.lower() == "synthetic":
            data = _split_again(load(name, self.root, **options), seed)  # its seed is the graph's
        else:
            if self.split == "random":
                options["seed"] = seed
            elif name.lower() in STORED_SPLITS:
                options["seed"] = seed % STORED_SPLITS[name.lower()]
            data = load(name, self.root, split=self.split, **options)
        if self.features is not None:
            data = with_features(data, self.features)
        return canonical(data, require_labels=require_labels)

    def _options(self) -> tuple[str, dict[str, Any]]:
        """Take ``synthetic:factors=8,seed=1`` apart."""
        name, _, text = self.dataset.partition(":")
        try:
            options = parse_assignments(text.split(",")) if text else {}
        except InputError:
            example = "synthetic:factors=8,seed=1"
            raise InputError(f"data set is {self.dataset!r}; write it like {example}") from None
        for key in ("name", "root", "split", "download"):
            if key in options:
                raise InputError(f"{self.dataset}: {key} is not a setting of a graph")
        return name, options


def _split_again(data: Data, seed: int) -> Data:
    """Draw another split of the same sizes."""
    sizes = [int(data[mask].sum()) for mask in MASKS]
    for name, mask in zip(MASKS, sized_split(is_labelled(data.y), sizes, seed), strict=True):
        data[name] = mask
    return data


def _with_factors(data: Data) -> Data:
    """Check the known factors a user's graph may bring along."""
    if "y_factor" in data:
        factors = torch.as_tensor(data.y_factor)
        if factors.dim() != 2 or len(factors) != data.x.size(0):
            shape = f"{list(factors.shape)}, but the graph has {data.x.size(0)} nodes"
            raise InputError(f"y_factor has shape {shape}; give one row per node")
        if factors.is_floating_point() and not bool((factors == factors.round()).all()):
            raise InputError("y_factor has values that are no class numbers; use -1 for unknown")
        data.y_factor = factors.long()
    return data
