"""Workers that share a study, and workers that die."""

import os
import signal
import subprocess
import threading
import time

import optuna
import pytest
from optuna.trial import TrialState

from lgdgcn.errors import LGDWarning
from lgdgcn.tune.workers import Worker, _died_here, _machine, counts
from tune.processes import finish, kill_amid_trials, opened, start_workers


@pytest.fixture
def storage(tmp_path) -> str:
    return str(tmp_path / "study.log")


@pytest.fixture
def study(storage) -> optuna.Study:
    return opened(storage, resume=False, seed=0)


def done(study: optuna.Study) -> list[float]:
    """The parameter of every complete trial, in order."""
    return sorted(t.params["x"] for t in study.trials if t.state == TrialState.COMPLETE)


def states(study: optuna.Study) -> list[str]:
    return [t.state.name for t in study.trials]


def suggest(trials: list[optuna.Trial]) -> list[float]:
    return [trial.suggest_float("x", 0, 1) for trial in trials]


# The budget


@pytest.mark.parametrize("batch", [1, 7])
def test_four_workers_complete_exactly_eighty_trials(study, storage, batch):
    finish(start_workers(4, storage, 80, batch))
    assert len(done(study)) == len(set(done(study))) == 80
    assert all(t.state == TrialState.COMPLETE or t.user_attrs["lost"] for t in study.trials)
    assert len({t.user_attrs["worker"] for t in study.trials}) > 1  # a late one may find none


def test_sqlite_is_shared_safely(tmp_path):
    storage = f"sqlite:///{tmp_path}/study.db"
    study = opened(storage, resume=False)
    for _ in range(14):
        study.enqueue_trial({"x": 0.5})  # must not be taken by two
    finish(start_workers(3, storage, 16))
    assert len(done(study)) == 16
    assert done(study).count(0.5) == 14


def test_budget_counts_what_ended_by_itself(study):
    with Worker(study, 5) as worker:
        nan, pruned, missing, infinite, good = worker.ask(9)
        assert worker.report(pruned, 0.25, 1)
        assert worker.tell(nan, float("nan"))
        assert worker.tell(pruned, pruned=True)
        assert worker.tell(missing, None, notes={"failure": "diverged"})
        assert worker.tell(infinite, float("inf"))
        assert worker.tell(good, 0.5, notes={"scores": [0.4, 0.6]})
        assert worker.ask(1) == []
        assert not worker.others_running
    assert states(study) == ["FAIL", "PRUNED", "FAIL", "FAIL", "COMPLETE"]
    assert study.trials[1].value == 0.25
    assert study.trials[2].user_attrs["failure"] == "diverged"
    assert study.best_trial.user_attrs["scores"] == [0.4, 0.6]
    with Worker(study, 6) as worker:  # a larger budget goes on
        assert len(worker.ask(9)) == 1


def test_queued_trials_come_first_and_within_the_budget(study):
    for x in (0.1, 0.2, 0.3):
        study.enqueue_trial({"x": x})
    with Worker(study, 2) as worker:
        asked = worker.ask(5)
        assert suggest(asked) == [0.1, 0.2]
        for trial in asked:
            worker.tell(trial, 0.0)
        assert worker.ask(1) == []
    assert states(study) == ["COMPLETE", "COMPLETE", "WAITING"]


def test_overshoot_is_withdrawn_by_number(study, storage, monkeypatch):
    first, second = Worker(study, 3), Worker(opened(storage), 3)
    with first, second:
        monkeypatch.setattr(second, "_room", iter([3, 0]).__next__)  # looked before the other took
        asked = first.ask(2)
        late = second.ask(3)
        assert [t.number for t in asked] == [0, 1]
        assert [t.number for t in late] == [2]
        assert second.others_running
        lost = [t.number for t in study.trials if t.user_attrs.get("lost")]
        assert lost == [3, 4]
        assert sum(map(counts, study.trials)) == 3


