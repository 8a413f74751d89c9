"""Fixtures shared by all tests."""

import os
from pathlib import Path

import pytest
import torch

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # before anything imports triton


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder with the benchmark graphs as npz files; tests that need it skip elsewhere."""
    folders = [Path(os.environ["LGDGCN_DATA"])] if "LGDGCN_DATA" in os.environ else []
    folders += [parent / "shared" / "data" for parent in Path(__file__).resolve().parents]
    for folder in folders:
        if (folder / "cora.npz").is_file():
            return folder
    pytest.skip("no benchmark graphs: set LGDGCN_DATA to the folder with cora.npz")
