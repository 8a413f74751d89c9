"""What is measured: a graph, the settings of the network, and one row of the table."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch_geometric.data import Data

from lgdgcn.benchmark.clustered import clustered_graph
from lgdgcn.benchmark.floor import Shape
from lgdgcn.config import Settings, preset, resolve
from lgdgcn.data import load
from lgdgcn.data.validate import canonical
from lgdgcn.errors import InputError

__all__ = ["DATASETS", "Job", "read_graph", "settings_of", "shape_of"]

DATASETS = ("cora", "citeseer", "pubmed")
SMALLEST = 20  # nodes; a generated graph needs a few of each class


@dataclass(frozen=True)
class Job:
    """One measurement, complete enough to be made in another process.

    Attributes:
        row: Name of the row, see :data:`lgdgcn.benchmark.rows.ROWS`; any ``population-R`` works.
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
        """The job as JSON."""
        return asdict(self)


def read_graph(job: Job) -> Data:
    """Load or generate the graph of a job, on the CPU."""
    if job.size in DATASETS:
        return canonical(load(job.size))
    return clustered_graph(int(job.size), job.degree)


def settings_of(job: Job) -> Settings:
    """Settings of the released variant; generated graphs take the published ones of Cora."""
    generated = {**preset("pubmed", "lgdgcn", "released"), "num_layers": 1}
    own = preset(job.size, "lgdgcn", "released") if job.size in DATASETS else generated
    layers = {} if job.layers is None else {"num_layers": job.layers}
    settings = resolve(own, layers, dict(job.settings))
    if (settings.variant, settings.graph) != ("released", "knn"):
        raise InputError("the benchmark measures variant = released with graph = knn only")
    return settings


def shape_of(data: Data, settings: Settings) -> Shape:
    """The sizes that decide how much work a step is."""
    sparse = data.x.layout == torch.sparse_csr
    return Shape(
        nodes=data.x.size(0),
        edges=data.edge_index.size(1),
        features=data.x.size(1),
        nonzeros=data.x.values().numel() if sparse else data.x.numel(),
        classes=int(data.y.max()) + 1,
        hidden=settings.hidden_channels,
        factors=settings.factors,
        iterations=settings.iterations,
        layers=settings.num_layers,
        k=settings.k,
    )
