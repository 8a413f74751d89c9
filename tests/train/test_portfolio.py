"""Choosing settings on validation: successive halving over a portfolio."""

import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from lgdgcn.config import Settings, has_own_preset, portfolio, preset, resolve
from lgdgcn.data.validate import canonical
from lgdgcn.errors import InputError, StoppedError
from lgdgcn.runtime import StopRequest
from lgdgcn.search import portfolio as module
from lgdgcn.search.portfolio import Candidate, choose_settings
from lgdgcn.train.population import Member, TrainState
from lgdgcn.train.prepared import prepared
from lgdgcn.train.trainer import Trainer
from train.one_seed import train_seed

CPU = torch.device("cpu")
GOOD = Settings(variant="paper", lr=0.05, hidden_channels=16, num_layers=1, dropout=0.0)
USELESS = replace(GOOD, lr=1e-9)


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(module, "ROUNDS", ((5, 2), (12, 1)))
    monkeypatch.setattr(module, "LEAST", 5)


@pytest.fixture
def graph():
    """Two classes that one feature tells, in a random graph."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(60) % 2
    x = torch.rand(60, 4, generator=generator)
    x[:, 0] += y
    masks = {}
    for split, first, last in (("train", 0, 30), ("val", 30, 45), ("test", 45, 60)):
        masks[f"{split}_mask"] = torch.zeros(60, dtype=torch.bool)
        masks[f"{split}_mask"][first:last] = True
    edges = to_undirected(torch.randint(60, (2, 80), generator=generator), num_nodes=60)
    return canonical(Data(x=x, y=y, edge_index=edges, **masks))


def choose(graph, *candidates, **options):
    return choose_settings([Candidate("mlp", one) for one in candidates], graph, CPU, **options)


@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize("model", ["lgdgcn", "mlp", "gcn", "appnp", "grand"])
def test_every_entry_is_settings_of_its_own(model, multi_label):
    entries = portfolio(model, multi_label=multi_label)
    assert len(entries) > 1
    base = preset("", model, multi_label=multi_label)
    settings = [resolve(base, entry) for entry in entries]
    assert len(set(map(repr, settings))) == len(settings)


def test_the_shipped_portfolio_is_the_one_that_was_learnt():
    """All members are of the pool, but for those that ours has from GRAND's portfolio."""
    file = Path(__file__).parents[2] / "benchmarks" / "portfolio.py"
    spec = importlib.util.spec_from_file_location("portfolio_benchmark", file)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    found = json.loads(script.RESULT.read_text())
    assert script.as_toml(found) == script.USED.read_text()
    for name, chosen in found.items():
        model = name.partition("-")[0]
        pool = [{"kind": script.kind_of(model, entry), **entry, **held}
                for entry in script.architectures(model, name.endswith("multilabel"))
                for held in script.held(model, entry)]  # fmt: skip
        for graph, entries in chosen.items():
            own = [entry for entry in entries if entry in pool]
            if model == "lgdgcn":
                grand = found[name.replace("lgdgcn-ours", "grand")][graph]
                own = script.with_means(own, grand)
            assert own == entries


def test_a_model_without_portfolio_has_one_entry_that_changes_nothing():
    assert portfolio("monet") == [{}]


def test_only_named_graphs_have_presets_of_their_own():
    assert has_own_preset("cora", "lgdgcn")
    assert has_own_preset("synthetic:average_degree=6", "gcn")
    assert not has_own_preset("my-graph", "lgdgcn")
    assert not has_own_preset("", "gcn")
    assert not has_own_preset("defaults", "gcn")


def test_settings_that_learn_are_chosen_from_any_place(graph, short):
    for place in range(3):
        candidates = [USELESS, replace(USELESS, hidden_channels=32), USELESS]
        candidates[place] = GOOD
        choice = choose(graph, *candidates)
        assert choice.best.settings == GOOD
        assert choice.number == place + 1
        assert not choice.early


