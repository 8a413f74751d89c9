"""Workers that share a study, and workers that die."""

import os
import shutil
import threading
import time

import optuna
import pytest
from optuna.trial import TrialState

from lgdgcn.errors import LGDWarning
from lgdgcn.search import workers
from lgdgcn.search.workers import Worker, counts
from tune.processes import (
    done,
    finish,
    kill,
    kill_amid_trials,
    opened,
    start_workers,
    states,
    stop_hearts,
    worker_of,
)


@pytest.fixture(scope="module")
def empty(tmp_path_factory) -> str:
    """The file of a study without trials; not to be changed."""
    file = str(tmp_path_factory.mktemp("empty") / "study.db")
    opened(file, resume=False)
    return file


@pytest.fixture
def storage(tmp_path, empty) -> str:
    return shutil.copy(empty, tmp_path)


@pytest.fixture
def study(storage) -> optuna.Study:
    return opened(storage, seed=0)


@pytest.fixture
def memory() -> optuna.Study:
    return optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(0))


def suggest(trials: list[optuna.Trial]) -> list[float]:
    return [trial.suggest_float("x", 0, 1) for trial in trials]


# The budget


def test_four_workers_complete_exactly_eighty_trials(study, storage):
    for _ in range(14):
        study.enqueue_trial({"x": 0.5})  # must not be taken by two
    finish(start_workers(4, storage, 80, batch=5))
    assert states(study) == ["COMPLETE"] * 80
    assert (len(set(done(study))), done(study).count(0.5)) == (67, 14)
    assert len({t.user_attrs["claimed_by"] for t in study.trials}) > 1  # a late one may find none


def test_budget_counts_what_ended_by_itself(memory):
    with Worker(memory, 5) as worker:
        nan, pruned, missing, infinite, good = worker.ask(9)
        assert worker.report(pruned, 0.25, 1)
        assert worker.tell(nan, float("nan"))
        assert worker.tell(pruned, pruned=True)
        assert worker.tell(missing, None, notes={"failure": "diverged"})
        assert worker.tell(infinite, float("inf"))
        assert worker.tell(good, 0.5, notes={"scores": [0.4, 0.6]})
        assert worker.ask(1) == []
        assert not worker.others_running
    assert states(memory) == ["FAIL", "PRUNED", "FAIL", "FAIL", "COMPLETE"]
    assert memory.trials[0].user_attrs["failure"] == "its score is nan"
    assert memory.trials[1].value == 0.25
    assert memory.trials[2].user_attrs["failure"] == "diverged"
    assert memory.best_trial.user_attrs["scores"] == [0.4, 0.6]
    with Worker(memory, 6) as worker:  # a larger budget goes on
        assert len(worker.ask(9)) == 1


def test_queued_trials_come_first_and_within_the_budget(memory):
    for x in (0.1, 0.2, 0.3):
        memory.enqueue_trial({"x": x})
    with Worker(memory, 2) as worker:
        asked = worker.ask(5)
        assert suggest(asked) == [0.1, 0.2]
        for trial in asked:
            worker.tell(trial, 0.0)
        assert worker.ask(1) == []
    assert states(memory) == ["COMPLETE", "COMPLETE", "WAITING"]


def test_claiming_and_finishing_wait_for_the_lock(study, storage):
    with worker_of(storage, 2, study) as worker, worker_of(storage, 2) as other:
        (trial,) = worker.ask(1)
        steps = [lambda: worker.tell(trial, 0.5), lambda: worker.ask(1)]
        for step in steps:
            with other.lock():
                thread = threading.Thread(target=step)
                thread.start()
                thread.join(0.3)
                assert thread.is_alive()
            thread.join(30)
            assert not thread.is_alive()
    assert states(study) == ["COMPLETE", "FAIL"]  # the second was handed back


# Workers that are lost


