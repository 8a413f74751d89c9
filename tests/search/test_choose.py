"""What is chosen on validation: of settings, of families, on several splits and on samples."""

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
from lgdgcn.search import choose as module
from lgdgcn.search.families import (
    FAMILIES,
    Candidate,
    budget_of,
    candidates,
    families_with,
    limit_of,
)
from lgdgcn.search.race import Outcome, Split, Standing
from lgdgcn.train.trained import prepared
from lgdgcn.training import Training
from train.one_seed import train_seed
from train.single import Member, trainer_of

CPU = torch.device("cpu")
GOOD = Settings(lr=0.05, hidden_channels=16, num_layers=1, dropout=0.0)
USELESS = replace(GOOD, lr=1e-9)


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(module, "RUNGS", (5, 8, 12))
    monkeypatch.setattr(module, "KEPT", {5: 2, 8: 2})


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


@pytest.fixture
def one_split(monkeypatch):
    monkeypatch.setattr("lgdgcn.search.sample.MOST_SPLITS", 1)


def choose(graph, *settings, **options):
    return module.choose([Candidate("mlp", one) for one in settings], graph, CPU, **options)


# What is tried


@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize("model", FAMILIES)
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


@pytest.mark.parametrize("multi_label", [False, True])
def test_a_few_candidates_are_of_as_many_families_as_they_can_be(multi_label):
    every = candidates("", None, {}, multi_label=multi_label)
    assert every[0].model == "lgdgcn"
    assert {one.model for one in every[: len(FAMILIES)]} == {*FAMILIES}
    for model in FAMILIES:
        family = candidates("", model, {}, multi_label=multi_label)
        assert [one for one in every if one.model == model] == family


def test_families_that_lack_a_setting_of_the_users_take_no_part():
    assert families_with({"dropout": 0.1}) == [*reversed(FAMILIES)]
    assert families_with({"factors": 3, "dropout": 0.1}) == ["lgdgcn"]
    every = candidates("", None, {"alpha": 0.2}, multi_label=False)
    assert {one.model for one in every} == {"appnp", "gcnii"}
    assert {one.settings.alpha for one in every} == {0.2}
    with pytest.raises(InputError, match="no model has all of the settings factors, heads"):
        candidates("", None, {"factors": 2, "heads": 2}, multi_label=False)


def test_budgets_and_time_limits():
    """What is refused is in golden/records/refusals.txt."""
    assert (budget_of("40"), budget_of(" none "), budget_of(None)) == (40, 0, None)
    assert (limit_of("90s"), limit_of("none"), limit_of(None)) == (90.0, None, 1800.0)


# What is chosen


def test_settings_that_learn_are_chosen_from_any_place(graph, short):
    for place in range(3):
        tried = [USELESS, replace(USELESS, hidden_channels=32), USELESS]
        tried[place] = GOOD
        choice = choose(graph, *tried)
        assert choice.best.settings == GOOD
        assert (choice.splits, choice.early, choice.tried) == (5, False, 3)
        assert str(choice) == "settings: the best of 3 on validation, each on 5 splits"


def test_the_score_is_the_mean_of_single_trainings(graph, short):
    choice = choose(graph, USELESS, GOOD)
    found = []
    for seed, split in enumerate(module.repeated_splits(graph)):
        alone = replace(GOOD, epochs=12)
        trainer = trainer_of(prepared(split, alone, CPU), [Member(alone, seed)], "mlp")
        trainer.train()
        found.append(trainer.states[0].best_score)
    (row,) = choice.ranking
    assert row.score == pytest.approx(sum(found) / len(found))
    assert row.epochs == 12
    assert row.as_row().keys() == {"model", "tried", "epochs", "validation", "noise"}


def test_of_settings_that_name_one_class_the_one_that_learns_is_chosen(graph, monkeypatch):
    """After one small step both score alike; the loss of the larger step is lower."""
    monkeypatch.setattr(module, "RUNGS", (1,))
    better = replace(USELESS, lr=1e-6)
    assert choose(graph, USELESS, better).best.settings == better


