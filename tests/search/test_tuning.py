"""A search from its first trial to the winner on fresh seeds."""

import os
import socket
import subprocess
from dataclasses import dataclass

import optuna
import pytest
import torch

from lgdgcn.data.source import GraphSource
from lgdgcn.errors import InputError, StoppedError
from lgdgcn.runtime import StopRequest
from lgdgcn.search import tuning, winner
from lgdgcn.search.tuning import enqueue, fail_lost, finished, is_poor, sampler, search, smoothed
from lgdgcn.search.winner import Finalist, train_finalists
from lgdgcn.train.trainer import Trainer
from lgdgcn.training import Training, run
from search.problems import CPU, GRAPH, RANGES, new_study, problem_of

TRIALS = 9


def searched(problem=None, study=None, trials=TRIALS, **how):
    study = study or new_study()
    search(problem or problem_of(), study, trials, **how)
    return study


def outcome(study):
    return [(t.state.name, t.value, t.params, t.user_attrs.get("scores")) for t in study.trials]


def states(study):
    return [trial.state.name for trial in study.trials]


@pytest.fixture(scope="module")
def found():
    """A finished search; not to be changed."""
    return searched()


@pytest.fixture
def few_finalists(monkeypatch):
    monkeypatch.setattr(winner, "FINALISTS", 2)
    monkeypatch.setattr(winner, "FRESH_SEEDS", 3)


def test_a_trial_has_the_mean_of_what_each_seed_has_alone(found):
    assert states(found) == ["COMPLETE"] * TRIALS
    trial, seen = found.trials[3], {0: [], 1: [], 2: []}
    assert set(trial.params) == set(RANGES)
    settings = problem_of().space.settings_of(trial.params)
    graph = GRAPH.load()

    def on_epoch(epochs):
        for epoch in epochs:
            seen[epoch.training.seed].append(epoch.metrics)

    for seed in seen:
        list(run([Training("mlp", settings, seed, graph)], CPU, on_epoch))
    alone = [smoothed(log, "micro_f1") for log in seen.values()]
    assert trial.user_attrs["scores"] == pytest.approx(alone)
    assert trial.value == pytest.approx(sum(alone) / 3)


def test_a_score_is_the_best_mean_of_ten_epochs():
    log = [{"val_accuracy": score} for score in [0.9, 0.0, *[0.5] * 10, None]]
    assert smoothed(log, "accuracy") == pytest.approx(0.5)
    assert smoothed(log[:2], "accuracy") == pytest.approx(0.45)  # stopped early


@pytest.mark.usefixtures("few_finalists")
def test_the_best_settings_are_found():
    """Nobody can learn with a rate of 1e-6: the search has to end at the other one."""
    problem = problem_of({"lr": {"choices": [1e-6, 0.1]}}, epochs=60)
    study = searched(problem, trials=6)
    best = train_finalists(problem, study)[0]
    assert best.params == study.best_params == {"lr": 0.1}
    assert best.mean > 0.5


def test_one_worker_repeats_itself_and_another_seed_draws_others(found):
    assert outcome(searched()) == outcome(found)
    other = searched(study=new_study(seed=1), trials=2)
    assert [t.params for t in other.trials] != [t.params for t in found.trials[:2]]
    ranges, drawn = problem_of().space.ranges, []
    for _ in range(2):  # without a seed, as each worker of several does
        study = new_study()
        study.sampler = sampler(None)
        drawn.append(study.ask(ranges).params)
    assert drawn[0] != drawn[1]


@dataclass(frozen=True)
class Permuted(GraphSource):
    """The same graph with other labels where one may not look, or where one may."""

    where: str = "test_mask"

    def load(self, seed=0, require_labels=True):
        data = super().load(seed, require_labels)
        mask = data[self.where]
        data.y[mask] = 1 - data.y[mask]
        return data


@pytest.mark.usefixtures("few_finalists")
def test_test_labels_have_no_say_in_anything(found):
    problem = problem_of(source=Permuted(GRAPH.dataset))
    study = searched(problem)
    assert outcome(study) == outcome(found)
    winners = [train_finalists(*one) for one in ((problem, study), (problem_of(), searched()))]
    assert winners[0] == winners[1]
    other = searched(problem_of(source=Permuted(GRAPH.dataset, where="val_mask")), trials=2)
    assert outcome(other) != outcome(found)[:2]


