"""The model of reasons: what it measures on types that are held back, and what it compares."""

import numpy as np
import torch

from lgdgcn.reasons import EdgeReasonModel, Edges, model
from lgdgcn.reasons.model import _measured
from lgdgcn.reasons.of_graph import describe_graph
from reasons.test_edge_reasons import typed_graph


def test_types_that_are_held_back_are_hidden_in_both_directions(monkeypatch):
    data = typed_graph(share=1)
    edges, fitted_with = Edges.of_graph(data), []
    known = edges.once(data.edge_type)

    def fit(data, *, shown, **options):
        fitted_with.append(shown)
        found = real(data, shown=shown, **options)
        return type(found)(**vars(found) | {"probability": known / known.sum(1, keepdims=True)})

    real = model.fit_graph
    monkeypatch.setattr(model, "fit_graph", fit)
    found = EdgeReasonModel(fits=2).fit(data)
    scores = found.reasons_.about["held_back"]
    assert [one["accuracy"] for one in scores] == [1, 1]  # it is scored on what was hidden
    whole, *others = fitted_with
    assert torch.equal(whole, data.edge_type)
    for shown, one in zip(others, scores, strict=True):
        hidden = edges.once(shown).sum(1) == 0
        assert hidden.sum() == one["held_back"] == round(0.2 * len(edges))
        assert np.array_equal(edges.both(edges.once(shown)), shown.numpy())
    assert not others[0].equal(others[1])


def test_types_that_are_held_back_cannot_leak():
    data = typed_graph()
    edges = Edges.of_graph(data)
    types = edges.once(data.edge_type)
    known = np.flatnonzero(types.sum(1))
    held = np.random.default_rng(0).permutation(known)[: round(0.2 * len(known))]
    other = types.copy()
    other[held] = types[held[::-1]]  # as the types are drawn, not which are hidden
    assert not np.array_equal(other, types)
    structure = describe_graph(data, types.shape[1])
    (scores, first), (changed, second) = (
        _measured(data, structure, edges, one, 0) for one in (types, other)
    )
    assert np.array_equal(first, second)  # bit for bit
    assert changed["accuracy"] < scores["accuracy"]  # it was scored on what changed


def test_no_further_fit_is_begun_when_the_time_is_over():
    found = EdgeReasonModel(2, fits=3, time_limit=0).fit(typed_graph(share=0)).reasons_
    assert found.stability is None
    assert found.about["left_out"] == 2


def test_predictions_are_those_of_the_container():
    data = typed_graph()
    found = EdgeReasonModel(fits=1).fit(data)
    assert found.predict_proba() is found.reasons_.probability
    names = np.array(found.reasons_.names)
    assert (found.predict() == names[found.predict_proba().argmax(1)]).all()
    turned = data.clone()
    turned.edge_index = data.edge_index.flip(0)
    again = EdgeReasonModel(fits=1).fit(turned)
    assert np.array_equal(again.predict_proba(), found.predict_proba())
