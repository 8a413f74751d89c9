"""The database of a study: addresses that are wrong, files of another kind, full disks, locks."""

import json
import multiprocessing
import resource
import signal
import sys
from pathlib import Path

import pytest

from lgdgcn.errors import InputError, LGDError
from lgdgcn.search.database import StudyAddress, database_faults, default_storage, study_lock
from lgdgcn.search.study import open_study
from tune.processes import SPACE, kill, opened, worker_of


def refused(storage: object, match: str, *, resume: bool = False) -> str:
    with pytest.raises(InputError, match=match) as caught:
        open_study("study", str(storage), space=SPACE, resume=resume)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# Addresses


def test_addresses_that_are_wrong_do_not_show_passwords(monkeypatch):
    cases = {
        "postgresql://me:hidden@127.0.0.1:1/base": "onnection refused",
        "postgresql://me@127.0.0.1:1/base?password=hidden": "onnection refused",
        "postgres://me:hidden@host.invalid/base": "cannot open --storage",
        "postgresql://me:hidden@host:port/base": "is not a valid database address",
        "postgresql://me:hidden@[::1/base": "valid database address|cannot open",
        "postgresql://me:x@hidden@host/base": "an @ in a password is written %40",
        "postgresql://me:x@hidden/y@host/base": "an @ in a password is written %40",
        "postgresql:///me:hidden@host/base": "an @ in a password is written %40",
        "nonsense://me:hidden@host/base": "me:.* not kept in nonsense; use postgresql://",
        "mysql+pymysql://me:hidden@host/base": "studies are not kept in mysql",
        "://": "not a valid database address",
        "sqlite://": "in memory is lost at the end",
        "sqlite:///:memory:": "in memory is lost at the end",
        "sqlite:///file::memory:?uri=true": "in memory is lost at the end",
    }
    for address, match in cases.items():
        assert "hidden" not in refused(address, match)


