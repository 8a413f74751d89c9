import numpy as np
import pytest

numba = pytest.importorskip("numba")

from lgdgcn.kernels.cpu.vector_math import exp  # noqa: E402
from lgdgcn.kernels.cpu.vectors import load, row_shape, store  # noqa: E402


@numba.njit
def exponentials(x, out, shape):
    for i in range(x.size // 16):
        store(out, i, exp(load(x, i, shape)))


@pytest.mark.parametrize(
    ("dtype", "lowest", "error"), [(np.float32, -80, 2e-7), (np.float64, -650, 5e-16)]
)
def test_exponential(dtype, lowest, error):
    random = np.random.default_rng()
    parts = np.linspace(lowest, 0, 1 << 16), -np.logspace(-30, 0, 1 << 12), -random.random(1 << 12)
    x = np.concatenate(parts).astype(dtype)
    out = np.empty_like(x)
    exponentials(x, out, row_shape(1, 16))
    expected = np.exp(x.astype(np.longdouble))
    assert np.abs(out / expected - 1).max() < error


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exponential_at_the_ends(dtype):
    x = np.array([0.0, -0.0, -np.inf, -1e30, np.nan] + [0.0] * 11, dtype)
    out = np.empty_like(x)
    exponentials(x, out, row_shape(1, 16))
    assert out[:2].tolist() == [1, 1]
    assert (out[2:4] >= 0).all()
    assert (out[2:4] < 1e-30).all()
    assert np.isnan(out[4])
