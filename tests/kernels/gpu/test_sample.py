import pytest
import torch

from kernels.gpu.checks import DEVICE
from kernels.test_sample import case
from lgdgcn.kernels import reference
from lgdgcn.kernels.gpu import sample
from literal.seeds import seeds


@pytest.mark.parametrize("seed", seeds(1))
@pytest.mark.parametrize("fan_out", [0, 1, 5, 40, 600])
def test_equals_the_definition(seed, fan_out):
    row_ptr, nodes, key = case(seed, nodes=12)
    found = sample(row_ptr.to(DEVICE), nodes.to(DEVICE), fan_out, key)
    for own, expected in zip(found, reference.sample(row_ptr, nodes, fan_out, key), strict=True):
        assert torch.equal(own.cpu(), expected)
