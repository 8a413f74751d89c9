"""The benchmark: what it counts, what it reports. How fast anything is, is not tested."""

import json
import time
from dataclasses import replace

import pytest
import torch

from commands.runner import call, widest_table
from lgdgcn.benchmark import run, worker
from lgdgcn.benchmark.floor import SharpShape, WorkloadShape, count, count_sharp, floor
from lgdgcn.benchmark.rows import ROWS
from lgdgcn.benchmark.worker import time_steps
from lgdgcn.benchmark.workload import Workload, clustered_graph, read_graph, settings_of, shape_of
from lgdgcn.commands.bench import bench
from lgdgcn.data.validate import canonical, fingerprint
from lgdgcn.errors import InputError


def measure_here(work):
    """A measurement without a process of its own, and hardly any time for it."""
    work = replace(work, seconds=0.001, pretrain=min(work.pretrain, 1))
    if work.row == "machine":
        return worker.measure_machine(work)
    return worker.measure(work)


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(run, "in_fresh_process", measure_here)
    monkeypatch.setattr("lgdgcn.benchmark.worker.copy_rate", lambda device: 1e10)
    monkeypatch.setattr("lgdgcn.benchmark.worker.matrix_rate", lambda device: 1e11)
    monkeypatch.setattr("lgdgcn.benchmark.worker.keep_freed_memory", lambda: None)
    monkeypatch.setattr("lgdgcn.benchmark.worker.set_threads", lambda: None)


def test_one_json_object_with_every_row(quick, capsys):
    bench(device="cpu", size="60", layers=2, scaling=False, as_json=True, folder=None)
    report = json.loads(capsys.readouterr().out)
    assert {row["row"]: row.get("left_out") for row in report["rows"]} == dict.fromkeys(ROWS)
    for row in report["rows"]:
        assert row["min_ms"] <= row["median_ms"]
        assert row["ratio"] > 0
        assert (row["floor_share"] is None) == row["row"].startswith("g")
    assert report["workload"]["nodes"] == 60
    assert report["workload"]["layers"] == 2
    assert report["floor"]["ms"] == pytest.approx(sum(p["ms"] for p in report["floor"]["parts"]))
    assert {"cpu", "cores", "threads", "gpu", "torch"} <= report["machine"].keys()


