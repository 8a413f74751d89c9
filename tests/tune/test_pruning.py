"""Which trials are given up."""

import optuna
import pytest

from lgdgcn.tune.pruning import LowerThird

SCORES = [0.5, 0.1, 0.9, 0.3, 0.7, 0.2, 0.8, 0.4, 0.6]


def study_of(*trials, state=optuna.trial.TrialState.RUNNING):
    study = optuna.create_study(direction="maximize", pruner=LowerThird())
    for reported in trials:
        value = 0.0 if state == optuna.trial.TrialState.COMPLETE else None
        study.add_trial(optuna.create_trial(state=state, intermediate_values=reported, value=value))
    return study


def pruned(study):
    return [LowerThird().prune(study, trial) for trial in study.trials]


@pytest.mark.parametrize("state", ["RUNNING", "PRUNED", "COMPLETE", "FAIL"])
def test_the_lower_third_goes(state):
    state = optuna.trial.TrialState[state]
    found = pruned(study_of(*({50: score} for score in SCORES), state=state))
    assert [score for score, gone in zip(SCORES, found, strict=True) if gone] == [0.1, 0.3, 0.2]


def test_a_few_scores_say_nothing():
    assert not any(pruned(study_of(*({50: score} for score in SCORES[:8]))))


def test_equals_stay():
    assert not any(pruned(study_of(*[{50: 0.5}] * 20)))


def test_trials_are_compared_at_the_rung_they_have_reached():
    early = [{50: score} for score in SCORES]
    late = [{50: 0.0, 100: score} for score in SCORES[:4]]
    found = pruned(study_of(*early, *late, {}))
    assert found[9:] == [False] * 5  # four have come to the second rung, one to none
    assert found[:9] == [False] * 9  # the late ones are the lower third here, and no more judged


def test_it_is_asked_by_should_prune():
    study = study_of(*({50: score} for score in SCORES))
    poor, good = study.ask(), study.ask()
    for trial, score in ((poor, 0.05), (good, 0.55)):
        trial.report(score, 50)
    assert poor.should_prune()
    assert not good.should_prune()
