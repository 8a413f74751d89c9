"""Trials trained together: each as if alone, scored by validation, pruned at the rungs."""

from dataclasses import replace

import pytest
import torch

from lgdgcn.config import Settings
from lgdgcn.data import synthetic_graph
from lgdgcn.data.validate import canonical
from lgdgcn.metrics.catalogue import HEADLINE
from lgdgcn.search import trials
from lgdgcn.search.trials import TrialRun, factor_metrics, train_trials
from lgdgcn.train.population import Member
from lgdgcn.train.trainer import Trainer
from tune.problems import CPU, FIXED, GRAPH

SETTINGS = [
    Settings(**{**FIXED, "lr": lr, "dropout": dropout, "epochs": epochs})
    for lr, dropout, epochs in ((0.01, 0.5, 25), (0.05, 0.0, 12), (0.3, 0.2, 18))
]


def graph_of(source=GRAPH, seed=0):
    """In float64, where no rounding turns into another label within a few epochs."""
    data = source.load(seed)
    data.x = data.x.double()
    return data


def run(settings, *, seeds=(0, 1, 2), model="mlp", graphs=None, **hooks):
    """Train trials to their end; in the order of their numbers."""
    runs = [TrialRun(number, one, seeds) for number, one in enumerate(settings)]
    finished = []
    train_trials(
        runs,
        graphs or dict.fromkeys(seeds, graph_of()),
        model,
        CPU,
        on_finished=finished.append,
        **hooks,
    )
    assert sorted(one.number for one in finished) == list(range(len(runs)))
    return runs


def scores_of(settings, **how):
    return [one.scores for one in run(settings, **how)]


@pytest.mark.parametrize("model", ["lgdgcn", "disengcn", "gcn"])
def test_every_trial_is_what_it_would_be_alone(model):
    together = run(SETTINGS, model=model)
    for number, settings in enumerate(SETTINGS):
        (alone,) = run([settings], model=model)
        assert together[number].scores == pytest.approx(alone.scores, abs=1e-12)
        assert alone.score == pytest.approx(sum(alone.scores) / 3)
    single = [run(SETTINGS[:1], model=model, seeds=[seed])[0].score for seed in (0, 1, 2)]
    assert together[0].scores == pytest.approx(single, abs=1e-12)
    assert len({trial.score for trial in together}) == 3


def test_every_seed_may_have_its_own_split():
    source = replace(GRAPH, split="random")
    graphs = {seed: graph_of(source, seed) for seed in (0, 1, 2)}
    found = scores_of(SETTINGS, graphs=graphs)
    for seed in graphs:
        alone = scores_of(SETTINGS, seeds=[seed], graphs=graphs)
        assert [scores[seed] for scores in found] == pytest.approx([one for (one,) in alone])


@pytest.mark.parametrize(
    ("epochs", "patience"), [(1, 9), (4, 9), (10, 20), (11, 20), (37, 99), (200, 6)]
)
def test_score_is_the_best_mean_of_ten_epochs(epochs, patience):
    settings = replace(SETTINGS[2], epochs=epochs, patience=patience)
    seen = []
    Trainer(graph_of(), [Member(settings, 1)], "mlp").train(
        lambda report: seen.append(report.metrics["val_micro_f1"])
    )
    windows = [seen[end - 10 : end] for end in range(10, len(seen) + 1)] or [seen]
    (trial,) = run([settings], seeds=[1])
    assert len(seen) == epochs or len(seen) < 200 == epochs
    assert trial.score == pytest.approx(max(sum(window) / len(window) for window in windows))
    assert trial.score < max(seen) or len(set(seen)) == 1


def test_a_diverging_trial_fails_alone():
    data = graph_of()
    data.x = data.x.float() * 1e9
    wild = replace(SETTINGS[0], lr=1e30, num_layers=2)
    tame = [replace(one, num_layers=2) for one in SETTINGS[:2]]
    graphs = dict.fromkeys(range(3), data)
    first, bad, last = run([tame[0], wild, tame[1]], model="gcn", graphs=graphs)
    assert "training diverged: " in bad.failure
    assert (first.failure, last.failure) == (None, None)
    assert [first.scores, last.scores] == scores_of(tame, model="gcn", graphs=graphs)
    assert [run.epoch for run in first.runs] == [25] * 3


