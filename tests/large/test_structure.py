"""A structure is made some rows at a time, and kept with the network that was trained on it."""

import pytest
import torch
from torch.testing import assert_close
from torch_geometric.data import Data

from large.graphs import NODES, STRUCTURE, changed, graph_of, model_of, packed_from
from large.test_inference import _small_pieces, dense  # noqa: F401 - a fixture
from lgdgcn.errors import InputError
from lgdgcn.large import structure
from lgdgcn.large.inference import unit_table
from lgdgcn.large.rows import GraphRows, mapped_graph, prepared_rows
from lgdgcn.large.sampler import NeighbourLoader
from lgdgcn.large.structure import joined_rows, structure_rows
from lgdgcn.train.task import Task
from lgdgcn.train.trained import TrainedModel
from literal import structure as literal
from literal.seeds import seeds
from train.single import Member, trainer_of

FEW = 14


def small_graph(seed):
    """A few nodes, two of them without an edge."""
    generator = torch.Generator().manual_seed(seed)
    ends = torch.randint(2, FEW, (2, 20), generator=generator)
    ends = ends[:, ends[0] != ends[1]]
    edges = torch.unique(torch.cat([ends, ends.flip(0)], 1), dim=1)
    x = torch.rand(FEW, 3, generator=generator, dtype=torch.float64)
    return Data(x=x, edge_index=edges)


@pytest.mark.usefixtures("_small_pieces")
@pytest.mark.parametrize("k", [0, 3, FEW - 1])
@pytest.mark.parametrize("is_local", [False, True])
@pytest.mark.parametrize("seed", seeds(3))
def test_equals_the_literal_loop(seed, is_local, k):
    data = small_graph(seed)
    generator = torch.Generator().manual_seed(seed)
    parts = torch.rand(FEW, 4, generator=generator, dtype=torch.float64) if is_local else None
    points = torch.randint(0, 4, (FEW, 2), generator=generator).tolist()  # some are the same
    listed = literal.nearest(points, k)
    graph = GraphRows.of(data)
    found = joined_rows(graph, parts, torch.tensor(listed) if k else None, 0.6)
    pairs = data.edge_index.T.tolist()
    agreement = [1.0 if parts is None else float(parts[a] @ parts[b]) for a, b in pairs]
    want = literal.structured(pairs, agreement, listed, 0.6)
    assert_close(dense(found), torch.tensor(want, dtype=torch.float64))
    row = torch.repeat_interleave(found.row_ptr.diff())
    codes = row * FEW + found.column
    assert bool((codes.diff() > 0).all())  # sorted, and no pair stands twice
    assert torch.equal(graph.column, GraphRows.of(data).column)  # that of the graph is as it was


def test_a_node_that_lists_itself_has_no_neighbour_there():
    data = small_graph(0)
    itself = torch.arange(FEW).unsqueeze(1).expand(FEW, 2)
    found = joined_rows(GraphRows.of(data), None, itself, 0.6)
    assert found.num_edges == data.edge_index.size(1)


def test_more_neighbours_than_nodes_and_a_single_node():
    for nodes in (1, 2):
        edges = torch.tensor([[0, 1], [1, 0]])[:, : 2 * (nodes - 1)]
        data = Data(x=torch.rand(nodes, 6, dtype=torch.float64), edge_index=edges)
        found = structure_rows(GraphRows.of(data), model_of(STRUCTURE))
        assert found.num_edges == edges.size(1)
        assert bool(found.weight.isfinite().all())


def test_nothing_is_found_where_nothing_is_propagated():
    graph = GraphRows.of(graph_of(0))
    for other in ({"hops": 0, "encoder_layers": 1}, {"structure": "none"}):
        assert structure_rows(graph, model_of(changed(STRUCTURE, **other))) is graph


def test_too_many_nodes_are_refused_before_any_work(monkeypatch):
    monkeypatch.setattr(structure, "MOST_NODES", NODES - 1)
    data, line = graph_of(0, torch.float32), "at most 47 nodes.*48; set structure to local or none"
    with pytest.raises(InputError, match=line):
        training(data, STRUCTURE)
    with monkeypatch.context() as patch:
        patch.setattr(structure, "NodeSteps", None)
        with pytest.raises(InputError, match=line):
            structure_rows(GraphRows.of(data), model_of(STRUCTURE))
    assert training(data, changed(STRUCTURE, structure="local", epochs=1)).epoch()


def training(data, settings, state=None):
    ready = prepared_rows(data, settings)
    return trainer_of(NeighbourLoader(ready, settings), [Member(settings, 3)], "lgdgcn", [state])


def test_the_first_epochs_have_plain_edges():
    trainer = training(graph_of(0, torch.float32), changed(STRUCTURE, refresh_every=3))
    along = []
    for _ in range(4):
        trainer.epoch()
        along.append(trainer.loader.source.now.along.num_edges)
        assert trainer.loader.source.now.graph is trainer.loader.rows  # where votes go
    assert along[0] == along[1] == trainer.loader.rows.num_edges < along[3]


@pytest.mark.parametrize("table", ["never", "always"])
def test_the_best_model_keeps_the_structure_that_it_was_chosen_with(table, tmp_path):
    """Also after later ones, in a file, and where the last epoch was trained before."""
    more = {"epochs": 7, "lr": 0.3, "hop_table": table, "batch_norm": False, "iterations": 0}
    more |= {"encoder_layers": 1, "input_dropout": 0.2, "views": 2, "batch_parts": 2}
    more |= {"weight_average": 0.9}
    settings, data = changed(STRUCTURE, **more), graph_of(0, torch.float32)
    mapped = mapped_graph(packed_from(data, tmp_path / "graph.lgd"))
    trainer = training(mapped, settings)
    reports = [report for _ in range(7) for report in trainer.epoch()]
    assert trainer.finished
    best = reports[trainer.states[0].best_epoch - 1]
    model = TrainedModel("lgdgcn", trainer.model(0), settings, Task(3, False), [0, 1, 2], 6)
    model.save(tmp_path / "model.safetensors")
    loaded = TrainedModel.load(tmp_path / "model.safetensors")
    past = int(loaded.model.propagation_graph.past.epoch)
    assert past == (trainer.states[0].best_epoch - 1) // 2 * 2
    assert 0 < past < 6  # not that of the last refresh
    assert not loaded.model.propagation_graph.column.numel()  # no matrix in the file
    nodes = data.val_mask.nonzero().squeeze(1)
    for one in (trainer, training(mapped, settings, trainer.state(0))):
        logits = one.output(0, loaded).logits[nodes]
        loss = torch.nn.functional.cross_entropy(logits, data.y[nodes])
        assert float(loss) == pytest.approx(best.metrics["val_loss"], rel=1e-4)
    found = unit_table(prepared_rows(mapped, settings).rows, loaded.model)
    assert_close(found.logits(found.rows(nodes)), logits, rtol=1e-4, atol=1e-5)
    in_memory = loaded.run(prepared_rows(data, settings))
    assert_close(in_memory.logits[nodes], logits, rtol=1e-4, atol=1e-5)
