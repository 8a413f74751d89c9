"""A short pass of the attack; ``make attack`` runs it for as long as asked."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from attack.parts import run_case


@pytest.mark.parametrize(("part", "cases"), [("round-trip", 400), ("damaged-graph", 400)])
def test_graph_folders(part, cases, tmp_path):
    findings = {index: run_case(part, 0, index, tmp_path) for index in range(cases)}
    failed = {index: finding for index, finding in findings.items() if finding.failed}
    assert not failed
    assert len({finding.verdict for finding in findings.values()}) == 2  # errors and successes


def test_runs_kills_and_signals():
    """In a process of its own, which replaces what is slow and forks before it computes."""
    command = [sys.executable, "-m", "attack", "--cases", "0"]
    command += ["--runs", "4", "--kills", "2", "--signals", "4"]
    tests = Path(__file__).parents[1]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=tests, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("|\n") == 5, done.stdout
