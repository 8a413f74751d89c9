"""The run folder: refused early, held by one process, never half-written, nobody else's files."""

import json
import os
import resource
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from lgdgcn.errors import InputError, LGDWarning
from lgdgcn.runs.folder import Run

CONFIG = '[run]\ndataset = "cora"\nmodel = "gcn"\nseeds = 1\nsplit = "standard"\n[settings]\n'
SAVED = "checkpoint.safetensors"
OWN = ["config.toml", "metrics.jsonl", "result.json", "model.safetensors", "units.png", SAVED]
OWN += ["checkpoint.previous.safetensors", "model-seed-3.safetensors", "measure.json"]
OWN += ["explore.html", "predictions.parquet", "reasons.png"]
HOW = pytest.mark.parametrize("how", [{}, {"overwrite": True}, {"resume": True}], ids=str)


@pytest.fixture(autouse=True)
def _no_unexpected_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error", LGDWarning)
        yield


@pytest.fixture
def path(tmp_path):
    """A folder in which a run has begun."""
    with Run.create(tmp_path / "run") as run:
        run.write_config(CONFIG)
    return run.path


@pytest.fixture
def thesis(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.txt").write_text("years")
    return tmp_path / "thesis" / "thesis.txt"


def content(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder but locks; folders have no bytes, links are where they lead."""
    there = [file for file in folder.rglob("*") if file.name != "run.lock" or file.is_symlink()]
    return {
        str(file.relative_to(folder)): os.readlink(file).encode()
        if file.is_symlink()
        else file.read_bytes()
        if file.is_file()
        else None
        for file in there
    }


def lines(run: Run) -> list[dict]:
    return [json.loads(line) for line in run.metrics.read_text().splitlines()]


def fill_log(run: Run) -> None:
    for epoch in range(1000):
        run.append_metrics({"epoch": epoch, "text": "x" * 100})


def enter(path: Path, **how: bool) -> None:
    with Run.create(path, **how):
        pass


# Refused at the start


def test_any_name_will_do_and_the_folder_may_be_a_link(tmp_path):
    (tmp_path / "runs").symlink_to(tmp_path)
    enter(tmp_path / "runs" / "a b" / "ünï 名")
    assert content(tmp_path / "a b" / "ünï 名") == {}


@pytest.mark.parametrize("name", ["result.json", SAVED, "model.safetensors"])
def test_a_run_is_kept_unless_it_is_to_be_replaced(path, name):
    (path / name).write_text("{}")
    before = content(path)
    what = "a finished" if name == "result.json" else "an unfinished"
    with pytest.raises(InputError, match=f"already holds {what} run: .*add --overwrite"):
        enter(path)
    enter(path, resume=True)
    assert content(path) == before
    enter(path, overwrite=True)
    assert content(path) == {}


def test_what_a_failed_start_left_is_cleared(path):
    with Run.create(path, resume=True) as run:
        run.append_metrics({"epoch": 1})
        (path / ".result.json.0123456789abcdef.tmp").write_text("half")
    enter(path)
    assert content(path) == {}


def test_overwrite_clears_the_run_and_what_stood_beside_it_and_nothing_else(path):
    mine = ["notes.txt", "model-seed-x.safetensors", "compared/gcn/notes.txt", "sub/result.json"]
    mine += ["checkpoint.safetensors.bak", "compared/mine/config.toml"]
    beside = [f"compared/{name}/config.toml" for name in ("gcn", "mlp")]
    for name in (*OWN, *mine, *beside):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text("mine = 1" if "mine" in name else CONFIG)
    with pytest.raises(InputError, match="already holds"):
        enter(path)
    enter(path, overwrite=True)
    left = content(path)
    assert {name for name, text in left.items() if text is not None} == set(mine)
    assert "compared/mlp" not in left


def test_a_kill_while_a_run_is_cleared_leaves_a_run(path, monkeypatch):
    for name in OWN:
        (path / name).write_text(CONFIG)
    real = Path.unlink

    def unlink(self, **how):
        """Die at the fourth file."""
        if len(content(path)) == len(OWN) - 3:
            raise KeyboardInterrupt
        real(self, **how)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", unlink)
        with pytest.raises(KeyboardInterrupt):
            enter(path, overwrite=True)
    assert "config.toml" in content(path)
    enter(path, overwrite=True)
    assert content(path) == {}


# Files that are not ours


def test_which_files_are_of_a_run(path):
    (path.parent / "link").symlink_to(path)
    for run in (Run.open(path), Run.open(path.parent / "link")):
        for name in (*OWN, "run.lock", "../run/result.json"):
            assert run.owns(path / name)
        for name in ("p.csv", "compared", "compared/result.json", "../result.json"):
            assert not run.owns(path / name)


def test_a_run_that_has_only_its_lock_is_resumed_and_a_compared_one_has_nothing(path, tmp_path):
    enter(tmp_path / "killed")
    enter(tmp_path / "killed", resume=True)
    with Run.create(path, resume=True).compared("gcn") as inner:
        assert inner.path == path / "compared" / "gcn"
    (inner.path / "result.json").write_text("mine")
    with pytest.raises(InputError, match=r"gcn/result\.json is not known"):
        Run.create(path, resume=True).compared("gcn").check()


@HOW
@pytest.mark.parametrize("name", [*OWN, "run.lock"])
def test_links_folders_and_pipes_are_not_used(path, thesis, name, how):
    file = path / name
    file.unlink(missing_ok=True)
    ways = {
        "is a link, which a run": [lambda: file.symlink_to(thesis), file.unlink],
        "is a link, which": [lambda: file.symlink_to(thesis.parent / "absent"), file.unlink],
        "is not a regular file": [file.mkdir, file.rmdir],
        "is not a regular": [lambda: os.mkfifo(file), file.unlink],
    }
    for words, (make, remove) in ways.items():
        make()
        before = content(path)
        with pytest.raises(InputError, match=f"{file} {words}"):
            enter(path, **how)
        assert content(path) == before
        remove()
    assert content(thesis.parent) == {"thesis.txt": b"years"}


@HOW
@pytest.mark.parametrize("name", ["compared", "compared/gcn"])
def test_folders_behind_links_are_not_used(path, thesis, name, how):
    (path / name).parent.mkdir(exist_ok=True)
    (path / name).symlink_to(thesis.parent)
    with pytest.raises(InputError, match=f"{path / name} is a link, which a run"):
        Run.create(path, **how).compared("gcn").__enter__()
    assert content(thesis.parent) == {"thesis.txt": b"years"}


def test_links_made_meanwhile_are_not_followed(path, thesis):
    writes = {
        "metrics.jsonl": lambda run: run.append_metrics({"epoch": 1}),
        "config.toml": lambda run: run.write_config("x"),
        "result.json": lambda run: run.write_result({}),
    }
    with Run.create(path, resume=True) as run:
        for name, write in writes.items():
            (path / name).unlink(missing_ok=True)
            (path / name).symlink_to(thesis)
            with pytest.raises(InputError, match=f"{name} is a link"):
                write(run)
    assert thesis.read_text() == "years"


def test_a_backup_made_of_hard_links_stays_as_it_is(path, tmp_path):
    with Run.create(path, resume=True) as run:
        run.append_metrics({"epoch": 1})
    os.link(run.metrics, tmp_path / "backup")
    with Run.create(path, resume=True) as run:
        run.append_metrics({"epoch": 2})
    assert (tmp_path / "backup").read_text() == '{"epoch": 1}\n'


# One process at a time

HOLD = """
import sys
from lgdgcn.runs.folder import Run
with Run.create(sys.argv[1], resume="resume" in sys.argv):
    print("held", flush=True)
    sys.stdin.read()
"""


def hold(*words: object) -> subprocess.Popen:
    command = [sys.executable, "-c", HOLD, *map(str, words)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def test_two_processes_and_a_dead_owner(path):
    first = hold(path)
    assert first.stdout.readline() == "held\n"
    for how in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(InputError, match=f"{path} is in use by another process"):
            enter(path, **how)
    out, err = hold(path, "resume").communicate(timeout=60)
    assert (out, "in use by another process" in err) == ("", True)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    enter(path, resume=True)  # the system takes back the lock of a dead process


def test_held_within_one_process_too_and_given_back_after_an_error(path):
    with Run.create(path, resume=True) as run:
        run.write_result({})
        with pytest.raises(InputError, match="in use"):  # which is said first
            enter(path)
    with pytest.raises(RuntimeError), Run.create(path, resume=True):
        raise RuntimeError("training failed")
    enter(path, overwrite=True)


# The log and the result


@pytest.mark.parametrize(
    "torn", [b"", b'{"epoch": 9, "lo', b"\0\0\0\0", b"\xff\n", b"[1]\n", b"\n"]
)
def test_the_log_is_cut_to_whole_lines_of_the_resumed_state(path, torn):
    with Run.create(path, resume=True) as run:
        for epoch in range(1, 9):
            run.append_metrics({"epoch": epoch, "loss": float("nan")})
        with run.metrics.open("ab") as file:
            file.write(torn)
    with Run.create(path, resume=True) as run:
        assert lines(run) == [{"epoch": epoch, "loss": None} for epoch in range(1, 9)]
        run.cut_metrics(lambda record: record["epoch"] <= 5)
        run.append_metrics({"epoch": 6, "again": True})
        assert [record["epoch"] for record in lines(run)] == [1, 2, 3, 4, 5, 6]


def test_a_line_that_lacks_only_its_end_is_whole(path):
    (path / "metrics.jsonl").write_bytes(b'{"epoch": 1}\n{"epoch": 2}')
    with Run.create(path, resume=True) as run:
        assert run.metrics.read_bytes() == b'{"epoch": 1}\n{"epoch": 2}\n'


def test_a_full_disk_leaves_whole_files(tmp_path, monkeypatch):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Run.create(tmp_path) as run:
        run.write_config(CONFIG)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, limits[1]))
        try:
            for write in (run.write_config, lambda text: run.write_result({"x": text})):
                with pytest.raises(InputError, match="File too large"):
                    write("x" * 6_000)
            with pytest.raises(InputError, match=r"metrics\.jsonl: File too large"):
                fill_log(run)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert content(tmp_path).keys() == {"config.toml", "metrics.jsonl"}
        assert run.config.read_text() == CONFIG
        assert [record["epoch"] for record in lines(run)] == list(range(len(lines(run))))
        assert len(lines(run)) > 30

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    with pytest.raises(InputError, match=r"run folder .*No space left"):
        enter(tmp_path, resume=True)