def test_trials_of_a_killed_worker_are_run_again(study, storage):
    kill_amid_trials(storage, trials=9, batch=4)
    lost = sorted(t.params["x"] for t in study.trials)
    assert states(study) == ["RUNNING"] * 4
    finish(start_workers(2, storage, 9))
    assert len(done(study)) == len(set(done(study))) == 9
    assert set(lost) < set(done(study))
    replaced = [t.user_attrs["replaces"] for t in study.trials if "replaces" in t.user_attrs]
    assert sorted(replaced) == [0, 1, 2, 3]


@pytest.mark.parametrize("step", ["beat", "sign"])
def test_a_trial_without_a_first_heartbeat_or_signature_is_run_again(study, storage, step):
    study.enqueue_trial({"x": 0.25})
    kill_amid_trials(storage, trials=2, batch=1, step=step)
    assert states(study) == ["RUNNING"]
    with worker_of(storage, 1, study) as worker:
        (again,) = worker.ask(1)
        assert again.suggest_float("x", 0, 1) == 0.25
        assert worker.tell(again, 0.5)
    assert states(study) == ["FAIL", "COMPLETE"]


def test_workers_killed_again_and_again_lose_nothing(study, storage, monkeypatch):
    monkeypatch.setattr(workers, "MAX_DEATHS", 10)
    for seconds in (0.3, 0.5, 0.8):
        processes = start_workers(2, storage, 30, 3, seconds=0.03)
        time.sleep(seconds)
        for process in processes:
            kill(process)
    assert len(done(study)) < 30
    stop_hearts(storage)
    finish(start_workers(2, storage, 30, 5))
    assert len(done(study)) == len(set(done(study))) == 30
    lost = [t.number for t in study.trials if t.state == TrialState.FAIL]
    replaced = [t.user_attrs["replaces"] for t in study.trials if "replaces" in t.user_attrs]
    assert len(replaced) == len(set(replaced)) <= len(lost) == len(study.trials) - 30
    assert set(replaced) <= set(lost)


def test_a_worker_that_was_silent_for_too_long_is_too_late(study, storage):
    with worker_of(storage, 1) as sleeper, worker_of(storage, 1, study) as worker:
        (taken,) = sleeper.ask(1)
        x = taken.suggest_float("x", 0, 1)
        assert worker.ask(1) == []
        assert worker.others_running
        stop_hearts(storage)
        (again,) = worker.ask(1)
        assert again.suggest_float("x", 0, 1) == x
        assert not sleeper.report(taken, 0.5, 1)
        assert not sleeper.tell(taken, 0.5, notes={"scores": [1]})
        assert sleeper.ask(1) == []
        assert sleeper.others_running
        assert worker.tell(again, 0.5)
    assert states(study) == ["FAIL", "COMPLETE"]


def test_one_thread_beats_for_all_trials_of_a_worker(study, storage, monkeypatch):
    monkeypatch.setattr(study._storage._backend, "heartbeat_interval", 0.05)
    stale = study._storage._backend._get_stale_trial_ids
    with worker_of(storage, 3, study) as worker:
        first, *_ = worker.ask(3)
        beat = worker._heartbeat
        worker._heartbeat = lambda trial_id: None  # else a beat may come before we look
        time.sleep(0.2)
        stop_hearts(storage)
        assert len(stale(study._study_id)) == 3
        worker._heartbeat = beat
        give_up = time.monotonic() + 30
        while stale(study._study_id):
            assert time.monotonic() < give_up
            time.sleep(0.02)
        worker.tell(first, 0.5)
        threads = [thread.name for thread in threading.enumerate()]
    assert threads.count("heartbeat") == 1


def test_trial_without_parameters_is_replaced_by_a_new_one(study, storage):
    worker_of(storage, 1).ask(1)
    stop_hearts(storage)
    with worker_of(storage, 1, study) as worker:
        (new,) = worker.ask(1)
        assert new.number == 1
        assert "replaces" not in new.user_attrs


