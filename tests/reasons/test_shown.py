"""Which types are shown."""

import pytest
import torch

from lgdgcn.errors import InputError
from lgdgcn.reasons.edges import Edges
from lgdgcn.reasons.shown import shown_types
from reasons.graphs import random_graph


@pytest.mark.parametrize("share", [0, 0.05, 0.2, 1])
def test_a_share_of_single_types_is_shown_in_both_directions(share):
    data = random_graph(1)
    shown = shown_types(data.edge_index, data.edge_type, share, seed=3)
    single = (Edges.of_graph(data).once(data.edge_type).sum(1) == 1).sum()
    by_pair = Edges.of_graph(data).once(shown)
    assert by_pair.any(1).sum() == round(share * single)
    assert (by_pair[Edges.of_graph(data).number] == shown.numpy()).all()
    rows = shown.sum(1) > 0
    assert shown.dtype == torch.uint8
    assert shown[rows].equal(data.edge_type[rows])
    assert (shown.sum(1) <= 1).all()


def test_the_seed_decides_and_nothing_else():
    data = random_graph(2)
    first, again, other = (
        shown_types(data.edge_index, data.edge_type, 0.3, seed) for seed in (0, 0, 1)
    )
    assert first.equal(again)
    assert not first.equal(other)
    swapped = shown_types(data.edge_index, data.edge_type.flip(1), 0.3, 0)
    assert swapped.any(1).equal(first.any(1))


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan")])
def test_a_share_that_is_none(share):
    data = random_graph(0)
    with pytest.raises(InputError, match="share of shown types"):
        shown_types(data.edge_index, data.edge_type, share)
