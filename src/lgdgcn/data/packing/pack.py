"""A folder of tables becomes a packed graph, stage by stage."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lgdgcn.data.encoding import Encoding
from lgdgcn.data.graph_file import GRAPH_FILE, merged_roles, read_graph_file
from lgdgcn.data.other_id import tell_other_id
from lgdgcn.data.packed.manifest import Manifest
from lgdgcn.data.packed.reader import PackedGraph
from lgdgcn.data.packed.writer import PackedWriter
from lgdgcn.data.packing.adjacency import write_adjacency
from lgdgcn.data.packing.edges import EdgeFacts, load_edges
from lgdgcn.data.packing.engine import Engine, memory_size
from lgdgcn.data.packing.files import check_unchanged, file_states, find_files
from lgdgcn.data.packing.node_cells import load_nodes
from lgdgcn.data.packing.nodes import check_ids, find_other_id, write_nodes
from lgdgcn.data.packing.table_file import TableFile
from lgdgcn.errors import InputError

__all__ = ["pack"]


def pack(
    folder: str | Path,
    target: str | Path,
    roles: Mapping[str, str] | None = None,
    encoding: Encoding | None = None,
    memory: str | None = None,
    half: bool = False,
    overwrite: bool = False,
) -> PackedGraph:
    """Pack the graph of a folder, in bounded memory.

    The folder is that of :func:`~lgdgcn.data.user_graph.read_graph`, of any size, and each table
    may be several files: ``edges-1.csv``, ``edges-2.csv``, or a folder ``edges/``. A pack that was
    killed goes on behind its last finished stage.

    Args:
        folder: Folder with ``edges.*`` and perhaps ``nodes.*``.
        target: Folder to make, such as ``graph.lgd``.
        roles: The roles of columns of the nodes table; ``graph.toml`` may name others.
        encoding: How the columns are to become features: that of the graph a model was trained on.
        memory: Most memory that the process may have, such as ``1GB``.
        half: Whether dense features are stored as float16.
        overwrite: Whether a packed graph at the target is replaced.

    Raises:
        InputError: Something is wrong with the tables, the disk or the target; nothing is left that
            looks like a graph.
    """
    folder, target = Path(folder), Path(target)
    if not folder.is_dir():
        raise InputError(f"{str(folder)[:200]} is no folder; give one with edges.csv and nodes.csv")
    edges, nodes = find_files(folder, "edges"), find_files(folder, "nodes")
    if not edges:
        if (folder / "edges.npz").exists():
            for option, value in (("half", half), ("memory", memory)):
                if value:
                    raise InputError(
                        f"--{option} is for tables, and {folder} holds arrays, which are packed as "
                        "they are; leave it out"
                    )
            return _pack_arrays(folder, target, roles, encoding, overwrite)
        raise InputError(f"{folder} has no edges file; add edges.csv, .tsv or .parquet")
    if (folder / "nodes.npz").exists():
        raise InputError(f"{folder} has nodes.npz and {edges[0].name}; give both as tables")
    if half and not nodes:
        raise InputError(f"--half is for features, and {folder} has no nodes file; leave it out")
    limit = memory_size(memory)
    written = read_graph_file(folder)
    given = merged_roles(written.roles, roles or {})
    toml = [folder / GRAPH_FILE] if (folder / GRAPH_FILE).exists() else []
    states = file_states([*edges, *nodes, *toml])
    width = max((len(TableFile(path, written.delimiter).names) for path in nodes), default=0)
    inputs = [states, given, None if encoding is None else encoding.as_dict(), half]
    with (
        PackedWriter(target, inputs, overwrite) as writer,
        closing(Engine(writer.work, writer.target, limit, width)) as engine,
    ):
        facts: dict[str, Any] = {}
        table = None
        if nodes:
            starts = writer.facts("nodes")
            table = load_nodes(engine, nodes, given, encoding, written.delimiter, starts)
            if encoding is None and (other := find_other_id(table, edges, given, written)):
                given = other.roles(given)
                tell_other_id(table.path, other)
                table = load_nodes(engine, nodes, given, encoding, written.delimiter, starts)
            if starts is None:
                check_ids(table)
                check_unchanged(states)
                writer.complete("nodes", table.starts)
            facts = writer.facts("columns") or writer.complete(
                "columns", write_nodes(table, writer, given, encoding, half)
            )
        joined = writer.facts("edges")
        if joined is None:
            found = load_edges(engine, edges, table, written.delimiter)
            check_unchanged(states)
            joined = writer.complete("edges", asdict(found))
        if not nodes:
            _write_ids(engine, writer)
        lists = writer.facts("adjacency") or writer.complete(
            "adjacency", write_adjacency(engine, writer, EdgeFacts(**joined))
        )
        engine.close()
        everything = {**facts, **lists, "nodes": joined["nodes"], "name": folder.resolve().name}
        if not everything["nodes"]:
            raise InputError(f"{folder}: the graph has no nodes; add edges or a table of nodes")
        writer.finish(_manifest(everything))
    return PackedGraph.open(target)


def _manifest(facts: Mapping[str, Any]) -> Manifest:
    about: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in facts.items()}
    return Manifest(**about)


def _write_ids(engine: Engine, writer: PackedWriter) -> None:
    """The ids that the edges name, unless they are the numbers of the nodes."""
    if engine.one("SELECT 1 FROM ids WHERE id <> CAST(n AS VARCHAR) LIMIT 1") is not None:
        with writer.table("ids", ["id"]) as table:
            for batch in engine.batches("SELECT id FROM ids ORDER BY n", 1 << 16):
                table.append(batch.columns)


def _pack_arrays(
    folder: Path,
    target: Path,
    roles: Mapping[str, str] | None,
    encoding: Encoding | None,
    overwrite: bool,
) -> PackedGraph:
    """Arrays in ``.npz`` files fit in memory: they are read as any folder is."""
    from lgdgcn.data.packed.whole import write_arrays
    from lgdgcn.data.user_graph import read_graph

    graph = read_graph(folder, require_labels=False, roles=roles, encoding=encoding)
    with PackedWriter(target, overwrite=overwrite) as writer:
        writer.finish(write_arrays(graph, writer))
    return PackedGraph.open(target)
