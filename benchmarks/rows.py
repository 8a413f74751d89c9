"""What a row of ``step.py`` trains: a graph, the settings of the network, and one training step."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from dense import training_step as dense_step
from graphs import clustered_graph
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN

from lgdgcn.config import Settings, preset, resolve
from lgdgcn.data import load
from lgdgcn.data.validate import canonical
from lgdgcn.errors import InputError
from lgdgcn.train.cuda_graph import CudaGraphRunner
from lgdgcn.train.population import Training
from lgdgcn.train.prepared import prepared
from lgdgcn.train.trainer import Trainer

ROWS = {
    "dense": "LGD-GCN with N×N matrices and padded neighbourhoods",
    "torch": "LGD-GCN, torch backend",
    "fast": "LGD-GCN, fast backend",
    "population-32": "LGD-GCN, 32 models in one pass, per model",
    "ours": "LGD-GCN (ours), all views of a step",
    "gcn-sparse": "GCN of torch_geometric, sparse input",
    "gcn-dense": "GCN of torch_geometric, dense input",
    "gat": "GAT of torch_geometric, sparse input",
}
DATASETS = ("cora", "citeseer", "pubmed")
MOST_RECORDED = 100_000  # nodes; above, a step takes far longer than its launches
HIDDEN, HEADS, DROPOUT, LR, WEIGHT_DECAY = 64, 8, 0.5, 0.01, 5e-4  # of torch_geometric's models

Step = Callable[[], int]  # trains for some steps and says how many


@dataclass(frozen=True)
class Work:
    """One measurement, complete enough to be made in another process.

    Attributes:
        row: A key of :data:`ROWS`, ``population-R``, ``ours-population-R``, or ``machine``.
        size: A data set, or the number of nodes of a generated graph.
        layers: Number of layers L; the preset's, or 1 on generated graphs, by default.
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
    settings: dict[str, Any] = field(default_factory=dict)
    pretrain: int = 0
    seconds: float = 5.0

    def graph(self) -> Data:
        """Load or generate the graph, on the CPU."""
        if self.size in DATASETS:
            return canonical(load(self.size))
        return clustered_graph(int(self.size), self.degree)

    def chosen(self, *, ours: bool) -> Settings:
        """The preset of the data set, on generated graphs Pubmed's."""
        known = self.size in DATASETS
        shipped = preset(self.size if known else "pubmed", "lgdgcn", "ours" if ours else "released")
        if ours:
            return resolve(shipped)
        layers = self.layers or (None if known else 1)
        return resolve(shipped, {"num_layers": layers} if layers else {}, self.settings)


def members_of(row: str) -> int:
    """Number of models a row trains at once."""
    match = re.fullmatch(r"(?:ours-)?population-([1-9][0-9]*)", row)
    return int(match[1]) if match else 1


def training_step(row: str, data: Data, settings: Settings, device: torch.device) -> Step:
    """Make the models of a row and return the function that trains them by one step."""
    members = members_of(row)
    if members > 1 or row in ("torch", "fast", "ours"):
        record = device.type == "cuda" and row != "torch" and data.x.size(0) <= MOST_RECORDED
        return _lgdgcn(prepared(data, settings, device), settings, members, record)
    if row == "dense":
        return _dense(prepared(data, settings, device), settings)
    if row not in ROWS:
        raise InputError(f"row is {row!r}; choose from {', '.join(ROWS)}, population-R")
    sizes = {"hidden_channels": HIDDEN, "num_layers": 2, "dropout": DROPOUT}
    sizes |= {"in_channels": data.x.size(1), "out_channels": int(data.y.max()) + 1}
    model = GAT(**sizes, heads=HEADS) if row == "gat" else GCN(**sizes, cached=True)
    graph = data.to(device)
    if row == "gcn-dense":
        graph.x = graph.x.to_dense()
    return _plain(model.to(device), graph)


def _lgdgcn(data: Data, settings: Settings, members: int, record: bool) -> Step:
    """The step of the training loop itself, recorded on a GPU as the loop records its epochs."""
    trainer = Trainer([Training("lgdgcn", settings, seed, data) for seed in range(members)])

    def one_step() -> Tensor:
        total = trainer.steps()["total"]
        trainer.population.epoch += 1
        return total

    def by_itself() -> int:
        one_step()
        return 1

    if not record:
        return by_itself
    runner = CudaGraphRunner(one_step)
    return lambda: len(runner.run())


def _dense(data: Data, settings: Settings) -> Step:
    nodes, width, hidden = data.x.size(0), 50, settings.hidden_channels
    padded = width * settings.num_layers * (hidden + settings.iterations * 2 * settings.num_factors)
    needed = 4 * nodes * (6 * nodes + padded + 4 * width * hidden)
    if data.x.is_cuda:
        free = torch.cuda.mem_get_info(data.x.device)[0]
    else:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > free:
        gib = f"about {needed / 2**30:.0f} GiB, {free / 2**30:.0f} GiB are free"
        raise InputError(f"its N×N matrices need {gib}")
    step = dense_step(data, settings)
    return lambda: step() or 1


def _plain(model: nn.Module, data: Data) -> Step:
    """A training step as torch_geometric's examples write it."""
    optimizer = torch.optim.Adam(model.parameters(), lr=LR, weight_decay=WEIGHT_DECAY)

    def step() -> int:
        model.train()
        optimizer.zero_grad(set_to_none=True)
        logits = model(data.x, data.edge_index)
        F.cross_entropy(logits[data.train_mask], data.y[data.train_mask]).backward()
        optimizer.step()
        return 1

    return step