def test_tables_and_picture_with_what_is_left_out(quick, monkeypatch, capsys, tmp_path):
    def measure(work):
        if work.row == "dense":
            return {"left_out": "no room"}
        if work.row == "machine":
            return measure_here(work)
        time = {"median_ms": 2 * int(work.size), "min_ms": 1.0, "member_ms": 2 * int(work.size)}
        return {**time, "members": 1, "steps": 1, "peak_bytes": 5_000_000}

    monkeypatch.setattr(run, "in_fresh_process", measure)
    folder = tmp_path / "new" / "bench"
    bench(device="cpu", size="60", layers=None, scaling=True, as_json=False, folder=folder)
    text = capsys.readouterr().out
    assert "dense is left out: no room" in text
    assert all(f"\n{row}: {what}\n" in text for row, what in ROWS.items())
    assert widest_table(text) <= 80
    assert "dense stops before 2,000: no room" in text
    assert "Counted floor" in text
    series = json.loads((folder / "bench.json").read_text())["scaling"]
    assert [line["exponent"] for line in series] == [1.0, 1.0, None]
    assert (folder / "scaling.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("is_here", [True, False])
def test_without_cora_a_generated_graph_is_measured(monkeypatch, tmp_path, is_here):
    asked = []

    def benchmark(work, on_start):
        asked.append(work.size)
        raise InputError("measured")

    monkeypatch.setattr(run, "benchmark", benchmark)
    monkeypatch.setenv("LGDGCN_DATA", str(tmp_path))
    monkeypatch.setattr("lgdgcn.data.download.cache_dir", lambda: tmp_path / "cache")
    if is_here:
        (tmp_path / "cora.npz").touch()
    outcome = call("bench")
    assert asked == (["cora"] if is_here else ["2708"])
    said = "cora is not here, so a generated graph of 2708 nodes is measured"
    assert (said in outcome.err) is not is_here


def test_a_fresh_process_measures_one_row():
    result = run.in_fresh_process(Workload("gcn-sparse", "60", seconds=0.01))
    assert result["steps"] >= 1
    assert result["peak_bytes"] > 0


def test_steps_are_counted_and_slow_ones_measured_once():
    calls = []

    def recorded():
        calls.append(1)
        return 10  # a recording does several steps in one call

    timing = time_steps(recorded, torch.device("cpu"), seconds=0.001, pretrain=4)
    assert timing["steps"] == 10 * (len(calls) - 4 - 3)
    assert 0 < timing["min_ms"] <= timing["median_ms"]
    slow = time_steps(lambda: time.sleep(0.005) or 1, torch.device("cpu"), seconds=1e-4)
    assert slow["steps"] == 1


def test_exponents_of_exact_powers():
    sizes = run.SCALING_SIZES
    assert run.exponent(sizes, [3 * n**1.25 for n in sizes]) == pytest.approx(1.25)
    assert run.exponent([10], [1]) is None


def test_sizes_that_would_take_too_long_are_left_out():
    seen = []

    def measure(work):
        seen.append(int(work.size))
        return {"median_ms": (int(work.size) / 1000) ** 2 * 1e3}

    (line,) = run.scaling("cpu", [2_000, 6_000, 20_000, 60_000], ["dense"], measure=measure)
    assert seen == [2_000, 6_000]
    assert line["exponent"] == pytest.approx(2)
    assert [("left_out" in point) for point in line["points"]] == [False, False, True, True]


def test_floor_of_a_tiny_graph_by_hand():
    shape = WorkloadShape(nodes=3, edges=4, features=5, nonzeros=6, classes=2,
                  hidden=4, factors=2, iterations=2, layers=1, k=1)  # fmt: skip
    parts = {part.name: part for part in count(shape)}
    # 12 unit numbers, 20 weights; stored matrix: 6 values, 6 columns, 3 boundaries
    assert parts["projection"].bytes == 4 * (15 + 20 + 12 + 15 + 12 + 20)
    assert parts["projection"].flops == 2 * 2 * 6 * 4 + 10 * 12
    # 4 edges of 4 channels: spread 32, scores 32 + 32; two iterations, the first without scores
    assert parts["routing"].bytes == 4 * ((7 + 24) + (14 + 48))
    assert parts["routing"].flops == 2 * (2 * 32 + 64 + 48) + (2 * 64 + 128 + 48)
    # three pairs per factor: a product of two channels, one comparison for either end
    assert parts["nearest neighbours"].flops == 2 * 3 * (2 * 2 + 2)
    assert parts["nearest neighbours"].bytes == 4 * (12 + 2 * 6)
    assert parts["latent graph"].flops == 2 * (2 * 12 + 2 * 12)
    assert parts["Adam"].bytes == 4 * 7 * (6 * 4 + 5 * 2)
    limits = floor(shape, copy_rate=4e3, matrix_rate=1e30)
    assert limits["ms"] == pytest.approx(sum(part.bytes for part in parts.values()) / 4)
    assert {part["bound"] for part in limits["parts"]} == {"bytes"}


def test_floor_of_the_sharp_variant_by_hand():
    shape = SharpShape(nodes=3, edges=4, features=5, nonzeros=6, classes=8, hidden=2, hops=2,
                       views=2)  # fmt: skip
    parts = {part.name: part for part in count_sharp(shape)}
    # two views of 6 hidden numbers, 10 weights; stored: 2 views of 6 values, 6 columns, 3 rows
    assert parts["projection"].bytes == 4 * 2 * (30 + 10 + 12)
    assert parts["projection"].flops == 2 * 2 * (2 * 6) * 2
    # a hop there and back: 4 edges and 3 loops of 4 numbers, and 12 added to the mean
    assert parts["propagation"].bytes == 4 * 2 * 2 * (7 + 3 * 12)
    assert parts["propagation"].flops == 2 * 2 * (2 * 7 * 4 + 12)
    assert parts["class units"].flops == 3 * 2 * 12 * 8 + 6 * 48
    assert parts["losses"].flops == 20 * 48 + 2 * 2 * (2 * 4) * 8
    assert parts["Adam"].bytes == 4 * 7 * ((5 + 8 + 1) * 2 + 8)
    limits = floor(shape, copy_rate=4e3, matrix_rate=1e30)
    assert limits["ms"] == pytest.approx(sum(part.bytes for part in parts.values()) / 4)


def test_generated_graphs_are_canonical_and_repeatable():
    data = clustered_graph(500, degree=6)
    assert fingerprint(canonical(data.clone())) == fingerprint(data)
    assert fingerprint(clustered_graph(500, degree=6)) == fingerprint(data)
    assert 5 < data.edge_index.size(1) / 500 <= 6
    same = data.y[data.edge_index[0]] == data.y[data.edge_index[1]]
    assert same.float().mean() > 0.7
    work = Workload("fast", "500", degree=6, settings={"k": 8})
    shape = shape_of(read_graph(work), settings_of(work))
    assert (shape.nodes, shape.nonzeros, shape.layers, shape.k) == (500, 10_000, 1, 8)


@pytest.mark.parametrize("size", ["corra", "-5", "1", "2.5"])
def test_sizes_that_are_none(size):
    with pytest.raises(InputError, match="size is"):
        Workload("fast", size)


def test_what_cannot_be_measured_is_refused():
    with pytest.raises(InputError, match="--layers is 0"):
        bench(device="cpu", size="60", layers=0, scaling=False, as_json=True, folder=None)
    with pytest.raises(InputError, match="graph = knn"):
        settings_of(Workload("fast", "60", settings={"graph": "cknn"}))
    with pytest.raises(InputError, match="row is 'slow'"):
        worker.measure(Workload("slow", "60"))