def test_queued_trials_keep_their_place_in_the_budget(study, storage, monkeypatch):
    """A trial queued between our look and our asking is not pushed out by a new one."""
    with Worker(study, 1) as worker:
        real = study.ask

        def slow_ask():
            trial = optuna.Trial(study, study._storage.create_new_trial(study._study_id))
            monkeypatch.setattr(study, "ask", real)
            return trial

        study.enqueue_trial({"x": 0.5})
        monkeypatch.setattr(study, "ask", slow_ask)
        assert suggest(worker.ask(1)) == [0.5]


# Workers that are lost


def test_trials_of_a_killed_worker_are_run_again_at_once(study, storage):
    kill_amid_trials(storage, trials=9, batch=4)
    lost = sorted(t.params["x"] for t in study.trials)
    assert states(study) == ["RUNNING"] * 4
    started = time.monotonic()
    finish(start_workers(2, storage, 9))
    assert time.monotonic() - started < 30  # patience is 60 seconds
    assert len(done(study)) == 9
    assert set(lost) < set(done(study))
    replaced = [t.user_attrs["replaces"] for t in study.trials if "replaces" in t.user_attrs]
    assert sorted(replaced) == [0, 1, 2, 3]


def test_workers_killed_again_and_again_lose_nothing(study, storage, monkeypatch):
    monkeypatch.setattr("lgdgcn.tune.workers._MOST_DEATHS", 10)
    for seconds in (0.1, 0.13, 0.17, 0.22, 0.28):
        processes = start_workers(2, storage, 150, 3, seconds=0.03)
        time.sleep(seconds)
        for process in processes:
            os.kill(process.pid, signal.SIGKILL)
            process.join()
    assert len(done(study)) < 150
    finish(start_workers(2, storage, 150, 10, beat_seconds=0.05, patience_seconds=1.0))
    assert len(done(study)) == len(set(done(study))) == 150
    assert all(t.state == TrialState.COMPLETE or t.user_attrs["lost"] for t in study.trials)
    assert sum("replaces" in t.user_attrs for t in study.trials) > 3


def elsewhere(monkeypatch, name: str = "elsewhere") -> None:
    """Workers made from now on seem to be on another machine."""
    monkeypatch.setattr("lgdgcn.tune.workers._machine", lambda: name)


def test_silent_worker_of_another_machine_is_waited_for(study, storage, monkeypatch):
    elsewhere(monkeypatch)
    other = Worker(opened(storage), 2)
    other._beat(1.0)  # its clock may be years off
    (far,) = other.ask(1)
    far.suggest_float("x", 0, 1)
    monkeypatch.undo()
    with Worker(study, 1, patience_seconds=0.3) as worker:
        give_up = time.monotonic() + 0.6
        while time.monotonic() < give_up:
            other._beat(time.monotonic())
            assert worker.ask(1) == []
            assert worker.others_running
            time.sleep(0.05)
        while not (again := worker.ask(1)):
            assert time.monotonic() < give_up + 5
            time.sleep(0.05)
        assert time.monotonic() > give_up + 0.2
        assert suggest(again) == [far.params["x"]]
        assert not other.report(far, 0.5, 1)  # it comes back to life, too late
        assert not other.tell(far, 0.5, notes={"scores": [1]})
        assert worker.tell(again[0], 0.5)
    assert states(study) == ["FAIL", "COMPLETE"]


def test_trial_without_signature_is_waited_for(study, storage):
    kill_amid_trials(storage, trials=2, batch=1, sign=False)
    with Worker(study, 1, patience_seconds=0.2) as worker:
        assert worker.ask(1) == []
        assert worker.others_running
        time.sleep(0.25)
        (again,) = worker.ask(1)
        assert again.suggest_float("x", 0, 1) == study.trials[0].params["x"]


