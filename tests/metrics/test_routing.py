"""Factors that do not say why edges are there are worth one sentence, and no others."""

import pytest
import torch

from lgdgcn.config import Settings
from lgdgcn.metrics.routing import routing_warning, warnings_of_training


def planted(*counts, certain=0.9):
    """Edges of several factors, so many of each, whose probability is not 1."""
    factor = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    shares = torch.full((len(factor), len(counts)), (1 - certain) / max(1, len(counts) - 1))
    return shares.scatter(1, factor[:, None], certain)


@pytest.mark.parametrize(
    "shares",
    [
        None,
        torch.zeros(0, 3),
        torch.ones(200, 1),
        torch.full((200, 2), torch.nan),
        planted(60, 40, certain=0.6),
        planted(188, 6, 6),  # 94 %
        planted(38, 0),  # 19 edges
    ],
    ids=["no layers", "no edges", "one", "nan", "routed", "94 %", "few edges"],
)
def test_nothing_is_said_of_edges_that_are_told_apart_or_not_there(shares):
    assert routing_warning(shares, Settings()) is None


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ((0, 40), "all edges"),
        ((200, 0, 0, 0), "all edges"),
        ((2, 95, 3), "95.0 % of the edges"),
        ((1, 9999), "99.9 % of the edges"),  # and not all of them
    ],
)
def test_one_factor_of_nearly_all_edges_is_worth_one_sentence(counts, said):
    found = routing_warning(planted(*counts), Settings())
    assert found.startswith(f"one factor is the likeliest of {said}, so factors do not say why")
    assert found.endswith("; try lgdgcn train GRAPH --reasons model")
    assert warnings_of_training(["other", found]) == ["other"]


def test_edges_that_are_not_routed_are_worth_one_sentence():
    shares = planted(100, 0, certain=0.52)
    found = routing_warning(shares, Settings())
    assert found.startswith("routing entropy is 0.9988: ")
    assert "nothing is routed" in found
    assert found.endswith("; try lgdgcn train GRAPH --model lgdgcn")
    ours = routing_warning(shares, Settings(variant="ours", tau=2.0))
    assert ours.endswith("; raise lambda_edge (now 1)")
    assert warnings_of_training([found, "other", ours]) == ["other"]
