"""One row of ``lgdgcn bench --scale`` in a process of its own, whose memory is measured.

``python -m lgdgcn.commands.scale_worker`` reads a row, such as ``{"row": "predict", "graph":
"graph.lgd", …}``, from standard input and prints one JSON object: seconds, and the most memory that
was resident, with mapped files and without.
"""

import json
import re
import resource
import sys
import threading
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from lgdgcn.errors import InputError

__all__ = ["IMPORTED", "ROWS", "Memory", "measure"]

IMPORTED = (  # before a row is measured
    "lgdgcn.commands.predict_large",
    "lgdgcn.data.scale_graph",
    "lgdgcn.train.batch_trainer",
    "lgdgcn.train.large_graph",
)

ROWS = {
    "generate": "a graph is drawn and written packed",
    "prepare": "before an epoch: features are propagated ahead",
    "epoch": "one epoch in batches of nodes, with its evaluation",
    "predict": "all nodes are predicted and written to Parquet, without pyarrow to CSV",
    "full": "for comparison, an epoch that is one step on all nodes at once, with its evaluation",
}
SEVERAL = 2_000_000  # edges up to which a second epoch is measured, without first-time costs
STATUS = re.compile(r"(VmHWM|VmRSS|RssAnon):\s+(\d+) kB")


class Memory:
    """Watches how much memory this process has, while its context lasts.

    Attributes:
        before: Bytes that were resident at the start: the interpreter and its libraries.
        anonymous: Most bytes that were resident and not of a mapped file, looked at every 20 ms.
    """

    def __enter__(self) -> "Memory":
        now = _status()
        self.before, self.anonymous = now.get("VmRSS", 0), now.get("RssAnon", 0)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.02):
            self.anonymous = max(self.anonymous, _status().get("RssAnon", 0))

    @property
    def peak(self) -> int:
        """Most bytes that were ever resident, pages of mapped files among them."""
        # getrusage also knows what the process was before it became this program
        known = _status().get("VmHWM")
        return known or 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _status() -> dict[str, int]:
    """What Linux knows of this process, in bytes; nothing elsewhere."""
    try:
        text = Path("/proc/self/status").read_text()
    except OSError:
        return {}
    return {name: 1024 * int(number) for name, number in STATUS.findall(text)}


def measure(row: str, graph: str, **work: Any) -> dict[str, Any]:
    """Do the work of a row.

    Args:
        row: A key of :data:`ROWS`; ``prepare`` is measured with ``epoch``.
        graph: The folder of the packed graph, which ``generate`` makes.
        **work: ``nodes`` and ``edges`` to generate; ``model``, a file that an epoch writes and
            a prediction reads; ``batch_size``; ``device``.
    """
    kinds: dict[str, Callable[..., dict[str, Any]]]
    kinds = {"generate": _generate, "epoch": _epoch, "predict": _predict, "full": _full}
    with Memory() as memory:
        found = kinds[row](graph, **work)
    own = {"before_bytes": memory.before, "peak_bytes": memory.peak}
    own |= _device_memory(work.get("device", "cpu"))
    return {**own, "anonymous_bytes": memory.anonymous, **found}


def _device_memory(device: str) -> dict[str, int]:
    """The most memory that tensors had on a GPU; nothing on the CPU."""
    if device == "cpu":
        return {}
    import torch

    return {"device_bytes": torch.cuda.max_memory_allocated(device)}


