"""Where studies are kept: one search each, on files and on a PostgreSQL server."""

import sqlite3
import time

import optuna
import pytest
from optuna.trial import TrialState

from lgdgcn.errors import InputError, LGDError
from lgdgcn.search.study import database_faults, open_study, storage_url
from search.databases import PASSWORD, execute, running_server

SEARCH = {"model": "gcn", "seeds": 3, "space": {"lr": {"low": 0.1, "high": 1.0}}}


def opened(storage, *, resume=False, name="study", **changes):
    return open_study(name, storage_url(storage), {**SEARCH, **changes}, resume=resume)


@pytest.fixture(scope="module")
def server():
    pytest.importorskip("psycopg", reason="no driver: pip install 'lgdgcn[postgres]'")
    with running_server() as address:
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def storage(request, tmp_path):
    """An empty database of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "deep/er/study.db")
    server, name = request.getfixturevalue("server"), f"base{time.monotonic_ns()}"
    execute(server, f"CREATE DATABASE {name} TEMPLATE template0")
    return server.replace("/postgres?", f"/{name}?")


def refused(storage, *words, **how):
    with pytest.raises(InputError) as caught:
        opened(storage, **how)
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)
    assert PASSWORD not in str(caught.value)


def test_a_study_goes_on_if_it_is_of_the_same_search(storage):
    refused(storage, "there is no study study in ", "leave out --resume", resume=True)
    study = opened(storage)
    assert study.direction == optuna.study.StudyDirection.MAXIMIZE
    study.tell(study.ask({"lr": optuna.distributions.FloatDistribution(0.1, 1.0)}), 0.5)
    (trial,) = opened(storage, resume=True).trials
    assert (trial.state, trial.value) == (TrialState.COMPLETE, 0.5)
    refused(storage, "study study already exists in ", "add --resume")
    refused(storage, 'of another search: model: "gcn" -> "gat"; search', resume=True, model="gat")
    other = {"lr": {"low": 0.1, "high": 0.7}}
    refused(storage, "space.lr.high: 1.0 -> 0.7", resume=True, space=other)
    many = {f"setting{number}": number for number in range(20)}
    refused(storage, "setting7: (absent) -> 7; and more; search the same", resume=True, **many)
    refused(storage, "there is no study other", resume=True, name="other")


def test_a_study_of_somebody_else_is_left_alone(storage):
    opened(storage)
    url = storage_url(storage).render_as_string(hide_password=False)
    theirs = optuna.create_study(study_name="theirs", storage=url)
    theirs.tell(theirs.ask(), 1.0)
    refused(storage, "theirs in ", "was not made by lgdgcn tune", name="theirs", resume=True)


def test_a_start_that_was_killed_before_it_could_describe_itself_goes_on(storage):
    opened(storage)
    url = storage_url(storage).render_as_string(hide_password=False)
    optuna.create_study(study_name="new", storage=url, direction="maximize")
    assert opened(storage, name="new", resume=True).user_attrs["search"] == SEARCH


def test_files_that_are_no_study(tmp_path):
    text = tmp_path / "text.db"
    text.write_text("no database at all, only a text that is longer than a header of SQLite " * 9)
    refused(str(text), f"cannot open --storage {text}: file is not a database; choose another")
    other = tmp_path / "browser?#%.db"
    sqlite3.connect(other).execute("CREATE TABLE visits (url TEXT)").connection.close()
    before = other.read_bytes()
    for resume in (False, True):
        refused(str(other), "a database of something else: name another file", resume=resume)
    assert other.read_bytes() == before
    refused(str(tmp_path), "cannot open --storage", "unable to open database file")
    refused(str(text / "below.db"), f"cannot write {text}")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("study.db", "sqlite:///study.db"),
        ("./a:b@c/study.db", "sqlite:///./a%3Ab%40c/study.db"),
        ("sqlite:///a.db", "sqlite:///a.db"),
        ("postgres://me:secret@host:5432/x", "postgresql+psycopg://me:***@host:5432/x"),
        ("postgresql+psycopg2://me@host/x", "postgresql+psycopg2://me@host/x"),
    ],
)
def test_addresses(text, shown):
    assert str(storage_url(text)) == shown


@pytest.mark.parametrize(
    "text",
    ["", "postgresql:/me:secret@host/x", "postgresql//me:secret@host/x", "me:secret@host/x",
     "postgresql://me:sec@ret@host/x", "mysql://me:secret@host/x", "sqlite://", "C:secret",
     "sqlite:///:memory:", "postgresql://me:secret@host:port/x"],
)  # fmt: skip
def test_what_is_no_address_is_not_repeated(text):
    with pytest.raises(InputError, match="--storage is no place for a study") as caught:
        storage_url(text)
    assert "secret" not in str(caught.value)


def test_a_driver_that_is_not_installed():
    refused("postgresql+pg8000://host/x", "needs the driver postgresql+pg8000", "lgdgcn[postgres]")


def test_no_password_is_shown(server):
    wrong = server.replace("s3cret", "gu3ss")
    refused(wrong, "password authentication failed")
    refused(server.replace("/postgres?", "/nowhere?"), 'database "nowhere" does not exist')
    with pytest.raises(InputError) as caught:
        opened(f"{wrong}&sslpassword=hidden1")
    assert not [word for word in ("gu3ss", "hidden1") if word in str(caught.value)]


def test_a_connection_that_was_cut_is_made_anew(server):
    name = f"base{time.monotonic_ns()}"
    execute(server, f"CREATE DATABASE {name} TEMPLATE template0")
    storage = server.replace("/postgres?", f"/{name}?")
    study, cut = opened(storage), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    execute(server, f"{cut} WHERE datname = '{name}'")
    study.tell(study.ask(), 1.0)
    execute(server, f"DROP DATABASE {name} WITH (FORCE)")
    with pytest.raises(LGDError) as caught, database_faults(storage_url(storage)):
        study.ask()
    end = f'database "{name}" does not exist; when it is back, go on with --resume'
    assert str(caught.value).endswith(end)
    assert PASSWORD not in str(caught.value)


def test_a_full_disk_is_one_line(tmp_path, monkeypatch):
    storage = str(tmp_path / "study.db")
    study = opened(storage)

    def full(*_, **__):
        cause = sqlite3.OperationalError("database or disk is full")
        raise optuna.exceptions.StorageInternalError("an error") from cause

    monkeypatch.setattr(study._storage, "create_new_trial", full)
    words = "failed: database or disk is full; free some space, then go on with --resume"
    with pytest.raises(LGDError, match=words), database_faults(storage_url(storage)):
        study.ask()
