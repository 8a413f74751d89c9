import os

import pytest
import torch


@pytest.fixture(autouse=True)
def _triton_runs():
    """Skip where Triton has neither a GPU nor its interpreter (tests/conftest.py asks for it)."""
    if not torch.cuda.is_available() and os.environ.get("TRITON_INTERPRET") != "1":
        pytest.skip("triton has neither a GPU nor its interpreter")
