"""Time and memory over the size of generated packed graphs: three sizes, each ten times the last.

    python benchmarks/scale.py
    python benchmarks/scale.py --edges 100000000 --graphs /data/graphs --out bench/

Every row is measured in a process of its own; ``--row JSON`` measures one here, such as
``{"row": "generate", "graph": "g.lgd", "nodes": 1000, "edges": 10000}``.
"""

import lgdgcn  # isort: skip  # noqa: F401  # before torch: it says how threads wait

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from graphs import write_scale_graph
from measuring import FreshProcess, Memory, Row, answer, exponent, number, print_table

from lgdgcn.cli.predict import node_blocks
from lgdgcn.cli.tables import write_table
from lgdgcn.config import Settings, preset, resolve
from lgdgcn.data.packed import PackedGraph, is_packed
from lgdgcn.large.rows import mapped_graph, prepared_rows
from lgdgcn.large.sampler import NeighbourLoader
from lgdgcn.large.view import GraphView
from lgdgcn.runtime import keep_freed_memory, select_device, set_threads
from lgdgcn.storage import check_target, make_folder, write_json
from lgdgcn.train.loader import Batch
from lgdgcn.train.memory import check_memory
from lgdgcn.train.population import Training
from lgdgcn.train.prepared import prepared
from lgdgcn.train.trained import TrainedModel
from lgdgcn.train.trainer import Trainer

ROWS = {
    "generate": "a graph is drawn and written packed",
    "prepare": "before an epoch: features are propagated",
    "epoch": "one epoch in batches of nodes, with its evaluation",
    "predict": "all nodes are predicted and written to Parquet, without pyarrow to CSV",
    "full": "for comparison, an epoch that is one step on all nodes at once, with its evaluation",
}
MOST_EDGES, LEAST_NODES = 100_000_000, 1_000
BATCH_SIZE = 8192
SEVERAL = 2_000_000  # edges up to which a second epoch is measured, without first-time costs


# One row, in a process of its own


def measure(row: str, graph: str, **work: Any) -> Row:
    """Do the work of a row on a packed graph, which ``generate`` makes.

    Args:
        row: A key of :data:`ROWS`; ``prepare`` is measured with ``epoch``.
        graph: Its folder.
        **work: ``nodes`` and ``edges`` to generate; ``model``, a file that an epoch writes and
            a prediction reads; ``batch_size``; ``device``.
    """
    kinds = {"generate": generate, "epoch": epoch, "predict": predict, "full": full}
    set_threads()
    with Memory(work.get("device", "cpu")) as memory:
        found = kinds[row](graph, **work)
    sizes = {"before_bytes": memory.before, "peak_bytes": memory.peak}
    sizes |= {"anonymous_bytes": memory.anonymous}
    on_gpu = {} if memory.on_gpu is None else {"device_bytes": memory.on_gpu}
    return {**sizes, **on_gpu, **found}


