import numpy as np
import pytest
import torch

from lgdgcn.errors import InputError
from lgdgcn.reasons import fit_edges
from lgdgcn.reasons.agreement_columns import NodeColumn
from lgdgcn.reasons.cliques import cover_by_cliques
from lgdgcn.reasons.edges import Edges
from lgdgcn.reasons.evidence import Evidence
from lgdgcn.reasons.structure import describe_edges
from reasons.planted import activity_graph, clique_graph, matched_accuracy


def some_types(types: np.ndarray, share: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Types of a share of the pairs, zeros elsewhere, and where they are hidden."""
    hidden = np.random.default_rng(seed).random(len(types)) >= share
    return np.where(hidden[:, None], 0, types), hidden


def test_activities_without_any_help():
    ends, types = activity_graph()
    reasons = fit_edges(ends, 150, num_factors=3)
    assert not reasons.about["choice"]["cliques"]
    assert reasons.probability.sum(1) == pytest.approx(1)
    assert matched_accuracy(reasons.predict(), types) > 0.85
    assert reasons.names == ["reason 1", "reason 2", "reason 3"]
    assert reasons.activity.sum() == pytest.approx(2 * ends.shape[1], rel=1e-4)


def test_shown_types_name_the_rest_with_calibrated_probabilities():
    ends, types = activity_graph()
    shown, hidden = some_types(types, 0.1)
    reasons = fit_edges(ends, 150, shown=shown, type_names=["AA", "BB", "CC"])
    single = hidden & (types.sum(1) == 1)
    right = (reasons.predict() == types.argmax(1))[single]
    assert right.mean() > 0.85
    sure = reasons.probability.max(1)[single]
    assert abs(sure.mean() - right.mean()) < 0.08
    assert reasons.names == ["AA", "BB", "CC"]
    # A pair with two types is likelier to have its second than a pair with one to have another.
    several = hidden & (types.sum(1) == 2)
    second = np.sort(reasons.presence)[:, -2]
    assert second[several].mean() > second[single].mean()


def test_a_type_is_present_more_often_than_it_is_the_only_one():
    ends, types = activity_graph(sizes=(50, 40))
    types[::3] = 1  # a third of the pairs have both
    shown, _ = some_types(types, 0.3)
    reasons = fit_edges(ends, 150, shown=shown)
    several = shown.sum() / (shown.sum(1) > 0).sum()
    assert several > 1.2
    expected = 1 - (1 - reasons.probability) ** several
    assert reasons.presence == pytest.approx(expected, abs=1e-5)


def test_shown_types_of_cliques():
    ends, types = clique_graph(nodes=200)
    shown, hidden = some_types(types, 0.1)
    reasons = fit_edges(ends, 200, shown=shown)
    single = hidden & (types.sum(1) == 1)
    assert (reasons.predict() == types.argmax(1))[single].mean() > 0.9


def test_a_pairs_own_type_is_not_in_the_evidence_it_is_learned_from():
    ends, types = activity_graph(sizes=(50, 40))
    pairs = Edges.of(ends, 150)
    evidence = Evidence(pairs, cover_by_cliques(pairs))
    given = some_types(types, 0.2)[0]
    shown = np.flatnonzero(given.sum(1))
    fold = np.arange(len(shown)) % 5
    other = given.copy()
    other[shown[fold == 2]] = 1 - given[shown[fold == 2]]
    first, second = (evidence.out_of_fold(types, shown, fold) for types in (given, other))
    assert np.array_equal(first[fold == 2], second[fold == 2])
    assert not np.array_equal(first[fold == 1], second[fold == 1])


def test_shuffled_types_are_not_predicted():
    ends, types = activity_graph(sizes=(50, 40))
    types = np.eye(2)[np.random.default_rng(3).integers(0, 2, len(types))]
    shown, hidden = some_types(types, 0.3)
    reasons = fit_edges(ends, 150, shown=shown)
    right = (reasons.predict() == types.argmax(1))[hidden]
    assert abs(right.mean() - 0.5) < 0.12
    sure = reasons.probability.max(1)[hidden]
    assert sure.mean() < 0.65  # and it says that it does not know


def test_an_edge_is_unknown_where_its_likeliest_type_would_be_wrong_two_times_of_three():
    ends, types = activity_graph(sizes=(50, 40, 40, 40, 40, 40))
    shown, hidden = some_types(types, 0.05)
    reasons = fit_edges(ends, 150, shown=shown)
    assert reasons.unknown.any()
    assert np.array_equal(reasons.unknown, reasons.probability.max(1) < 1 / 3)
    right = reasons.predict() == types.argmax(1)
    single = hidden & (types.sum(1) == 1)
    assert right[single & reasons.unknown].mean() < 0.6 * right[single & ~reasons.unknown].mean()


def test_one_structure_serves_fits_to_other_types():
    ends, types = activity_graph(sizes=(50, 40))
    structure = describe_edges(Edges.of(ends, 150), 2)
    for seed in range(2):
        shown = some_types(types, 0.2, seed)[0]
        fits = [fit_edges(ends, 150, shown=shown, structure=s) for s in (structure, None)]
        assert np.array_equal(fits[0].probability, fits[1].probability)


def test_agreement_of_the_ends_tells_types_apart():
    draws = np.random.default_rng(0)
    ends = np.stack(np.triu_indices(60, 1))[:, draws.random(1770) < 0.3]
    colour, age = draws.integers(0, 2, 60), draws.random(60)
    kind = (colour[ends[0]] == colour[ends[1]]).astype(int)
    colour = np.where(draws.random(60) < 0.1, -1, colour)  # blanks
    columns = [NodeColumn("colour", "category", colour), NodeColumn("age", "number", age)]
    structure = describe_edges(Edges.of(ends, 60), 2, columns=columns)
    shown, hidden = some_types(np.eye(2)[kind], 0.4)
    guess = fit_edges(ends, 60, shown=shown, structure=structure).predict()
    filled = hidden & (colour[ends] >= 0).all(0)
    assert (guess == kind)[filled].mean() > 0.95


def test_balanced_answers_name_rare_types_more_often():
    ends, types = activity_graph(sizes=(100, 25))
    shown, _ = some_types(types, 0.1)
    reasons = fit_edges(ends, 150, shown=shown)
    rare = types.sum(0).argmin()
    plain, balanced = ((reasons.predict(b) == rare).sum() for b in (False, True))
    assert balanced >= plain


def test_directions_doubles_and_loops_change_nothing():
    ends, _ = activity_graph(sizes=(50, 40))
    once = fit_edges(ends, 150, num_factors=2)
    loop = np.array([[3], [3]])
    listed = torch.from_numpy(np.concatenate([ends, ends[::-1], loop], 1))
    both = fit_edges(listed, 150, num_factors=2)
    assert np.array_equal(both.probability, once.probability)


def test_features_and_labels_help_where_they_are_the_reason():
    draws = np.random.default_rng(0)
    ends = np.stack(np.triu_indices(45, 1))[:, draws.random(990) < 0.3]
    y = draws.integers(0, 2, 45)
    types = np.eye(2)[(y[ends[0]] == y[ends[1]]).astype(int)]
    shown, hidden = some_types(types, 0.3)
    for known in ({"y": y}, {"x": np.eye(2)[y]}):
        found = fit_edges(ends, 45, shown=shown, **known).predict()
        assert (found == types.argmax(1))[hidden].mean() > 0.9
    without = fit_edges(ends, 45, shown=shown).predict()
    assert (without == types.argmax(1))[hidden].mean() < 0.8


def test_one_type_shown_and_very_few_shown():
    ends, types = activity_graph(sizes=(50, 40))
    shown = np.zeros_like(types)
    shown[0, 1] = 1
    assert (fit_edges(ends, 150, shown=shown).predict() == 1).all()
    single = np.flatnonzero(types.sum(1) == 1)
    few = [*single[types[single, 0] == 1][:2], *single[types[single, 1] == 1][:2]]
    shown = np.zeros_like(types)
    shown[few] = types[few]
    assert np.isfinite(fit_edges(ends, 150, shown=shown).probability).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edge_index": np.zeros((3, 4), dtype=int)}, r"edge_index has shape \[3, 4\]"),
        ({"edge_index": np.array([[0], [9]])}, "names node 9: give nodes 0 to 4"),
        ({"edge_index": np.array([[1], [1]])}, "no edge between two different nodes"),
        ({"shown": np.zeros((1, 2))}, r"shown has shape \[1, 2\]: give \[2, "),
        ({"shown": np.full((2, 2), 0.5)}, "shown has the value 0.5: give 0 or 1"),
        ({"shown": np.eye(2), "type_names": ["a"]}, "type_names has 1 names: give 2"),
        ({"num_factors": 0}, "num_factors is 0"),
        ({"y": np.zeros(3)}, "y has 3 rows: give 5"),
    ],
)
def test_wrong_input_is_named(change, message):
    good = {"edge_index": np.array([[0, 1], [1, 2]])}
    with pytest.raises(InputError, match=message):
        fit_edges(**{**good, "num_nodes": 5, **change})


def test_a_tiny_graph_has_one_reason():
    reasons = fit_edges(np.array([[0, 1], [1, 2]]), 4)
    assert reasons.probability.tolist() == [[1.0], [1.0]]


def test_every_shown_type_shown_once():
    ends, types = activity_graph()
    single = np.flatnonzero(types.sum(1) == 1)
    shown = np.zeros_like(types)
    for kind in range(3):
        one = single[types[single, kind] == 1][0]
        shown[one] = types[one]
    more = np.zeros((len(types), 3))  # six types with one example each
    more[single[-3:]] = np.eye(3)
    reasons = fit_edges(ends, 150, shown=np.concatenate([shown, more], 1))
    assert reasons.about["log_loss"] is None
    assert np.isfinite(reasons.probability).all()
