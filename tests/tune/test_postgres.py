"""Workers on a real PostgreSQL server."""

import multiprocessing
import time
from collections.abc import Iterator

import optuna
import pytest
from optuna.trial import TrialState
from sqlalchemy import create_engine, text

from lgdgcn.errors import InputError, LGDError, LGDWarning
from lgdgcn.tune.database import database_faults
from lgdgcn.tune.storage import open_study
from lgdgcn.tune.workers import Worker
from tune.postgres import PASSWORD, running_server
from tune.processes import SPACE, finish, kill_amid_trials, opened, start_workers


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    pytest.importorskip("psycopg", reason="no driver: pip install 'lgdgcn[postgres]'")
    with running_server() as address:
        yield address


def command(server: str, order: str) -> None:
    """Tell the server something, past Optuna."""
    address = server.replace("postgresql:", "postgresql+psycopg:")
    engine = create_engine(address, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(order))
    engine.dispose()


def base(storage: str) -> str:
    """Name of the database in an address."""
    return storage.split("?")[0].rsplit("/", 1)[1]


@pytest.fixture
def storage(server: str) -> str:
    """An empty database of its own."""
    name = f"base{time.monotonic_ns()}"
    command(server, f"CREATE DATABASE {name} TEMPLATE template0")
    return server.replace("/postgres?", f"/{name}?")


def test_four_workers_complete_exactly_eighty_trials(storage):
    study = opened(storage, resume=False)
    finish(start_workers(4, storage, 80, 3))
    done = [t for t in study.trials if t.state == TrialState.COMPLETE]
    assert len(done) == 80
    assert len({t.params["x"] for t in done}) == 80
    assert len({t.user_attrs["worker"] for t in done}) > 1  # a late one may find nothing left


def test_trials_of_a_killed_worker_are_run_again(storage):
    study = opened(storage, resume=False)
    kill_amid_trials(storage, trials=12, batch=5)
    lost = {t.params["x"] for t in study.trials}
    finish(start_workers(2, storage, 12))
    done = [t for t in study.trials if t.state == TrialState.COMPLETE]
    assert len(done) == 12
    assert len(lost) == 5
    assert lost < {t.params["x"] for t in done}


def test_a_restarted_connection_is_survived(storage, server):
    study = opened(storage, resume=False)
    with Worker(study, 2) as worker:
        (trial,) = worker.ask(1)
        command(
            server,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            f" WHERE datname = '{base(storage)}'",
        )
        assert worker.tell(trial, trial.suggest_float("x", 0, 1))
    assert study.trials[0].state == TrialState.COMPLETE


def test_database_that_goes_away_is_one_line(storage, server):
    def search() -> None:
        with database_faults(storage), Worker(opened(storage, resume=False), 2) as worker:
            worker.ask(1)
            command(server, f"DROP DATABASE {base(storage)} WITH (FORCE)")
            worker.ask(1)

    with pytest.warns(LGDWarning, match="could not hand back"), pytest.raises(LGDError) as caught:
        search()
    message = str(caught.value)
    assert f'database "{base(storage)}" does not exist; go on with --resume' in message
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