@pytest.mark.parametrize(
    "text",
    [
        "postgresql:/user:hidden@host/x",
        "postgresql:user:hidden@host/x",
        "postgresql//user:hidden@host/x",
        "postgres//host/hidden",
        "postgresql+psycopg:/user:hidden@host/x",
        "user:hidden@host/x",
        "user@host/hidden",
        "//user:hidden@host/x",
        " postgresql:/user:hidden@host/x",
        "'postgresql://user:hidden@host/x'",
        "'sqlite:///hidden.db'",
        "sqlite:/hidden.db",
        "sqlite:hidden.db",
        "sqlite//hidden.db",
    ],
)
def test_a_mistyped_url_makes_no_folder_and_shows_no_password(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    message = refused(text, "is not a valid database address .*: write postgresql://")
    assert "hidden" not in message
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("folder", ["runs/me@home", "lr:0.1", "postgres//x"])
def test_the_file_of_any_folder_is_no_address(tmp_path, monkeypatch, folder):
    monkeypatch.chdir(tmp_path)
    address = StudyAddress.read(default_storage(Path(folder)))
    assert address.file == Path(folder) / "study.db"


def test_other_names_are_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("./a:b.db", "./sqlite:x/me@home.db", "C:x.db", "/abs/me@home:1.db", "runs//x.db"):
        assert StudyAddress.read(name).file == Path(name)
        assert str(StudyAddress.read(name)) == str(Path(name))
    for name in ("./x:y@z/a b?#%20ü.db", "{x}/{SCHEMA_VERSION}.db"):
        opened(name, resume=False)
        assert Path(name).is_file()
        with study_lock(name, "study")():
            assert Path(f"{name}.lock").is_file()


def test_missing_driver_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    refused("postgresql://host/base", r"needs the driver .*psycopg: .*'lgdgcn\[postgres\]'")
    monkeypatch.setitem(sys.modules, "psycopg2", None)
    refused("postgresql+psycopg2://host/base", r"the driver .*psycopg2: .*write postgresql://")


# Files


def test_parents_are_made_and_a_url_names_the_same_file(tmp_path):
    opened(str(tmp_path / "a b" / "ü" / "study.db"), resume=False)
    opened(f"sqlite:///{tmp_path}/a b/ü/study.db")


def test_places_that_cannot_be_used(tmp_path):
    (tmp_path / "file").write_text("")
    refused(tmp_path, "is not a file: name one")
    refused(tmp_path / "file" / "study.db", "cannot write .*study.db")
    refused("/dev/null", "is not a file: name one")
    refused("", "no path")
    refused("a\0b", "no path")


def test_files_of_another_kind_are_left_alone(tmp_path):
    file = tmp_path / "notes.txt"
    for content in ("one line without an end", "one line\n" * 200):
        file.write_text(content)
        refused(file, "file is not a database; choose another file")
        assert file.read_text() == content
    opened(str(tmp_path / "study.db"), resume=False)
    whole = (tmp_path / "study.db").read_bytes()
    (tmp_path / "study.db").write_bytes(whole[: len(whole) // 2])
    refused(tmp_path / "study.db", "database disk image is malformed", resume=True)


def test_the_study_of_an_earlier_version_is_refused_and_left_alone(tmp_path):
    old = tmp_path / "study.log"
    old.write_text(json.dumps({"op_code": 0, "worker_id": "x"}, separators=(",", ":")) + "\n")
    before = old.read_bytes()
    match = "study.log is the study of an earlier version, .*finish it with that version, or move"
    refused(old, match)
    refused(old, match, resume=True)
    with pytest.raises(InputError, match=match):
        default_storage(tmp_path)
    assert (old.read_bytes(), list(tmp_path.iterdir())) == (before, [old])
    (tmp_path / "study.db").touch()  # a new search was begun beside it
    assert default_storage(tmp_path) == str(tmp_path / "study.db")
    other = tmp_path / "other"
    other.mkdir()
    (other / "study.log").write_text("somebody else's log\n")
    assert default_storage(other) == str(other / "study.db")


def test_the_file_is_found_after_a_change_of_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with worker_of("study.db", 1, opened("study.db", resume=False)) as worker:
        (tmp_path / "sub").mkdir()
        monkeypatch.chdir(tmp_path / "sub")
        (trial,) = worker.ask(1)
        worker.tell(trial, 1.0)
    assert [t.value for t in opened("../study.db").trials] == [1.0]


def test_full_disk_is_one_line_and_leaves_a_study_that_goes_on(tmp_path):
    storage = str(tmp_path / "study.db")
    study = opened(storage, resume=False)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def search() -> None:
        with database_faults(storage), worker_of(storage, 1, study) as worker:
            (trial,) = worker.ask(1)
            trial.suggest_float("x", 0, 1)
            resource.setrlimit(resource.RLIMIT_FSIZE, (Path(storage).stat().st_size, hard))
            try:
                worker.tell(trial, 0.5, notes={"scores": [0.5] * 20_000})
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    with pytest.raises(LGDError) as caught:
        search()
    assert str(caught.value) == (
        f"the study's database {storage} failed: disk I/O error; "
        "free some space, then go on with --resume"
    )
    with worker_of(storage, 1) as worker:
        (again,) = worker.ask(1)
        assert again.suggest_float("x", 0, 1) == study.trials[0].params["x"]
        assert worker.tell(again, 0.5)


# The lock


def _hold(storage: str, ready) -> None:
    with study_lock(storage, "study")():
        ready.set()
        signal.pause()


def test_a_lock_is_freed_when_its_owner_is_killed(tmp_path):
    storage = str(tmp_path / "study.db")
    fork = multiprocessing.get_context("fork")
    ready = fork.Event()
    owner = fork.Process(target=_hold, args=(storage, ready))
    owner.start()
    assert ready.wait(30)
    kill(owner)
    for _ in range(2):
        with study_lock(storage, "study")():
            pass


def test_a_lock_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "study.db.lock").mkdir()
    with (
        pytest.raises(InputError, match=r"cannot write .*study.db.lock: Is a directory"),
        study_lock(str(tmp_path / "study.db"), "study")(),
    ):
        pass
