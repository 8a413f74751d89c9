"""``lgdgcn data``: list, check, pack and fetch graphs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lgdgcn.cli import console
from lgdgcn.cli.libraries import load_libraries
from lgdgcn.cli.options import Graph, GraphOptions, one_of
from lgdgcn.data.catalogue import DATASETS, DatasetInfo, available, is_available
from lgdgcn.errors import InputError

if TYPE_CHECKING:
    from lgdgcn.data.columns import ColumnSummary
    from lgdgcn.data.source import GraphSource

__all__ = ["check", "get", "list_sets", "pack"]

PIECE = 1 << 20  # nodes of a packed graph that are looked at at a time
NAME, EXAMPLE = 24, 30  # letters, so that a table of columns fits a terminal
MOST_COLUMNS = 40  # that a table of columns names


def list_sets() -> None:
    """List the data sets and where they are.

    Examples:
        lgdgcn data list
    """
    sets = available()
    rows = [
        [d.name, f"{d.nodes:,}", f"{d.edges:,}", f"{d.features:,}", str(d.classes),
         d.kind.removesuffix("-label"), _how(d)]
        for d in sets
    ]  # fmt: skip
    header = ["data set", "nodes", "edges", "features", "classes", "label", "to be had"]
    console.table("Data sets", header, rows)
    files = [Path(d.where_found) for d in sets if d.where_found and _how(d) == "here"]
    folders = dict.fromkeys(str(file if file.is_dir() else file.parent) for file in files)
    ways = {
        "here": ", ".join(folders),
        "download": "at first use, or with lgdgcn data get NAME",
        "own file": "put NAME.npz into the folder that $LGDGCN_DATA names",
    }
    for how, said in ways.items():
        if how in {row[-1] for row in rows}:
            console.say(f"{how}: {said}")


def check(
    graph: Graph,
    write: Annotated[
        bool, typer.Option("--write", help="Write the roles of the columns to graph.toml.")
    ] = False,
    *,
    reading: GraphOptions,
) -> None:
    """Show what is understood of a graph: nodes, edges, and of a folder the role of every column.

    Examples:
        lgdgcn data check my-graph/ --write
        lgdgcn data check cora
    """
    source = reading.source(graph)
    if write and not source.is_folder:
        raise InputError(f"--write is for a folder, and {graph[:200]} is a data set")
    load_libraries()
    if not source.is_folder:
        _describe(source)
    elif source.is_packed:
        _check_packed(source, write=write)
    else:
        _check_tables(source, write=write)


def pack(
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="Folder with edges.csv and nodes.csv.")
    ],
    out: Annotated[Path, typer.Option(help="Folder to make, such as graph.lgd.")],
    memory: Annotated[
        str | None,
        typer.Option(
            help="Most memory to use, such as 1GB.",
            show_default="1GB, or a quarter of what is free",
        ),
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Read the columns as the model of this run folder does."),
    ] = None,
    half: Annotated[
        bool, typer.Option("--half", help="Store dense features as 16-bit numbers.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the packed graph in the folder.")
    ] = False,
    *,
    reading: GraphOptions,
) -> None:
    """Pack a graph of your own, of any size, into arrays that every verb opens without reading.

    Examples:
        lgdgcn data pack my-graph/ --out my-graph.lgd
        lgdgcn data pack my-graph/ --out my-graph.lgd --memory 1GB --label genre
        lgdgcn data pack new-graph/ --out new-graph.lgd --like runs/my-graph-lgdgcn
    """
    source = reading.source(folder)
    if not source.is_folder or source.is_packed:
        raise InputError(
            f"{source.dataset[:200]} is no folder of tables; give one with edges.csv and nodes.csv"
        )
    made = [name for name in (source.features or "").split(",") if name]
    if structural := [name for name in made if not name.startswith("text:")]:
        raise InputError(
            f"--features {structural[0][:50]} is made when a packed graph is read: give it to "
            "lgdgcn train; here text:COLUMN is understood"
        )
    if source.split == "random":
        raise InputError("--split random is drawn in training: give it to lgdgcn train")
    encoding = None
    if like is not None and (source.ignore or source.features):
        option = "ignore" if source.ignore else "features"
        raise InputError(
            f"--like reads all columns as its model does, so --{option} has no part; leave it out"
        )
    if like is not None:
        from lgdgcn import tensor_file
        from lgdgcn.data.encoding import Encoding
        from lgdgcn.runs.folder import Run

        saved = tensor_file.load(Run.open(like).model, "model")[1].get("encoding")
        if saved is None:
            raise InputError(f"--like {like}: its model was not trained on columns of a table")
        encoding = Encoding.from_dict(saved)
    from lgdgcn.data.packing import pack as write_packed

    graph = write_packed(source.dataset, out, source.roles, encoding, memory, half, overwrite)
    size = sum(entry.bytes for entry in graph.manifest.files.values())
    edges = f"{graph.num_nodes:,} nodes, {graph.num_edges // 2:,} edges"
    console.say(f"{edges}, {graph.num_features:,} features, {size / 1e6:,.1f} MB: {out}")


def get(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="A data set of lgdgcn data list.", autocompletion=one_of(DATASETS)
        ),
    ],
) -> None:
    """Download a data set into the cache, verified.

    Examples:
        lgdgcn data get citeseer
    """
    from lgdgcn.data.registry import get as fetch

    console.say(f"{name}: {fetch(name)}")


def _how(known: DatasetInfo) -> str:
    if known.where_found is not None:
        return known.where_found if known.where_found == "generated" else "here"
    return "download" if is_available(known.name) else "own file"


def _check_tables(source: "GraphSource", *, write: bool) -> None:
    """Print what is understood of a user's tables, and propose to write it down."""
    from lgdgcn.data.graph_file import GRAPH_FILE, proposal
    from lgdgcn.storage import write_text

    folder, text = Path(source.dataset), ""
    file = folder / GRAPH_FILE
    if write and file.exists():
        raise InputError(f"{file} is there already; change it by hand, or remove it first")
    columns = source.columns()
    if columns:
        rows = [
            [_cut(c.name, NAME), c.role, _share(c.blank + c.odd, c.rows), _cut(c.example, EXAMPLE)]
            for c in columns[:MOST_COLUMNS]
        ]
        rows += _more_rows(columns[MOST_COLUMNS:])
        console.table("columns of the nodes", ["column", "role", "blank", "example"], rows, 4)
        text = proposal(columns)
    _describe(source)
    if write:
        write_text(file, text or proposal([]))
        console.say(f"written: {file}")
    elif file.exists():
        console.say(f"roles are those of {file}")
    elif len(columns) > MOST_COLUMNS:
        console.say(f"to change a role, let --write write {file} and edit it")
    elif text:
        console.say(f"to change a role, write {file} (--write writes this):\n")
        console.say(text)


