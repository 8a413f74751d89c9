"""Reasons as agreements: planted answers, and what must not change them."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from planted import information, products

from lgdgcn.reasons.agreement import agreement_of, fit_agreement
from lgdgcn.reasons.agreement_closeness import walk_closeness
from lgdgcn.reasons.agreement_columns import BLANK, NodeColumn, level_edges, levels_of, node_columns
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


def test_walks_are_counted_as_by_hand() -> None:
    """S² and S³ of a small graph, without the edge in question and those a random pair replaces."""
    draws = np.random.default_rng(3)
    edges = Edges.of(draws.integers(0, 14, (2, 40)), 14)
    weight = draws.random(len(edges))
    full = np.zeros((14, 14))
    full[tuple(edges.ends)] = weight
    degree = (full + full.T).sum(0)
    scale = 1 / np.sqrt(degree + 0.5 * degree.mean())
    full = (full + full.T) * np.outer(scale, scale)
    neighbour = [int(np.flatnonzero(row)[0]) if row.any() else -1 for row in full]
    i, j = np.array([(i, j) for i in range(14) for j in range(14) if i != j]).T
    swapped = full[i, j] == 0
    without = np.where(swapped, [np.array(neighbour)[i], np.array(neighbour)[j]], -1)
    two, three = walk_closeness(edges, weight, np.stack([i, j]), without)
    for pair in range(len(i)):
        first, last = full[i[pair]].copy(), full[:, j[pair]].copy()
        first[j[pair]], last[i[pair]] = 0, 0  # the edge itself
        for end, row in zip(without[:, pair], (first, last), strict=True):
            if end >= 0:
                row[end] = 0
        between = full.copy()
        between[i[pair], j[pair]] = between[j[pair], i[pair]] = 0
        assert two[pair] == pytest.approx(first @ last, abs=1e-8)
        assert three[pair] == pytest.approx(first @ between @ last, abs=1e-8)


def same_answer(one: np.ndarray, other: np.ndarray) -> float:
    """Share of the edges whose likeliest reason is the same."""
    return float((one.argmax(1) == other.argmax(1)).mean())


def test_the_direction_and_order_of_edges_and_the_codes_of_values_change_nothing() -> None:
    edges, columns, _ = two_columns()
    draws = np.random.default_rng(5)
    order = draws.permutation(len(edges))
    turned = Edges.of(edges.ends[::-1, order], NODES)
    renamed = [replace(c, values=99 - c.values) if c.name == "city" else c for c in columns]
    one, other = agreement_of(edges, columns), agreement_of(turned, renamed)
    assert one.names == other.names
    assert np.allclose(one.probability, other.probability)


def test_the_order_of_nodes_changes_only_which_random_pairs_are_drawn() -> None:
    edges, columns, _ = two_columns()
    place = np.random.default_rng(6).permutation(NODES)  # new number of each node
    moved = [replace(c, values=c.values[np.argsort(place)]) for c in columns]
    other = Edges.of(place[edges.ends], NODES)
    ends = np.sort(np.argsort(place)[other.ends], 0)
    order = np.argsort(ends[0] * NODES + ends[1])  # of the moved edges, as they were
    one, found = agreement_of(edges, columns), agreement_of(other, moved)
    assert set(one.names) == set(found.names)
    columns_of = [found.names.index(name) for name in one.names]
    assert same_answer(one.probability, found.probability[order][:, columns_of]) > 0.9


def test_other_pairs_are_judged_as_the_edges_are() -> None:
    edges, columns, _ = two_columns()
    found = agreement_of(edges, columns)
    probability, ratio = found.at(edges, columns, edges.ends)
    # levels of walks follow the last probabilities, by one step of EM nearer
    assert np.abs(probability - found.probability).mean() < 0.05
    assert np.corrcoef(ratio, found.ratio)[0, 1] > 0.95
    draws = np.random.default_rng(7)
    other = draws.integers(0, NODES, (2, 500))
    assert found.at(edges, columns, other[:, other[0] != other[1]])[1].mean() < ratio.mean() - 1


def test_a_planted_graph_and_what_may_not_be_seen_in_it() -> None:
    drawn = products(3)
    plain, typed = drawn.data(), drawn.data(typed=0.3)
    typed.y = typed.y[torch.randperm(len(typed.y), generator=torch.Generator().manual_seed(0))]
    one = fit_agreement(plain)
    assert information(one.probability.argmax(1), drawn.reasons) > 0.25
    assert np.array_equal(one.probability, fit_agreement(typed).probability)
    nothing = fit_agreement(plain, labels=np.full(len(plain.y), -1))
    assert np.array_equal(one.probability, nothing.probability)
    codes = np.unique(drawn.labels, return_inverse=True)[1]
    seen = agreement_of(Edges.of_graph(plain), node_columns(plain, codes), blanks_teach=True)
    assert "label" in [column.name for column in seen.columns]
