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
from lgdgcn.train.run_folder import RunFolder


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


@pytest.fixture(autouse=True)
def _no_unexpected_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error", LGDWarning)
        yield


def lines(run: RunFolder) -> list[dict]:
    return [json.loads(line) for line in run.metrics.read_text().splitlines()]


# The start


def test_makes_parents_and_gives_back_the_lock(tmp_path):
    path = tmp_path / "a b" / "ünï 名" / "run"
    with RunFolder(path) as run:
        owner = json.loads(run.lock.read_text())
        assert owner["pid"] == os.getpid()
        assert owner.keys() == {"pid", "host", "start"}
        assert run.checkpoint(3) == path / "checkpoints" / "seed-3"
    assert names(path) == ["checkpoints"]


def test_where_things_lie():
    run = RunFolder("out")
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
        RunFolder(file / below),
    ):
        pass
    assert str(file) in str(caught.value)
    assert "--out" in str(caught.value)
    assert file.read_text() == "mine"


def test_checkpoints_is_a_file(tmp_path):
    (tmp_path / "checkpoints").write_text("mine")
    with pytest.raises(InputError, match="checkpoints is a file"), RunFolder(tmp_path):
        pass


def test_a_dangling_link(tmp_path):
    (tmp_path / "run").symlink_to(tmp_path / "absent" / "x")
    with (
        pytest.raises(InputError, match="run is a file, not a folder"),
        RunFolder(tmp_path / "run"),
    ):
        pass


@pytest.mark.parametrize("path", ["/proc/lgdgcn-run", "/dev/null/run"])
def test_not_writable(path):
    with pytest.raises(InputError, match=r"--out"), RunFolder(path):
        pass


def test_a_name_that_is_too_long(tmp_path):
    with pytest.raises(InputError, match="name too long"), RunFolder(tmp_path / ("x" * 300)):
        pass