def _generate(graph: str, nodes: int, edges: int) -> dict[str, Any]:
    from lgdgcn.data.scale_graph import write_scale_graph

    start = time.perf_counter()
    made = write_scale_graph(graph, nodes, edges)
    seconds = time.perf_counter() - start
    size = sum(entry.bytes for entry in made.manifest.files.values())
    return {"seconds": seconds, "graph_bytes": size, "found_edges": made.num_edges // 2}


def _epoch(graph: str, model: str, batch_size: int, device: str) -> dict[str, Any]:
    from lgdgcn.data.packed import PackedGraph
    from lgdgcn.runtime import keep_freed_memory, set_threads
    from lgdgcn.train.batch_trainer import BatchTrainer
    from lgdgcn.train.graph_rows import prepared_rows
    from lgdgcn.train.mapped import mapped_graph
    from lgdgcn.train.state import Member
    from lgdgcn.train.trained import TrainedModel

    set_threads()
    keep_freed_memory()  # as ``lgdgcn train`` does
    packed = PackedGraph.open(graph)
    settings = _settings(batch_size)
    start = time.perf_counter()
    ready = prepared_rows(mapped_graph(packed), settings)
    trainer = BatchTrainer(ready, Member(settings, 0), device=device)
    prepare = time.perf_counter() - start
    for _ in range(2 if packed.num_edges // 2 <= SEVERAL else 1):
        start = time.perf_counter()
        [report] = trainer.epoch()
        seconds = time.perf_counter() - start
    trained = TrainedModel(
        "lgdgcn",
        trainer.model(0, "model"),
        settings,
        trainer.tasks[0],
        packed.classes,
        packed.num_features,
        scaling=ready.scaling,
    )
    trained.save(Path(model))
    return {
        "seconds": seconds,
        "prepare_seconds": prepare,
        "step_seconds": trainer.stepped,
        "waiting_share": trainer.waited / trainer.stepped,
        "steps": trainer.deal.steps,
        "loss": report.metrics["total"],
    }


def _full(graph: str, device: str) -> dict[str, Any]:
    import torch

    from lgdgcn.data.packed import PackedGraph
    from lgdgcn.runtime import keep_freed_memory, set_threads
    from lgdgcn.train.mapped import mapped_graph
    from lgdgcn.train.memory import check_memory
    from lgdgcn.train.state import Member
    from lgdgcn.train.trained import prepared
    from lgdgcn.train.trainer import Trainer

    set_threads()
    keep_freed_memory()
    packed, settings = PackedGraph.open(graph), _settings(0)
    check_memory(mapped_graph(packed), [settings], "lgdgcn", torch.device(device))
    ready = prepared(packed.to_data(), settings, torch.device(device))
    trainer = Trainer([ready], [Member(settings, 0)])
    for _ in range(2):  # the first one has first-time costs
        start = time.perf_counter()
        epochs = len(trainer.epoch())  # a GPU makes several at a time
        seconds = (time.perf_counter() - start) / epochs
    return {"seconds": seconds}


def _settings(batch_size: int) -> Any:
    """Those of a graph without a preset; every size is to be the same work per node."""
    from lgdgcn.config import preset, resolve

    shipped = preset("", "lgdgcn", "sharp", multi_label=False)
    return resolve({**shipped, "batch_size": batch_size, "structure": "none"})


def _predict(graph: str, model: str, device: str) -> dict[str, Any]:
    from lgdgcn.commands.predict_large import write_large
    from lgdgcn.commands.table_file import large_format
    from lgdgcn.data.packed import PackedGraph
    from lgdgcn.runtime import set_threads
    from lgdgcn.train.large_graph import LargeGraph
    from lgdgcn.train.trained import TrainedModel

    set_threads()
    file = Path(model).with_suffix(large_format())
    start = time.perf_counter()
    large = LargeGraph(PackedGraph.open(graph), TrainedModel.load(Path(model), device))
    write_large(large, file, None, probabilities=False)
    seconds = time.perf_counter() - start
    size = file.stat().st_size
    file.unlink()
    return {"seconds": seconds, "file_bytes": size}


def main() -> None:
    """Import what rows need, wait for one, do its work and print what was measured."""
    warnings.simplefilter("ignore")
    for name in IMPORTED:
        import_module(name)
    sys.stdout.write("imported\n")
    sys.stdout.flush()
    try:
        found = measure(**json.loads(sys.stdin.read()))
    except InputError as error:
        sys.exit(str(error))
    sys.stdout.write("\n" + json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