def test_the_choice_repeats_and_leaves_test_labels_alone(graph, short):
    tried = [replace(GOOD, lr=lr) for lr in (0.002, 0.01, 0.05)]
    first = choose(graph, *tried)
    graph.y = graph.y.clone()
    graph.y[graph.test_mask] = 1 - graph.y[graph.test_mask]
    assert choose(graph, *tried) == first


def test_settings_that_diverge_are_left_out(graph, short):
    assert choose(graph, replace(GOOD, lr=1e30), USELESS).best.settings == USELESS
    with pytest.raises(InputError, match="no settings of mlp can be trained here"):
        choose(graph, replace(GOOD, lr=1e30), replace(GOOD, lr=1e29))


def test_without_validation_nodes_the_first_is_taken(graph):
    graph.val_mask = torch.zeros_like(graph.val_mask)
    choice = choose(graph, USELESS, GOOD)
    assert (choice.best.settings, choice.splits, choice.state) == (USELESS, 0, None)
    said = "settings: the first of 2, as without validation nodes nothing could be chosen"
    assert str(choice) == said


def test_when_time_is_over_the_first_rung_decides(graph, short):
    choice = choose(graph, USELESS, GOOD, replace(GOOD, hidden_channels=32), seconds=0.0)
    assert choice.early
    assert choice.ranking[0].epochs == 5
    assert "; time was over after 5 epochs" in str(choice)
    assert (choice.tried, choice.untried) == (2, 1)  # of one size both are trained at once
    assert str(choice).startswith("settings: the best of the first 2 of 3 on validation")


def test_a_signal_stops_the_search(graph, short):
    stop = StopRequest()
    stop.signal = 2
    with pytest.raises(StoppedError):
        choose(graph, USELESS, GOOD, stop=stop)


def test_a_training_goes_on_where_the_race_ended(graph, short):
    settings = replace(GOOD, epochs=20)
    choice = choose(graph, USELESS, settings)
    assert choice.state.epoch == len(choice.log) == 12
    begun, _ = train_seed(graph, settings, "mlp", 0, CPU, begun=choice.state)
    anew, _ = train_seed(graph, settings, "mlp", 0, CPU)
    assert (begun.scores, begun.epochs) == (anew.scores, anew.epochs)


def test_a_gpu_leaves_out_the_first_rung(graph, short, monkeypatch):
    real = module.race

    def on_the_cpu(tried, splits, rungs, keep, device, **options):
        assert (rungs, device.type) == ((8, 12), "cuda")
        return real(tried, splits, rungs, keep, CPU, **options)

    monkeypatch.setattr(module, "race", on_the_cpu)
    tried = [Candidate("mlp", one) for one in (USELESS, GOOD)]
    choice = module.choose(tried, graph, torch.device("cuda"))
    assert (choice.best.settings, choice.state.epoch) == (GOOD, 12)


def test_families_are_ranked_and_one_with_factors_stays_to_the_end(graph, short):
    ours = resolve(preset("", "lgdgcn"), {"lr": 1e-9, "variant": "ours"})
    tried = [Candidate("lgdgcn", ours), Candidate("gcn", USELESS), Candidate("gat", USELESS)]
    tried += [Candidate("mlp", replace(GOOD, lr=lr)) for lr in (0.03, 0.04, 0.05)]
    choice = module.choose(tried, graph, CPU)
    assert choice.best.model == "mlp"
    assert {row.candidate.name: row.tried for row in choice.ranking} == {
        "mlp": 3, "lgdgcn": 1, "gcn": 1, "gat": 1
    }  # fmt: skip
    assert choice.of("lgdgcn").epochs == 12
    assert min(choice.of("gcn").epochs, choice.of("gat").epochs) == 8
    assert choice.of("grand") is None
    assert choice.as_dict()["ranking"][0]["model"] == "mlp"


