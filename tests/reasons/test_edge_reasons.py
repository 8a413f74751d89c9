"""Reasons come back from a run folder as they were, and only for the graph they are of."""

import dataclasses
import json

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from lgdgcn.data.validate import canonical
from lgdgcn.errors import CheckpointError, InputError
from lgdgcn.models import NodeOutput
from lgdgcn.nn import Disentangled
from lgdgcn.reasons import EdgeReasons, Edges, fit_graph
from lgdgcn.reasons.of_graph import _matrix as matrix
from lgdgcn.reasons.of_graph import known_types
from lgdgcn.reasons.stability import Stability
from reasons.planted import activity_graph

SOME = ["=1+1", "</script>"]


def typed_graph(share: float = 0.5, **more) -> Data:
    ends, types = activity_graph(sizes=(50, 40))
    hidden = np.random.default_rng(0).random(len(types)) >= share
    values = {
        "x": torch.eye(150)[:, :4],
        "edge_index": torch.from_numpy(np.concatenate([ends, ends[::-1]], 1)),
        "edge_type": torch.from_numpy(np.tile(np.where(hidden[:, None], 0, types), (2, 1))).byte(),
        "edge_type_names": SOME,
    }
    return canonical(Data(**values | more))


@pytest.fixture(scope="module")
def fitted() -> tuple[Data, EdgeReasons]:
    data = typed_graph()
    return data, fit_graph(data)


def same(one, other) -> bool:
    """Whether two values of a container are the same, whatever they are."""
    if isinstance(one, Stability):
        return same(one.agreement, other.agreement) and same(one.matched, other.matched)
    if isinstance(one, Edges):
        return same(one.ends, other.ends) and same(one.number, other.number)
    return np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other


def test_they_come_back_as_they_were(fitted, tmp_path):
    data, found = fitted
    others = [np.tile([1.0, 0.0], (len(found.edges), 1))]
    untyped = fit_graph(typed_graph(share=0), num_factors=2)
    for reasons, graph in (
        (found, data),
        (found.compared(others).with_known(found.edges.once(data.edge_type)), data),
        (untyped, typed_graph(share=0)),
    ):
        reasons.save(tmp_path / "r.safetensors", graph)
        again = EdgeReasons.load(tmp_path / "r.safetensors", graph)
        about = json.loads(json.dumps(reasons.about))  # tuples come back as lists
        assert again.about == about
        for field in dataclasses.fields(EdgeReasons):
            if field.name != "about":
                assert same(getattr(again, field.name), getattr(reasons, field.name)), field.name


def test_a_given_type_is_not_doubted(fitted):
    data, reasons = fitted
    types = reasons.edges.once(data.edge_type)
    given = types.sum(1) > 0
    vague = dataclasses.replace(reasons, unknown=np.ones(len(types), dtype=bool))
    fixed = vague.compared([reasons.probability[:, ::-1]]).with_known(types)
    share = types[given] / types[given].sum(1, keepdims=True)
    for values in (fixed.probability, fixed.low, fixed.high):
        assert np.array_equal(values[given], share)
    assert np.array_equal(fixed.unknown, ~given)
    assert np.array_equal(fixed.probability[~given], reasons.probability[~given])


def test_factors_are_reasons_of_edges():
    edges = Edges.of(np.array([[0, 1, 2, 0], [1, 0, 1, 2]]), 3)
    shares = torch.tensor([[0.2, 0.8], [0.6, 0.4], [1.0, 0.0], [0.5, 0.5]])
    units = torch.zeros(3, 2, 1)
    output = NodeOutput(torch.zeros(3, 2), [Disentangled(units, units, shares)])
    found = EdgeReasons.from_factors(output, edges)
    assert found.probability == pytest.approx(np.array([[0.4, 0.6], [0.5, 0.5], [1.0, 0.0]]))
    assert (found.noun, found.names) == ("factor", ["factor 1", "factor 2"])
    assert found.activity == pytest.approx(np.array([[0.9, 1.1], [1.4, 0.6], [1.5, 0.5]]))


@pytest.mark.parametrize(
    "other",
    [
        {"node_ids": [f"n{number}" for number in range(150)]},
        {"edge_type_names": ["=1+1", "other"]},
        {"share": 0.4},
        {"x": torch.zeros(151, 4)},
    ],
    ids=["ids", "names", "types", "nodes"],
)
def test_another_graph_is_refused(fitted, tmp_path, other):
    data, reasons = fitted
    reasons.save(tmp_path / "r.safetensors", data)
    EdgeReasons.load(tmp_path / "r.safetensors", typed_graph(x=torch.ones(150, 2)))
    with pytest.raises(CheckpointError, match="is of another graph"):
        EdgeReasons.load(tmp_path / "r.safetensors", typed_graph(**other))


def test_missing_files_and_links_are_refused(fitted, tmp_path):
    data, reasons = fitted
    file = tmp_path / "r.safetensors"
    with pytest.raises(CheckpointError, match="cannot read"):
        EdgeReasons.load(file, data)
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="is a link"):
        reasons.save(file, data)


def test_a_single_known_type_is_refused():
    data = typed_graph()
    data.edge_type[:, 1] = 0
    with pytest.raises(InputError, match=r"'=1\+1' is the only known type"):
        known_types(data)


def test_sparse_features_are_used():
    x = torch.eye(150)[:, :4]
    data = typed_graph(share=0, x=x.to_sparse_csr())
    assert (fit_graph(data, num_factors=1).probability == 1).all()
    assert (matrix(data.x).toarray() == x.numpy()).all()
