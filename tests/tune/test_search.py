"""A search from its first trial to the winner on fresh seeds."""

import signal
from dataclasses import dataclass, replace

import optuna
import pytest
import torch

from lgdgcn.data.source import GraphSource
from lgdgcn.errors import InputError, StoppedError
from lgdgcn.runtime import StopRequest
from lgdgcn.search import trials as training
from lgdgcn.search import tuning as searching
from lgdgcn.search.trials import TrialRun, train_trials
from lgdgcn.search.tuning import Finalist, LowerThirdPruner, sampler, search, train_finalists
from lgdgcn.search.workers import Worker
from lgdgcn.train.trainer import Trainer
from tune.problems import GRAPH, RANGES, new_study, problem_of

TRIALS = 9


def searched(problem=None, study=None, trials=TRIALS, **how):
    study = study or new_study()
    with Worker(study, trials) as worker:
        search(problem or problem_of(), study, worker, **how)
    return study


def outcome(study):
    return [(t.state.name, t.value, t.params, t.user_attrs.get("scores")) for t in study.trials]


@pytest.fixture(scope="module")
def found():
    """A finished search; not to be changed."""
    return searched()


def test_every_trial_has_the_mean_of_its_seeds(found):
    assert [trial.state.name for trial in found.trials] == ["COMPLETE"] * TRIALS
    graph = GRAPH.load()
    for trial in found.trials[:3]:
        assert set(trial.params) == set(RANGES)
        settings = problem_of().space.settings_of(trial.params)
        alone = TrialRun(0, settings, range(3))
        train_trials([alone], dict.fromkeys(range(3), graph), "mlp", torch.device("cpu"))
        assert trial.user_attrs["scores"] == pytest.approx(alone.scores)
        assert trial.value == pytest.approx(sum(alone.scores) / 3)


def test_one_worker_repeats_itself(found):
    assert outcome(searched()) == outcome(found)
    other = searched(study=new_study(seed=1), trials=2)
    assert [t.params for t in other.trials] != [t.params for t in found.trials[:2]]


def test_without_a_seed_the_sampler_never_repeats_itself():
    kinds = problem_of().space.distributions()
    drawn = []
    for _ in range(2):
        study = new_study()
        study.sampler = sampler(None)
        drawn.append(study.ask(kinds).params)
    assert drawn[0] != drawn[1]


@dataclass(frozen=True)
class Hidden(GraphSource):
    """The same graph with other labels where one may not look."""

    def load(self, seed=0, require_labels=True):
        data = super().load(seed, require_labels)
        data.y[data.test_mask] = 1 - data.y[data.test_mask]
        return data


def test_the_test_set_is_never_looked_at(found, monkeypatch):
    monkeypatch.setattr(searching, "FINALISTS", 2)
    problem = problem_of(source=Hidden(GRAPH.dataset))
    study = searched(problem)
    assert outcome(study) == outcome(found)
    assert [one.scores for one in train_finalists(problem, study)] == [
        one.scores for one in train_finalists(problem_of(), searched())
    ]


def test_a_trial_without_a_score_fails_alone():
    ranges = {"lr": {"choices": [0.01, 1e30]}}
    study = searched(problem_of(ranges, model="gcn", num_layers=2), trials=8)
    wild = [t for t in study.trials if t.params["lr"] == 1e30]
    assert {t.state.name for t in wild} == {"FAIL"}
    assert all("training diverged" in t.user_attrs["failure"] for t in wild)
    tame = [t for t in study.trials if t.params["lr"] == 0.01]
    assert {t.state.name for t in tame} == {"COMPLETE"}
    assert len({t.value for t in tame}) == 1
    assert 0 < len(tame) < 8


def test_poor_trials_are_given_up(monkeypatch):
    monkeypatch.setattr(training, "RUNGS", (10, 11))
    study = searched(trials=16)
    pruned = [t for t in study.trials if t.state.name == "PRUNED"]
    complete = [t for t in study.trials if t.state.name == "COMPLETE"]
    assert 3 <= len(pruned) == 16 - len(complete) <= 12
    for trial in pruned:
        assert trial.value == trial.intermediate_values[trial.last_step]
        assert len(trial.user_attrs["scores"]) == 3
    assert max(t.value for t in complete) > max(t.value for t in pruned)


