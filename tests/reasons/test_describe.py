"""What a reason is about: planted labels, features and words are found, chance is not."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
import torch
from scipy.stats import fisher_exact
from torch_geometric.data import Data

from lgdgcn.reasons import EdgeReasons, Edges
from lgdgcn.reasons.agreement_columns import NodeColumn
from lgdgcn.reasons.describe import describe_reasons, named
from lgdgcn.reasons.in_common import in_common
from lgdgcn.reasons.traits import node_traits, traits_of

NODES = 60
IDS = [f"n{i}" for i in range(NODES)]


def planted():
    """Two rings of 30 nodes; the second ring's edges have the second reason."""
    rings = [[(start + i, start + (i + 1) % 30) for i in range(30)] for start in (0, 30)]
    edges = np.array(rings[0] + rings[1]).T
    probability = np.repeat([[0.9, 0.1], [0.2, 0.8]], 30, axis=0)
    return probability, edges


def described(probability, edges, traits, ids=IDS, *, names=None, columns=(), **more):
    """What is said of the reasons of edges that are given as in ``edge_index``."""
    once = Edges.of(edges, len(ids))
    shares = once.once(probability)
    reasons = EdgeReasons(
        edges=once,
        probability=shares,
        names=names or [f"reason {k + 1}" for k in range(shares.shape[1])],
        presence=shares,
        unknown=np.zeros(len(shares), dtype=bool),
        usual=shares.mean(0) if len(shares) else shares.sum(0),
        noun="type" if names else "reason",
    )
    return describe_reasons(reasons, columns, traits, ids, **more)


def test_planted_traits_are_found():
    draws = np.random.default_rng(0)
    side = np.arange(NODES) >= 30
    texts = {"note": [("alpha beta" if one else "gamma beta") for one in side]}
    x = np.stack([draws.normal(size=NODES), side + 0.1 * draws.normal(size=NODES)], 1)
    traits = node_traits(
        NODES,
        y=draws.integers(0, 2, NODES),
        classes=["heads", "tails"],
        x=x,
        feature_names=["noise", "height"],
        texts=texts,
    )
    first, second = described(*planted(), traits)
    assert [(t.kind, t.name) for t in first.traits] == [("word", "gamma")]
    kinds = {t.kind: t.name for t in second.traits}
    assert kinds["word"] == "alpha"
    assert kinds["feature"].startswith("height above")
    assert len(second.traits) == 2
    assert all(t.q < 1e-10 and t.inside == 1 and t.overall == 0.5 for t in second.traits)
    assert (second.size, second.share) == (30, 0.5)
    assert len(second.lines) == 4
    assert "height" in second.lines[1]
    assert "word alpha (100 % against 50 %" in second.lines[1]


def test_chance_alone_gives_no_name():
    draws = np.random.default_rng(1)
    traits = node_traits(NODES, x=scipy.sparse.random(NODES, 40, 0.2, random_state=draws))
    found = described(*planted(), traits)
    assert [reason.name for reason in found] == ["reason 1", "reason 2"]
    assert all(not reason.traits for reason in found)


def test_q_values_are_those_of_fishers_test():
    y = np.r_[np.zeros(25), np.ones(35)].astype(int)
    traits = node_traits(NODES, y=y, classes=["a", "b"])
    first, _ = described(*planted(), traits)
    tables = [[[25, 5], [0, 30]], [[5, 25], [30, 0]], [[0, 30], [25, 5]], [[30, 0], [5, 25]]]
    p = np.array([fisher_exact(table, alternative="greater").pvalue for table in tables])
    adjusted = np.minimum.accumulate((np.sort(p) * 4 / np.arange(1, 5))[::-1])[::-1]
    assert first.traits[0].q == pytest.approx(adjusted[0])


def test_typical_edges_and_nodes_by_hand():
    edges = np.array([[0, 0, 0, 3], [1, 2, 3, 4]])
    probability = np.array([[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.2, 0.8]])
    both = np.concatenate([edges, edges[::-1]], 1)  # two directions are one edge
    for given, index in ((probability, edges), (np.tile(probability, (2, 1)), both)):
        first, second = described(given, index, node_traits(5), list("abcde"), most=2)
        assert first.edges == [("a", "d", pytest.approx(0.9)), ("a", "b", pytest.approx(0.9))]
        assert first.nodes == [("a", pytest.approx(2.7)), ("d", pytest.approx(1.1))]
        assert (first.size, second.size, second.share) == (3, 1, 0.25)
        assert second.edges == [("d", "e", pytest.approx(0.8))]


def cities(draws, nodes=200):
    """Edges within cities, edges within teams that no column has, and both columns of the nodes."""
    city, team = draws.integers(0, 10, (2, nodes))
    pairs = np.stack(np.triu_indices(nodes, 1))
    some = draws.random(pairs.shape[1])
    ends = []
    for group in (city, team):
        same = group[pairs[0]] == group[pairs[1]]
        ends.append(pairs[:, same & (some < 0.2)])
        some = draws.random(pairs.shape[1])
    reason = np.repeat([0, 1], [part.shape[1] for part in ends])
    return np.concatenate(ends, 1), reason, city, draws.random(nodes)


