import pytest
import torch

from kernels.gpu.checks import DEVICE, check_gradient
from kernels.test_propagate import case
from lgdgcn.kernels import reference
from lgdgcn.kernels.gpu import propagate
from literal.seeds import seeds


@pytest.mark.parametrize("seed", seeds(1))
@pytest.mark.parametrize(("size", "hops"), [(1, 0), (5, 3), (40, 2)])
def test_equals_the_definition(seed, size, hops):
    x, graph, weights, *_ = case(seed, size=size, hops=hops, dtype=torch.float32)
    graph = [part.to(DEVICE) for part in graph]
    exact = [*graph[:2], graph[2].double()]
    weights = weights.to(DEVICE)
    check_gradient(
        lambda x: propagate(x, *graph, weights),
        lambda x: reference.propagate(x, *exact, weights.double()),
        x,
        smallest=1.0,  # hops of different signs cancel
    )
    x = x.to(DEVICE)
    check_gradient(
        lambda w: propagate(x, *graph, w),
        lambda w: reference.propagate(x.double(), *exact, w),
        weights,
        tolerance=1e-4,
    )