def test_a_trial_without_a_score_fails_alone_and_counts():
    problem = problem_of({"lr": {"choices": [0.01, 1e30]}}, model="gcn", num_layers=2)
    study = searched(problem, trials=8)
    wild = [t for t in study.trials if t.params["lr"] == 1e30]
    tame = [t for t in study.trials if t.params["lr"] == 0.01]
    assert {t.state.name for t in wild} == {"FAIL"}
    assert all("training diverged" in t.user_attrs["failure"] for t in wild)
    assert {t.state.name for t in tame} == {"COMPLETE"}
    assert len({t.value for t in tame}) == 1
    assert len(tame) + len(wild) == len(finished(study)) == 8
    assert wild


def test_a_trial_too_large_for_memory_fails_alone(monkeypatch):
    def crowded(trainings, loader):
        if any(one.settings.num_layers == 2 for one in trainings):
            raise torch.OutOfMemoryError
        return Trainer(trainings, loader)

    monkeypatch.setattr("lgdgcn.training.Trainer", crowded)
    for trial in searched().trials:
        large = trial.params["num_layers"] == 2
        assert trial.state.name == ("FAIL" if large else "COMPLETE")
        assert ("memory" in trial.user_attrs.get("failure", "")) is large


# Pruning

SCORES = [0.5, 0.1, 0.9, 0.3, 0.7, 0.2, 0.8, 0.4, 0.6]


def test_the_lower_third_goes():
    assert [score for score in SCORES if is_poor(score, SCORES)] == [0.1, 0.3, 0.2]
    assert not any(is_poor(score, SCORES[:8]) for score in SCORES)  # a few say nothing
    assert not is_poor(0.5, [0.5] * 20)