def in_cities(**more):
    draws = np.random.default_rng(3)
    ends, reason, city, age = cities(draws)
    _, first = np.unique(ends[0] * 200 + ends[1], return_index=True)
    edges = Edges.of(ends[:, first], 200)
    blank = draws.random(200) < 0.2
    columns = [
        NodeColumn("city", "category", np.where(blank, -1, city)),
        NodeColumn("age", "number", age),
        NodeColumn("all one", "category", np.zeros(200, dtype=int)),
        NodeColumn("blank", "number", np.full(200, np.nan)),
    ]
    return edges, reason[first], columns, np.where(blank, -1, city)


def test_what_ends_have_in_common_is_counted_by_hand():
    edges, reason, columns, city = in_cities()
    first, second = in_common(edges, reason, 2, columns)
    [shared] = first.columns  # neither a column that says nothing nor one with a single value
    ends = city[edges.ends[:, reason == 0]]
    known = (ends >= 0).all(0)
    assert shared.share == (ends[0] == ends[1])[known].mean() == 1
    assert shared.chance == pytest.approx(0.1, abs=0.03)
    others = city[edges.ends[:, reason == 1]]
    known = (others >= 0).all(0)
    assert shared.others == pytest.approx((others[0] == others[1])[known].mean())
    assert str(shared).startswith("same city 100 % (random pairs ")
    assert (second.columns, second.is_group) == ([], True)
    a, b = edges.ends[:, reason == 0]
    common = edges.adjacency[a].multiply(edges.adjacency[b]).sum(1)
    assert first.common_neighbours == pytest.approx(float(common.mean()))
    assert first.common_neighbours > 3 * first.by_chance


def test_reasons_are_called_by_what_tells_them_from_others():
    edges, reason, columns, _ = in_cities()
    shares = np.eye(2)[reason]
    found = EdgeReasons(
        edges, shares, ["reason 1", "reason 2"], shares, np.zeros(len(reason), bool), shares.mean(0)
    )
    assert named(found, columns).names == ["same city", "group 2"]
    assert named(replace(found, noun="type"), columns).names == found.names  # they have names
    twice = replace(found, probability=np.eye(2)[np.zeros(len(reason), dtype=int)])
    assert named(twice, []).names == ["group 1", "group 2"]
    by_chance = replace(found, names=["chance", "reason 2"])
    assert named(by_chance, columns).names == ["chance", "group 2"]


def test_names_do_not_depend_on_the_order_of_edges_or_of_reasons():
    edges, reason, columns, _ = in_cities()
    order = np.random.default_rng(0).permutation(len(reason))
    turned = Edges.of(edges.ends[::-1, order], 200)  # other directions, another order
    own = in_common(edges, reason, 2, columns)
    assert in_common(turned, reason, 2, columns) == own
    assert in_common(edges, 1 - reason, 2, columns) == own[::-1]


def test_a_reason_without_edges_has_no_name():
    y = np.r_[np.zeros(30), np.ones(30)].astype(int)
    probability = np.repeat([[0.9, 0.1], [0.6, 0.4]], 30, axis=0)  # never the likeliest
    first, second = described(probability, planted()[1], node_traits(NODES, y=y), IDS)
    assert (second.size, second.traits, second.lines) == (
        0, [], ["no edges: it is the likeliest of none"]
    )  # fmt: skip
    assert first.size == 60


def test_no_edges_no_traits():
    none = described(np.zeros((0, 2)), np.zeros((2, 0), int), node_traits(3), list("abc"))
    assert [(r.name, r.size, r.share, r.edges, r.nodes) for r in none][1] == (
        "reason 2", 0, 0.0, [], []
    )  # fmt: skip


def test_traits_of_a_graph_leave_out_what_only_machines_read():
    graph = Data(x=torch.eye(4), y=torch.tensor([0, 1, -1, 0]), classes=["=1+1", "größe"])
    graph.node_text = {"t": ["two words", "two", "", "nan"]}
    traits = traits_of(graph)
    assert traits.names == ["=1+1", "größe"]  # "two" is a stop word, "words" stands once
    assert traits.has.toarray().tolist() == [[1, 0], [0, 1], [0, 0], [1, 0]]


def test_a_date_is_named_as_a_date():
    days = [[18000.0], [18389.5], [18400.0], [18500.0]]
    traits = node_traits(4, x=np.array(days), feature_names=["since"], dates={"since"})
    assert traits.names == ["since after 2020-05-12"]


def test_a_graph_without_edges_has_reasons_about_nothing():
    traits = node_traits(3, y=[0, 1, 1], classes=["a", "b"])
    found = described(np.zeros((0, 2)), np.zeros((2, 0), dtype=int), traits, ["x", "y", "z"])
    assert [one.name for one in found] == ["reason 1", "reason 2"]
    assert [(one.size, one.traits, one.edges, one.nodes) for one in found] == [(0, [], [], [])] * 2
