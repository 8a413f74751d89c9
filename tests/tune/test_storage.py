"""Opening studies: journals that were torn, addresses that are wrong, searches that differ."""

import fcntl
import multiprocessing
import resource
import sqlite3
import sys
import time
import warnings
from pathlib import Path

import optuna
import pytest

from lgdgcn.errors import InputError, LGDWarning
from lgdgcn.tune.journal import JournalLock, repair
from lgdgcn.tune.storage import check_name, open_study
from tune.processes import SPACE, opened


@pytest.fixture(params=["study.log", "sqlite:///{}/study.db"])
def storage(request, tmp_path) -> str:
    if "{}" in request.param:
        return request.param.format(tmp_path)
    return str(tmp_path / request.param)


@pytest.fixture
def journal(tmp_path) -> Path:
    """A journal with two complete trials."""
    path = tmp_path / "study.log"
    study = opened(str(path), resume=False)
    for _ in range(2):
        trial = study.ask()
        study.tell(trial, trial.suggest_float("x", 0, 1))
    return path


def refused(storage: object, match: str, *, name: str = "study", resume: bool = False) -> str:
    with pytest.raises(InputError, match=match) as caught:
        open_study(name, str(storage), space=SPACE, resume=resume)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# The same study, or another


def test_a_study_goes_on_where_it_was(storage):
    study = opened(storage, resume=False)
    study.tell(study.ask(), 0.5)
    again = opened(storage)
    assert [t.value for t in again.trials] == [0.5]
    assert again.direction == optuna.study.StudyDirection.MAXIMIZE
    assert again.user_attrs["search"] == SPACE


def test_resume_is_needed_for_an_old_study_and_refused_for_a_new_one(storage):
    refused(storage, "no study study in .*study.* leave out --resume", resume=True)
    opened(storage, resume=False)
    refused(storage, "already exists in .*: add --resume to go on, or choose another --storage")
    refused(storage, "no study other in", name="other", resume=True)


def test_refused_resume_leaves_no_file(tmp_path):
    refused(tmp_path / "new" / "study.log", "no study", resume=True)
    refused(f"sqlite:///{tmp_path}/new/study.db", "no study", resume=True)
    assert not list(tmp_path.iterdir())


def test_another_search_is_refused_with_what_differs(storage):
    opened(storage, resume=False)
    other = {"model": "gat", "space": {"x": (0, 2)}, "seeds": 3}
    with pytest.raises(InputError) as caught:
        open_study("study", storage, space=other, resume=True)
    for part in ('model: "gcn" -> "gat"', "space.x: [0, 1] -> [0, 2]", "seeds: (absent) -> 3"):
        assert part in str(caught.value)


def test_lists_and_tuples_are_the_same_search(storage):
    open_study("study", storage, space={"x": (0, 1), "path": Path("a")}, resume=False)
    open_study("study", storage, space={"x": [0, 1], "path": "a"}, resume=True)


def test_study_of_another_program_is_refused(tmp_path):
    address = f"sqlite:///{tmp_path}/study.db"
    study = optuna.create_study(storage=address, study_name="study")
    study.tell(study.ask(), 1.0)
    refused(address, "not made by lgdgcn tune", resume=True)


def test_start_killed_before_the_search_was_noted(tmp_path):
    address = f"sqlite:///{tmp_path}/study.db"
    optuna.create_study(storage=address, study_name="study", direction="maximize")
    assert opened(address).user_attrs["search"] == SPACE


@pytest.mark.parametrize("name", ["", "a/b", "ä", "a b", "x" * 65, "a\n", "../up", "a;b", "a\0"])
def test_names_outside_the_alphabet(name, tmp_path):
    with pytest.raises(InputError, match="1 to 64 letters"):
        open_study(name, str(tmp_path / "study.log"), space=SPACE, resume=False)
    assert not list(tmp_path.iterdir())


