"""Reasons come back from a run folder as they were, and only for the graph they are of."""

import dataclasses
import json

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from lgdgcn.data.validate import canonical
from lgdgcn.errors import CheckpointError, InputError
from lgdgcn.reasons import EdgeReasons, fit_graph
from lgdgcn.reasons.edges import Edges
from lgdgcn.reasons.of_graph import _matrix as matrix
from lgdgcn.reasons.of_graph import known_types, unknown_edges
from lgdgcn.reasons.stability import over_fits, stability
from lgdgcn.reasons.store import load_reasons, load_stability, save_reasons
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


@pytest.fixture
def saved(fitted, tmp_path):
    data, reasons = fitted
    file = tmp_path / "edge_reasons.safetensors"
    save_reasons(file, reasons, data, seed=3)
    return file, data, reasons


def test_they_come_back_as_they_were(saved):
    file, data, reasons = saved
    again = load_reasons(file, data)
    for name in ("probability", "presence", "unknown", "activity", "usual"):
        assert torch.equal(getattr(again, name), getattr(reasons, name))
    assert again.names == reasons.names == SOME
    assert again.curve == reasons.curve
    assert again.log_loss == pytest.approx(reasons.log_loss)
    assert again.weights == reasons.weights
    assert json.loads(file.with_suffix(".json").read_text())["seed"] == 3


def test_what_other_seeds_say_comes_back(fitted, tmp_path):
    data, reasons = fitted
    file = tmp_path / "edge_reasons.safetensors"
    own = Edges.of_graph(data).once(reasons.probability)
    fits = [own, np.tile([1.0, 0.0], (len(own), 1))]
    found = stability(fits, named=True)
    assert found.matched.tolist() == [[0, 1]]
    interval = over_fits(fits, found.matched)
    save_reasons(file, reasons, data, seed=0, stability=found, interval=interval)
    again, bounds = load_stability(file)
    assert np.allclose(again.agreement, found.agreement)
    assert again.matched.tolist() == found.matched.tolist()
    assert np.allclose(bounds, interval)
    assert (bounds[1][:, 0] == 1).all()
    save_reasons(file, reasons, data, seed=0)
    assert load_stability(file) == (None, None)


def test_reasons_without_types_come_back(tmp_path):
    data = typed_graph(share=0)
    reasons = fit_graph(data, num_factors=2)
    save_reasons(tmp_path / "r.safetensors", reasons, data, seed=0)
    again = load_reasons(tmp_path / "r.safetensors", data)
    assert again.names == ["reason 1", "reason 2"]
    assert again.log_loss is None
    assert torch.equal(again.probability, reasons.probability)


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
def test_another_graph_is_refused(saved, other):
    with pytest.raises(CheckpointError, match="is of another graph"):
        load_reasons(saved[0], typed_graph(**other))


def test_labels_and_features_do_not_make_another_graph(saved):
    load_reasons(saved[0], typed_graph(x=torch.ones(150, 2)))


@pytest.mark.parametrize(
    "damage",
    [
        lambda about: about.clear(),
        lambda about: about.update(names="ab"),
        lambda about: about["curve"].pop("counts"),
        lambda about: about["curve"].update(more=1),
        lambda about: about.update(log_loss="low"),
    ],
)
def test_a_damaged_description_is_named(saved, damage):
    file = saved[0].with_suffix(".json")
    about = json.loads(file.read_text())
    damage(about)
    file.write_text(json.dumps(about))
    with pytest.raises(CheckpointError, match=r"edge_reasons.json is missing or damaged"):
        load_reasons(saved[0], saved[1])


def test_files_of_two_runs_are_told(saved, tmp_path):
    file, data, reasons = saved
    (tmp_path / "b").mkdir()
    other = dataclasses.replace(reasons, unknown=1 - reasons.unknown)
    save_reasons(tmp_path / "b" / file.name, other, data, seed=1)
    file.with_suffix(".json").write_bytes((tmp_path / "b" / "edge_reasons.json").read_bytes())
    with pytest.raises(CheckpointError, match="are of two runs"):
        load_reasons(file, data)


def test_missing_files_and_links_are_refused(saved, tmp_path):
    file, data, reasons = saved
    file.unlink()
    with pytest.raises(CheckpointError, match="cannot read"):
        load_reasons(file, data)
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="is a link"):
        save_reasons(file, reasons, data, seed=0)


def test_a_single_known_type_is_refused():
    data = typed_graph()
    data.edge_type[:, 1] = 0
    with pytest.raises(InputError, match=r"'=1\+1' is the only known type"):
        known_types(data)


def test_an_edge_with_a_known_type_is_not_unknown(fitted):
    data, reasons = fitted
    vague = dataclasses.replace(reasons, unknown=torch.ones_like(reasons.unknown))
    assert torch.equal(unknown_edges(vague, data), data.edge_type.sum(1) == 0)


def test_sparse_features_are_used():
    x = torch.eye(150)[:, :4]
    data = typed_graph(share=0, x=x.to_sparse_csr())
    assert fit_graph(data, num_factors=1).probability.eq(1).all()
    assert (matrix(data.x).toarray() == x.numpy()).all()
