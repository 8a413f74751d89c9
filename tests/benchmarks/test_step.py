"""The benchmark of a step: what it counts, what it reports. How fast anything is, is not tested."""

import json
import sys
import time

import floor
import measuring
import pytest
import step
import torch
from rows import ROWS, Work

from lgdgcn.errors import InputError


@pytest.fixture
def quick(monkeypatch):
    """Measurements without a process of their own, and hardly any time for them."""
    monkeypatch.setattr(floor, "copy_rate", lambda device: 1e10)
    monkeypatch.setattr(floor, "matrix_rate", lambda device: 1e11)
    for name in ("keep_freed_memory", "set_threads"):
        monkeypatch.setattr(step, name, lambda: None)
    monkeypatch.setenv("LGDGCN_BACKEND", "torch")  # and as it was, afterwards

    def measured(row, size, **fields):
        return step.measure(row=row, size=size, **{**fields, "seconds": 0.001, "pretrain": 1})

    monkeypatch.setattr(step, "measured", measured)


def test_every_row_is_measured(quick):
    report = step.compared("60", 2, "cpu")
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
    def measured(row, size, **fields):
        if row == "dense":
            return {"left_out": "no room"}
        if row == "machine":
            return step.measure(row=row, size=size, **fields)
        time = {"median_ms": 2 * int(size), "min_ms": 1.0, "member_ms": 2 * int(size)}
        return {**time, "members": 1, "steps": 1, "peak_bytes": 5_000_000}

    monkeypatch.setattr(step, "measured", measured)
    folder = tmp_path / "new" / "bench"
    options = ["--size", "60", "--device", "cpu", "--growth", "--out", str(folder)]
    monkeypatch.setattr(sys, "argv", ["step.py", *options])
    step.main()
    text = capsys.readouterr().out
    assert "dense is left out: no room" in text
    assert all(f"\n{row}: {what}\n" in text for row, what in ROWS.items())
    assert "dense stops before 2,000: no room" in text
    assert "Counted floor" in text
    report = json.loads((folder / "step.json").read_text())
    assert [line["exponent"] for line in report["growth"]] == [1.0, 1.0, None]
    assert (folder / "growth.png").read_bytes().startswith(b"\x89PNG")


def test_a_fresh_process_measures_one_row_or_says_why_not():
    result = step.measured("gcn-sparse", "60", seconds=0.01)
    assert result["steps"] >= 1
    assert result["peak_bytes"] > 0
    slow, killed = (measuring.FreshProcess(step.__file__) for _ in range(2))
    assert slow.measure({"row": "slow", "size": "60"}, 0.01) == {"left_out": "not done after 0 s"}
    killed._process.kill()
    assert killed.measure({}) == {"left_out": "signal 9, often a lack of memory"}


def test_a_row_that_is_none(quick, capsys):
    with pytest.raises(InputError, match="row is 'slow'"):
        step.measured("slow", "60")
    measuring.answer(step.measure, '{"row": "slow", "size": "60", "device": "gpu"}')
    assert json.loads(capsys.readouterr().out)["left_out"].startswith("device is 'gpu'")


def test_steps_are_counted_and_slow_ones_measured_once():
    calls = []

    def recorded():
        calls.append(1)
        return 10  # a recording does several steps in one call

    timing = step.time_steps(recorded, torch.device("cpu"), seconds=0.001, pretrain=4)
    assert timing["steps"] == 10 * (len(calls) - 4 - 3)
    assert 0 < timing["min_ms"] <= timing["median_ms"]
    slow = step.time_steps(lambda: time.sleep(0.005) or 1, torch.device("cpu"), seconds=1e-4)
    assert slow["steps"] == 1


def test_exponents_of_exact_powers():
    assert measuring.exponent(step.SIZES, [3 * n**1.25 for n in step.SIZES]) == pytest.approx(1.25)
    assert measuring.exponent([10], [1]) is None


