import sys

import pytest
import torch

from lgdgcn import kernels
from lgdgcn.errors import InputError
from lgdgcn.kernels import dispatch


def test_unknown_backend(monkeypatch):
    monkeypatch.setenv("LGDGCN_BACKEND", "fortran")
    with pytest.raises(InputError, match=r"'fortran'.*torch, numba"):
        kernels.nearest(torch.randn(1, 3, 2), 1)


def test_without_numba(monkeypatch):
    for name in ("numba", "lgdgcn.kernels.cpu"):
        monkeypatch.setitem(sys.modules, name, None)
    dispatch.load_backend.cache_clear()
    try:
        monkeypatch.delenv("LGDGCN_BACKEND", raising=False)
        assert kernels.nearest(torch.randn(1, 3, 2), 1)[0].shape == (1, 3, 1)
        monkeypatch.setenv("LGDGCN_BACKEND", "numba")
        with pytest.raises(InputError, match=r"numba.*choose torch"):
            kernels.nearest(torch.randn(1, 3, 2), 1)
    finally:
        dispatch.load_backend.cache_clear()
