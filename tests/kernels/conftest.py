import pytest
import torch


@pytest.fixture(params=["torch", "numba"])
def backend(request, monkeypatch):
    if request.param == "numba":
        pytest.importorskip("numba")
    monkeypatch.setenv("LGDGCN_BACKEND", request.param)
    return request.param


@pytest.fixture
def gpu():
    """Where the Triton kernels run: a GPU, or Triton's interpreter on the CPU."""
    pytest.importorskip("triton")
    return "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)