def _more_rows(columns: "list[ColumnSummary]") -> list[list[str]]:
    """One row for all further columns of a role."""
    roles = dict.fromkeys(c.role for c in columns)
    rows = []
    for role in roles:
        of_role = [c for c in columns if c.role == role]
        share = _share(sum(c.blank + c.odd for c in of_role), sum(c.rows for c in of_role))
        rows.append([f"… {len(of_role):,} more", role, share, _cut(of_role[0].example, EXAMPLE)])
    return rows


def _check_packed(source: "GraphSource", *, write: bool) -> None:
    """Compare every byte of a packed graph with its manifest, then describe it."""
    from lgdgcn.data.packed import PackedGraph

    if write:
        raise InputError(
            f"{source.dataset} is packed: the roles of its columns are fixed; write graph.toml in "
            "the folder it is from, and pack that again"
        )
    graph = PackedGraph.open(source.dataset, verify="hashes")
    _describe(source)
    said = f"{len(graph.manifest.files)} files are what was packed"
    console.say(f"{said} (version {graph.manifest.package} of lgdgcn)")


def _cut(text: str, most: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _share(count: int, rows: int) -> str:
    share = 100 * count / max(1, rows)
    return "–" if not count else f"{share:.0f} %" if share >= 1 else "<1 %"


def _describe(source: "GraphSource") -> None:
    """Print what a graph holds, with the split that training would use."""
    import torch

    from lgdgcn.config import AUTO, auto_scaling
    from lgdgcn.data.labels import UntrainableError
    from lgdgcn.data.scaling import fit_scaling
    from lgdgcn.data.user_graph import NO_LABELS
    from lgdgcn.train.task import Task

    if source.is_packed and (rows := _rows_of_packed(source)):
        console.table(source.dataset, ["", ""], rows)
        return
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
        ["labels" if task.multi_label else "classes", str(task.outputs) if data.classes else "–"],
        ["train / validation / test", " / ".join(f"{part:,}" for part in parts)],
    ]
    if "edge_weight" in data:
        low, high = (f"{float(end):.3g}" for end in data.edge_weight.aminmax())
        rows.insert(2, ["edge weights", f"{low} to {high}"])
    if "edge_type" in data:
        known = int(data.edge_type.any(1).sum()) // 2
        rows.insert(2, ["edge types", f"{data.edge_type.size(1)} (known of {known:,} edges)"])
    if "y_factor" in data:
        rows.append(["known factors", str(data.y_factor.size(1))])
    console.table(source.dataset, ["", ""], rows)
    if auto_scaling(source.preset_name):
        console.say(str(fit_scaling(AUTO, data.x, data.train_mask)))
    if data.get("listed_once"):
        said = "edges are listed in one direction: taken in both, as no model here uses direction"
        console.say(said)
    if not data.classes and source.is_folder:
        console.say(f"labels of nodes cannot be learnt: it {NO_LABELS}")
        console.say("reasons or types of its edges can be found: lgdgcn train")
    if refused is not None:
        console.say(f"cannot be trained on: {refused}")


def _rows_of_packed(source: "GraphSource") -> list[list[str]]:
    """What a packed graph holds, piece by piece; nothing if it fits in memory, to look at all."""
    import numpy as np

    from lgdgcn.data.packed import PackedGraph
    from lgdgcn.data.packed.whole import memory_of_whole
    from lgdgcn.runtime import available_memory

    graph = PackedGraph.open(source.dataset)
    if memory_of_whole(graph) < available_memory() / 2:
        return []
    source.check_unread(graph)
    isolated, parts = 0, np.zeros(4, np.int64)
    for start in range(0, graph.num_nodes, PIECE):
        degree = np.diff(graph.row_ptr[start : start + PIECE + 1])
        isolated += int((degree == 0).sum())
        if graph.split is not None:
            parts += np.bincount(graph.split[start : start + PIECE], minlength=4)[:4]
    layout = "sparse" if graph.x_csr is not None else "dense"
    return [
        ["nodes", f"{graph.num_nodes:,}"],
        ["edges", f"{graph.num_edges // 2:,}"],
        ["average degree", f"{graph.num_edges / graph.num_nodes:.2f}"],
        ["isolated nodes", f"{isolated:,}"],
        ["features", f"{graph.num_features:,} ({layout})"],
        ["labels" if graph.manifest.label == "multi" else "classes", str(len(graph.classes))],
        ["train / validation / test", " / ".join(f"{int(part):,}" for part in parts[1:])],
    ]