def test_only_validation_counts():
    data = graph_of()
    other = data.clone()
    other.y[data.test_mask] = 1 - other.y[data.test_mask]
    other.test_mask = torch.zeros_like(data.test_mask)
    graphs = [dict.fromkeys(range(3), one) for one in (data, other)]
    assert scores_of(SETTINGS, graphs=graphs[0]) == scores_of(SETTINGS, graphs=graphs[1])
    other.y[data.val_mask] = 1 - other.y[data.val_mask]
    assert scores_of(SETTINGS, graphs=graphs[0]) != scores_of(SETTINGS, graphs=graphs[1])


# Rungs


@pytest.fixture
def low_rungs(monkeypatch):
    monkeypatch.setattr(trials, "RUNGS", (5, 15))


@pytest.mark.usefixtures("low_rungs")
def test_poor_trials_are_pruned_and_the_others_go_on():
    seen, epochs = [], []

    def judge(one):
        seen.append(("asked", one.number))
        return one.number == 2 or (one.number == 0 and len(epochs) >= 15)

    found = run(
        SETTINGS,
        on_rung=lambda one, rung: seen.append((rung, one.number)),
        should_prune=judge,
        on_epoch=lambda: epochs.append(1),
    )
    assert [[run.epoch for run in one.runs] for one in found] == [
        [15] * 3,
        [12] * 3,
        [5] * 3,
    ]
    assert [one.pruned for one in found] == [True, False, True]
    assert seen == [
        *((5, number) for number in range(3)),  # all have reported before one is judged
        *(("asked", number) for number in range(3)),
        (15, 0),
        ("asked", 0),
    ]
    assert len(epochs) == 15  # nobody is trained beyond


@pytest.mark.usefixtures("low_rungs")
def test_pruning_changes_nothing_for_the_others():
    found = run(SETTINGS, model="lgdgcn", should_prune=lambda one: one.number == 1)
    expected = run(SETTINGS, model="lgdgcn")
    assert found[1].pruned
    for number in (0, 2):
        assert found[number].scores == pytest.approx(expected[number].scores, abs=1e-12)


def test_a_trial_comes_to_a_rung_with_its_slowest_seed(monkeypatch):
    monkeypatch.setattr(trials, "RUNGS", (8, 30))
    rungs = []
    settings = replace(SETTINGS[2], epochs=40, patience=5)
    (trial,) = run([settings], seeds=range(6), on_rung=lambda one, rung: rungs.append(rung))
    lengths = [run.epoch for run in trial.runs]
    assert min(lengths) < max(lengths) < 40  # of early stopping
    assert rungs == [rung for rung in (8, 30) if max(lengths) > rung]


def test_an_interruption_gets_through():
    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(SETTINGS, on_epoch=stop)


# Populations


def sizes(monkeypatch, settings, seeds=(0, 1)):
    made = []

    def population(graphs, members, *rest):
        made.append([(member.settings.num_layers, member.seed) for member in members])
        return Trainer(graphs, members, *rest)

    monkeypatch.setattr("lgdgcn.train.jobs.Trainer", population)
    run([replace(one, epochs=1) for one in settings], seeds=seeds)
    return made


def test_trials_of_one_architecture_are_trained_together(monkeypatch):
    deep = [replace(one, num_layers=2) for one in SETTINGS]
    mixed = [deep[0], SETTINGS[0], deep[1], SETTINGS[1], deep[2]]
    assert sizes(monkeypatch, mixed) == [[(2, 0), (2, 1)] * 3, [(1, 0), (1, 1)] * 2]


def test_no_more_than_fit(monkeypatch):
    monkeypatch.setattr("lgdgcn.train.jobs.members_at_once", lambda *_: 5)
    assert sizes(monkeypatch, SETTINGS) == [[(1, 0), (1, 1)] * 2, [(1, 0), (1, 1)]]
    # the seeds of a trial stay together
    monkeypatch.setattr("lgdgcn.train.jobs.members_at_once", lambda *_: 1)
    assert sizes(monkeypatch, SETTINGS) == [[(1, 0), (1, 1)]] * 3


def test_room_is_asked_for_the_largest_k(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "lgdgcn.train.jobs.members_at_once", lambda _, own, device: asked.append(own.k) or 9
    )
    run([replace(SETTINGS[0], epochs=1, k=k) for k in (2, 7, 3)], model="lgdgcn")
    assert asked == [7]


