"""What is measured: a graph, the settings of the network, and one row of the table."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

from lgdgcn.benchmark.floor import GraphShape, SharpShape, WorkloadShape
from lgdgcn.config import Settings, preset, resolve
from lgdgcn.data import load
from lgdgcn.data.features import csr_tensor
from lgdgcn.data.validate import canonical
from lgdgcn.errors import InputError

__all__ = [
    "DATASETS",
    "Workload",
    "clustered_graph",
    "read_graph",
    "settings_of",
    "shape_of",
    "sharp_settings",
    "sharp_shape_of",
]

DATASETS = ("cora", "citeseer", "pubmed")
SMALLEST = 20  # nodes; a generated graph needs a few of each class
FEATURES, CLASSES, WORDS = 500, 7, 20  # of generated graphs
SAME_CLASS, OWN_WORDS = 0.8, 0.8  # share of edges within a class, of words from its vocabulary

Array = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Workload:
    """One measurement, complete enough to be made in another process.

    Attributes:
        row: Name of the row, see :data:`lgdgcn.benchmark.rows.ROWS`; any ``population-R`` and
            ``sharp-population-R`` work.
        size: A data set, or the number of nodes of a generated graph.
        layers: Number of layers L; the preset's own, or 1 on generated graphs, by default.
        device: ``cpu``, ``cuda`` or ``cuda:N``.
        degree: Neighbours per node of a generated graph.
        settings: Settings that differ from the preset's.
        pretrain: Training steps before the measured ones.
        seconds: Time to spend on measured steps.
    """

    row: str
    size: str = "cora"
    layers: int | None = None
    device: str = "cpu"
    degree: int = 4
    settings: Mapping[str, Any] = field(default_factory=dict)
    pretrain: int = 0
    seconds: float = 5.0

    def __post_init__(self) -> None:
        if self.size in DATASETS or (self.size.isdecimal() and int(self.size) >= SMALLEST):
            return
        raise InputError(
            f"size is {self.size!r}; give {', '.join(DATASETS)} or a number of nodes from "
            f"{SMALLEST} up"
        )

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, for JSON."""
        return asdict(self)


def read_graph(work: Workload) -> Data:
    """Load or generate the graph of a workload, on the CPU."""
    if work.size in DATASETS:
        return canonical(load(work.size))
    return clustered_graph(int(work.size), work.degree)


def settings_of(work: Workload) -> Settings:
    """Settings of a row's variant; generated graphs take those of Pubmed."""
    if work.row.startswith("sharp"):
        return sharp_settings(work)
    generated = {**preset("pubmed", "lgdgcn", "released"), "num_layers": 1}
    own = preset(work.size, "lgdgcn", "released") if work.size in DATASETS else generated
    layers = {} if work.layers is None else {"num_layers": work.layers}
    settings = resolve(own, layers, dict(work.settings))
    if (settings.variant, settings.graph) != ("released", "knn"):
        raise InputError("the benchmark measures variant = released with graph = knn only")
    return settings


def sharp_settings(work: Workload) -> Settings:
    """Settings of the sharp variant: one layer behind random propagation."""
    return resolve(preset(work.size if work.size in DATASETS else "pubmed", "lgdgcn", "sharp"))


def sharp_shape_of(data: Data, settings: Settings) -> SharpShape:
    """The sizes that decide how much work a step of the sharp variant is."""
    labels = int(data.y.max()) + 1
    return SharpShape(
        **asdict(_graph_shape(data)),
        classes=max(settings.hidden_channels, settings.num_factors * labels),
        hidden=settings.encoder_channels,
        hops=settings.hops,
        views=settings.views,
    )


def shape_of(data: Data, settings: Settings) -> WorkloadShape:
    """The sizes that decide how much work a step is."""
    return WorkloadShape(
        **asdict(_graph_shape(data)),
        classes=int(data.y.max()) + 1,
        hidden=settings.hidden_channels,
        factors=settings.num_factors,
        iterations=settings.iterations,
        layers=settings.num_layers,
        k=settings.k,
    )


def _graph_shape(data: Data) -> GraphShape:
    sparse = data.x.layout == torch.sparse_csr
    return GraphShape(
        nodes=data.x.size(0),
        edges=data.edge_index.size(1),
        features=data.x.size(1),
        nonzeros=data.x.values().numel() if sparse else data.x.numel(),
    )


def clustered_graph(nodes: int, degree: int = 4, seed: int = 0) -> Data:
    """Draw a canonical graph of any size: seven planted classes, bags of 20 words out of 500.

    Most edges are within a class and most words are of its vocabulary, so units form clusters.

    Args:
        nodes: Number of nodes N.
        degree: Neighbours per node, on average; N * degree columns of ``edge_index`` before
            duplicates and self loops go.
        seed: Seed of everything drawn.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(CLASSES, size=nodes)
    row_ptr = torch.arange(0, nodes * WORDS + 1, WORDS)
    ones = torch.ones(nodes * WORDS)
    x = csr_tensor(row_ptr, torch.from_numpy(_words(rng, y)).flatten(), ones, (nodes, FEATURES))
    data = Data(x=x, edge_index=torch.from_numpy(_edges(rng, y, degree)), y=torch.from_numpy(y))
    order = torch.from_numpy(rng.permutation(nodes))
    train, val = min(20 * CLASSES, nodes // 4), min(500, nodes // 4)
    splits = (order[:train], order[train : train + val], order[train + val :])
    for name, split in zip(("train_mask", "val_mask", "test_mask"), splits, strict=True):
        data[name] = torch.zeros(nodes, dtype=torch.bool).index_fill_(0, split, True)
    data.name = str(nodes)
    data.classes = list(range(CLASSES))
    return data


def _words(rng: np.random.Generator, y: Array) -> Array:
    """Distinct ascending words ``[N, 20]``, mostly from the vocabulary of the node's class.

    One word is drawn from each of 20 equal shares of the vocabulary; word w belongs to class
    w mod 7.
    """
    share = FEATURES // WORDS
    drawn = rng.integers(share, size=(len(y), WORDS))
    start = np.arange(WORDS) * share
    offset = (y[:, None] - start) % CLASSES  # the first word of the class in every share
    count = (share - 1 - offset) // CLASSES + 1
    own = offset + drawn % count * CLASSES
    return start + np.where(rng.random(drawn.shape) < OWN_WORDS, own, drawn)


def _edges(rng: np.random.Generator, y: Array, degree: int) -> Array:
    """Both directions of N * degree / 2 drawn edges, sorted by source, without duplicates."""
    nodes = len(y)
    a = rng.integers(nodes, size=nodes * degree // 2)
    members = np.argsort(y, kind="stable")
    size = np.bincount(y, minlength=CLASSES)
    start = size.cumsum() - size
    mate = members[start[y[a]] + (rng.random(len(a)) * size[y[a]]).astype(np.int64)]
    b = np.where(rng.random(len(a)) < SAME_CLASS, mate, rng.integers(nodes, size=len(a)))
    a, b = a[a != b], b[a != b]
    pair = np.unique(np.concatenate([a * nodes + b, b * nodes + a]))
    return np.stack([pair // nodes, pair % nodes])
