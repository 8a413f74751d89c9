"""The benchmark of large graphs: sizes, rows, reports. How fast anything is, is not tested."""

import json
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
import scale
import torch
from measuring import Memory

from lgdgcn.data.packed import PackedGraph

pytest.importorskip("pyarrow.parquet")


def measure_with(monkeypatch, measure):
    """Rows are measured by a function instead of a process."""
    here = SimpleNamespace(wait=lambda: None, measure=measure, close=lambda: None)
    monkeypatch.setattr(scale, "FreshProcess", lambda script: here)


def call(monkeypatch, capsys, *options):
    monkeypatch.setattr(sys, "argv", ["scale.py", "--device", "cpu", *map(str, options)])
    scale.main()
    return capsys.readouterr().out


def test_sizes_in_one_report(monkeypatch, tmp_path, capsys):
    measure_with(monkeypatch, lambda work: scale.measure(**work))
    monkeypatch.setattr(scale, "growing_sizes", lambda n, e: [(500, 2_000), (n, e)])
    options = ["--nodes", 1_000, "--edges", 5_000, "--graphs", tmp_path / "g"]
    call(monkeypatch, capsys, *options, "--out", tmp_path / "o")
    report = json.loads((tmp_path / "o" / "scale.json").read_text())
    names = ["generate", "prepare", "epoch", "predict", "full"]
    assert [(row["row"], row["edges"]) for row in report["rows"]] == [
        (name, edges) for edges in (2_000, 5_000) for name in names
    ]
    assert [one["row"] for one in report["growth"]] == names
    assert all(row["seconds"] > 0 for row in report["rows"])
    assert all(0 <= row["waiting_share"] < 1 for row in report["rows"] if row["row"] == "epoch")
    assert PackedGraph.open(tmp_path / "g" / "1000-5000.lgd").num_nodes == 1_000
    said = call(monkeypatch, capsys, *options)  # the graphs are used again
    assert "generate:" not in said
    assert "time of predict grows with edges^" in said


def test_batches_are_compared_with_all_nodes_at_once(monkeypatch, capsys):
    seconds = {"generate": 1.0, "epoch": 8.0, "predict": 1.0, "full": 2.0}
    extra = {"epoch": {"waiting_share": 0.125, "device_bytes": 3 * 10**9}}

    def measured(work):
        row = work["row"]
        if row == "full" and "100000" in work["graph"]:
            return {"left_out": "too large"}
        return {"seconds": seconds[row], **extra.get(row, {})}

    measure_with(monkeypatch, measured)
    said = call(monkeypatch, capsys, "--edges", 100_000)
    about = "; 12% of the steps' time was spent waiting for a batch; 3.0 GB of the GPU's memory"
    assert f"batches of 10,000 edges: 125 nodes/s, 25% of the full batch's{about}" in said
    assert f"batches of 100,000 edges: 1,250 nodes/s{about}" in said
    assert "full of 100,000 edges is left out: too large" in said


def test_memory_is_what_a_measurement_takes():
    with Memory() as memory:
        kept = np.ones(25_000_000)
        time.sleep(0.1)
    assert kept.nbytes == 200e6
    assert 190e6 < memory.peak - memory.before < 260e6
    assert memory.anonymous > 190e6


def test_memory_of_a_gpu_is_that_of_the_one_that_computes(monkeypatch):
    for name in ("empty_cache", "reset_peak_memory_stats"):
        monkeypatch.setattr(torch.cuda, name, lambda *device: None)
    used = {torch.device("cuda"): 1, torch.device("cuda:1"): 2}
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: used[device])
    monkeypatch.setattr(scale, "full", lambda graph, device: {})
    found = [scale.measure("full", "g", device=device) for device in ("cuda:1", "cpu")]
    assert [row.get("device_bytes") for row in found] == [2, None]


def test_what_builds_on_a_row_that_failed_is_not_measured(monkeypatch, tmp_path):
    measure_with(monkeypatch, lambda work: {"left_out": "no room"})
    [row] = scale.measured([(1_000, 10_000)], tmp_path, "cpu")
    assert row == {"row": "generate", "nodes": 1_000, "edges": 10_000, "left_out": "no room"}


@pytest.mark.parametrize(
    "options",
    [["--nodes", 10, "--edges", 1_000], ["--nodes", 5_000, "--edges", 4_000], ["--edges", 10**9]],
)
def test_sizes_that_are_none(monkeypatch, capsys, options):
    with pytest.raises(SystemExit, match="2"):
        call(monkeypatch, capsys, *options)
    assert "edges at most" in capsys.readouterr().err
    assert scale.growing_sizes(20_000, 50_000) == [(2_000, 5_000), (20_000, 50_000)]