# Memory


def fit_only(monkeypatch, fits):
    """Populations run out of memory in the third epoch unless ``fits`` says so of their rates."""
    made = []

    class Small(Trainer):
        def __init__(self, graphs, members, *rest):
            made.append(sorted({member.settings.lr for member in members}))
            super().__init__(graphs, members, *rest)
            self.epochs = 0

        def epoch(self):
            self.epochs += 1
            if self.epochs == 3 and not fits(made[-1]):
                raise torch.OutOfMemoryError
            return super().epoch()

    monkeypatch.setattr("lgdgcn.train.jobs.Trainer", Small)
    return made


def test_trials_too_large_together_are_trained_in_halves(monkeypatch):
    expected = scores_of(SETTINGS)
    monkeypatch.setattr(trials, "RUNGS", (2, 5))
    made = fit_only(monkeypatch, lambda rates: len(rates) < 2)
    rungs = []
    found = run(SETTINGS, on_rung=lambda one, rung: rungs.append((one.number, rung)))
    assert [one.failure for one in found] == [None] * 3
    assert [one.scores for one in found] == [pytest.approx(scores) for scores in expected]
    assert made[0] == [0.01, 0.05, 0.3]
    assert made[-3:] == [[0.01], [0.05], [0.3]]
    assert sorted(rungs) == [(n, rung) for n in range(3) for rung in (2, 5)]  # none came twice


def test_a_trial_too_large_by_itself_fails_alone(monkeypatch):
    expected = scores_of(SETTINGS)
    fit_only(monkeypatch, lambda rates: 0.05 not in rates)
    first, bad, last = run(SETTINGS)
    assert bad.failure == "out of memory"
    assert (first.failure, last.failure) == (None, None)
    assert first.scores == pytest.approx(expected[0])
    assert last.scores == pytest.approx(expected[2])


def test_who_finished_before_memory_ran_out_is_reported_once(monkeypatch):
    def retire(self, indices):
        if 0 < len(list(indices)) < len(self.indices):  # the others are brought together again
            raise torch.OutOfMemoryError

    monkeypatch.setattr(Trainer, "retire", retire)
    found = run(SETTINGS)  # of different length; asserts that each comes once
    assert [one.failure for one in found] == [None] * 3


def test_a_graph_too_large_fails_every_trial(monkeypatch):
    def prepared(*_):
        raise torch.OutOfMemoryError

    monkeypatch.setattr("lgdgcn.train.jobs.prepared_alike", prepared)
    assert [one.failure for one in run(SETTINGS)] == ["out of memory"] * 3


# Factor metrics

SMALL = Settings(factors=2, hidden_channels=8, epochs=3)


def graph_with_factors():
    made = synthetic_graph(nodes=120, classes=3, factors=2, average_degree=10)
    data = canonical(made)
    data.y_factor = made.y_factor
    return data


def trained(data, model="lgdgcn"):
    population = Trainer(data, [Member(SMALL, 0), Member(SMALL, 1)], model)
    population.train()
    return population


def test_factor_metrics_are_the_mean_of_the_members():
    population = trained(graph_with_factors())
    both, first, second = (factor_metrics(population, indices) for indices in ([0, 1], [0], [1]))
    assert list(both) == list(HEADLINE)
    for name in HEADLINE:
        assert both[name] == (first[name] + second[name]) / 2


def test_factors_of_test_nodes_are_not_looked_at():
    data, other = graph_with_factors(), graph_with_factors()
    hidden = other.test_mask.nonzero().view(-1)
    other.y_factor[hidden] = other.y_factor[hidden.flip(0)]
    assert factor_metrics(trained(data), [0]) == factor_metrics(trained(other), [0])


def test_models_without_factors_have_no_metrics_and_others_on_demand():
    assert factor_metrics(trained(graph_with_factors(), "gcn"), [0]) == {}
    graphs = dict.fromkeys(range(2), graph_with_factors())
    for measured in (False, True):
        (found,) = run(
            [SMALL], seeds=range(2), model="lgdgcn", graphs=graphs, measure_factors=measured
        )
        assert list(found.factors) == (list(HEADLINE) if measured else [])
