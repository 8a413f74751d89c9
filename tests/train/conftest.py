"""What several tests of training need."""

import pytest
import torch

from lgdgcn.nn import FactorProjection


@pytest.fixture
def general_position(monkeypatch):
    """Start with few dead channels: a unit with one live channel is 1 up to rounding.

    Its nearest neighbours would then depend on rounding, and so on who is trained beside it.
    """
    real = FactorProjection.reset_parameters

    def reset_parameters(self):
        real(self)
        torch.nn.init.uniform_(self.bias, 0.2, 0.8)

    monkeypatch.setattr(FactorProjection, "reset_parameters", reset_parameters)