def test_names_inside_the_alphabet():
    for name in ("a", "Cora-lgd_gcn.v2", "x" * 64):
        check_name(name)


# Places


def test_parents_are_made(tmp_path):
    opened(str(tmp_path / "a b" / "ü" / "study.log"), resume=False)
    opened(f"sqlite:///{tmp_path}/c/d/study.db", resume=False)


def test_places_that_cannot_be_used(tmp_path):
    (tmp_path / "file").write_text("")
    refused(tmp_path, "is a folder: name a file")
    refused(tmp_path / "file" / "study.log", "cannot write .*study.log")
    refused(f"sqlite:///{tmp_path}/file/study.db", "cannot write .*study.db")
    refused(f"sqlite:///{tmp_path}", "unable to open database file")
    refused("/dev/null", "is a device or pipe: name a file")
    refused("", "no path")
    refused("a\0b", "no path")


def test_files_of_another_kind_are_left_alone(tmp_path):
    for content in ("one line without an end", "one line\n", "[1]\n", '{"op_code": "x"}\n{}\n'):
        file = tmp_path / "notes.txt"
        file.write_text(content)
        refused(file, "not a study journal: choose another file|damaged in line 1")
        assert file.read_text() == content
    base = tmp_path / "study.db"
    sqlite3.connect(base).execute("CREATE TABLE t (x)").connection.close()
    refused(base, "is not a study journal: name it sqlite:///")
    refused(f"sqlite:///{file}", "file is not a database")


def test_addresses_that_are_wrong_do_not_show_passwords(monkeypatch):
    cases = {
        "postgresql://me:hidden@127.0.0.1:1/base": "onnection refused",
        "postgresql://me@127.0.0.1:1/base?password=hidden": "onnection refused",
        "postgres://me:hidden@host.invalid/base": "cannot open --storage",
        "postgresql://me:hidden@host:port/base": "is not a valid database address",
        "postgresql://me:hidden@[::1/base": "valid database address|cannot open",
        "nonsense://me:hidden@host/base": "there is no database nonsense",
        "mysql+pymysql://me:hidden@host/base": "needs the driver pymysql: install it",
        "://": "not a valid database address",
        "sqlite://": "in memory is lost at the end",
        "sqlite:///:memory:": "in memory is lost at the end",
    }
    monkeypatch.setitem(sys.modules, "pymysql", None)
    for address, match in cases.items():
        assert "hidden" not in refused(address, match)


def test_missing_driver_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    refused("postgresql://host/base", r"needs the driver psycopg: .*'lgdgcn\[postgres\]'")
    monkeypatch.setitem(sys.modules, "psycopg2", None)
    refused("postgresql+psycopg2://host/base", r"needs the driver psycopg2: .*write postgresql://")


# Torn and damaged journals


def test_journal_torn_at_any_byte_of_its_last_line_is_repaired(journal):
    whole = journal.read_bytes()
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    for cut in range(last + 1, len(whole)):
        journal.write_bytes(whole[:cut])
        with pytest.warns(LGDWarning, match=f"torn last line of {cut - last} bytes"):
            repair(journal)
        assert journal.read_bytes() == whole[:last]
    journal.write_bytes(whole[: last + 30])
    with pytest.warns(LGDWarning, match="torn last line"):
        study = opened(str(journal))
    assert [t.state.name for t in study.trials] == ["COMPLETE", "RUNNING"]


def test_journal_torn_in_any_line_opens(journal):
    lines = journal.read_bytes().splitlines(keepends=True)
    for kept in range(2, len(lines)):
        journal.write_bytes(b"".join(lines[:kept]) + lines[kept][:25])
        with pytest.warns(LGDWarning, match="25 bytes"):
            study = opened(str(journal))
        study.tell(study.ask(), 1.0)  # appended to a whole line
        repair(journal)


def test_journal_torn_in_its_first_line_starts_anew(tmp_path):
    path = tmp_path / "study.log"
    for torn in (b"{", b'{"op_code":0,"wor'):
        path.write_bytes(torn)
        with pytest.warns(LGDWarning, match="torn last line"):
            repair(path)
        assert path.read_bytes() == b""