def test_poor_trials_are_given_up_at_the_rungs(monkeypatch):
    monkeypatch.setattr(tuning, "RUNGS", (5, 11))
    study = searched(trials=16)
    pruned = [t for t in study.trials if t.state.name == "PRUNED"]
    complete = [t for t in study.trials if t.state.name == "COMPLETE"]
    assert 3 <= len(pruned) == 16 - len(complete) <= 12
    for trial in pruned:
        assert trial.value == trial.intermediate_values[trial.last_step]
        before = [
            t.intermediate_values[trial.last_step]
            for t in study.trials
            if trial.last_step in t.intermediate_values
        ]
        assert trial.value < sorted(before)[len(before) // 2]
    assert max(t.value for t in complete) > max(t.value for t in pruned)


def test_whoever_ends_before_a_rung_is_not_judged_there(monkeypatch):
    monkeypatch.setattr(tuning, "RUNGS", (10,))
    monkeypatch.setattr(tuning, "is_poor", lambda score, reached: True)
    study = searched(problem_of({"epochs": {"choices": [6, 12]}}), trials=8)
    ends = {(t.params["epochs"], t.state.name) for t in study.trials}
    assert ends == {(6, "COMPLETE"), (12, "PRUNED")}


# Interruptions


def test_trials_of_dead_processes_of_this_machine_are_lost(found):
    dead = subprocess.Popen(["true"])
    dead.wait()
    here = socket.gethostname()
    study = new_study()
    owners = [f"{here}:{dead.pid}", f"{here}:{os.getpid()}", f"{here}:1", "elsewhere:1", None]
    for owner in owners:
        trial = study.ask()
        if owner:
            trial.set_user_attr("process", owner)
    fail_lost(study)
    assert states(study) == ["FAIL"] * 2 + ["RUNNING"] * 3
    searched(study=study, trials=3, with_others=True)  # leaves to them what they have begun
    assert finished(study) == []
    searched(study=study, trials=3)
    assert states(study)[5:] == ["COMPLETE"] * 3


def test_settings_to_begin_with_are_tried_once():
    study = new_study()
    starts = [{"lr": 0.05}, {}, {"num_layers": 2, "dropout": 0.25}]
    for _ in range(2):
        enqueue(study, starts)
    searched(study=study, trials=2)
    enqueue(study, starts)
    assert [t.params["lr"] for t in study.trials[:1]] == [0.05]
    assert study.trials[1].params.items() >= starts[2].items()
    assert len(study.trials) == 2


# Finalists


def study_of(values):
    """A study with trials of these values; every second one learns faster."""
    study = new_study()
    for number, value in enumerate(values):
        params = {"lr": 0.02 + 0.2 * (number % 2), "num_layers": 1, "dropout": 0.1}
        kinds = problem_of().space.ranges
        made = optuna.create_trial(params=params, distributions=kinds, value=value)
        study.add_trial(made)
    return study


@pytest.mark.usefixtures("few_finalists")
def test_the_winner_is_the_best_of_the_best_on_seeds_nobody_has_seen(monkeypatch):
    seeds = []

    def watched(trainings, *rest):
        seeds.extend(one.seed for one in trainings)
        return run(trainings, *rest)

    monkeypatch.setattr(winner, "run", watched)
    study = study_of([0.9, 0.1, 0.2, 0.8])
    first = train_finalists(problem_of(seeds=1500), study)
    assert [one.number for one in first] == [3, 0]  # 3 learns faster
    assert first[0].params == study.trials[3].params
    assert first[0].mean > first[1].mean
    assert len(set(first[0].scores)) > 1
    assert seeds == [1500, 1501, 1502] * 2
    assert train_finalists(problem_of(seeds=1500), study) == first  # kept in the study
    study.add_trial(study_of([0.85]).trials[0])
    train_finalists(problem_of(seeds=1500), study)
    assert len(seeds) == 9  # the one that is new among the best


@pytest.mark.usefixtures("few_finalists")
def test_a_finalist_that_fails_is_none_and_may_succeed_on_another_device(monkeypatch):
    study = study_of([0.9, 0.8])

    def crowded(trainings, loader):
        if any(one.settings.lr < 0.1 for one in trainings):
            raise torch.OutOfMemoryError
        return Trainer(trainings, loader)

    with monkeypatch.context() as patch:
        patch.setattr("lgdgcn.training.Trainer", crowded)
        assert [one.number for one in train_finalists(problem_of(), study)] == [1]
        with pytest.raises(InputError, match=r"the best trials all diverge .* on fresh seeds"):
            train_finalists(problem_of(), study_of([0.9]))
    assert {one.number for one in train_finalists(problem_of(), study)} == {0, 1}


@pytest.mark.usefixtures("few_finalists")
def test_a_stop_among_the_finalists_keeps_the_first():
    class Later(StopRequest):
        looks = 0

        def __bool__(self):
            self.looks += 1
            return self.looks > 20  # twice an epoch, of which the first finalist has twelve

    study, stop = study_of([0.9, 0.8]), Later()
    with pytest.raises(StoppedError, match="among the finalists; go on with --resume"):
        train_finalists(problem_of(), study, stop)
    assert list(study.user_attrs) == ["finalist:0"]


def test_no_winner():
    with pytest.raises(InputError, match="no trial has come to an end"):
        train_finalists(problem_of(), new_study())
    assert Finalist(0, {}, [0.5], {}).std == 0


@pytest.mark.usefixtures("few_finalists")
def test_finalists_say_how_well_factors_are_told_apart():
    space = {"lr": {"choices": [0.05]}}

    def measured(source):
        problem = problem_of(space, source=source, model="lgdgcn", factors=2)
        problem.space.settings["variant"] = "paper"
        return train_finalists(problem, searched(problem, trials=1))[0].factors

    factors = measured(GRAPH)
    assert 0 < factors["edge_attribution"] <= 1
    assert 0 <= factors["routing_entropy"] <= 1

    @dataclass(frozen=True)
    class Other(GraphSource):
        def load(self, seed=0, require_labels=True):
            data = super().load(seed, require_labels)
            hidden = data.test_mask.nonzero().view(-1)
            data.y_factor[hidden] = data.y_factor[hidden.flip(0)]
            return data

    assert measured(Other(GRAPH.dataset)) == factors  # those of test nodes are not read
