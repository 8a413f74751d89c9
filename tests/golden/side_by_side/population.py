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

try:
    from lgdgcn.training import Epoch, Training, run
except ImportError:  # in older trees they are elsewhere
    from lgdgcn.train.run import Epoch, Training, run

OWN: tuple[dict[str, Any], ...] = (
    {"lr": 0.01, "dropout": 0.5},
    {"lr": 0.03, "dropout": 0.2, "weight_decay": 0.0},
    {"lr": 0.02, "dropout": 0.0, "tau": 0.5},
)


def main() -> None:
    graph, folder, epochs, variant = sys.argv[1:]
    data, path = GraphSource(graph).load(0), Path(folder)
    base = preset("", "lgdgcn", variant, multi_label=data.y.dim() == 2)
    trainings = []
    for seed, own in enumerate(OWN):
        settings = resolve({"variant": variant}, base, {**own, "epochs": int(epochs)})
        trainings.append(Training("lgdgcn", settings, seed, data))
    path.mkdir(parents=True)
    with (path / "metrics.jsonl").open("a") as file:

        def on_epoch(reports: Sequence[Epoch]) -> None:
            for report in reports:
                line = {"seed": report.training.seed, **report.metrics}
                file.write(json.dumps(line) + "\n")

        for result in run(trainings, torch.device("cpu"), on_epoch):
            state = result.network().state_dict()
            weights = {name: one.contiguous().clone() for name, one in state.items()}
            save_file(weights, path / f"model-seed-{result.training.seed}.safetensors")


if __name__ == "__main__":
    main()