def test_queued_trial_lost_before_it_suggested_keeps_its_parameters(memory):
    memory.enqueue_trial({"x": 0.25})
    with Worker(memory, 1) as worker:
        worker.ask(1)
    with Worker(memory, 1) as worker:
        assert suggest(worker.ask(1)) == [0.25]


def test_killed_between_failing_a_lost_trial_and_queueing_it_again(study, storage, monkeypatch):
    kill_amid_trials(storage, trials=1, batch=1)
    lost = study.trials[0].params

    def die(*_, **__):
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(study, "enqueue_trial", die)
        with pytest.raises(SystemExit):
            worker_of(storage, 1, study).ask(1)
    assert states(study) == ["FAIL"]
    for _ in range(2):  # two look, one queues it
        worker_of(storage, 1)._queue_lost()
    assert states(study) == ["FAIL", "WAITING"]
    with worker_of(storage, 1, study) as worker:
        assert suggest(worker.ask(1)) == [lost["x"]]


def test_trial_that_kills_its_workers_is_given_up(study, storage):
    for _ in range(3):
        kill_amid_trials(storage, trials=1, batch=1)
    with pytest.warns(LGDWarning, match="trial 2 is given up: 3 workers died with its settings"):
        assert worker_of(storage, 1, study).ask(1) == []
    assert states(study) == ["FAIL"] * 3
    assert [counts(t) for t in study.trials] == [False, False, True]
    assert len({t.params["x"] for t in study.trials}) == 1


# Leaving


@pytest.mark.parametrize("error", [None, KeyboardInterrupt, RuntimeError])
def test_unfinished_trials_are_handed_back(memory, error):
    def leave() -> None:
        with Worker(memory, 3) as worker:
            first, *rest = worker.ask(3)
            suggest([first, *rest])
            worker.tell(first, 0.5)
            if error:
                raise error

    if error:
        with pytest.raises(error):
            leave()
    else:
        leave()
    assert states(memory) == ["COMPLETE", "FAIL", "FAIL"]
    assert sum(map(counts, memory.trials)) == 1
    for _ in range(4):  # handing back is not dying: no number of times gives a trial up
        with Worker(memory, 3) as worker:
            again = suggest(worker.ask(3))
        assert again == [t.params["x"] for t in memory.trials[1:3]]


def test_others_cannot_leave_between_the_question_and_the_answer(study, storage):
    """Who is told that nothing is left and nobody runs may go: nothing comes back after that."""
    with worker_of(storage, 1) as worker:
        with worker_of(storage, 1, study) as other:
            other.ask(1)
            assert worker.ask(1) == []
        assert worker.others_running  # as it was when asked, though it has left since
        assert len(worker.ask(1)) == 1


def test_beat_survives_a_storage_that_fails_for_a_while(study, storage, monkeypatch):
    monkeypatch.setattr(study._storage._backend, "heartbeat_interval", 0.02)
    beats = []

    def flaky(trial_id):
        beats.append(trial_id)
        if len(beats) < 4:
            raise OSError("away")

    with worker_of(storage, 1, study) as worker:
        worker.ask(1)
        worker._heartbeat = flaky
        give_up = time.monotonic() + 10
        while len(beats) < 6:
            assert time.monotonic() < give_up
            time.sleep(0.02)


def test_leaving_without_storage_does_not_hide_why(study, storage):
    def leave() -> None:
        with worker_of(storage, 1, study) as worker:
            worker.ask(1)
            os.unlink(storage)
            raise KeyboardInterrupt

    with pytest.warns(LGDWarning, match="could not hand back"), pytest.raises(KeyboardInterrupt):
        leave()


def test_heartbeat_does_not_keep_the_process_alive(memory):
    assert Worker(memory, 1)._thread.daemon


def test_the_lock_of_a_killed_worker_is_free(study, storage):
    kill_amid_trials(storage, trials=1, batch=1, step="beat")  # it holds the lock there
    with worker_of(storage, 1).lock():
        pass
