"""Workers on a real PostgreSQL server."""

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import suppress

import optuna
import pytest
from optuna.trial import TrialState
from sqlalchemy.exc import DBAPIError

from lgdgcn.errors import InputError, LGDError, LGDWarning
from lgdgcn.search import workers
from lgdgcn.search.database import database_faults
from lgdgcn.search.study import open_study
from tune.databases import PASSWORD, execute, running_server
from tune.processes import (
    SPACE,
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
def server() -> Iterator[str]:
    pytest.importorskip("psycopg", reason="no driver: pip install 'lgdgcn[postgres]'")
    with running_server() as address:
        yield address


def base(storage: str) -> str:
    """Name of the database in an address."""
    return storage.split("?")[0].rsplit("/", 1)[1]


@pytest.fixture
def storage(server: str) -> str:
    """An empty database of its own."""
    name = f"base{time.monotonic_ns()}"
    execute(server, f"CREATE DATABASE {name} TEMPLATE template0")
    return server.replace("/postgres?", f"/{name}?")


def test_four_workers_complete_exactly_eighty_trials(storage):
    study = opened(storage, resume=False)
    finish(start_workers(4, storage, 80, batch=5))
    assert states(study) == ["COMPLETE"] * 80
    assert len(set(done(study))) == 80
    assert len({t.user_attrs["claimed_by"] for t in study.trials}) > 1  # a late one may find none


def test_trials_of_killed_workers_are_run_again(storage, monkeypatch):
    monkeypatch.setattr(workers, "MAX_DEATHS", 10)  # no trial is given up, however often it is hit
    study = opened(storage, resume=False)
    kill_amid_trials(storage, trials=12, batch=3)
    kill_amid_trials(storage, trials=12, batch=1, step="beat")  # it held the lock
    lost = {t.params["x"] for t in study.trials if t.params}
    (process,) = start_workers(1, storage, 12, 3, seconds=0.05)
    time.sleep(0.4)
    kill(process)
    stop_hearts(storage)
    finish(start_workers(2, storage, 12))
    assert len(done(study)) == len(set(done(study))) == 12
    assert len(lost) == 3
    assert lost < set(done(study))


def test_a_worker_that_was_silent_for_too_long_is_too_late(storage):
    study = opened(storage, resume=False)
    with worker_of(storage, 1) as sleeper, worker_of(storage, 1, study) as worker:
        (taken,) = sleeper.ask(1)
        taken.suggest_float("x", 0, 1)
        assert worker.ask(1) == []  # its heartbeat is fresh in whatever time zone
        stop_hearts(storage)
        (again,) = worker.ask(1)
        assert not sleeper.tell(taken, 0.5)
        assert worker.tell(again, 0.5)
    assert states(study) == ["FAIL", "COMPLETE"]


def test_the_lock_of_a_machine_that_vanished_is_freed(storage, monkeypatch):
    monkeypatch.setattr("lgdgcn.search.database._LOCK_SECONDS", 1)
    opened(storage, resume=False)
    start = time.monotonic()
    with suppress(DBAPIError), worker_of(storage, 1).lock(), worker_of(storage, 1).lock():
        pass  # the first says no more, so the second need not wait for ever
    assert 0.9 < time.monotonic() - start < 30


def test_a_restarted_connection_is_survived(storage, server):
    study = opened(storage, resume=False)
    with worker_of(storage, 2, study) as worker:
        (trial,) = worker.ask(1)
        execute(
            server,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            f" WHERE datname = '{base(storage)}'",
        )
        assert worker.tell(trial, trial.suggest_float("x", 0, 1))
    assert study.trials[0].state == TrialState.COMPLETE


def test_database_that_goes_away_is_one_line(storage, server):
    def search() -> None:
        with (
            database_faults(storage),
            worker_of(storage, 2, opened(storage, resume=False)) as worker,
        ):
            worker.ask(1)
            execute(server, f"DROP DATABASE {base(storage)} WITH (FORCE)")
            worker.ask(1)

    with pytest.warns(LGDWarning, match="could not hand back"), pytest.raises(LGDError) as caught:
        search()
    message = str(caught.value)
    assert (
        f'database "{base(storage)}" does not exist; when it is back, go on with --resume'
        in message
    )
    assert "\n" not in message
    assert "s3cret" not in message


def test_tables_made_by_several_at_once(storage):
    fork = multiprocessing.get_context("fork")
    barrier = fork.Barrier(4)

    def start(number: int) -> None:
        barrier.wait()
        open_study(f"study{number}", storage, space=SPACE, resume=False)

    processes = [fork.Process(target=start, args=(number,)) for number in range(4)]
    for process in processes:
        process.start()
    finish(processes)
    address = storage.replace("postgresql:", "postgresql+psycopg:")
    names = optuna.get_all_study_names(address)
    assert sorted(names) == ["study0", "study1", "study2", "study3"]


def test_another_search_is_refused(storage):
    opened(storage, resume=False)
    with pytest.raises(
        InputError, match=r'another search: model: "gcn" -> "gat"; search'
    ) as caught:
        open_study("study", storage, space={**SPACE, "model": "gat"}, resume=True)
    assert PASSWORD not in str(caught.value)
    with pytest.raises(InputError, match="add --resume to go on"):
        opened(storage, resume=False)


def test_wrong_password_is_one_line_without_it(server):
    wrong = server.replace("s3cret", "gu3ss")
    with pytest.raises(InputError, match="password authentication failed") as caught:
        opened(wrong, resume=False)
    assert "gu3ss" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_such_database(server):
    with pytest.raises(InputError, match='database "nowhere" does not exist'):
        opened(server.replace("/postgres?", "/nowhere?"), resume=False)
