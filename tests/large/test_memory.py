"""The memory that a large graph takes beside mapped files does not grow with its nodes."""

import os
import subprocess
import sys

import pytest
from graphs import write_scale_graph

SMALL, LARGE = 50_000, 450_000  # so far apart that what libraries keep does not count
MOST = 48  # bytes for every node more; scores of 16 classes take 64, one-hot classes 128

# Pieces are far smaller than both graphs, and an epoch has two steps, whatever the graph.
CHILD = """
import sys
import torch
from pathlib import Path
from lgdgcn.cli import predict, tables
from measuring import Memory
from lgdgcn.config import Settings
from lgdgcn.data import labels, node_arrays
from lgdgcn.data.packed import PackedGraph
from lgdgcn.large import hops, rows, sampler, view
from lgdgcn.train import checks
from lgdgcn.runs import fit as seeds
from lgdgcn.train import task

hops._ENTRIES = labels._ENTRIES = node_arrays._PIECE = rows._PIECE = task._ENTRIES = 1 << 14
hops._IN_MEMORY = node_arrays._SMALL = 0
rows._LOOKED_AT = checks._ROWS = 1 << 12
sampler.SCORED = predict.BLOCK = 1 << 12
sampler.EpochOrder.steps = 2
sampler.EpochOrder.seeds = lambda self, order, step, part: order[:500].long()
settings = Settings(variant="ours", space=False, diversity=False, latent_graph=False, epochs=1,
                    hidden_channels=32, iterations=1, encoder_channels=8, hops=1, fan_out=1,
                    drop_nodes=0.5, batch_size=4096)
model = None
for folder in sys.argv[1:]:
    packed = PackedGraph.open(folder)
    with Memory() as training:
        graph = rows.mapped_graph(packed)
        _, own = seeds.fit(lambda seed: graph, settings, "lgdgcn", [0], torch.device("cpu"))
        del graph
    model = model or own
    with Memory() as prediction:
        large = view.GraphView.mapped(model, packed)
        tables.write_table(Path(folder, "out.parquet"), predict.node_blocks(large, False))
    print(training.anonymous, prediction.anonymous, file=sys.stderr)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells memory without files apart")
def test_training_and_prediction_hold_nothing_for_every_node(tmp_path):
    folders = [str(tmp_path / name) for name in ("first", "small", "large")]  # one loads libraries
    for folder, nodes in zip(folders, (SMALL, SMALL, LARGE), strict=True):
        write_scale_graph(folder, nodes, nodes, features=4)
    # memory that is freed is given back at once, so that what is measured was in use
    exact = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHILD, *folders],
        env={**os.environ, **exact, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [line.split() for line in done.stderr.splitlines() if line[:1].isdigit()]
    for small, large in zip(*rows[-2:], strict=True):
        assert int(large) - int(small) < MOST * (LARGE - SMALL), rows