def standing(model, score, loss, rungs=3, splits=1):
    candidate = Candidate(model, resolve({"variant": "ours"}, preset("", model)))
    training = Training(model, candidate.settings, 0, Data())
    return Standing(candidate, [training], [[]], rungs, 200, (score,) * splits, (loss,) * splits)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # of 100 nodes the standard error is 0.04, a quarter of it 0.01
        ([("gcn", 0.80, 1.0), ("gcn", 0.797, 0.9)], 1),  # nearly the best, and of lower loss
        ([("gcn", 0.80, 0.9), ("gcn", 0.797, 1.0)], 0),
        ([("gcn", 0.80, 1.0), ("gcn", 0.78, 0.1)], 0),
        ([("lgdgcn", 0.80, 0.1), ("mlp", 0.795, 9.0)], 1),  # simpler, and as good
        ([("lgdgcn", 0.80, 9.0), ("mlp", 0.78, 0.1)], 0),
        ([("grand", 0.80, 1.0), ("gat", 0.80, 1.0), ("appnp", 0.80, 1.0)], 2),
        ([("lgdgcn", 0.70, 1.0), ("mlp", 0.9, 1.0, 1)], 0),  # which was given up early
    ],
)
def test_ties_within_noise(graph, rows, expected):
    graph.val_mask = torch.arange(graph.num_nodes) < 100
    graph = Data(y=torch.zeros(200), val_mask=torch.arange(200) < 100)
    standings = [standing(*row) for row in rows]
    asked = {one: one.candidate for one in standings}
    outcome = Outcome(standings, False)
    chosen, *_ = module._ranking(outcome, [Split(graph, 0)], asked)
    assert chosen.candidate is standings[expected].candidate


def test_noise_is_of_nodes_or_of_splits_whichever_is_larger():
    assert module._noise([0.5, 0.5], 100) == pytest.approx(0.05)
    assert module._noise([0.3, 0.7], 100) == pytest.approx(0.2)


def test_more_settings_than_the_portfolio_are_searched_for(graph, short, one_split):
    tried = [USELESS, replace(USELESS, hidden_channels=32)]
    choice = choose(graph, *tried, budget=7, fixed=["num_layers"])
    assert (choice.searched, choice.tried) == (5, 7)
    assert choice.best.settings.num_layers == 1
    assert choice.ranking[0].score > choose(graph, *tried).ranking[0].score
    assert choose(graph, *tried, budget=7, fixed=["num_layers"]) == choice
    assert "5 of them by a search near the best" in str(choice)


# Large graphs


@pytest.fixture
def large(monkeypatch, graph):
    monkeypatch.setattr("lgdgcn.search.sample.WHOLE", graph.num_nodes - 1)
    monkeypatch.setattr("lgdgcn.search.sample.MOST_NODES", graph.num_nodes // 2)
    return graph


def test_settings_for_a_large_graph_are_tried_on_a_sample(large, short):
    choice = choose(large, USELESS, GOOD)
    assert (choice.best.settings, choice.sample) == (GOOD, large.num_nodes // 2)
    assert choice.state is None
    assert not choice.log
    assert "on a sample of" in str(choice)


def test_settings_that_are_not_for_the_whole_graph_are_not_tried(large, short, monkeypatch):
    monkeypatch.setattr("lgdgcn.search.sample._NEIGHBOURS", 10)
    wide = replace(GOOD, structure="global")
    choice = choose(large, wide, USELESS, GOOD)
    assert (choice.best.settings, choice.too_large, choice.tried) == (GOOD, 1, 2)
    assert "; 1 more are not for a graph of this size" in str(choice)
    # what a user has asked for is tried all the same
    asked = choose(large, replace(USELESS, structure="global"), wide)
    assert (asked.best.settings, asked.too_large) == (wide, 0)


def test_a_sample_is_judged_by_the_score_of_the_whole_graph(large, short, monkeypatch):
    real, judged = module.race, []

    def watched(tried, *others, **options):
        judged.extend(one.settings.metric for one in tried)
        return real(tried, *others, **options)

    monkeypatch.setattr(module, "race", watched)
    assert choose(large, USELESS, GOOD).best.settings.metric == "auto"
    assert judged == ["accuracy", "accuracy"]