def test_a_full_disk_at_the_start(tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    with pytest.raises(InputError, match=r"run folder .*No space left"), RunFolder(tmp_path):
        pass


def test_a_finished_run_is_kept(tmp_path):
    with RunFolder(tmp_path) as run:
        run.append_metrics({"epoch": 1})
        run.write_result({"mean": 0.5})
    before = names(tmp_path)
    with pytest.raises(InputError, match=r"finished run: add --resume .* another --out"):
        RunFolder(tmp_path).__enter__()
    assert names(tmp_path) == before
    with RunFolder(tmp_path, resume=True) as run:
        assert json.loads(run.result.read_text()) == {"mean": 0.5}
        assert lines(run) == [{"epoch": 1}]


def test_an_unfinished_run_is_kept(tmp_path):
    with RunFolder(tmp_path) as run:
        (run.checkpoints / "seed-0-000001.safetensors").write_bytes(b"work of hours")
    with pytest.raises(InputError, match="unfinished run: add --resume"):
        RunFolder(tmp_path).__enter__()
    with RunFolder(tmp_path, resume=True) as run:
        assert names(run.checkpoints) == ["seed-0-000001.safetensors"]


def test_overwrite_clears_the_run_and_nothing_else(tmp_path):
    with RunFolder(tmp_path) as run:
        run.append_metrics({"epoch": 1})
        run.write_result({})
        run.write_config("")
        for name in ("model.safetensors", "model.safetensors.sha256", "units.png"):
            (tmp_path / name).write_bytes(b"x")
        for name in ("seed-0-000001.safetensors", "seed-0-000001.safetensors.sha256"):
            (run.checkpoints / name).write_bytes(b"x")
        (tmp_path / "notes.txt").write_text("mine")
    with RunFolder(tmp_path, overwrite=True) as run:
        assert names(run.checkpoints) == []
    assert names(tmp_path) == ["checkpoints", "notes.txt"]


def test_what_a_failed_start_left_is_cleared(tmp_path):
    with RunFolder(tmp_path) as run:
        run.append_metrics({"epoch": 1})
        (tmp_path / ".result.json.0123456789abcdef.tmp").write_text("half")
        (run.checkpoints / ".seed-0-000001.0123456789abcdef.tmp").write_text("half")
    with RunFolder(tmp_path) as run:
        assert names(run.checkpoints) == []
    assert names(tmp_path) == ["checkpoints"]


# The lock


HOLD = """
import sys
from lgdgcn.train.run_folder import RunFolder
with RunFolder(sys.argv[1], resume=True):
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
        RunFolder(tmp_path).__enter__()
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
        run = RunFolder(tmp_path, resume=True).__enter__()
    assert caught[0].filename == __file__
    assert json.loads(run.lock.read_text())["pid"] == os.getpid()
    run.__exit__(None, None, None)
    assert not run.lock.exists()


def test_one_after_the_other(tmp_path):
    first = hold(tmp_path)
    first.communicate()
    assert first.returncode == 0
    with RunFolder(tmp_path):
        pass


def test_the_lock_is_given_back_after_an_error(tmp_path):
    with pytest.raises(RuntimeError), RunFolder(tmp_path):
        raise RuntimeError("training failed")
    assert not (tmp_path / "run.lock").exists()


def test_held_within_one_process_too(tmp_path):
    with RunFolder(tmp_path) as run:
        with pytest.raises(InputError, match=f"in use by process {os.getpid()}"):
            RunFolder(tmp_path).__enter__()
        assert run.lock.exists()


def test_an_unreadable_owner(tmp_path):
    (tmp_path / "run.lock").write_bytes(b"\xff{half")
    with pytest.warns(LGDWarning, match="taking over .* process unknown"), RunFolder(tmp_path):
        pass


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
    with RunFolder(tmp_path) as run:
        assert run.lock.exists()
        assert len(calls) == 2
        with pytest.raises(InputError, match="in use"):
            RunFolder(tmp_path).__enter__()


# The log and the result


def test_metrics_have_no_nan(tmp_path):
    with RunFolder(tmp_path) as run:
        run.append_metrics({"epoch": 1, "loss": float("nan"), "terms": {"space": float("inf")}})
        run.append_metrics({"epoch": 2, "loss": 0.5})
        assert lines(run) == [
            {"epoch": 1, "loss": None, "terms": {"space": None}},
            {"epoch": 2, "loss": 0.5},
        ]


@pytest.mark.parametrize(
    "torn", [b"", b'{"epoch": 9, "lo', b"\0\0\0\0", b"\xff\n", b"[1]\n", b"\n"]
)
def test_truncated_to_the_resumed_epoch(tmp_path, torn):
    with RunFolder(tmp_path) as run:
        for epoch in range(1, 9):
            run.append_metrics({"epoch": epoch})
        with run.metrics.open("ab") as file:
            file.write(torn)
    with RunFolder(tmp_path, resume=True) as run:
        assert [record["epoch"] for record in lines(run)] == list(range(1, 9))
        run.truncate_metrics(lambda record: record["epoch"] <= 5)
        run.append_metrics({"epoch": 6, "again": True})
        assert [record["epoch"] for record in lines(run)] == [1, 2, 3, 4, 5, 6]


def test_a_line_that_lacks_only_its_end_is_whole(tmp_path):
    (tmp_path / "metrics.jsonl").write_bytes(b'{"epoch": 1}\n{"epoch": 2}')
    with RunFolder(tmp_path, resume=True) as run:
        assert run.metrics.read_bytes() == b'{"epoch": 1}\n{"epoch": 2}\n'


def test_nothing_to_truncate(tmp_path):
    with RunFolder(tmp_path) as run:
        run.truncate_metrics(lambda record: False)
        assert not run.metrics.exists()


def test_disk_full_for_real(tmp_path):
    """The log ends with a whole line, the config stays, the lock is given back."""
    code = """
import resource, sys
from lgdgcn.errors import InputError
from lgdgcn.train.run_folder import RunFolder
try:
    with RunFolder(sys.argv[1]) as run:
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
    records = lines(RunFolder(tmp_path))
    assert [record["epoch"] for record in records] == list(range(len(records)))
    assert len(records) > 30


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_full_device(tmp_path):
    with RunFolder(tmp_path) as run:
        for file in (run.metrics, run.result, run.config):
            file.symlink_to("/dev/full")
        for write in (
            lambda: run.append_metrics({"epoch": 1}),
            lambda: run.write_result({}),
            lambda: run.write_config("x"),
        ):
            with pytest.raises(InputError, match="No space left"):
                write()


def test_the_result_has_no_nan(tmp_path):
    with RunFolder(tmp_path) as run:
        run.write_result({"runs": [{"seed": 0, "test": None, "val": float("nan")}], "mean": None})
        text = run.result.read_text()
    assert json.loads(text) == {"runs": [{"seed": 0, "test": None, "val": None}], "mean": None}
    assert "NaN" not in text
