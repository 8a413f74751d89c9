"""What several tests of the GPU kernels share; without triton, whoever imports it is skipped."""

import pytest
import torch

pytest.importorskip("triton")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def check_gradient(function, exact, x, tolerance=1e-5, smallest=1e-3):
    """Value and gradient of a float32 function against the same one in float64.

    Errors are relative to the largest gradient of a row, or to `smallest`: what is added up to find
    a gradient may be larger than the gradient.
    """
    x = x.to(DEVICE).requires_grad_()
    wide = x.detach().double().requires_grad_()
    got, want = function(x), exact(wide)
    upstream = torch.randn_like(want).float()
    got.backward(upstream)
    want.backward(upstream.double())
    assert got.dtype == torch.float32
    torch.testing.assert_close(got.double(), want, rtol=tolerance, atol=tolerance)
    scale = wide.grad.abs().amax(-1, keepdim=True).clamp_min(smallest)
    torch.testing.assert_close(x.grad / scale, wide.grad / scale, rtol=tolerance, atol=tolerance)
