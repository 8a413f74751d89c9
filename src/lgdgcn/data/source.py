"""Which graph a command works on: a data set by name, a generated one, or a user's folder."""

import os
import warnings
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lgdgcn.config import parse_assignments
from lgdgcn.data.catalogue import info, is_known
from lgdgcn.errors import InputError, LGDWarning

if TYPE_CHECKING:  # what reads graphs takes memory, of which packing one has little
    from torch_geometric.data import Data

    from lgdgcn.data.columns import ColumnSummary
    from lgdgcn.data.encoding import Encoding
    from lgdgcn.data.packed import PackedGraph

__all__ = ["GraphSource", "split_again"]

SPLIT_KINDS = ("standard", "random")
MASKS = ("train_mask", "val_mask", "test_mask")
# sets with several stored splits, of which the seed chooses one
STORED_SPLITS = {"chameleon_filtered": 10, "wisconsin": 10, "actor": 10, "tolokers": 10}
DRAWN_SPLITS = ("amazon_photo", "dblp_full", "ppi_multilabel")  # sets with none: the seed draws one


@dataclass(frozen=True)
class GraphSource:
    """Where a graph comes from and how it is split.

    Attributes:
        dataset: ``cora``, ``synthetic:factors=8,seed=1`` or the path of a folder, which may be a
            packed graph. The name of a data set means the data set; a folder of the same name is
            written ``./cora``.
        root: Folder to look for data sets in.
        split: ``standard`` or ``random``; a random split depends on the seed. For a folder, also
            the name of the column that says train, val or test.
        features: ``degree`` or ``identity`` to make features from the structure;
            ``text:COLUMN`` to make features of a column's words, too.
        ignore: Columns of a folder's nodes table that are not used.
        label: Its column of labels.
        id: Its column of ids.
    """

    dataset: str
    root: str | None = None
    split: str = "standard"
    features: str | None = None
    ignore: tuple[str, ...] = ()
    label: str | None = None
    id: str | None = None

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
    def is_packed(self) -> bool:
        """Whether the folder is a packed graph (:mod:`lgdgcn.data.packed`)."""
        from lgdgcn.data.packed import is_packed

        return self.is_folder and is_packed(self.dataset)

    @property
    def name(self) -> str:
        """Short name of the graph, for presets and run folders."""
        if self.is_folder:
            return Path(self.dataset).resolve().name.removesuffix(".lgd")
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
        several = self.name in (*STORED_SPLITS, *DRAWN_SPLITS)
        return self.split == "random" or (not self.is_folder and several)

    @property
    def options(self) -> dict[str, Any]:
        """Everything but the name that is not as usual: what a run writes down, and a command."""
        usual = GraphSource("")
        chosen = {key: getattr(self, key) for key in ("split", "features", "ignore", "label", "id")}
        return {key: value for key, value in chosen.items() if value != getattr(usual, key)}

    def check_there(self) -> None:
        """Refuse a graph that does not exist, before anything is imported that reads graphs."""
        if not self.is_folder:
            info(self.name)
            self._options()
        elif not os.path.isdir(self.dataset):
            found = "is a file" if os.path.exists(self.dataset) else "does not exist"
            place = str(Path(self.dataset))[:200]
            raise InputError(f"{place} {found}; give a folder with edges.csv and nodes.csv")

    def elsewhere(self, dataset: str) -> "GraphSource":
        """Another graph read in the same way, as far as it is of the same kind."""
        other = GraphSource(dataset, self.root, features=self.features)
        if not other.is_folder:
            return other
        split = "standard" if self.split == "random" else self.split
        return replace(self, dataset=dataset, split=split)

    @property
    def roles(self) -> dict[str, str]:
        """The roles of columns that the options name."""
        words = [c.removeprefix("text:") for c in _listed(self.features) if c.startswith("text:")]
        named = [(name, "ignore") for name in self.ignore] + [(name, "words") for name in words]
        split = None if self.split in SPLIT_KINDS else self.split
        for role, name in (("id", self.id), ("label", self.label), ("split", split)):
            named += [(name, role)] if name is not None else []
        roles: dict[str, str] = {}
        for name, role in named:
            if roles.setdefault(name, role) != role:
                raise InputError(f"column {name[:50]!r} is named as {roles[name]} and as {role}")
        return roles

    def columns(self) -> "list[ColumnSummary]":
        """What each column of a folder's nodes table is taken for; arrays have no columns."""
        if self.is_packed:
            return []
        from lgdgcn.data.user_graph import column_summaries

        return column_summaries(self.dataset, self.roles)

    def load(
        self,
        seed: int = 0,
        require_labels: bool | None = True,
        encoding: "Encoding | None" = None,
    ) -> "Data":
        """Read the graph in canonical form; ``seed`` matters to random and stored splits.

        ``require_labels`` is that of :func:`~lgdgcn.data.validate.canonical`, ``encoding`` that of
        the model that is to predict a folder.
        """
        from lgdgcn.data.packed import PackedGraph
        from lgdgcn.data.registry import load
        from lgdgcn.data.user_graph import read_graph
        from lgdgcn.data.validate import canonical, with_features

        if self.is_folder:
            if self.split == "random":
                usual = replace(self, split="standard")
                return split_again(usual.load(0, require_labels, encoding), seed)
            made = [name for name in _listed(self.features) if not name.startswith("text:")]
            features = ",".join(made) or None
            if self.is_packed:
                packed = PackedGraph.open(self.dataset, verify="hashes")
                self._check_roles(packed, learning=encoding is None)
                return _with_factors(
                    packed.to_data(
                        features=features, require_labels=require_labels, encoding=encoding
                    )
                )
            graph = read_graph(self.dataset, features, require_labels, self.roles, encoding)
            return _with_factors(graph)
        if self.roles and self.split in SPLIT_KINDS:
            raise InputError(
                f"column {next(iter(self.roles))[:50]!r} is named, but {self.dataset} is a data "
                "set, not a folder with a nodes table; leave the option out"
            )
        name, options = self._options()
        if os.path.isdir(name):
            said = f"{name} is the data set, not the folder {name} here; write ./{name} for that"
            warnings.warn(said, LGDWarning, stacklevel=2)
        if self.split == "random" and name.lower() == "synthetic":
            data = split_again(load(name, self.root, **options), seed)  # its seed is the graph's
        else:
            if self.split == "random":
                options["seed"] = seed
            elif name.lower() in STORED_SPLITS:
                options["seed"] = seed % STORED_SPLITS[name.lower()]
            elif name.lower() in DRAWN_SPLITS:
                options["seed"] = seed
            data = load(name, self.root, split=self.split, **options)
        if self.features is not None:
            data = with_features(data, self.features)
        return canonical(data, require_labels=require_labels)

    def check_unread(self, packed: "PackedGraph") -> None:
        """Refuse what a packed graph that is not read whole has no use for."""
        if self.features is not None or self.split == "random":
            raise InputError(
                f"{self.dataset} is too large to be read whole, or trained on in batches: "
                "leave out --features and --split random"
            )
        self._check_roles(packed, learning=True)

    def _check_roles(self, packed: "PackedGraph", learning: bool) -> None:
        """Refuse roles that the columns of a packed graph have not."""
        own = packed.encoding
        known = {} if own is None else own.roles
        columns = () if own is None else (*(c.name for c in own.columns), *own.text, *own.ignored)
        for name, role in self.roles.items():
            if known.get(name) != role and (learning or name in columns):
                raise InputError(
                    f"{self.dataset} was packed without column {name[:50]!r} as {role}; give the "
                    "option to lgdgcn data pack, and leave it out here"
                )

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


def _listed(features: str | None) -> list[str]:
    return [name.strip() for name in (features or "").split(",") if name.strip()]


def split_again(data: "Data", seed: int) -> "Data":
    """The same graph with another split of the same sizes, drawn from all labelled nodes."""
    from lgdgcn.data.labels import is_labelled
    from lgdgcn.data.splits import sized_split

    sizes = [int(data[mask].sum()) for mask in MASKS]
    other = copy(data)
    for name, mask in zip(MASKS, sized_split(is_labelled(data.y), sizes, seed), strict=True):
        other[name] = mask
    return other


def _with_factors(data: "Data") -> "Data":
    """Check the known factors a user's graph may bring along."""
    import torch

    if "y_factor" in data:
        factors = torch.as_tensor(data.y_factor)
        if factors.dim() != 2 or len(factors) != data.x.size(0):
            shape = f"{list(factors.shape)}, but the graph has {data.x.size(0)} nodes"
            raise InputError(f"y_factor has shape {shape}; give one row per node")
        if factors.is_floating_point() and not bool((factors == factors.round()).all()):
            raise InputError("y_factor has values that are no class numbers; use -1 for unknown")
        data.y_factor = factors.long()
    return data
