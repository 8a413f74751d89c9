import pytest


@pytest.fixture(params=["torch", "numba"])
def backend(request, monkeypatch):
    if request.param == "numba":
        pytest.importorskip("numba")
    monkeypatch.setenv("LGDGCN_BACKEND", request.param)
    return request.param
