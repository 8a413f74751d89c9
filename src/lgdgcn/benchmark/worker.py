"""One measurement in a process of its own, so that its peak memory is its own.

``python -m lgdgcn.benchmark.worker '{"row": "fast", "size": "cora", "layers": 4}'`` prints one
JSON object; see :class:`~lgdgcn.benchmark.workload.Job` for the keys. The row ``machine`` measures
the machine and describes the workload instead.
"""

import dataclasses
import json
import sys
import warnings
from typing import Any

import torch

from lgdgcn.benchmark import machine
from lgdgcn.benchmark.clustered import clustered_graph
from lgdgcn.benchmark.measure import MemoryMeter, time_steps
from lgdgcn.benchmark.rows import forced_backend, is_ours, members_of, training_step
from lgdgcn.benchmark.workload import Job, read_graph, settings_of, shape_of
from lgdgcn.errors import LGDError
from lgdgcn.runtime import keep_freed_memory, select_device, set_seed, set_threads

__all__ = ["measure", "measure_machine"]

Result = dict[str, Any]


def measure(job: Job) -> Result:
    """Measure the training step of one row."""
    device = select_device(job.device)
    settings = settings_of(job)
    set_seed(0)
    set_threads()
    with forced_backend(job.row, device):
        # a rehearsal on a small graph compiles or loads all that a step needs
        rehearsal = training_step(job.row, clustered_graph(200), settings, device)
        rehearsal()
        del rehearsal
        data = read_graph(job)
        memory = MemoryMeter(device)
        if is_ours(job.row):  # as training does; the others run as a plain script would
            keep_freed_memory()
        step = training_step(job.row, data, settings, device)
        timing = time_steps(step, device, job.seconds, job.pretrain)
    members = members_of(job.row)
    return {
        "row": job.row,
        "members": members,
        **timing,
        "member_ms": timing["median_ms"] / members,
        "peak_bytes": memory.peak(),
    }


def measure_machine(job: Job) -> Result:
    """Describe and measure the machine, and say how large the workload is."""
    device = select_device(job.device)
    set_threads()
    settings = settings_of(job)
    return {
        "shape": dataclasses.asdict(shape_of(read_graph(job), settings)),
        "settings": settings.as_dict(),
        "machine": {
            **machine.describe(device),
            "copy_bytes_per_s": machine.copy_rate(device),
            "matrix_flops_per_s": machine.matrix_rate(device),
        },
    }


def main() -> None:
    """Run the job given as JSON; a job that cannot be done says why under ``left_out``."""
    warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
    try:
        job = Job(**json.loads(sys.argv[1]))
        result = measure_machine(job) if job.row == "machine" else measure(job)
    except (LGDError, ImportError, torch.OutOfMemoryError) as error:
        result = {"left_out": " ".join(str(error).split())}
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
