"""``lgdgcn bench --scale``: sizes, rows and reports. How fast anything is, is not tested."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from commands.runner import call
from lgdgcn.commands import bench_scale, scale_worker
from lgdgcn.commands.bench_scale import OwnProcess, growing_sizes
from lgdgcn.data.packed import PackedGraph
from lgdgcn.errors import InputError

pytest.importorskip("pyarrow.parquet")


def measure_with(monkeypatch, measure):
    """Rows are measured by a function instead of a process."""
    here = SimpleNamespace(wait=lambda: None, measure=measure, close=lambda: None)
    monkeypatch.setattr(bench_scale, "OwnProcess", lambda: here)


def test_three_sizes_in_one_report(monkeypatch, tmp_path):
    measure_with(monkeypatch, lambda work: scale_worker.measure(**work))
    monkeypatch.setattr(bench_scale, "growing_sizes", lambda n, e: [(500, 2_000), (n, e)])
    options = ["--nodes", 1_000, "--edges", 5_000, "--graphs", tmp_path / "g", "--device", "cpu"]
    outcome = call("bench", "--scale", *options, "--out", tmp_path / "o", "--json")
    assert outcome.code == 0, outcome.err
    report = json.loads(outcome.out[outcome.out.index("{") :])
    assert report["rows"] == json.loads((tmp_path / "o" / "scale.json").read_text())["rows"]
    names = ["generate", "prepare", "epoch", "predict", "full"]
    assert [(row["row"], row["edges"]) for row in report["rows"]] == [
        (name, edges) for edges in (2_000, 5_000) for name in names
    ]
    assert [one["row"] for one in report["growth"]] == names
    assert all(row["seconds"] > 0 for row in report["rows"])
    assert (tmp_path / "o" / "scale.png").read_bytes().startswith(b"\x89PNG")
    assert PackedGraph.open(tmp_path / "g" / "1000-5000.lgd").num_nodes == 1_000
    outcome = call("bench", "--scale", *options)  # the graphs are used again
    assert outcome.code == 0, outcome.err
    assert "generate:" not in outcome.out
    assert "time of predict grows with edges^" in outcome.out
    assert all(0 <= row["waiting_share"] < 1 for row in report["rows"] if row["row"] == "epoch")
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # which a measurement does not need
    place = {name: str(tmp_path / "g" / f"1000-5000.{name}") for name in ("lgd", "model")}
    found = scale_worker.measure("predict", place["lgd"], model=place["model"], device="cpu")
    assert found["file_bytes"] > 1_000


def test_batches_are_compared_with_all_nodes_at_once(monkeypatch):
    seconds = {"generate": 1.0, "epoch": 8.0, "predict": 1.0, "full": 2.0}
    extra = {"epoch": {"waiting_share": 0.125, "device_bytes": 3 * 10**9}}

    def measured(work):
        row = work["row"]
        if row == "full" and "100000" in work["graph"]:
            return {"left_out": "too large"}
        return {"seconds": seconds[row], **extra.get(row, {})}

    measure_with(monkeypatch, measured)
    said = call("bench", "--scale", "--edges", 100_000, "--device", "cpu").out
    about = "; 12% of the steps' time was spent waiting for a batch; 3.0 GB of the GPU's memory"
    assert f"batches of 10,000 edges: 125 nodes/s, 25% of the full batch's{about}" in said
    assert f"batches of 100,000 edges: 1,250 nodes/s{about}" in said
    assert "full of 100,000 edges is left out: too large" in said


def test_memory_is_that_of_the_process(tmp_path):
    """A process that fills 200 MB more has as much more without files, whoever started it."""
    code = "import numpy as np; from lgdgcn.commands.scale_worker import Memory\n"
    code += "import time\nwith Memory() as m:\n x = np.ones({}); time.sleep(0.1)\n"
    code += "print(m.anonymous, m.peak)"
    found = []
    for size in (1, 25_000_000):
        command = [sys.executable, "-c", code.format(size)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found.append([int(word) for word in done.stdout.split()])
    for less, more in zip(*found, strict=True):
        assert 190e6 < more - less < 260e6


def test_memory_of_a_gpu_is_that_of_the_one_that_computes(monkeypatch):
    used = {"cuda": 1, "cuda:1": 2}
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device="cuda": used[device])
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(scale_worker, "_full", lambda graph, device: {})
    found = [scale_worker.measure("full", "g", device=device) for device in ("cuda:1", "cpu")]
    assert [row.get("device_bytes") for row in found] == [2, None]


def test_a_row_that_fails_says_why(monkeypatch, tmp_path):
    measure_with(monkeypatch, lambda work: {"left_out": "no room"})
    outcome = call("bench", "--scale", "--edges", 10_000, "--device", "cpu")
    assert outcome.code == 0, outcome.err
    assert "generate of 10,000 edges is left out: no room" in outcome.out


def test_a_process_of_its_own_that_fails_leaves_its_row_out(tmp_path):
    work = {"row": "generate", "graph": str(tmp_path / "g"), "nodes": 1_000, "edges": 2_000}
    first, again, killed = (OwnProcess() for _ in range(3))
    assert first.measure(work)["found_edges"] > 1_000
    assert "is there already" in again.measure(work)["left_out"]
    killed.wait()
    killed._process.kill()
    assert killed.measure(work) == {"left_out": "signal 9, often a lack of memory"}


def test_sizes():
    assert growing_sizes(None, None) == [(1_000, 10_000), (10_000, 100_000), (100_000, 1_000_000)]
    assert growing_sizes(20_000, 50_000) == [(2_000, 5_000), (20_000, 50_000)]
    for nodes, edges in ((10, 1_000), (5_000, 4_000), (None, 1_000_000_000)):
        with pytest.raises(InputError, match="edges at most"):
            growing_sizes(nodes, edges)


def test_options_that_do_not_go_together():
    call("bench", "--nodes", 5_000).refused("options of --scale")
    call("bench", "--scale", "--size", "cora").refused("sizes of its own")
