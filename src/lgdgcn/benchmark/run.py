"""All rows in one run, each measured in a fresh process, as one JSON object."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lgdgcn.benchmark.floor import Shape, floor
from lgdgcn.benchmark.rows import REFERENCE_ROW, ROWS
from lgdgcn.benchmark.workload import Job
from lgdgcn.errors import InputError

__all__ = ["LONGEST", "Measure", "OnStart", "benchmark", "in_fresh_process"]

LONGEST = 600.0  # seconds a measurement may take, set-up included

Measure = Callable[[Job], dict[str, Any]]
OnStart = Callable[[str], object]


def benchmark(
    job: Job,
    rows: Sequence[str] = tuple(ROWS),
    *,
    on_start: OnStart = lambda what: None,
    measure: Measure | None = None,
) -> dict[str, Any]:
    """Measure a workload: the machine first, then every row.

    Args:
        job: The workload; its ``row`` is not looked at.
        rows: Rows to measure.
        on_start: Told what is measured next.
        measure: Does one measurement; :func:`in_fresh_process` by default.

    Returns:
        ``machine``, ``workload``, ``floor`` and ``rows``. A row that could not be measured has
        ``left_out`` with the reason.

    Raises:
        InputError: The workload itself cannot be had, such as a data set that is not there.
    """
    measure = measure or in_fresh_process
    common = {key: value for key, value in job.as_dict().items() if key != "row"}
    on_start("machine")
    found = measure(Job("machine", **common))
    if "machine" not in found:
        raise InputError(found["left_out"])
    machine = found["machine"]
    limit = floor(
        Shape(**found["shape"]), machine["copy_bytes_per_s"], machine["matrix_flops_per_s"]
    )
    results = []
    for row in rows:
        on_start(row)
        results.append({"row": row, **measure(Job(row, **common))})
    _compare(results, limit["ms"])
    workload = {"size": job.size, "device": job.device, **found["shape"]}
    return {
        "machine": machine,
        "workload": {**workload, "settings": found["settings"]},
        "floor": limit,
        "rows": results,
    }


def _compare(results: list[dict[str, Any]], floor_ms: float) -> None:
    """Add how many times slower than the reference row, and the share of the floor."""
    times = {result["row"]: result.get("member_ms") for result in results}
    reference = times.get(REFERENCE_ROW)
    for result in results:
        mine = times[result["row"]]
        result["ratio"] = mine / reference if mine and reference else None
        counted = not result["row"].startswith("g")  # the floor is that of LGD-GCN
        result["floor_share"] = floor_ms / mine if mine and counted else None


def in_fresh_process(job: Job) -> dict[str, Any]:
    """Measure in another process; what goes wrong there is a reason to leave the row out."""
    package = str(Path(__file__).parents[2])
    path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "lgdgcn.benchmark.worker", json.dumps(job.as_dict())]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
            env={**os.environ, "PYTHONPATH": path},
        )
    except subprocess.TimeoutExpired:
        return {"left_out": f"not done after {LONGEST:.0f} s"}
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        reason = f"signal {-done.returncode}, often a lack of memory"
        return {"left_out": lines[-1] if lines else reason}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result
