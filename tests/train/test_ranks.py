import json
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from cli.runner import call
from large.graphs import changed
from large.test_sampler import STRUCTURE, canonical_graph, trained
from lgdgcn.train.ranks import RankError, Ranks, _new_name

TESTS = Path(__file__).parents[1]
SETTINGS = changed(STRUCTURE, batch_size=10, epochs=10)
EPOCHS = 4  # of five steps each

WORKER = """
import json, sys, time
import torch
from lgdgcn.errors import LGDError
from lgdgcn.train.ranks import Ranks
from large.test_sampler import canonical_graph, trained
from train.test_ranks import EPOCHS, SETTINGS

ranks = Ranks.start(torch.device("cpu"))
found = {}
trainer, reports = trained(SETTINGS, canonical_graph(), EPOCHS)
found["losses"] = [report.metrics for report in reports]
found["steps"] = trainer.loader.num_steps
ranks.check_same({"version": 1, "graph": "a"})
try:
    ranks.check_same({"version": 1, "graph": ranks.rank})
except LGDError as error:
    found["differ"] = str(error)
def late():
    time.sleep(8)  # longer than a rank may be silent in a step
    return 7

found["by_first"] = ranks.by_first(late)
if ranks.rank == 1:
    time.sleep(10)  # longer than the others wait
else:
    try:
        ranks.sum(torch.ones(1))
    except LGDError as error:
        found["hangs"] = str(error)
print(json.dumps(found), flush=True)
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]


def environment(**more):
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **more}


def test_two_ranks_train_as_one_and_name_what_is_wrong(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    meet = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    meet["LGDGCN_RANK_TIMEOUT"] = "6"
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER],
            env=environment(**meet, RANK=str(rank)),
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    first, second = (json.loads(worker.communicate(timeout=250)[0]) for worker in workers)
    assert first["steps"] * EPOCHS == 20
    _, reports = trained(SETTINGS, canonical_graph(), EPOCHS)
    for found in (first, second):
        for own, report in zip(found["losses"], reports, strict=True):
            assert own == pytest.approx(report.metrics, rel=1e-5)
    assert first["differ"] == (
        "rank 1 and rank 0 differ in graph; start all ranks with the same version, graph and "
        "settings"
    )
    assert first["by_first"] == second["by_first"] == 7
    assert first["hangs"].startswith("another rank hangs: rank 0 has waited for it")


def test_ranks_with_different_graphs_leave_an_older_run_as_it_was(tmp_path):
    run = tmp_path / "run"
    options = ["--epochs", "1", "--batch-size", "100", "--budget", "none", "--out", str(run)]

    def start(nodes, **ranks):
        command = [sys.executable, "-m", "lgdgcn", "train", f"synthetic:nodes={nodes}", *options]
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, env=environment(**ranks), **pipes)

    assert call("train", "synthetic:nodes=200", *options).code == 0
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    options.append("--overwrite")
    meet = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    for rank in (start(200, **meet, RANK="0"), start(300, **meet, RANK="1")):
        assert "differ in graph" in rank.communicate(timeout=250)[1]
        assert rank.returncode == 2
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_a_port_in_use_is_named(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("localhost", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        meet = {"MASTER_ADDR": "localhost", "MASTER_PORT": port, "WORLD_SIZE": "2", "RANK": "0"}
        for name, value in meet.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(RankError, match=f"localhost:{port}: the port is in use; name another"):
            Ranks.start(torch.device("cpu"))


def test_ranks_that_are_started_again_find_each_other_and_not_what_older_ones_wrote(monkeypatch):
    store, names = torch.distributed.HashStore(), []
    for _ in range(3):  # the store stays, as torchrun's may
        with ThreadPoolExecutor(3) as pool:
            meeting = [pool.submit(_new_name, store, rank, 3) for rank in (2, 1, 0)]
        found = {one.result() for one in meeting}
        assert len(found) == 1
        names += found
    assert len(set(names)) == 3
    monkeypatch.setenv("LGDGCN_RANK_TIMEOUT", "0.2")
    with pytest.raises(RuntimeError, match=r"rank 1 has not come within 0\.2 s"):
        _new_name(store, 0, 3)
    with pytest.raises(RuntimeError, match="rank 0 has not come"):
        _new_name(store, 2, 3)


def test_fault_35_a_rank_that_is_killed_loses_nothing(tmp_path):
    """A killed rank is started again by torchrun and resumes; only the first one writes."""
    graph = "synthetic:nodes=300"
    command = ["-m", "lgdgcn", "train", graph, "--epochs", "40", "--batch-size", "100"]
    command += ["--set", "batch_parts=2", "--set", "checkpoint_every=4", "--device", "cpu"]
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    assert call(*command[2:], "--out", undisturbed).code == 0
    ranks = ["--nproc-per-node=2", "--max-restarts=1", f"--master-port={free_port()}"]
    started = subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", *ranks, *command, "--out", str(killed)],
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    log = killed / "metrics.jsonl"
    while not log.is_file() or log.read_bytes().count(b"\n") < 6:
        assert started.poll() is None
        time.sleep(0.02)
    children = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
    os.kill(int(children[-1]), signal.SIGKILL)
    assert started.wait(timeout=250) == 0
    lines = [
        [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        for folder in (undisturbed, killed)
    ]
    assert len(lines[0]) == len(lines[1])
    for one, other in zip(*lines, strict=True):
        assert other == pytest.approx(one, rel=1e-5)
    results = [json.loads((f / "result.json").read_text()) for f in (undisturbed, killed)]
    one, other = (result["runs"][0]["scores"]["test"] for result in results)
    assert other == pytest.approx(one)
