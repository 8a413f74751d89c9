"""``lgdgcn data``: what graphs there are."""

from pathlib import Path

from lgdgcn.commands.console import out, print_table
from lgdgcn.data.catalogue import DatasetInfo, available, is_available

__all__ = ["get_set", "list_sets", "show_info"]


def list_sets() -> None:
    """Print one line per data set; nothing that takes long to import is needed for it."""
    sets = available()
    rows = [
        [d.name, f"{d.nodes:,}", f"{d.edges:,}", f"{d.features:,}", str(d.classes),
         d.kind.removesuffix("-label"), _how(d)]
        for d in sets
    ]  # fmt: skip
    header = ["data set", "nodes", "edges", "features", "classes", "label", "to be had"]
    print_table("Data sets", header, rows)
    files = [Path(d.where_found) for d in sets if d.where_found and _how(d) == "here"]
    folders = dict.fromkeys(str(file if file.is_dir() else file.parent) for file in files)
    ways = {
        "here": ", ".join(folders),
        "download": "at first use, or with lgdgcn data get NAME",
        "own file": "put NAME.npz into the folder that $LGDGCN_DATA names",
    }
    for how, said in ways.items():
        if how in {row[-1] for row in rows}:
            out.print(f"{how}: {said}", soft_wrap=True)


def _how(known: DatasetInfo) -> str:
    if known.where_found is not None:
        return known.where_found if known.where_found == "generated" else "here"
    return "download" if is_available(known.name) else "own file"


def show_info(name: str) -> None:
    """Print what a graph holds, with the split that training would use."""
    import torch

    from lgdgcn.data.labels import UntrainableError
    from lgdgcn.data.source import GraphSource
    from lgdgcn.train.task import Task

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
    ]
    if "y_factor" in data:
        rows.append(["known factors", str(data.y_factor.size(1))])
    print_table(name, ["", ""], rows)
    if refused is not None:
        out.print(f"cannot be trained on: {refused}", soft_wrap=True)


def get_set(name: str) -> None:
    """Download a data set unless it is here already."""
    from lgdgcn.data.registry import get

    out.print(f"{name}: {get(name)}", soft_wrap=True)
