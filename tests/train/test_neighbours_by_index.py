"""Latent neighbours of very many nodes are found by an index, and it is said how many of them."""

import importlib.util
import sys
import warnings
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np
import pytest
import torch

from lgdgcn.config import Settings
from lgdgcn.errors import InputError, LGDNote
from lgdgcn.large import latent_neighbours as finding
from lgdgcn.large import structure_rows
from lgdgcn.large.batch_trainer import BatchTrainer
from lgdgcn.large.graph_rows import GraphRows
from lgdgcn.models import build
from lgdgcn.train.state import Member
from literal import structure as literal
from train.test_batch_trainer import STRUCTURE, canonical_graph, trained

CPU = torch.device("cpu")


class WholeIndex:
    """Stands in for an index of faiss: exact, but it leaves out every third point."""

    def __init__(self, quantizer, width, lists):
        assert quantizer == width
        self.lists, self.points = lists, np.zeros((0, width), np.float32)

    def train(self, points):
        assert len(points) >= self.lists

    def add(self, points):
        assert points.dtype == np.float32
        self.points = np.concatenate([self.points, points])

    def search(self, queries, k):
        distance = np.square(queries[:, None] - self.points).sum(-1)
        distance[:, ::3] = np.inf
        near = np.argsort(distance, axis=1, kind="stable")[:, :k]
        near[np.isinf(np.take_along_axis(distance, near, 1))] = -1
        return np.take_along_axis(distance, near, 1), near


@pytest.fixture
def _without_faiss(monkeypatch):
    monkeypatch.setattr(finding, "EXACT_ROWS", 10)
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "faiss" else real(name)
    )


@pytest.fixture
def _stand_in(monkeypatch):
    faiss = ModuleType("faiss")
    faiss.__spec__ = ModuleSpec("faiss", None)
    faiss.IndexFlatL2, faiss.IndexIVFFlat = int, WholeIndex
    monkeypatch.setitem(sys.modules, "faiss", faiss)
    monkeypatch.setattr(finding, "EXACT_ROWS", 10)
    monkeypatch.setattr(finding, "_ROWS", 7)


def points_of(nodes):
    return torch.rand(nodes, 4, generator=torch.Generator().manual_seed(nodes))


def test_exact_up_to_a_number_of_nodes():
    points = points_of(30)
    found = finding.latent_neighbours(points, 3, CPU)
    assert found.tolist() == literal.nearest(points.double().tolist(), 3)
    assert finding.recall(points, found) == 1


@pytest.mark.usefixtures("_stand_in")
def test_an_index_says_how_many_it_finds():
    points = points_of(30)
    line = r"faiss finds \d\d\.\d% of the 3 nearest .* of 30 nodes"
    with pytest.warns(LGDNote, match=line) as said:
        found = finding.latent_neighbours(points, 3, CPU)
    assert len(said) == 1
    nearest = literal.nearest(points.double().tolist(), 29)
    assert found.tolist() == [[j for j in near if j % 3][:3] for near in nearest]
    right = [len({*own} & {*near[:3]}) for own, near in zip(found.tolist(), nearest, strict=True)]
    assert finding.recall(points, found) == pytest.approx(sum(right) / 90)
    # where fewer are found, nodes stand for themselves
    many = finding.latent_neighbours(points, 25, CPU, tells=False)
    for node, row in enumerate(many.tolist()):
        assert row.count(node) >= 25 - 20
        assert row[:19] == [j for j in nearest[node] if j % 3][:19]


@pytest.mark.usefixtures("_stand_in")
def test_a_training_with_an_index_goes_on_the_same_and_says_so_once_a_refresh():
    data = canonical_graph()
    with pytest.warns(LGDNote) as said:
        whole, _ = trained(STRUCTURE, data, 3)
    assert len(said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LGDNote)
        begun, _ = trained(STRUCTURE, data, 2)
        resumed, _ = trained(STRUCTURE, data, 1, begun.state(0))
    tensors = whole.state(0).tensors
    assert all(torch.equal(t, tensors[name]) for name, t in resumed.state(0).tensors.items())


@pytest.mark.usefixtures("_without_faiss")
def test_without_an_index_it_is_refused_before_anything_is_trained_or_predicted(monkeypatch):
    data, line = canonical_graph(), r"48 nodes need faiss: pip install 'lgdgcn\[ann\]'"
    with pytest.raises(InputError, match=line):
        BatchTrainer(data, Member(STRUCTURE))
    model = build("lgdgcn", STRUCTURE.as_dict(), data.x.size(1), 3, multi_label=False)
    with monkeypatch.context() as patch:
        patch.setattr(structure_rows, "NodeSteps", None)
        with pytest.raises(InputError, match=line):
            structure_rows.structure_rows(GraphRows.of(data), model)
    local = Settings(**{**STRUCTURE.as_dict(), "structure": "local"})
    trained(local, canonical_graph(), 3)


def test_equally_near_nodes_count_alike():
    points = torch.zeros(12, 2)
    assert finding.recall(points, (torch.arange(12).unsqueeze(1) + torch.arange(7, 9)) % 12) == 1
    assert finding.recall(points, torch.arange(12).unsqueeze(1)) == 0  # a node itself is none


def test_faiss_itself(monkeypatch):
    pytest.importorskip("faiss", reason="needs the extra [ann]")
    monkeypatch.setattr(finding, "EXACT_ROWS", 1000)
    monkeypatch.setattr(finding, "_ROWS", 700)
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(5000, 8, generator=generator)
    points[100:120] = points[100]  # copies, of which some do not find themselves
    with pytest.warns(LGDNote, match="of 5,000 nodes"):
        found = finding.latent_neighbours(points, 10, CPU)
    assert found.shape == (5000, 10)
    assert finding.recall(points, found) > 0.9
    assert not bool((found == torch.arange(5000).unsqueeze(1)).any())
