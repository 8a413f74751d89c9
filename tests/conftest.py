"""What all tests share: random input that can be had again, and the benchmark graphs.

Random input is fresh in every run, except where ``CI`` is set: a change should not be refused for
what it did not do. A run that fails says its seed; ``LGDGCN_TEST_SEED=N`` repeats it.
"""

import os
import random
import secrets
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch

# set for all worker processes
SEED = os.environ.setdefault(
    "LGDGCN_TEST_SEED", "0" if "CI" in os.environ else secrets.token_hex(3)
)

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # before anything imports triton


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how a failed run can be repeated."""
    if terminalreporter.stats.get("failed"):
        terminalreporter.write_line(f"the same random input again: LGDGCN_TEST_SEED={SEED}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Draw the same numbers in a test whichever tests were run before it."""
    number = zlib.crc32(f"{SEED} {item.nodeid}".encode())
    random.seed(number)
    np.random.seed(number)
    torch.manual_seed(number)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder with the benchmark graphs as npz files; tests that need it skip elsewhere."""
    folders = [Path(os.environ["LGDGCN_DATA"])] if "LGDGCN_DATA" in os.environ else []
    folders += [parent / "shared" / "data" for parent in Path(__file__).resolve().parents]
    for folder in folders:
        if (folder / "cora.npz").is_file():
            return folder
    pytest.skip("no benchmark graphs: set LGDGCN_DATA to the folder with cora.npz")