def test_a_trial_taken_over_is_not_gone_on_with(monkeypatch):
    monkeypatch.setattr(training, "RUNGS", (4,))
    monkeypatch.setattr(Worker, "report", lambda self, trial, value, step: False)
    epochs = []
    study = new_study()
    searched(study=study, trials=1, on_change=lambda: epochs.append(study.trials[0].state.name))
    assert epochs == ["RUNNING"] * 4 + ["FAIL"]


def test_a_graph_without_validation_nodes():
    @dataclass(frozen=True)
    class Bare(GraphSource):
        def load(self, seed=0, require_labels=True):
            data = super().load(seed, require_labels)
            data.val_mask = torch.zeros_like(data.val_mask)
            return data

    with pytest.raises(InputError, match=r"synthetic:.* has no validation nodes .*; mark some"):
        searched(problem_of(source=Bare(GRAPH.dataset)))


def test_stored_and_random_splits_go_with_the_seed():
    problem = problem_of(source=replace(GRAPH, split="random"))
    graphs = problem.graphs(range(3))
    assert not torch.equal(graphs[0].val_mask, graphs[1].val_mask)
    alone = problem.source.load(1)
    assert torch.equal(graphs[1].val_mask, alone.val_mask)
    same = problem_of().graphs(range(3))
    assert same[0] is same[2]


def test_an_oversized_trial_is_told_as_failed(monkeypatch):
    def crowded(graphs, members, *rest):
        if any(member.settings.num_layers == 2 for member in members):
            raise torch.OutOfMemoryError
        return Trainer(graphs, members, *rest)

    monkeypatch.setattr("lgdgcn.train.jobs.Trainer", crowded)
    study = searched()
    large = [t for t in study.trials if t.params["num_layers"] == 2]
    assert {t.user_attrs["failure"] for t in large} == {"out of memory"}
    assert {t.state.name for t in large} == {"FAIL"}  # by itself: nobody tries it again
    assert not any("replaces" in t.user_attrs for t in study.trials)
    small = [t for t in study.trials if t not in large]
    assert {t.state.name for t in small} == {"COMPLETE"}
    assert len(study.trials) == TRIALS


# Interruptions


def test_a_stopped_search_goes_on_where_it_was(found):
    study, stop = new_study(), StopRequest()
    looks = []

    def on_change():
        looks.append(1)
        if len(looks) == 40:
            stop.signal = signal.SIGTERM

    with pytest.raises(StoppedError, match=r"stopped with \d trials complete; .* --resume") as end:
        searched(study=study, on_change=on_change, stop=stop)
    assert end.value.exit_code == 143
    assert len(looks) == 40
    first = [t.state.name for t in study.trials]
    assert first.count("FAIL") > 0
    assert set(first) == {"COMPLETE", "FAIL"}
    searched(study=study)
    done = [t for t in study.trials if t.state.name == "COMPLETE"]
    assert len(done) == TRIALS
    started = [t.params for t in found.trials[: len(first)]]
    assert all(params in [t.params for t in done] for params in started)
    assert len(study.trials) == TRIALS + first.count("FAIL")


# Finalists


@pytest.fixture
def trained(monkeypatch):
    """What was trained as finalists: numbers and seeds; the scores are made up."""
    seen = []

    def scored(runs, graphs, *_, on_finished, on_epoch, measure_factors):
        for one in runs:
            assert set(one.seeds) <= set(graphs)
            seen.append((one.number, list(one.seeds)))
            for seed, run in enumerate(one.runs):
                run.best = 0.5 + 0.01 * (one.number % 4) + 0.001 * seed
            one.failure = "diverged" if one.number == 3 else None
            one.factors = {"routing_entropy": 0.5} if measure_factors and one.number == 5 else {}
            on_epoch()
            on_finished(one)

    monkeypatch.setattr(searching, "train_trials", scored)
    monkeypatch.setattr(searching, "FINALISTS", 8)
    monkeypatch.setattr(searching, "FRESH_SEEDS", 10)
    return seen


