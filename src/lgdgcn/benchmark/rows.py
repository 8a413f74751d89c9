"""The rows of the table: what is trained, and how its training step is made."""

import importlib.util
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN

from lgdgcn.config import Settings
from lgdgcn.errors import InputError
from lgdgcn.train.cuda_graph import CudaGraphRunner
from lgdgcn.train.state import Member
from lgdgcn.train.trained import prepared
from lgdgcn.train.trainer import Trainer

__all__ = [
    "DENSE",
    "REFERENCE_ROW",
    "ROWS",
    "forced_backend",
    "is_ours",
    "members_of",
    "training_step",
]

ROWS = {
    "dense": "LGD-GCN with N×N matrices and padded neighbourhoods",
    "torch": "LGD-GCN, torch backend",
    "fast": "LGD-GCN, fast backend",
    "population-32": "LGD-GCN, 32 models in one pass, per model",
    "sharp": "LGD-GCN, sharp variant, all views of a step",
    "gcn-sparse": "GCN of torch_geometric, sparse input",
    "gcn-dense": "GCN of torch_geometric, dense input",
    "gat": "GAT of torch_geometric, sparse input",
}
REFERENCE_ROW = "fast"  # the others are so many times slower
MOST_RECORDED = 100_000  # nodes; above, a step takes far longer than its launches
DENSE = Path(__file__).parents[3] / "benchmarks" / "dense.py"  # in a checkout only
HIDDEN, HEADS, DROPOUT, LR, WEIGHT_DECAY = 64, 8, 0.5, 0.01, 5e-4  # of the other models

Step = Callable[[], int]  # trains for some steps and says how many


def members_of(row: str) -> int:
    """Number of models a row trains at once."""
    match = re.fullmatch(r"(?:sharp-)?population-([1-9][0-9]*)", row)
    return int(match[1]) if match else 1


def is_ours(row: str) -> bool:
    """Whether a row runs this package's own training."""
    return row in ("torch", "fast", "sharp") or members_of(row) > 1


def training_step(row: str, data: Data, settings: Settings, device: torch.device) -> Step:
    """Make the models of a row and return the function that trains them by one step.

    Raises:
        InputError: There is no such row, or it cannot be measured here; says why.
    """
    if row not in ROWS and members_of(row) == 1:
        raise InputError(f"row is {row!r}; choose from {', '.join(ROWS)}, "
                         "population-R or sharp-population-R")  # fmt: skip
    if is_ours(row):
        record = device.type == "cuda" and row != "torch" and data.x.size(0) <= MOST_RECORDED
        return _lgdgcn(prepared(data, settings, device), settings, members_of(row), record)
    if row == "dense":
        return _dense(prepared(data, settings, device), settings)
    sizes = {
        "in_channels": data.x.size(1),
        "hidden_channels": HIDDEN,
        "num_layers": 2,
        "out_channels": int(data.y.max()) + 1,
        "dropout": DROPOUT,
    }
    model = GAT(**sizes, heads=HEADS) if row == "gat" else GCN(**sizes, cached=True)
    graph = data.to(device)
    if row == "gcn-dense":
        graph.x = graph.x.to_dense()
    return _plain(model.to(device), graph)


def _lgdgcn(data: Data, settings: Settings, members: int, record: bool) -> Step:
    """The step of the training loop itself, recorded on a GPU as the loop records its epochs."""
    trainer = Trainer(data, [Member(settings, seed) for seed in range(members)], "lgdgcn")

    def one_step() -> Tensor:
        total = trainer.step()["total"]
        trainer.stacked.epoch += 1
        return total

    runner = CudaGraphRunner(one_step, record)
    return lambda: len(runner.run())


def _dense(data: Data, settings: Settings) -> Step:
    if not DENSE.is_file():
        raise InputError("benchmarks/dense.py is part of a checkout, not of an installed package")
    nodes, width, hidden = data.x.size(0), 50, settings.hidden_channels
    padded = width * settings.num_layers * (hidden + settings.iterations * 2 * settings.num_factors)
    needed = 4 * nodes * (6 * nodes + padded + 4 * width * hidden)
    free = _free_memory(data.edge_index.device)
    if needed > free:
        gib = f"about {needed / 2**30:.0f} GiB, {free / 2**30:.0f} GiB are free"
        raise InputError(f"its N×N matrices need {gib}")
    spec = importlib.util.spec_from_file_location("lgdgcn_dense", DENSE)
    assert spec is not None
    assert spec.loader is not None
    dense = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(dense)
    step = dense.training_step(data, settings)

    def one() -> int:
        step()
        return 1

    return one


def _plain(model: nn.Module, data: Data) -> Step:
    """A training step as torch_geometric's examples write it."""
    optimizer = torch.optim.Adam(model.parameters(), lr=LR, weight_decay=WEIGHT_DECAY)

    def step() -> int:
        model.train()
        optimizer.zero_grad(set_to_none=True)
        logits = model(data.x, data.edge_index)
        loss = F.cross_entropy(logits[data.train_mask], data.y[data.train_mask])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return 1

    return step


def _free_memory(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def forced_backend(row: str, device: torch.device) -> Iterator[None]:
    """Run a row on its backend, and fail where that is missing instead of falling back."""
    fast = "triton" if device.type == "cuda" else "numba"
    before = os.environ.get("LGDGCN_BACKEND")
    os.environ["LGDGCN_BACKEND"] = "torch" if row == "torch" else fast
    try:
        yield
    finally:
        if before is None:
            del os.environ["LGDGCN_BACKEND"]
        else:
            os.environ["LGDGCN_BACKEND"] = before