def generate(graph: str, nodes: int, edges: int) -> Row:
    start = time.perf_counter()
    made = write_scale_graph(graph, nodes, edges)
    seconds = time.perf_counter() - start
    size = sum(entry.bytes for entry in made.manifest.files.values())
    return {"seconds": seconds, "graph_bytes": size, "found_edges": made.num_edges // 2}


def settings_of(batch_size: int) -> Settings:
    """Those of a graph without a preset; every size is to be the same work per node."""
    shipped = preset("", "lgdgcn", "ours", multi_label=False)
    return resolve({**shipped, "batch_size": batch_size, "structure": "none"})


def epoch(graph: str, model: str, batch_size: int, device: str) -> Row:
    keep_freed_memory()  # as ``lgdgcn train`` does
    packed, settings = PackedGraph.open(graph), settings_of(batch_size)
    start = time.perf_counter()
    ready = prepared_rows(mapped_graph(packed), settings)
    loader = TimedLoader(ready, settings, device)
    trainer = Trainer([Training("lgdgcn", settings, 0, ready)], loader)
    prepare = time.perf_counter() - start
    for _ in range(2 if packed.num_edges // 2 <= SEVERAL else 1):
        start = time.perf_counter()
        [report] = trainer.epoch()
        seconds = time.perf_counter() - start
    network, task, sizes = trainer.model(0, "model"), trainer.tasks[0], packed.num_features
    TrainedModel(
        "lgdgcn", network, settings, task, packed.classes, sizes, scaling=ready.scaling
    ).save(Path(model))
    return {
        "seconds": seconds,
        "prepare_seconds": prepare,
        "step_seconds": loader.stepped,
        "waiting_share": loader.waited() / loader.stepped,
        "steps": loader.num_steps,
        "loss": report.metrics["total"],
    }


class TimedLoader(NeighbourLoader):
    """Measures how long the steps of an epoch take, and how long of it there is no batch.

    A GPU computes on while the host asks for the next batch. So there, the time is that between the
    end of the work on one batch and the beginning of the work on the next.
    """

    def steps(self) -> Iterator[Iterator[Batch]]:
        start, self.host, self.events = time.perf_counter(), 0.0, []
        for batches in super().steps():
            yield self._timed(batches)
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        self.stepped = time.perf_counter() - start

    def _timed(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        for _ in range(self.ranks.rank, self.order.parts, self.ranks.size):
            start, done = time.perf_counter(), self._event()
            batch = next(batches)
            self.events.append((done, self._event()))
            self.host += time.perf_counter() - start
            yield batch

    def _event(self) -> Any:
        """A moment in the work of a GPU."""
        if self.device.type != "cuda":
            return None
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self.device))
        return event

    def waited(self) -> float:
        """Seconds of the last epoch in which there was no batch to compute."""
        if self.device.type != "cuda":
            return self.host
        return sum(done.elapsed_time(ready) for done, ready in self.events) / 1000


def full(graph: str, device: str) -> Row:
    keep_freed_memory()
    packed, settings, where = PackedGraph.open(graph), settings_of(0), torch.device(device)
    check_memory(mapped_graph(packed), [settings], "lgdgcn", where)
    graph = prepared(packed.to_data(), settings, where)
    trainer = Trainer([Training("lgdgcn", settings, 0, graph)])
    for _ in range(2):  # the first one has first-time costs
        start = time.perf_counter()
        epochs = len(trainer.epoch())  # a GPU makes several at a time
        seconds = (time.perf_counter() - start) / epochs
    return {"seconds": seconds}


def predict(graph: str, model: str, device: str) -> Row:
    file = Path(model).with_suffix(".parquet")
    start = time.perf_counter()
    large = GraphView.mapped(TrainedModel.load(Path(model), device), PackedGraph.open(graph))
    write_table(file, node_blocks(large, probabilities=False))
    seconds = time.perf_counter() - start
    size = file.stat().st_size
    file.unlink()
    return {"seconds": seconds, "file_bytes": size}


# All rows


def growing_sizes(nodes: int, edges: int) -> list[tuple[int, int]]:
    """Nodes and edges of the graphs, the largest last."""
    sizes = [(nodes // ten, edges // ten) for ten in (100, 10, 1)]
    return [size for size in sizes if size[0] >= LEAST_NODES]


def measured(sizes: list[tuple[int, int]], place: Path, device: str) -> Iterator[Row]:
    """Measure every row of every size, each in a process of its own."""
    for nodes, edges in sizes:
        size = {"nodes": nodes, "edges": edges}
        graph, model = str(place / f"{nodes}-{edges}.lgd"), str(place / f"{nodes}-{edges}.model")
        common = {"graph": graph, "device": device}
        works: list[Row] = [
            {"row": "epoch", **common, "model": model, "batch_size": BATCH_SIZE},
            {"row": "predict", **common, "model": model},
            {"row": "full", **common},
        ]
        if not is_packed(Path(graph)):
            works.insert(0, {"row": "generate", "graph": graph, **size})
        processes = [FreshProcess(__file__) for _ in works]
        try:
            for process in processes:
                process.wait()
            for work, process in zip(works, processes, strict=True):
                start = time.monotonic()
                found = process.measure(work)
                spent = time.monotonic() - start
                print(f"{work['row']}, {edges:,} edges: {spent:.1f} s", file=sys.stderr)
                if "prepare_seconds" in found:
                    yield {"row": "prepare", **size, "seconds": found["prepare_seconds"]}
                yield {"row": work["row"], **size, **found}
                if "left_out" in found:
                    break
        finally:
            for process in processes:
                process.close()


def growth(rows: list[Row]) -> list[Row]:
    """By which power of the edges each row's time and memory grow."""
    found = []
    keys = {"seconds": "seconds", "anonymous": "anonymous_bytes", "resident": "peak_bytes"}
    for row in ROWS:
        points = [one for one in rows if one["row"] == row and "seconds" in one]
        edges = [one["edges"] for one in points]
        slopes = {
            name: exponent(edges, [one[key] for one in points])
            for name, key in keys.items()
            if points and all(key in one for one in points)
        }
        found += [{"row": row, **slopes}] if points else []
    return found


def show(report: Row) -> None:
    """Print the table, how all of it grows, and batches beside all nodes at once."""
    header = ["row", "nodes", "edges", "seconds", "resident MB", "without files MB"]
    lines = []
    for row in report["rows"]:
        memory = [row.get("peak_bytes"), row.get("anonymous_bytes")]
        cells = [row.get("seconds"), *(size and size / 1e6 for size in memory)]
        cells = [number(cell) for cell in cells]
        lines.append([row["row"], f"{row['nodes']:,}", f"{row['edges']:,}", *cells])
    print_table(f"Growth of generated graphs, {report['device']}", header, lines)
    names = {row["row"] for row in report["rows"]}
    print(*(f"{name}: {about}" for name, about in ROWS.items() if name in names), sep="\n")
    for one in report["growth"]:
        if one["seconds"] is not None:
            rest = f", its memory without files with edges^{one.get('anonymous', 0):.2f}"
            grows = f"time of {one['row']} grows with edges^{one['seconds']:.2f}"
            print(grows + rest * ("anonymous" in one))
    print(*throughput(report["rows"]), sep="\n")
    for row in report["rows"]:
        if "left_out" in row:
            print(f"{row['row']} of {row['edges']:,} edges is left out: {row['left_out']}")


def throughput(rows: list[Row]) -> Iterator[str]:
    """For every size, how many nodes a second batches have beside all nodes at once."""
    seconds = {(row["row"], row["edges"]): row.get("seconds") for row in rows}
    for row in rows:
        if row["row"] != "epoch" or "seconds" not in row:
            continue
        text = f"batches of {row['edges']:,} edges: {row['nodes'] / row['seconds']:,.0f} nodes/s"
        if whole := seconds.get(("full", row["edges"])):
            text += f", {whole / row['seconds']:.0%} of the full batch's"
        text += f"; {row['waiting_share']:.0%} of the steps' time was spent waiting for a batch"
        if "device_bytes" in row:
            text += f"; {row['device_bytes'] / 1e9:.1f} GB of the GPU's memory"
        yield text


def main() -> None:
    """Measure one row, or all of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, help="of the largest graph; a tenth of its edges")
    parser.add_argument("--edges", type=int, help="of the largest graph (default: 1,000,000)")
    parser.add_argument("--graphs", type=Path, help="folder to keep the graphs in, and find them")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, help="folder for scale.json")
    parser.add_argument("--row", help="measure one row, given as JSON, in this process")
    given = parser.parse_args()
    if given.row:
        answer(measure, given.row)
        return
    edges = given.edges or 10 * (given.nodes or 100_000)
    nodes = given.nodes or edges // 10
    if not LEAST_NODES <= nodes <= edges <= MOST_EDGES:
        parser.error(f"{nodes:,} nodes and {edges:,} edges; give {LEAST_NODES:,} nodes at least, "
                     f"no more of them than edges, and {MOST_EDGES:,} edges at most")  # fmt: skip
    if given.out:
        make_folder(given.out)
        check_target(given.out / "scale.json")
    device, kept = str(select_device(given.device)), given.graphs
    kept = nullcontext(make_folder(kept)) if kept else tempfile.TemporaryDirectory(prefix="scale-")
    with kept as place:
        rows = list(measured(growing_sizes(nodes, edges), Path(place), device))
    report = {"device": device, "batch_size": BATCH_SIZE, "rows": rows, "growth": growth(rows)}
    show(report)
    if given.out:
        write_json(given.out / "scale.json", report)


if __name__ == "__main__":
    main()
