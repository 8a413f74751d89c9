"""``lgdgcn data``: what graphs there are."""

import torch

from lgdgcn.commands.console import out, print_table
from lgdgcn.data import available, get
from lgdgcn.data.labels import UntrainableError
from lgdgcn.data.source import GraphSource
from lgdgcn.train.task import Task

__all__ = ["get_set", "list_sets", "show_info"]


def list_sets() -> None:
    """Print one line per data set."""
    rows = [
        [d.name, f"{d.nodes:,}", f"{d.edges:,}", f"{d.features:,}", str(d.classes),
         d.kind.removesuffix("-label"), d.where_found or "not here"]
        for d in available()
    ]  # fmt: skip
    header = ["data set", "nodes", "edges", "features", "classes", "label", "found"]
    print_table("Data sets", header, rows)
    out.print("Get one with: lgdgcn data get NAME; or put NAME.npz into $LGDGCN_DATA")


def show_info(name: str) -> None:
    """Print what a graph holds, with the split that training would use."""
    source = GraphSource(name)
    try:
        data, refused = source.load(require_labels=None), None
    except UntrainableError as error:
        data, refused = source.load(require_labels=False), error
    degree = torch.bincount(data.edge_index[1], minlength=data.x.size(0))
    task = Task.of(data)
    layout = "sparse" if data.x.layout == torch.sparse_csr else "dense"
    parts = [int(data[mask].sum()) for mask in ("train_mask", "val_mask", "test_mask")]
    rows = [
        ["nodes", f"{data.x.size(0):,}"],
        ["edges", f"{data.edge_index.size(1) // 2:,}"],
        ["average degree", f"{degree.double().mean():.2f}"],
        ["isolated nodes", f"{int((degree == 0).sum()):,}"],
        ["features", f"{data.x.size(1):,} ({layout})"],
        ["labels" if task.multi_label else "classes", str(task.outputs)],
        ["train / validation / test", " / ".join(f"{part:,}" for part in parts)],
        ["known factors", str(data.y_factor.size(1)) if "y_factor" in data else "–"],
    ]
    print_table(name, ["", ""], rows)
    if refused is not None:
        out.print(f"cannot be trained on: {refused}", soft_wrap=True)


def get_set(name: str) -> None:
    """Download a data set unless it is here already."""
    out.print(f"{name}: {get(name)}", soft_wrap=True)
