"""What a reason is about: planted labels, features and words are found, chance is not."""

import numpy as np
import pytest
import scipy.sparse
import torch
from scipy.stats import fisher_exact
from torch_geometric.data import Data

from lgdgcn.reasons import EdgeReasons, Edges
from lgdgcn.reasons.describe import describe_reasons
from lgdgcn.reasons.traits import node_traits, traits_of

NODES = 60
IDS = [f"n{i}" for i in range(NODES)]


def planted():
    """Two rings of 30 nodes; the second ring's edges have the second reason."""
    rings = [[(start + i, start + (i + 1) % 30) for i in range(30)] for start in (0, 30)]
    edges = np.array(rings[0] + rings[1]).T
    probability = np.repeat([[0.9, 0.1], [0.2, 0.8]], 30, axis=0)
    return probability, edges


def described(probability, edges, traits, ids=IDS, *, names=None, **more):
    """What is said of the reasons of edges that are given as in ``edge_index``."""
    once = Edges.of(edges, len(ids))
    shares = once.once(probability)
    reasons = EdgeReasons(
        edges=once,
        probability=shares,
        names=names or ["reason"] * shares.shape[1],
        presence=shares,
        unknown=np.zeros(len(shares), dtype=bool),
        usual=shares.mean(0) if len(shares) else shares.sum(0),
        noun="type" if names else "reason",
    )
    return describe_reasons(reasons, traits, ids, **more)


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
    assert first.name == "word gamma"
    assert all(t.q < 1e-10 and t.inside == 1 and t.overall == 0.5 for t in second.traits)
    assert (second.size, second.share) == (30, 0.5)
    assert len(second.lines) == 3
    assert "height" in second.lines[0]


def test_chance_alone_gives_no_name():
    draws = np.random.default_rng(1)
    traits = node_traits(NODES, x=scipy.sparse.random(NODES, 40, 0.2, random_state=draws))
    found = described(*planted(), traits)
    assert [reason.name for reason in found] == ["reason 1", "reason 2"]
    assert all(not reason.traits for reason in found)


def test_q_values_are_those_of_fishers_test():
    y = np.r_[np.zeros(25), np.ones(35)].astype(int)
    traits = node_traits(NODES, y=y, classes=["a", "b"])
    first, second = described(*planted(), traits)
    tables = [[[25, 5], [0, 30]], [[5, 25], [30, 0]], [[0, 30], [25, 5]], [[30, 0], [5, 25]]]
    p = np.array([fisher_exact(table, alternative="greater").pvalue for table in tables])
    adjusted = np.minimum.accumulate((np.sort(p) * 4 / np.arange(1, 5))[::-1])[::-1]
    assert first.traits[0].q == pytest.approx(adjusted[0])
    assert (first.name, second.name) == ("label a", "label b")


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


def test_names_that_are_known_stay_and_equal_ones_are_numbered():
    y = np.r_[np.zeros(30), np.ones(30)].astype(int)
    traits = node_traits(NODES, y=y, classes=["a", "a"])
    probability, edges = planted()
    assert [r.name for r in described(probability, edges, traits, IDS)] == [
        "label a (1)",
        "label a (2)",
    ]
    named = described(probability, edges, traits, IDS, names=["road", "rail"])
    assert [reason.name for reason in named] == ["road", "rail"]


def test_a_reason_without_edges_has_no_name():
    y = np.r_[np.zeros(30), np.ones(30)].astype(int)
    probability = np.repeat([[0.9, 0.1], [0.6, 0.4]], 30, axis=0)  # never the likeliest
    first, second = described(probability, planted()[1], node_traits(NODES, y=y), IDS)
    assert (first.name, second.name, second.size) == ("label 0", "reason 2", 0)


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