def test_sizes_that_would_take_too_long_are_left_out(monkeypatch):
    seen = []

    def measured(row, size, **fields):
        seen.append(int(size))
        return {"median_ms": (int(size) / 1000) ** 2 * 1e3}

    monkeypatch.setattr(step, "measured", measured)
    (line,) = step.growth("cpu", ["dense"], [2_000, 6_000, 20_000, 60_000])
    assert seen == [2_000, 6_000]
    assert line["exponent"] == pytest.approx(2)
    assert [("left_out" in point) for point in line["points"]] == [False, False, True, True]


def test_floor_of_a_tiny_graph_by_hand():
    counted = floor.count_released(nodes=3, edges=4, features=5, nonzeros=6, classes=2, hidden=4,
                                   factors=2, iterations=2, layers=1, k=1)  # fmt: skip
    moved, flops = ({part[0]: part[place] for part in counted} for place in (1, 2))
    # 12 unit numbers, 20 weights; stored matrix: 6 values, 6 columns, 3 boundaries
    assert moved["projection"] == 4 * (15 + 20 + 12 + 15 + 12 + 20)
    assert flops["projection"] == 2 * 2 * 6 * 4 + 10 * 12
    # 4 edges of 4 channels: spread 32, scores 32 + 32; two iterations, the first without scores
    assert moved["routing"] == 4 * ((7 + 24) + (14 + 48))
    assert flops["routing"] == 2 * (2 * 32 + 64 + 48) + (2 * 64 + 128 + 48)
    # three pairs per factor: a product of two channels, one comparison for either end
    assert flops["nearest neighbours"] == 2 * 3 * (2 * 2 + 2)
    assert moved["nearest neighbours"] == 4 * (12 + 2 * 6)
    assert flops["latent graph"] == 2 * (2 * 12 + 2 * 12)
    assert moved["Adam"] == 4 * 7 * (6 * 4 + 5 * 2)
    limits = floor.floor(counted, copying=4e3, multiplying=1e30)
    assert limits["ms"] == pytest.approx(sum(moved.values()) / 4)
    assert {part["bound"] for part in limits["parts"]} == {"bytes"}


def test_floor_of_our_model_by_hand():
    counted = floor.count_ours(nodes=3, edges=4, features=5, nonzeros=6, classes=8, hidden=2,
                               hops=2, views=2)  # fmt: skip
    moved, flops = ({part[0]: part[place] for part in counted} for place in (1, 2))
    # two views of 6 hidden numbers, 10 weights; stored: 2 views of 6 values, 6 columns, 3 rows
    assert moved["projection"] == 4 * 2 * (30 + 10 + 12)
    assert flops["projection"] == 2 * 2 * (2 * 6) * 2
    # a hop there and back: 4 edges and 3 loops of 4 numbers, and 12 added to the mean
    assert moved["propagation"] == 4 * 2 * 2 * (7 + 3 * 12)
    assert flops["propagation"] == 2 * 2 * (2 * 7 * 4 + 12)
    assert flops["class units"] == 3 * 2 * 12 * 8 + 6 * 48
    assert flops["losses"] == 20 * 48 + 2 * 2 * (2 * 4) * 8
    assert moved["Adam"] == 4 * 7 * ((5 + 8 + 1) * 2 + 8)


def test_a_generated_graph_has_the_sizes_of_its_settings():
    work = Work("fast", "500", degree=6, settings={"k": 8})
    shape = floor.shape_of(work.graph(), work.chosen(ours=False), ours=False)
    assert [shape[name] for name in ("nodes", "nonzeros", "layers", "k")] == [500, 10_000, 1, 8]


@pytest.mark.parametrize("size", ["corra", "-5", "1", "2.5"])
def test_sizes_that_are_none(monkeypatch, size, capsys):
    monkeypatch.setattr(sys, "argv", ["step.py", f"--size={size}"])
    with pytest.raises(SystemExit, match="2"):
        step.main()
    assert f"--size is {size!r}" in capsys.readouterr().err