def study_of(values):
    study = new_study()
    with Worker(study, 100) as worker:
        for value, trial in zip(values, worker.ask(len(values)), strict=True):
            for name, kind in problem_of().space.distributions().items():
                trial._suggest(name, kind)
            worker.tell(trial, value)
    return study


def test_the_winner_is_the_best_on_fresh_seeds(trained):
    study = study_of([0.9, 0.1, 0.8, 0.7, 0.2, 0.95, 0.6, 0.5, 0.4, 0.3])
    epochs = []
    finalists = train_finalists(problem_of(), study, lambda: epochs.append(1))
    assert {number for number, _ in trained} == {5, 0, 2, 3, 6, 7, 8, 9}  # the best eight
    seeds = {seed for _, seeds in trained for seed in seeds}
    assert len(seeds) == 10
    assert seeds.isdisjoint(range(900))
    assert [one.number for one in finalists] == [7, 2, 6, 5, 9, 0, 8]  # 3 diverged
    best = finalists[0]
    assert best.params == study.trials[7].params
    assert best.scores == pytest.approx([0.53 + 0.001 * place for place in range(10)])
    assert best.mean == pytest.approx(0.5345)
    assert best.std == pytest.approx(0.0030277, rel=1e-4)
    assert len(epochs) == 8


def test_finalists_are_trained_once(trained):
    study = study_of([0.9, 0.8, 0.7, 0.6])
    first = train_finalists(problem_of(), study)
    assert len(trained) == 4
    assert train_finalists(problem_of(), study) == first
    assert len(trained) == 4


def test_after_more_trials_only_new_finalists_are_trained(trained, monkeypatch):
    monkeypatch.setattr(searching, "FINALISTS", 3)
    study = study_of([0.1, 0.2, 0.3, 0.0])
    assert {one.number for one in train_finalists(problem_of(), study)} == {0, 1, 2}
    kinds = problem_of().space.distributions()
    with Worker(study, 100) as worker:
        for value, trial in zip((0.25, 0.4), worker.ask(2), strict=True):
            for name, kind in kinds.items():
                trial._suggest(name, kind)
            worker.tell(trial, value)
    assert {one.number for one in train_finalists(problem_of(), study)} == {2, 4, 5}
    numbers = [number for number, _ in trained]
    assert (sorted(numbers[:3]), sorted(numbers[3:])) == ([0, 1, 2], [4, 5])


def test_what_is_trained_survives_an_interruption(trained):
    study = study_of([0.9, 0.8, 0.7])

    def stop():
        if len(trained) == 2:
            raise StoppedError("stopped", 130)

    with pytest.raises(StoppedError):
        train_finalists(problem_of(), study, stop)
    train_finalists(problem_of(), study)
    numbers = [number for number, _ in trained]
    assert sorted(numbers) == sorted([0, 1, 2, numbers[1]])  # the second had not come to its end