def test_garbage_with_a_line_break_at_the_end_is_torn_too(journal):
    whole = journal.read_bytes()
    for garbage in (b'{"op_code":5,\n', b"\0" * 5000, b"\xff\xfe\n", b"\n", b"[" * 100_000 + b"\n"):
        journal.write_bytes(whole + garbage)
        with pytest.warns(LGDWarning, match=f"{len(garbage)} bytes"):
            repair(journal)
        assert journal.read_bytes() == whole


def test_damage_elsewhere_names_the_line_and_changes_nothing(journal):
    lines = journal.read_bytes().splitlines(keepends=True)
    for number in range(2, len(lines)):
        damaged = b"".join([*lines[: number - 1], lines[number - 1][:-9] + b"\n", *lines[number:]])
        journal.write_bytes(damaged)
        refused(journal, f"damaged in line {number}: restore it", resume=True)
        assert journal.read_bytes() == damaged


def test_records_of_an_unknown_kind_are_refused(journal):
    with open(journal, "ab") as file:
        file.write(b'{"op_code":99,"worker_id":"x"}\n')
    refused(journal, "cannot read study journal", resume=True)


def test_whole_journal_is_not_touched(journal):
    before = journal.read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        repair(journal)
        opened(str(journal))
    assert journal.read_bytes() == before
    assert [file.name for file in journal.parent.iterdir()] == ["study.log"]


def test_live_worker_does_not_append_to_a_torn_line(journal):
    study = opened(str(journal))
    whole = journal.read_bytes()
    for torn in (b'{"op_code":5,"tr', b"x" * 4095, b"x" * 4096, b"x" * 9000):
        with open(journal, "ab") as file:
            file.write(torn)  # another worker is killed amid its write
        with pytest.warns(LGDWarning, match=f"{len(torn)} bytes"):
            study.set_user_attr("k", 1)
        repair(journal)
    assert journal.read_bytes().startswith(whole)
    assert opened(str(journal)).user_attrs["k"] == 1


def test_full_disk_is_one_line_and_leaves_a_journal_that_opens(journal):
    study = opened(str(journal))
    whole = journal.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 20, hard))
    try:
        with pytest.raises(InputError, match=r"cannot write .*study.log: File too large"):
            study.set_user_attr("k", 1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert journal.read_bytes()[: len(whole)] == whole
    with pytest.warns(LGDWarning, match="torn last line of 20 bytes"):
        assert "k" not in opened(str(journal)).user_attrs


def _hold(path: Path, ready, seconds: float) -> None:
    lock = JournalLock(path)
    lock.acquire()
    ready.set()
    time.sleep(seconds)
    with open(path, "ab") as file:
        file.write(b'{"op_code":2,"worker_id":"x","study_id":0,"user_attr":{"late":1}}\n')
    lock.release()


@pytest.mark.parametrize("killed", [False, True])
def test_repair_waits_for_a_writer_but_not_for_a_dead_one(journal, killed):
    fork = multiprocessing.get_context("fork")
    ready = fork.Event()
    writer = fork.Process(target=_hold, args=(journal, ready, 60 if killed else 0.3))
    writer.start()
    assert ready.wait(30)
    with open(journal, "rb") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if killed:
        writer.kill()
    study = opened(str(journal))
    assert ("late" in study.user_attrs) is not killed
    study.set_user_attr("free", 1)
    writer.join()


def test_journal_is_found_after_a_change_of_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = opened("study.log", resume=False)
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    study.tell(study.ask(), 1.0)
    assert len(opened("../study.log").trials) == 1


def test_optuna_is_quiet(tmp_path, capfd):
    study = opened(str(tmp_path / "study.log"), resume=False)
    study.tell(study.ask(), 1.0)
    assert capfd.readouterr() == ("", "")
