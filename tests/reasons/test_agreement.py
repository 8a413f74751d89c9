"""Reasons as agreements: planted answers, and what must not change them."""

import numpy as np
import pytest
from planted import customers, information

from lgdgcn.reasons.agreement import agreement_of
from lgdgcn.reasons.agreement_columns import BLANK, NodeColumn, level_edges, levels_of
from lgdgcn.reasons.edges import Edges

NODES = 300


def two_columns(seed: int = 0) -> tuple[Edges, list[NodeColumn], np.ndarray]:
    """Links in groups of one column or of another, one of chance, and two columns of no use."""
    draws = np.random.default_rng(seed)
    city, hobby, other = (draws.integers(0, 12, NODES) for _ in range(3))
    found: dict[tuple[int, int], int] = {}
    for reason, column in ((1, city), (2, hobby), (0, np.zeros(NODES, dtype=int))):
        for first in draws.integers(0, NODES, 700 if reason else 150):
            second = draws.choice(np.flatnonzero(column == column[first]))
            if first != second:
                found.setdefault((min(first, second), max(first, second)), reason)
    hobby = np.where(draws.random(NODES) < 0.2, -1, hobby)
    pairs = Edges.of(np.array(list(found)).T, NODES)
    columns = [
        NodeColumn("city", "category", city),
        NodeColumn("hobby", "category", hobby),
        NodeColumn("other", "category", other),
        NodeColumn("equal", "category", np.zeros(NODES, dtype=int)),
        NodeColumn("number", "number", draws.standard_normal(NODES)),
        NodeColumn("blank", "number", np.full(NODES, np.nan)),
    ]
    return pairs, columns, np.array([found[tuple(pair)] for pair in pairs.ends.T.tolist()])


def test_reasons_are_the_columns_that_explain_and_no_others() -> None:
    pairs, columns, true = two_columns()
    found = agreement_of(pairs, columns)
    assert sorted(found.names) == ["chance", "same city", "same hobby"]
    order = [0, found.names.index("same city"), found.names.index("same hobby")]
    sure = found.probability.max(1) > 0.8
    right = found.probability[:, order].argmax(1) == true
    assert sure.mean() > 0.5
    assert right[sure].mean() > 0.9
    city = next(column for column in found.columns if column.name == "city")
    assert city.share[order[1]] > 0.9
    assert max(city.share[order[2]], city.chance) < 0.25
    assert np.allclose(found.probability.sum(1), 1)


def test_columns_that_say_nothing_give_no_reason() -> None:
    columns = two_columns()[1]
    draws = np.random.default_rng(1)
    ends = np.sort(draws.integers(0, NODES, (2, 1500)), axis=0)
    found = agreement_of(Edges.of(ends, NODES), columns)
    assert found.names == ["chance"]
    assert (found.chance == 1).all()


@pytest.mark.parametrize(
    ("chance", "agreement", "expected"),
    [
        ([0.0, 0.0, 0.0, 0.0], [0.0, np.nan], [0, BLANK]),  # all alike: nothing is rare
        ([0.0] * 80 + [1.0] * 20, [0.0, 1.0], [0, 3]),  # one fifth agrees
        ([np.nan] * 3, [1.0], [BLANK - 1]),
    ],
)
def test_a_level_says_how_few_random_pairs_agree_as_much(
    chance: list[float], agreement: list[float], expected: list[int]
) -> None:
    levels = levels_of(np.array(agreement), level_edges(np.array(chance)))
    if not np.isnan(chance).all():
        assert levels.tolist() == expected


def test_a_graph_of_customers() -> None:
    drawn = customers(0)
    from lgdgcn.reasons.agreement import fit_agreement

    found = fit_agreement(drawn.data())
    assert information(found.probability.argmax(1), drawn.reasons) > 0.4