def test_scores_are_those_of_single_trainings(graph, short):
    other = replace(GOOD, lr=0.01)
    choice = choose(graph, USELESS, GOOD, other, replace(GOOD, hidden_channels=32))
    for settings, score, epochs in zip(
        (USELESS, GOOD, other), choice.scores, choice.epochs, strict=False
    ):
        alone = replace(settings, epochs=epochs)
        trainer = Trainer(prepared(graph, alone, CPU), [Member(alone, 0)], "mlp")
        trainer.train()
        assert trainer.states[0].best_score == score
    assert sorted(choice.epochs) == [5, 5, 12, 12]


def test_of_settings_alike_the_first_is_chosen(graph, short):
    assert choose(graph, GOOD, GOOD, GOOD).number == 1


def test_of_settings_that_name_one_class_the_one_that_learns_is_chosen(graph, monkeypatch):
    """After one small step both score alike; the loss of the larger step is lower."""
    monkeypatch.setattr(module, "ROUNDS", ((1, 1),))
    choice = choose(graph, USELESS, replace(USELESS, lr=1e-6))
    assert choice.scores[0] == choice.scores[1]
    assert choice.number == 2


def test_the_choice_repeats_and_leaves_test_labels_alone(graph, short):
    candidates = [replace(GOOD, lr=lr) for lr in (0.002, 0.01, 0.05)]
    first = choose(graph, *candidates)
    graph.y = graph.y.clone()
    graph.y[graph.test_mask] = 1 - graph.y[graph.test_mask]
    again = choose(graph, *candidates)
    assert (first.number, first.scores) == (again.number, again.scores)


def test_settings_that_diverge_are_left_out(graph, short):
    choice = choose(graph, replace(GOOD, lr=1e30), USELESS)
    assert choice.number == 2
    assert choice.scores[0] is None


def test_nothing_can_be_chosen_where_all_diverge(graph, short):
    with pytest.raises(InputError, match="no settings of mlp can be trained here"):
        choose(graph, replace(GOOD, lr=1e30), replace(GOOD, lr=1e29))


def test_without_validation_nodes_the_first_is_taken(graph):
    graph.val_mask = torch.zeros_like(graph.val_mask)
    choice = choose(graph, USELESS, GOOD)
    assert choice.number == 1
    assert str(choice) == (
        "settings: the first of 2, as without validation nodes nothing could be chosen"
    )


def test_when_time_is_over_the_last_whole_round_decides(graph, short):
    choice = choose(graph, USELESS, GOOD, replace(GOOD, lr=0.01), seconds=0.0)
    assert choice.early
    assert set(choice.epochs) == {5}
    assert choice.scores[choice.number - 1] == max(choice.scores)
    assert "time was over" in str(choice)


def test_time_is_not_over_before_the_least_epochs(graph, monkeypatch):
    monkeypatch.setattr(module, "ROUNDS", ((2, 3), (4, 2), (6, 1)))
    monkeypatch.setattr(module, "LEAST", 4)
    choice = choose(graph, USELESS, GOOD, replace(GOOD, lr=0.01), seconds=0.0)
    assert choice.early
    assert sorted(choice.epochs) == [4, 4, 4]


def test_a_signal_stops_the_search(graph, short):
    stop = StopRequest()
    stop.signal = 2
    with pytest.raises(StoppedError):
        choose(graph, USELESS, GOOD, stop=stop)


def test_a_training_goes_on_where_the_search_ended(graph, short):
    settings = replace(GOOD, epochs=20)
    choice = choose(graph, USELESS, settings)
    assert choice.state.epoch == len(choice.log) == 12
    alone = replace(settings, epochs=20)
    begun, _ = train_seed(graph, alone, "mlp", 0, CPU, begun=choice.state)
    anew, _ = train_seed(graph, alone, "mlp", 0, CPU)
    assert (begun.scores, begun.epochs) == (anew.scores, anew.epochs)


