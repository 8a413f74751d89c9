"""``lgdgcn data``: what graphs there are."""

from pathlib import Path
from typing import TYPE_CHECKING

from lgdgcn.commands.console import out, print_table
from lgdgcn.data.catalogue import DatasetInfo, available, is_available
from lgdgcn.errors import InputError
from lgdgcn.storage import write_text

if TYPE_CHECKING:  # what takes long to import is not needed for a list
    from lgdgcn.data.source import GraphSource

__all__ = ["check_folder", "get_set", "list_sets", "show_info"]

NAME, EXAMPLE = 24, 30  # letters, so that a table of columns fits a terminal


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


def check_folder(source: "GraphSource", *, write: bool) -> None:
    """Print what is understood of a user's graph, and propose to write it down."""
    from lgdgcn.data.graph_file import GRAPH_FILE, proposal

    if not source.is_folder:
        raise InputError(
            f"{source.dataset[:200]} is no folder; give one with edges.csv and nodes.csv, or see "
            "lgdgcn data info"
        )
    folder, text = Path(source.dataset), ""
    file = folder / GRAPH_FILE
    if write and file.exists():
        raise InputError(f"{file} is there already; change it by hand, or remove it first")
    columns = source.columns()
    if columns:
        rows = [
            [_cut(c.name, NAME), c.role, _share(c.blank + c.odd, c.rows), _cut(c.example, EXAMPLE)]
            for c in columns
        ]
        print_table("columns of the nodes", ["column", "role", "blank", "example"], rows, 4)
        text = proposal(columns)
    show_info(source)
    if write:
        write_text(file, text or proposal([]))
        out.print(f"written: {file}", soft_wrap=True)
    elif file.exists():
        out.print(f"roles are those of {file}", soft_wrap=True)
    elif text:
        out.print(f"to change a role, write {file} (--write writes this):\n", soft_wrap=True)
        out.print(text, soft_wrap=True)


def _cut(text: str, most: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _share(count: int, rows: int) -> str:
    share = 100 * count / max(1, rows)
    return "–" if not count else f"{share:.0f} %" if share >= 1 else "<1 %"


def show_info(source: "GraphSource") -> None:
    """Print what a graph holds, with the split that training would use."""
    import torch

    from lgdgcn.data.labels import UntrainableError
    from lgdgcn.train.task import Task

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
    if "edge_weight" in data:
        low, high = (f"{float(end):.3g}" for end in data.edge_weight.aminmax())
        rows.insert(2, ["edge weights", f"{low} to {high}"])
    if "y_factor" in data:
        rows.append(["known factors", str(data.y_factor.size(1))])
    print_table(source.dataset, ["", ""], rows)
    if data.get("listed_once"):
        out.print("edges are listed in one direction: taken in both", soft_wrap=True)
    if refused is not None:
        out.print(f"cannot be trained on: {refused}", soft_wrap=True)


def get_set(name: str) -> None:
    """Download a data set unless it is here already."""
    from lgdgcn.data.registry import get

    out.print(f"{name}: {get(name)}", soft_wrap=True)
