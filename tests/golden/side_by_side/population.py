"""Train members of one architecture with settings of their own in one pass.

``python population.py GRAPH RUN EPOCHS VARIANT`` leaves the files that ``lgdgcn train`` would, with
the number of a member in the place of its seed.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from lgdgcn.config import preset, resolve
from lgdgcn.data.source import GraphSource
from lgdgcn.train.jobs import Job, JobObserver, run_jobs
from lgdgcn.train.state import Member

OWN: tuple[dict[str, Any], ...] = (
    {"lr": 0.01, "dropout": 0.5},
    {"lr": 0.03, "dropout": 0.2, "weight_decay": 0.0},
    {"lr": 0.02, "dropout": 0.0, "tau": 0.5},
)


class Recorder(JobObserver):
    """Writes what every epoch says of every member, and the best weights of each."""

    def __init__(self, run: Path) -> None:
        self.run = run
        run.mkdir(parents=True)

    def on_epoch(self, jobs: Sequence[Job], trainer: Any, reports: Sequence[Any]) -> None:
        with (self.run / "metrics.jsonl").open("a") as file:
            for report in reports:
                file.write(json.dumps({"seed": report.index, **report.metrics}) + "\n")

    def on_end(self, jobs: Sequence[Job], trainer: Any) -> None:
        for index, job in enumerate(jobs):
            file = self.run / f"model-seed-{index}.safetensors"
            state = trainer.model(index).state_dict()
            save_file({name: one.contiguous().clone() for name, one in state.items()}, file)
            job.done = True


def main() -> None:
    graph, run, epochs, variant = sys.argv[1:]
    data = GraphSource(graph).load(0)
    base = preset("", "lgdgcn", variant, multi_label=data.y.dim() == 2)
    members = [
        Member(resolve({"variant": variant}, base, {**own, "epochs": int(epochs)}), seed)
        for seed, own in enumerate(OWN)
    ]
    jobs = [Job("lgdgcn", member, data) for member in members]
    run_jobs(jobs, torch.device("cpu"), Recorder(Path(run)))


if __name__ == "__main__":
    main()