def test_models_are_chosen_from_as_settings_are(graph, short):
    found = choose_settings([Candidate("gcn", USELESS), Candidate("mlp", GOOD)], graph, CPU)
    assert found.best.model == "mlp"


@pytest.mark.parametrize(
    ("scores", "losses", "expected"),
    [
        ((0.80, 0.797, 0.70), (1.0, 0.9, 0.1), 1),  # nearly the best, and of lower loss
        ((0.80, 0.797, 0.70), (0.9, 1.0, 0.1), 0),
        ((0.80, 0.78, 0.70), (1.0, 0.1, 0.1), 0),  # a quarter of a standard error is 0.01
        ((None, 0.5, 0.5), (0.0, 0.4, 0.3), 2),
        ((None, None, None), (0.0, 0.0, 0.0), None),
    ],
)
def test_of_scores_that_are_alike_the_lowest_loss_decides(graph, scores, losses, expected):
    graph.val_mask = torch.arange(graph.num_nodes) < 100
    runs = []
    for number, (score, loss) in enumerate(zip(scores, losses, strict=True)):
        state = TrainState(best_loss=loss)
        runs.append(module._Run(number, Candidate("mlp", GOOD), graph, 0, state, score=score))
    found = [run.number for run in module._chosen(runs)]
    assert found == ([] if expected is None else [expected])
    # label sets of 100 labels are judged by 100 times as many answers
    graph.y = torch.zeros(graph.num_nodes, 100)
    if expected == 1:
        assert [run.number for run in module._chosen(runs)] == [0]


def test_settings_for_a_large_graph_are_tried_on_a_sample(graph, short, monkeypatch):
    monkeypatch.setattr("lgdgcn.search.sample.WHOLE", graph.num_nodes - 1)
    monkeypatch.setattr("lgdgcn.search.sample.MOST_NODES", graph.num_nodes // 2)
    choice = choose(graph, USELESS, GOOD)
    assert (choice.number, choice.sample) == (2, graph.num_nodes // 2)
    assert choice.state is None
    assert not choice.log
    assert "on a sample of" in str(choice)


def test_settings_that_are_not_for_the_whole_graph_are_not_tried(graph, short, monkeypatch):
    monkeypatch.setattr("lgdgcn.search.sample.WHOLE", graph.num_nodes - 1)
    monkeypatch.setattr("lgdgcn.search.sample.MOST_NODES", graph.num_nodes // 2)
    monkeypatch.setattr("lgdgcn.search.sample._NEIGHBOURS", 10)
    wide = replace(GOOD, structure="global")
    choice = choose(graph, wide, USELESS, GOOD, wide)
    assert (choice.number, choice.too_large) == (3, 2)
    assert [score is None for score in choice.scores] == [True, False, False, True]
    assert "; 2 were not, as they are not for a graph of this size" in str(choice)
    only = choose(graph, wide, GOOD)
    assert only.number == 2
    assert str(only) == "settings: number 2, the only one for a graph of this size"
    # what a user has asked for is tried all the same
    asked = choose(graph, replace(USELESS, structure="global"), wide)
    assert (asked.number, asked.too_large) == (2, 0)


def test_a_sample_is_judged_by_the_score_of_the_whole_graph(graph, short, monkeypatch):
    monkeypatch.setattr("lgdgcn.search.sample.WHOLE", graph.num_nodes - 1)
    monkeypatch.setattr("lgdgcn.search.sample.MOST_NODES", graph.num_nodes // 2)
    judged = []

    def watched(candidates, graphs, *others, **options):
        judged.extend(one.settings.metric for one in candidates)
        return [module.Choice(candidates[0], 1, (0.5, 0.5), (1, 1), 0.0, False)]

    monkeypatch.setattr(module, "choose_each", watched)
    choice = choose(graph, USELESS, GOOD)
    assert judged == ["accuracy", "accuracy"]
    assert choice.best.settings.metric == "auto"
