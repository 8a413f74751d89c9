import pytest
import torch

from lgdgcn.large import rows


@pytest.mark.parametrize("every", [1, 2, 3, 7, 50])
@pytest.mark.parametrize("value", [True, False])
def test_nodes_of_a_mask_in_pieces(value, every, monkeypatch):
    monkeypatch.setattr(rows, "_PIECE", 5)
    mask = torch.rand(33, generator=torch.Generator().manual_seed(every)) < 0.6
    found = rows.nodes_of(mask, value, every)
    assert found.tolist() == [i for i in range(33) if mask[i] == value][::every]
