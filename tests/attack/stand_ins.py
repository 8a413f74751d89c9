"""What is slow and not attacked is replaced: drawing, layouts of pages, measuring of speed.

Imported by every process that runs commands, before they run.
"""

from pathlib import Path
from typing import Any

import lgdgcn.analysis.plots
import lgdgcn.benchmark.machine
import lgdgcn.benchmark.run
import lgdgcn.commands.reproduce
import lgdgcn.commands.tune
from experiments.tiny import cell
from lgdgcn.benchmark import worker
from lgdgcn.experiments.exhibits import Entry, Row, Table
from lgdgcn.storage import atomic_write

__all__: list[str] = []


def _plot_units(units: Any, path: Path, title: str) -> None:
    atomic_write(path, f"a figure: {title}".encode())


def _in_fresh_process(job: Any) -> dict[str, Any]:
    return worker.measure_machine(job) if job.row == "machine" else {"left_out": "not measured"}


def _described(names: Any, plan: Any) -> list[Table]:
    entry = Entry(cell("gcn", epochs=5), "micro_f1", (50.0, 1.0))
    return [Table("table1", "Small", ("A",), (Row("All", "GCN", (entry,)),))]


lgdgcn.analysis.plots.plot_units = _plot_units
lgdgcn.commands.tune.plot_history = lgdgcn.commands.tune.plot_importance = lambda study, path: None
lgdgcn.benchmark.run.in_fresh_process = _in_fresh_process
lgdgcn.benchmark.machine.copy_rate = lambda device: 1e10
lgdgcn.benchmark.machine.matrix_rate = lambda device: 1e11
lgdgcn.commands.reproduce.described = _described  # type: ignore[assignment]