def test_trial_without_parameters_is_replaced_by_a_new_one(study, storage, monkeypatch):
    elsewhere(monkeypatch)
    Worker(opened(storage), 1).ask(1)
    monkeypatch.undo()
    with Worker(study, 1, patience_seconds=0.0) as worker:
        assert worker.ask(1) == []
        (new,) = worker.ask(1)
        assert new.number == 1
        assert "replaces" not in new.user_attrs


def test_queued_trial_lost_before_it_suggested_keeps_its_parameters(study):
    study.enqueue_trial({"x": 0.25})
    with Worker(study, 1) as worker:
        worker.ask(1)
    with Worker(study, 1) as worker:
        assert suggest(worker.ask(1)) == [0.25]


def test_two_reclaim_one_trial(study, storage):
    kill_amid_trials(storage, trials=1, batch=1)
    both = [Worker(opened(storage), 1) for _ in range(2)]
    (lost,) = both[0]._running()
    threads = [threading.Thread(target=w._give_up, args=(lost,)) for w in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert states(study) == ["FAIL", "WAITING"]


def test_trial_that_kills_its_workers_is_given_up(study, storage):
    worker = Worker(study, 1)
    for _ in range(3):
        worker.reclaim()
        kill_amid_trials(storage, trials=1, batch=1)
    with pytest.warns(LGDWarning, match="trial 2 is given up: 3 workers died"):
        assert worker.ask(1) == []
    assert states(study) == ["FAIL"] * 3
    assert [counts(t) for t in study.trials] == [False, False, True]


# Leaving


@pytest.mark.parametrize("error", [None, KeyboardInterrupt, RuntimeError])
def test_unfinished_trials_are_handed_back(study, storage, error):
    def leave() -> list[float]:
        with Worker(study, 3) as worker:
            first, *rest = worker.ask(3)
            x = suggest([first, *rest])
            worker.tell(first, 0.5)
            if error:
                raise error
        return x

    if error:
        with pytest.raises(error):
            leave()
    else:
        leave()
    assert states(study) == ["COMPLETE", "FAIL", "FAIL", "WAITING", "WAITING"]
    with Worker(opened(storage), 3) as worker:
        again = suggest(worker.ask(3))
    assert again == [t.params["x"] for t in study.trials[1:3]]
    assert "ended" in study.user_attrs.values()


def test_beat_survives_a_storage_that_fails_for_a_while(study, monkeypatch):
    real, broken = study.set_user_attr, True

    def flaky(key, value):
        if broken:
            raise OSError("away")
        real(key, value)

    with Worker(study, 1, beat_seconds=0.02) as worker:
        key = f"worker:{worker.id}"
        monkeypatch.setattr(study, "set_user_attr", flaky)
        time.sleep(0.1)
        before = study.user_attrs[key]
        broken = False
        give_up = time.monotonic() + 10
        while study.user_attrs[key] == before:
            assert time.monotonic() < give_up
            time.sleep(0.02)
    assert study.user_attrs[key] == "ended"


def test_leaving_without_storage_does_not_hide_why(study, storage):
    def leave() -> None:
        with Worker(study, 1) as worker:
            worker.ask(1)
            os.unlink(storage)
            raise KeyboardInterrupt

    with pytest.warns(LGDWarning, match="could not hand back"), pytest.raises(KeyboardInterrupt):
        leave()


def test_heart_beat_does_not_keep_the_process_alive(study):
    worker = Worker(study, 1)
    assert worker._beating.daemon


def test_who_is_dead_here():
    child = subprocess.Popen(["sleep", "60"])
    name = f"{_machine()}:{child.pid}:ab12"
    assert not _died_here(name)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # a zombie until somebody waits for it
    assert _died_here(name)
    child.wait()
    assert _died_here(name)
    assert not _died_here(f"elsewhere:{child.pid}:ab12")
    assert not _died_here(f"{_machine()}:1:ab12")
    assert not _died_here("nonsense")