def test_two_machines_keep_each_others_finalists(trained):
    study = study_of([0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
    layers = [trial.params["num_layers"] for trial in study.trials]
    groups = [[n for n in range(6) if layers[n] == count] for count in set(layers)]
    first, second = sorted(groups, key=len, reverse=True)  # as they are trained

    def elsewhere():
        if len(trained) == 1:
            study.set_user_attr(f"fresh:{second[0]}", [0.99, 0.97])

    finalists = train_finalists(problem_of(), study, elsewhere)
    assert [number for number, _ in trained] == [*first, *second[1:]]
    assert (finalists[0].number, finalists[0].scores) == (second[0], (0.99, 0.97))
    assert {f"fresh:{n}" for n in range(6)} <= set(study.user_attrs)


def test_how_finalists_tell_factors_apart_is_kept(trained):
    study = study_of([0.1 * number for number in range(6)])
    for _ in range(2):  # the second time it is read back
        known = {one.number: one.factors for one in train_finalists(problem_of(), study)}
        assert {number for number in known if known[number]} == {5}
        assert known[5] == {"routing_entropy": 0.5}


def test_a_finalist_without_memory_may_be_tried_on_another_device(trained, monkeypatch):
    study = study_of([0.9, 0.8])

    def crowded(runs, *_, on_finished, on_epoch, measure_factors):
        for one in runs:
            one.failure = training.OUT_OF_MEMORY if one.number == 0 else None
            on_finished(one)

    with monkeypatch.context() as patch:
        patch.setattr(searching, "train_trials", crowded)
        assert [one.number for one in train_finalists(problem_of(), study)] == [1]
    assert {one.number for one in train_finalists(problem_of(), study)} == {0, 1}
    assert [number for number, _ in trained] == [0]


def test_fresh_seeds_are_fresh_however_many_the_search_has(trained):
    train_finalists(problem_of(seeds=1500), study_of([0.5]))
    assert min(trained[0][1]) >= 1500


def test_real_finalists(found):
    study = searched(trials=3)
    assert [t.value for t in study.trials] == [t.value for t in found.trials[:3]]
    finalists = train_finalists(problem_of(), study)
    assert {one.number for one in finalists} == {0, 1, 2}
    assert all(len(set(one.scores)) > 1 for one in finalists)
    means = [one.mean for one in finalists]
    assert means == sorted(means, reverse=True)
    assert Finalist(0, {}, (0.5,)).std == 0


def test_no_winner(trained):
    with pytest.raises(InputError, match="no trial has come to an end"):
        train_finalists(problem_of(), new_study())
    study = study_of([0.1, 0.2, 0.3, 0.9])
    for number in range(3):
        study.set_user_attr(f"fresh:{number}", [])  # and 3 diverges now
    with pytest.raises(InputError, match=r"the best trials all diverge .* on fresh seeds"):
        train_finalists(problem_of(), study)


# Pruning

SCORES = [0.5, 0.1, 0.9, 0.3, 0.7, 0.2, 0.8, 0.4, 0.6]


def pruned_study(*trials, state=optuna.trial.TrialState.RUNNING):
    study = optuna.create_study(direction="maximize", pruner=LowerThirdPruner())
    for reported in trials:
        value = 0.0 if state == optuna.trial.TrialState.COMPLETE else None
        study.add_trial(optuna.create_trial(state=state, intermediate_values=reported, value=value))
    return study


def judged(study):
    return [LowerThirdPruner().prune(study, trial) for trial in study.trials]


@pytest.mark.parametrize("state", ["RUNNING", "PRUNED", "COMPLETE", "FAIL"])
def test_the_lower_third_goes(state):
    state = optuna.trial.TrialState[state]
    found = judged(pruned_study(*({50: score} for score in SCORES), state=state))
    assert [score for score, gone in zip(SCORES, found, strict=True) if gone] == [0.1, 0.3, 0.2]


def test_a_few_scores_say_nothing():
    assert not any(judged(pruned_study(*({50: score} for score in SCORES[:8]))))


def test_equals_stay():
    assert not any(judged(pruned_study(*[{50: 0.5}] * 20)))


def test_trials_are_compared_at_the_rung_they_have_reached():
    early = [{50: score} for score in SCORES]
    late = [{50: 0.0, 100: score} for score in SCORES[:4]]
    found = judged(pruned_study(*early, *late, {}))
    assert found[9:] == [False] * 5  # four have come to the second rung, one to none
    assert found[:9] == [False] * 9  # the late ones are the lower third here, and no more judged


def test_it_is_asked_by_should_prune():
    study = pruned_study(*({50: score} for score in SCORES))
    poor, good = study.ask(), study.ask()
    for trial, score in ((poor, 0.05), (good, 0.55)):
        trial.report(score, 50)
    assert poor.should_prune()
    assert not good.should_prune()
