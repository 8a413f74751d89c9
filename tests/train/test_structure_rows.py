"""A structure that is found step by step is that of the whole graph at once."""

import pytest
import torch
from torch.testing import assert_close
from torch_geometric.data import Data

from lgdgcn.config import Settings
from lgdgcn.large import hops
from lgdgcn.large.inference import unit_table
from lgdgcn.large.rows import GraphRows, mapped_graph, prepared_rows
from lgdgcn.large.sampler import NeighbourLoader
from lgdgcn.large.structure import joined_rows, structure_rows
from lgdgcn.models import build
from lgdgcn.train.population import Member
from lgdgcn.train.task import Task
from lgdgcn.train.trained import TrainedModel
from lgdgcn.train.trainer import Trainer
from literal import structure as literal
from literal.seeds import seeds
from train.test_batch_trainer import (
    STRUCTURE,
    VOTED_STRUCTURE,
    canonical_graph,
    packed_from,
    trained,
)
from train.test_batches import NODES, graph_of

FEW = 14


@pytest.fixture(params=["memory", "files"])
def _small_pieces(request, monkeypatch, tmp_path):
    """Every table and graph is made in many pieces, in memory or in mapped files."""
    monkeypatch.setattr(hops, "_ENTRIES", 16)
    monkeypatch.setattr("lgdgcn.large.structure._EDGES", 5)
    monkeypatch.setattr("lgdgcn.large.structure._LISTED", 9)
    if request.param == "files":
        monkeypatch.setattr(hops, "_IN_MEMORY", 0)
        monkeypatch.setenv("TMPDIR", str(tmp_path))


def small_graph(seed):
    """A few nodes, two of them without an edge."""
    generator = torch.Generator().manual_seed(seed)
    ends = torch.randint(2, FEW, (2, 20), generator=generator)
    ends = ends[:, ends[0] != ends[1]]
    edges = torch.unique(torch.cat([ends, ends.flip(0)], 1), dim=1)
    x = torch.rand(FEW, 3, generator=generator, dtype=torch.float64)
    return Data(x=x, edge_index=edges)


def dense(rows):
    """The normalised matrix of rows, with the loop at every node."""
    row = torch.repeat_interleave(rows.row_ptr.diff())
    matrix = torch.eye(rows.num_nodes, dtype=torch.float64)
    weight = torch.ones(rows.num_edges) if rows.weight is None else rows.weight
    matrix.index_put_((row, rows.column.long()), weight.double(), accumulate=True)
    root = rows.degrees(torch.arange(rows.num_nodes)).double().rsqrt()
    return root[:, None] * matrix * root


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


def model_of(structure, multi_label=False, **more):
    settings = Settings(**{**VOTED_STRUCTURE.as_dict(), "structure": structure, **more})
    torch.manual_seed(5)
    model = build("lgdgcn", settings.as_dict(), 6, 3, multi_label=multi_label).double().eval()
    for tensor in model.state_dict().values():  # batch norms and shares that are not 0 and 1
        if tensor.is_floating_point():
            tensor.add_(0.1 * torch.rand(tensor.shape, dtype=tensor.dtype))
    return model


@pytest.mark.usefixtures("_small_pieces")
@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("structure", ["local", "global", "both"])
def test_found_of_tables_as_of_the_whole_graph(structure, weighted, multi_label):
    data, model = graph_of(1, weighted=weighted), model_of(structure, multi_label)
    whole = model.adapted(data.x, data.edge_index)
    row_ptr, column, value = whole.propagation_graph.matrix()
    row = torch.repeat_interleave(row_ptr.diff())
    expected = torch.zeros(NODES, NODES, dtype=torch.float64)
    expected.index_put_((row, column), value, accumulate=True)
    graph = GraphRows.of(data)
    assert_close(dense(structure_rows(graph, model)), expected)
    with torch.no_grad():
        output = whole.disentangle(data.x, data.edge_index)
    table = unit_table(graph, model)
    everyone = torch.arange(NODES)
    assert_close(table.logits(table.rows(everyone)), output.logits)
    assert_close(table.edge_factors(*data.edge_index), output.layers[-1].edge_factors)


def test_more_neighbours_than_nodes_and_a_single_node():
    for nodes in (1, 2):
        edges = torch.tensor([[0, 1], [1, 0]])[:, : 2 * (nodes - 1)]
        data = Data(x=torch.rand(nodes, 6, dtype=torch.float64), edge_index=edges)
        found = structure_rows(GraphRows.of(data), model_of("both"))
        assert found.num_edges == edges.size(1)
        assert bool(found.weight.isfinite().all())


def test_nothing_is_found_where_nothing_is_propagated():
    graph = GraphRows.of(graph_of(0))
    alone = model_of("both", hops=0, encoder_layers=1)
    assert structure_rows(graph, alone) is graph
    assert structure_rows(graph, model_of("none")) is graph


def test_the_first_epochs_have_plain_edges():
    settings, data = Settings(**{**STRUCTURE.as_dict(), "refresh_every": 3}), canonical_graph()
    trainer, _ = trained(settings, data, 2)
    assert trainer.loader.source.now.along is trainer.loader.rows
    trainer.epoch()
    assert trainer.loader.source.now.along.num_edges > trainer.loader.rows.num_edges
    assert (
        trainer.loader.source.now.graph is trainer.loader.rows
    )  # along which votes and the edge loss go


def saved_and_loaded(trainer, settings, path):
    model = trainer.model(0)
    TrainedModel("lgdgcn", model, settings, Task(3, False), [0, 1, 2], 6).save(path)
    return TrainedModel.load(path)


@pytest.mark.parametrize("name", ["drawn", "table"])
def test_the_best_model_keeps_the_structure_that_it_was_chosen_with(name, tmp_path):
    """Also after later ones, in a file, and where the last epoch was trained before."""
    table = {"drawn": "never", "table": "always"}[name]
    more = {"fan_out": 0, "epochs": 7, "lr": 0.3, "hop_table": table}
    settings, data = Settings(**{**STRUCTURE.as_dict(), **more}), canonical_graph()
    mapped = mapped_graph(packed_from(data, tmp_path / "graph.lgd"))
    trainer, reports = trained(settings, mapped, 7)
    assert trainer.finished
    best = reports[trainer.states[0].best_epoch - 1]
    loaded = saved_and_loaded(trainer, settings, tmp_path / "model.safetensors")
    past = int(loaded.model.propagation_graph.past.epoch)
    assert past == (trainer.states[0].best_epoch - 1) // 2 * 2
    assert 0 < past < 6  # not that of the last refresh
    assert not loaded.model.propagation_graph.column.numel()  # no matrix in the file
    ready = prepared_rows(mapped, settings)
    again = Trainer(
        NeighbourLoader(ready, settings), [Member(settings, 3)], "lgdgcn", [trainer.state(0)]
    )
    nodes = data.val_mask.nonzero().squeeze(1)
    for one in (trainer, again):
        logits = one.output(0, loaded).logits[nodes]
        loss = torch.nn.functional.cross_entropy(logits, data.y[nodes])
        assert float(loss) == pytest.approx(best.metrics["val_loss"], rel=1e-4)
    found = unit_table(ready.rows, loaded.model)
    assert_close(found.logits(found.rows(nodes)), logits, rtol=1e-4, atol=1e-5)
    in_memory = loaded.run(prepared_rows(data, settings))
    assert_close(in_memory.logits[nodes], logits, rtol=1e-4, atol=1e-5)
