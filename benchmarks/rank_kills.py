"""Kill random ranks of one training at random times, and compare it with an undisturbed one.

python benchmarks/rank_kills.py --kills 10
"""

import argparse
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GRAPH = "synthetic:nodes=2000"


def command(epochs: int, out: Path) -> list[str]:
    """The training, which writes a checkpoint every few epochs."""
    settings = ["batch_parts=2", "checkpoint_every=5", f"patience={epochs}"]
    sets = [part for setting in settings for part in ("--set", setting)]
    size = ["--epochs", str(epochs), "--batch-size", "500", "--device", "cpu"]
    return ["-m", "lgdgcn", "train", GRAPH, *size, *sets, "--out", str(out)]


def epochs_of(folder: Path) -> list[dict[str, float]]:
    """What a training has written of its epochs so far."""
    log = folder / "metrics.jsonl"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.is_file() else []


def kill_some(started: "subprocess.Popen[bytes]", kills: int, folder: Path) -> list[int]:
    """Kill ranks at random times; returns the epoch that each kill came after."""
    seen = []
    for _ in range(kills):
        before, wait = len(epochs_of(folder)), random.randint(3, 12)
        while len(epochs_of(folder)) < before + wait:  # it has come back and goes on
            if started.poll() is not None:
                sys.exit(f"the training ended with {started.returncode} after {len(seen)} kills")
            time.sleep(random.uniform(0.01, 0.05))
        children = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
        os.kill(int(random.choice(children)), signal.SIGKILL)
        seen.append(len(epochs_of(folder)))
        print(f"kill {len(seen)} after epoch {seen[-1]}", flush=True)
    return seen


def main() -> None:
    """Run both trainings and print where they differ."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    random.seed(args.seed)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with tempfile.TemporaryDirectory() as place, socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
        free.close()
        alone, killed = Path(place) / "alone", Path(place) / "killed"
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        subprocess.run(
            [sys.executable, *command(args.epochs, alone)], check=True, env=environment, **quiet
        )
        ranks = ["--nproc-per-node=2", f"--max-restarts={args.kills}", f"--master-port={port}"]
        launch = [sys.executable, "-m", "torch.distributed.run", *ranks]
        started = subprocess.Popen(
            [*launch, *command(args.epochs, killed)], env=environment, **quiet
        )
        kill_some(started, args.kills, killed)
        code = started.wait()
        logs = [epochs_of(folder) for folder in (alone, killed)]
        worst = max(
            abs(one[key] - other[key]) / max(1e-12, abs(one[key]))
            for one, other in zip(*logs, strict=True)
            for key in one
        )
        results = [json.loads((folder / "result.json").read_text()) for folder in (alone, killed)]
        scores = [result["runs"][0]["scores"]["test"] for result in results]
        print(f"exit {code}, {len(logs[1])} epochs, largest relative difference {worst:.1e}")
        print(f"test: undisturbed {scores[0]}, killed {scores[1]}")


if __name__ == "__main__":
    main()
