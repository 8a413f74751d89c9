"""The run folder: refused early, held by one process, never half-written."""

import json
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from lgdgcn.errors import InputError, LGDWarning
from lgdgcn.runs.folder import Run

CONFIG = '[run]\ndataset = "cora"\nmodel = "gcn"\nseeds = 1\nsplit = "standard"\n[settings]\n'
OWN = ["config.toml", "metrics.jsonl", "result.json", "model.safetensors", "units.png"]
OWN += ["model.safetensors.sha256", "measure.json", "explore.html"]
SAVED = ["checkpoints/seed-0-000001.safetensors", "checkpoints/seed-0-000001.safetensors.sha256"]


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


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


def content(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder; folders and links have no bytes."""
    plain = [file for file in folder.rglob("*") if not file.is_symlink()]
    return {str(file): file.read_bytes() if file.is_file() else None for file in plain}


def lines(run: Run) -> list[dict]:
    return [json.loads(line) for line in run.metrics.read_text().splitlines()]


# The start


def test_makes_parents_and_gives_back_the_lock(tmp_path):
    path = tmp_path / "a b" / "ünï 名" / "run"
    with Run.create(path) as run:
        owner = json.loads(run.lock.read_text())
        assert owner["pid"] == os.getpid()
        assert owner.keys() == {"pid", "host", "start"}
        assert run.checkpoint(3) == path / "checkpoints" / "seed-3"
    assert names(path) == ["checkpoints"]


def test_where_things_lie():
    run = Run.open("out")
    files = [run.config, run.metrics, run.result, run.model, run.figure]
    expected = ["config.toml", "metrics.jsonl", "result.json", "model.safetensors", "units.png"]
    assert [file.name for file in files] == expected
    assert {file.parent for file in files} == {Path("out")}


@pytest.mark.parametrize("below", ["", "run", "a/b/run"])
def test_a_file_in_the_way(tmp_path, below):
    file = tmp_path / "file"
    file.write_text("mine")
    with (
        pytest.raises(InputError, match="is a file, not a folder") as caught,
        Run.open(file / below),
    ):
        pass
    assert str(file) in str(caught.value)
    assert "--out" in str(caught.value)
    assert file.read_text() == "mine"


def test_checkpoints_is_a_file(tmp_path):
    (tmp_path / "checkpoints").write_text("mine")
    with pytest.raises(InputError, match="checkpoints is a file"), Run.open(tmp_path):
        pass


def test_a_dangling_link(tmp_path):
    (tmp_path / "run").symlink_to(tmp_path / "absent" / "x")
    with (
        pytest.raises(InputError, match="run is a file, not a folder"),
        Run.open(tmp_path / "run"),
    ):
        pass


@pytest.mark.parametrize("path", ["/proc/lgdgcn-run", "/dev/null/run"])
def test_not_writable(path):
    with pytest.raises(InputError, match=r"--out"), Run.open(path):
        pass


def test_a_name_that_is_too_long(tmp_path):
    with pytest.raises(InputError, match="name too long"), Run.open(tmp_path / ("x" * 300)):
        pass


def test_a_full_disk_at_the_start(tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    with pytest.raises(InputError, match=r"run folder .*No space left"), Run.open(tmp_path):
        pass


def test_a_finished_run_is_kept(path):
    with Run.create(path, resume=True) as run:
        run.append_metrics({"epoch": 1})
        run.write_result({"mean": 0.5})
    before = names(path)
    with pytest.raises(InputError, match=r"a finished run: add --resume to print .* --overwrite"):
        Run.open(path).__enter__()
    assert names(path) == before
    with Run.create(path, resume=True) as run:
        assert json.loads(run.result.read_text()) == {"mean": 0.5}
        assert lines(run) == [{"epoch": 1}]


def test_an_unfinished_run_is_kept(path):
    (path / SAVED[0]).write_bytes(b"work of hours")
    with pytest.raises(InputError, match="an unfinished run: add --resume"):
        Run.open(path).__enter__()
    with Run.create(path, resume=True) as run:
        assert names(run.checkpoints) == ["seed-0-000001.safetensors"]


def test_overwrite_clears_the_run_and_nothing_else(path):
    foreign = ["notes.txt", "checkpoints/best.safetensors", "checkpoints/seed-0.safetensors"]
    foreign += ["checkpoints/seed-0-000001.safetensors.bak", "compared/gcn/model.safetensors"]
    (path / "compared/gcn").mkdir(parents=True)
    for name in (*OWN, *SAVED, *foreign):
        (path / name).write_text(CONFIG)
    with Run.create(path, overwrite=True):
        pass
    kept = {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}
    assert kept == set(foreign)


def test_a_kill_while_a_run_is_cleared_leaves_a_run(path, monkeypatch):
    for name in (*OWN, *SAVED):
        (path / name).write_text(CONFIG)
    real = Path.unlink

    def unlink(self, **how):
        """Die at the fourth file."""
        if len(content(path)) == len(OWN + SAVED) - 3 + 2:  # and a folder, and the lock
            raise KeyboardInterrupt
        real(self, **how)

    monkeypatch.setattr(Path, "unlink", unlink)
    with pytest.raises(KeyboardInterrupt):
        Run.create(path, overwrite=True).__enter__()
    monkeypatch.setattr(Path, "unlink", real)
    (path / "run.lock").unlink()
    assert "config.toml" in names(path)
    with Run.create(path, overwrite=True):
        assert names(path) == ["checkpoints", "run.lock"]


def test_what_a_failed_start_left_is_cleared(path):
    with Run.create(path, resume=True) as run:
        run.append_metrics({"epoch": 1})
        (path / ".result.json.0123456789abcdef.tmp").write_text("half")
        (run.checkpoints / ".seed-0-000001.0123456789abcdef.tmp").write_text("half")
    with Run.create(path) as run:
        assert names(run.checkpoints) == []
    assert names(path) == ["checkpoints"]


# Files that are not ours


@pytest.mark.parametrize("how", [{}, {"overwrite": True}, {"resume": True}], ids=str)
@pytest.mark.parametrize("name", [*OWN, *SAVED])
def test_files_under_our_names_that_are_no_run(tmp_path, name, how):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / name).write_text("mine")
    before = content(tmp_path)
    with pytest.raises(InputError, match=f"{tmp_path / name} is .*another"):
        Run.open(tmp_path, **how).__enter__()
    assert content(tmp_path) == before


@pytest.mark.parametrize(
    "text",
    [
        "lr = 0.01",
        "[settings]\nlr = 0.01",
        CONFIG.replace("[settings]", ""),
        CONFIG.replace("dataset", "data"),
        CONFIG.replace("seeds = 1", "seeds = '1'"),
        "run = 3\nsettings = 4",
        "\0",
        "[" * 10**5,
    ],
)
def test_a_configuration_that_is_no_runs(path, text):
    (path / "config.toml").write_text(text)
    (path / "result.json").write_text("{}")
    before = content(path)
    for how in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(InputError, match=r"config\.toml is damaged or not of a run"):
            Run.open(path, **how).__enter__()
    assert content(path) == before


def test_a_copy_of_a_configuration_is_kept(tmp_path):
    (tmp_path / "config.toml").write_text(CONFIG)
    with pytest.raises(InputError, match="already holds"):
        Run.open(tmp_path).__enter__()
    with pytest.raises(InputError, match="there is no run"):
        Run.create(tmp_path, resume=True).__enter__()
    assert names(tmp_path) == ["config.toml"]


def test_a_finished_run_may_have_lost_an_empty_folder(path):
    """As when it was kept in a version control system."""
    (path / "result.json").write_text("{}")
    (path / "checkpoints").rmdir()
    with Run.create(path, resume=True):
        pass


def test_which_files_are_of_a_run(path):
    (path.parent / "link").symlink_to(path)
    for run in (Run.open(path), Run.open(path.parent / "link")):
        for name in (*OWN, *SAVED, "run.lock", "../run/result.json", "checkpoints/../units.png"):
            assert run.owns(path / name)
        for name in ("p.csv", "checkpoints", "checkpoints/best.safetensors", "../result.json"):
            assert not run.owns(path / name)


# Nothing to resume


def test_nothing_is_made_where_there_is_nothing_to_resume(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    (tmp_path / "other" / "checkpoints").mkdir()
    before = content(tmp_path)
    for name in ("typo", "a/b/typo", "other"):
        with pytest.raises(InputError, match=r"there is no run in .* leave out --resume"):
            Run.create(tmp_path / name, resume=True).__enter__()
    assert content(tmp_path) == before


def test_a_run_killed_before_its_first_file_is_resumed(tmp_path):
    with Run.create(tmp_path / "run"):
        pass
    with Run.create(tmp_path / "run", resume=True):
        pass
    (tmp_path / "run" / "run.lock").write_bytes(b"")
    with Run.create(tmp_path / "run", resume=True):
        pass


def test_a_compared_run_may_not_have_begun(path):
    with Run.create(path, resume=True).compared("gcn") as inner:
        assert inner.path == path / "compared" / "gcn"
    (inner.path / "result.json").write_text("mine")
    with pytest.raises(InputError, match=r"gcn/result\.json is not known"):
        Run.create(path, resume=True).compared("gcn").check()


# Links


@pytest.fixture
def thesis(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.txt").write_text("years")
    return tmp_path / "thesis" / "thesis.txt"


@pytest.mark.parametrize("how", [{}, {"overwrite": True}, {"resume": True}], ids=str)
@pytest.mark.parametrize("name", [*OWN, *SAVED, "run.lock"])
def test_links_are_not_followed(path, thesis, name, how):
    for target in (thesis, thesis.parent / "absent"):
        (path / name).unlink(missing_ok=True)
        (path / name).symlink_to(target)
        with pytest.raises(InputError, match=f"{path / name} is a link, which a run"):
            Run.open(path, **how).__enter__()
        assert os.path.islink(path / name)
    assert content(thesis.parent) == {str(thesis): b"years"}


@pytest.mark.parametrize("how", [{}, {"overwrite": True}, {"resume": True}], ids=str)
@pytest.mark.parametrize("name", ["checkpoints", "compared", "compared/gcn"])
def test_folders_behind_links_are_not_used(path, thesis, name, how):
    (thesis.parent / "seed-0-000001.safetensors").write_text("of somebody else")
    (path / "checkpoints").rmdir()
    (path / name).parent.mkdir(exist_ok=True)
    (path / name).symlink_to(thesis.parent)
    before = content(thesis.parent)
    run = Run.open(path, **how)
    with pytest.raises(InputError, match=f"{path / name} is a link, which a run"):
        (run if name == "checkpoints" else run.compared("gcn")).__enter__()
    assert content(thesis.parent) == before


def test_links_made_meanwhile_are_not_followed(path, thesis):
    writes = {
        "metrics.jsonl": lambda run: run.append_metrics({"epoch": 1}),
        "config.toml": lambda run: run.write_config("x"),
        "result.json": lambda run: run.write_result({}),
        "model.safetensors": lambda run: run.files(),
    }
    with Run.create(path, resume=True) as run:
        for name, write in writes.items():
            (path / name).unlink(missing_ok=True)
            (path / name).symlink_to(thesis)
            with pytest.raises(InputError, match=f"{name} is a link"):
                write(run)
            (path / name).unlink()
    assert thesis.read_text() == "years"


def test_the_folder_itself_may_be_a_link(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "runs").symlink_to(tmp_path / "disk")
    with Run.create(tmp_path / "runs" / "one") as run:
        run.write_config(CONFIG)
    (tmp_path / "two").symlink_to(tmp_path / "disk" / "one")
    with Run.create(tmp_path / "two", resume=True):
        pass
    assert names(tmp_path / "disk" / "one") == ["checkpoints", "config.toml"]


def test_a_backup_made_of_hard_links_stays_as_it_is(path, tmp_path):
    with Run.create(path, resume=True) as run:
        run.append_metrics({"epoch": 1})
    os.link(run.metrics, tmp_path / "backup")
    with Run.create(path, resume=True) as run:
        run.append_metrics({"epoch": 2})
    assert (tmp_path / "backup").read_text() == '{"epoch": 1}\n'


@pytest.mark.parametrize("name", ["run.lock", "metrics.jsonl", "result.json", "model.safetensors"])
def test_a_folder_or_a_pipe_where_a_file_goes(path, name):
    (path / name).mkdir()
    with pytest.raises(InputError, match=f"{name} is not a regular file"):
        Run.create(path, resume=True).__enter__()
    (path / name).rmdir()
    os.mkfifo(path / name)
    with pytest.raises(InputError, match=f"{name} is not a regular file"):
        Run.create(path, resume=True).__enter__()


# The lock


HOLD = """
import sys
from lgdgcn.runs.folder import Run
with Run.create(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def hold(path: Path) -> subprocess.Popen:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n", process.stderr.read()
    return process


def test_two_processes_and_a_dead_owner(tmp_path):
    first = hold(tmp_path)
    with pytest.raises(InputError, match=f"in use by process {first.pid} on"):
        Run.open(tmp_path).__enter__()
    second = subprocess.run(
        [sys.executable, "-c", HOLD, str(tmp_path)], capture_output=True, text=True, timeout=60
    )
    assert f"process {first.pid}" in second.stderr
    assert "held" not in second.stdout
    assert (tmp_path / "run.lock").exists()  # the refused ones have not taken it away

    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert (tmp_path / "run.lock").exists()
    with pytest.warns(LGDWarning, match=f"taking over .* process {first.pid}") as caught:
        run = Run.create(tmp_path, resume=True).__enter__()
    assert caught[0].filename == __file__
    assert json.loads(run.lock.read_text())["pid"] == os.getpid()
    run.__exit__(None, None, None)
    assert not run.lock.exists()


def test_one_after_the_other(tmp_path):
    first = hold(tmp_path)
    first.communicate()
    assert first.returncode == 0
    with Run.create(tmp_path):
        pass


def test_the_lock_is_given_back_after_an_error(tmp_path):
    with pytest.raises(RuntimeError), Run.open(tmp_path):
        raise RuntimeError("training failed")
    assert not (tmp_path / "run.lock").exists()


def test_held_within_one_process_too(tmp_path):
    with Run.create(tmp_path) as run:
        with pytest.raises(InputError, match=f"in use by process {os.getpid()}"):
            Run.open(tmp_path).__enter__()
        assert run.lock.exists()


@pytest.mark.parametrize("text", [b"\0\0\0", b'{"pi', b'{"pid": 12', b'{"pid": 3}\n'])
def test_a_lock_that_a_kill_or_a_power_cut_has_torn(tmp_path, text):
    (tmp_path / "run.lock").write_bytes(text)
    with pytest.warns(LGDWarning, match="taking over .* process (unknown|3) on"):
        Run.open(tmp_path).__enter__()


def test_a_lock_of_another_program(tmp_path):
    (tmp_path / "run.lock").write_bytes(b"\xff{half a thesis")
    for how in ({}, {"overwrite": True}, {"resume": True}):
        with pytest.raises(InputError, match=r"run\.lock is not a lock of lgdgcn"):
            Run.open(tmp_path, **how).__enter__()
    assert names(tmp_path) == ["run.lock"]
    assert (tmp_path / "run.lock").read_bytes() == b"\xff{half a thesis"


def test_a_run_at_work_is_said_to_be_in_use(path):
    with Run.create(path, resume=True) as run:
        run.write_result({})
        with pytest.raises(InputError, match="in use by process"):
            Run.open(path).__enter__()


def test_a_lock_file_removed_while_waiting_for_it(tmp_path, monkeypatch):
    """Locking a file its owner has just removed would let two runs in."""
    import fcntl

    real, calls = fcntl.flock, []

    def flock(descriptor, operation):
        calls.append(operation)
        if len(calls) == 1:
            (tmp_path / "run.lock").unlink()
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with Run.create(tmp_path) as run:
        assert run.lock.exists()
        assert len(calls) == 2
        with pytest.raises(InputError, match="in use"):
            Run.open(tmp_path).__enter__()


# The log and the result


def test_metrics_have_no_nan(tmp_path):
    with Run.create(tmp_path) as run:
        run.append_metrics({"epoch": 1, "loss": float("nan"), "terms": {"space": float("inf")}})
        run.append_metrics({"epoch": 2, "loss": 0.5})
        assert lines(run) == [
            {"epoch": 1, "loss": None, "terms": {"space": None}},
            {"epoch": 2, "loss": 0.5},
        ]


@pytest.mark.parametrize(
    "torn", [b"", b'{"epoch": 9, "lo', b"\0\0\0\0", b"\xff\n", b"[1]\n", b"\n"]
)
def test_truncated_to_the_resumed_epoch(path, torn):
    with Run.create(path, resume=True) as run:
        for epoch in range(1, 9):
            run.append_metrics({"epoch": epoch})
        with run.metrics.open("ab") as file:
            file.write(torn)
    with Run.create(path, resume=True) as run:
        assert [record["epoch"] for record in lines(run)] == list(range(1, 9))
        run.truncate_metrics(lambda record: record["epoch"] <= 5)
        run.append_metrics({"epoch": 6, "again": True})
        assert [record["epoch"] for record in lines(run)] == [1, 2, 3, 4, 5, 6]


def test_a_line_that_lacks_only_its_end_is_whole(path):
    (path / "metrics.jsonl").write_bytes(b'{"epoch": 1}\n{"epoch": 2}')
    with Run.create(path, resume=True) as run:
        assert run.metrics.read_bytes() == b'{"epoch": 1}\n{"epoch": 2}\n'


def test_nothing_to_truncate(tmp_path):
    with Run.create(tmp_path) as run:
        run.truncate_metrics(lambda record: False)
        assert not run.metrics.exists()


def test_disk_full_for_real(tmp_path):
    """The log ends with a whole line, the config stays, the lock is given back."""
    code = """
import resource, sys
from lgdgcn.errors import InputError
from lgdgcn.runs.folder import Run
try:
    with Run.create(sys.argv[1]) as run:
        run.write_config("lr = 0.01")
        resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, 5_000))
        for write in (run.write_config, lambda text: run.write_result({"x": text})):
            try:
                write("x" * 6_000)
            except InputError as error:
                assert "File too large" in str(error), error
            else:
                raise SystemExit("not refused")
        for epoch in range(1000):
            run.append_metrics({"epoch": epoch, "text": "x" * 100})
except InputError as error:
    assert "metrics.jsonl: File too large" in str(error), error
else:
    raise SystemExit("not refused")
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=60)
    assert names(tmp_path) == ["checkpoints", "config.toml", "metrics.jsonl"]
    assert (tmp_path / "config.toml").read_text() == "lr = 0.01"
    records = lines(Run.open(tmp_path))
    assert [record["epoch"] for record in records] == list(range(len(records)))
    assert len(records) > 30


def test_lines_are_sorted_and_equal_ones_stay(path):
    with Run.create(path, resume=True) as run:
        for epoch, seed in ((1, 0), (3, 0), (1, 1), (2, 0), (2, 1)):
            run.append_metrics({"epoch": epoch, "seed": seed})
        run.sort_metrics(lambda record: record["epoch"])
        found = [(record["epoch"], record["seed"]) for record in lines(run)]
        assert found == [(1, 0), (1, 1), (2, 0), (2, 1), (3, 0)]


def test_the_result_has_no_nan(tmp_path):
    with Run.create(tmp_path) as run:
        run.write_result({"runs": [{"seed": 0, "test": None, "val": float("nan")}], "mean": None})
        text = run.result.read_text()
    assert json.loads(text) == {"runs": [{"seed": 0, "test": None, "val": None}], "mean": None}
    assert "NaN" not in text


def test_overwrite_clears_what_stood_beside_the_run(path):
    for name in ("config.toml", "result.json", "compared/mlp/config.toml",
                 "compared/mlp/result.json", "compared/gcn/config.toml",
                 "compared/gcn/notes.txt", "compared/mine/config.toml"):  # fmt: skip
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text("mine = 1" if "mine" in name else CONFIG)
    with Run.create(path, overwrite=True):
        pass
    assert not (path / "compared/mlp").exists()
    kept = {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}
    assert kept == {"compared/gcn/notes.txt", "compared/mine/config.toml"}


def test_what_stands_beside_no_run_is_kept_without_overwrite(path):
    (path / "compared/mlp").mkdir(parents=True)
    (path / "compared/mlp/config.toml").write_text(CONFIG)
    with Run.create(path):
        pass
    assert (path / "compared/mlp/config.toml").exists()
