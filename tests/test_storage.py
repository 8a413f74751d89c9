"""Atomic files, JSON and CSV that say nothing false, safe names."""

import csv
import errno
import json
import os
import resource
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lgdgcn import storage
from lgdgcn.errors import InputError


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_writes_and_replaces(tmp_path):
    path = tmp_path / "ein Ordner – ünï" / "datei 名.bin"
    path.parent.mkdir()
    storage.atomic_write(path, b"old")
    storage.atomic_write(path, lambda file: file.write(b"new") and None)
    assert path.read_bytes() == b"new"
    assert names(path.parent) == [path.name]


def test_permissions_are_those_of_any_new_file(tmp_path):
    plain = tmp_path / "plain"
    plain.write_bytes(b"")
    storage.atomic_write(tmp_path / "atomic", b"")
    assert (tmp_path / "atomic").stat().st_mode == plain.stat().st_mode


def test_a_name_of_the_longest_kind(tmp_path):
    storage.atomic_write(tmp_path / ("n" * 255), b"x")
    assert names(tmp_path) == ["n" * 255]


def test_follows_a_link(tmp_path):
    (tmp_path / "there").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "there" / "file")
    storage.atomic_write(link, b"x")
    assert link.is_symlink()
    assert (tmp_path / "there" / "file").read_bytes() == b"x"


@pytest.mark.parametrize("error", [RuntimeError("broken"), KeyboardInterrupt()])
def test_a_failing_writer_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(file):
        file.write(b"half")
        raise error

    with pytest.raises(type(error)):
        storage.atomic_write(path, fail)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EFBIG, errno.EIO])
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_system_errors_name_path_and_reason(tmp_path, monkeypatch, code, call):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(*args):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(InputError) as caught:
        storage.atomic_write(path, b"new")
    monkeypatch.undo()
    assert str(path) in str(caught.value)
    assert os.strerror(code) in str(caught.value)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


def test_missing_folder_file_as_parent_and_folder_as_file(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for path, fix in (
        (tmp_path / "absent" / "x", "create the folder"),
        (tmp_path / "file" / "x", "a file stands"),
        (tmp_path, "name a file"),
    ):
        with pytest.raises(InputError, match=fix):
            storage.atomic_write(path, b"x")
    assert names(tmp_path) == ["file"]


def test_a_folder_is_made_and_left_empty(tmp_path):
    folder = storage.make_folder(tmp_path / "ein Ordner" / "名")
    assert folder == tmp_path / "ein Ordner" / "名"
    assert storage.make_folder(str(folder)) == folder  # it may be there
    assert names(folder) == []


@pytest.mark.parametrize("below", ["", "sub", "sub/sub"])
def test_a_file_where_a_folder_should_be(tmp_path, below):
    path = tmp_path / "file" / below
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InputError) as caught:
        storage.make_folder(path)
    assert str(caught.value).startswith(f"cannot write {path}: Not a directory; a file stands")


def test_a_target_is_checked_before_the_work(tmp_path, monkeypatch):
    assert storage.check_target(tmp_path / "x") == tmp_path / "x"
    assert names(tmp_path) == []
    with pytest.raises(InputError, match="create the folder first"):
        storage.check_target(tmp_path / "new" / "x")
    with pytest.raises(InputError, match="name a file"):
        storage.check_target(tmp_path)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InputError, match="a file stands"):
        storage.check_target(tmp_path / "file" / "x")
    monkeypatch.setattr("tempfile.TemporaryFile", None)  # the folder of a device is not tried
    assert storage.check_target("/dev/null") == Path("/dev/null")


def test_a_folder_is_checked_and_not_made(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"mine")
    (tmp_path / "link").symlink_to(tmp_path / "absent")
    storage.check_folder(tmp_path)
    storage.check_folder(tmp_path / "new" / "er")
    for part, below in (("file", ""), ("file", "a/b"), ("link", "a")):
        with pytest.raises(InputError, match=f"{tmp_path / part} is a file, not a folder"):
            storage.check_folder(tmp_path / part / below)
    with pytest.raises(InputError, match="name too long"):
        storage.check_folder(tmp_path / ("x" * 300) / "run")
    assert names(tmp_path) == ["file", "link"]


def test_a_folder_that_takes_no_files(tmp_path, monkeypatch):
    def refuse(**where):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with pytest.raises(InputError, match="Read-only file system; choose a folder you can"):
        storage.make_folder(tmp_path / "x")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_device_is_named_and_stays_a_device(tmp_path):
    link = tmp_path / "out.csv"
    link.symlink_to("/dev/full")
    with pytest.raises(InputError, match=r"out\.csv: No space left"):
        storage.write_csv(link, ["a"], [["x" * 100] for _ in range(1000)])
    assert Path("/dev/full").is_char_device()


def test_a_full_disk_leaves_every_kind_of_file(tmp_path):
    file, big = tmp_path / "file", "x" * 30_000
    file.write_bytes(b"old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        for write in (
            lambda: storage.write_text(file, big),
            lambda: storage.write_json(file, [big]),
            lambda: storage.write_csv(file, ["a"], [[big]]),
        ):
            with pytest.raises(InputError, match=f"cannot write {file}: File too large"):
                write()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert names(tmp_path) == ["file"]
    assert file.read_bytes() == b"old"


def test_a_closed_pipe_stays_a_closed_pipe():
    read, write = os.pipe()
    os.close(read)
    try:
        with pytest.raises(BrokenPipeError):
            storage.atomic_write(f"/dev/fd/{write}", b"x")
    finally:
        os.close(write)


def test_leftovers_of_a_kill_are_removed(tmp_path):
    for name in (".a-1.0123456789abcdef.tmp", ".b.0123456789abcdef.tmp", ".a.tmp", "a-1"):
        (tmp_path / name).write_bytes(b"")
    storage.remove_leftovers(tmp_path, "a-")
    assert names(tmp_path) == [".a.tmp", ".b.0123456789abcdef.tmp", "a-1"]
    storage.remove_leftovers(tmp_path)
    assert names(tmp_path) == [".a.tmp", "a-1"]
    storage.remove_leftovers(tmp_path / "absent")


def test_json_has_no_nan(tmp_path):
    path = tmp_path / "x.json"
    value = {
        "test": None,
        "nan": float("nan"),
        "inf": [np.float64("inf"), np.float32("-inf"), torch.tensor(float("nan"))],
        "numbers": (np.int64(3), np.float32(0.5), torch.tensor(2), True),
        3: Path("a/b"),
        "text": "ü \ud800 \u2028 </script>",
    }
    storage.write_json(path, value)
    assert b"NaN" not in path.read_bytes()
    assert b"Infinity" not in path.read_bytes()
    assert json.loads(path.read_text("utf-8")) == {
        "test": None,
        "nan": None,
        "inf": [None, None, None],
        "numbers": [3, 0.5, 2, True],
        "3": "a/b",
        "text": "ü \ud800 \u2028 </script>",
    }


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_formula_cells_are_quoted(start):
    text = start + "cmd|' /C calc'!A0"
    assert storage.csv_cell(text) == "'" + text


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (-1.5, "-1.5"),
        ("-1.5", "-1.5"),
        ("+2e-3", "+2e-3"),
        ("-.5", "-.5"),
        (np.float64(-0.1), "-0.1"),
        (np.float32(-0.1), "-0.1"),
        (np.int64(-3), "-3"),
        (-np.inf, "-inf"),
        ("-inf", "'-inf"),
        ("-1+2", "'-1+2"),
        ("-1.5\n", "'-1.5\n"),
        ("-", "'-"),
        ("-١", "'-١"),
        (True, "True"),
        (None, ""),
        ("", ""),
        ("plain=", "plain="),
        ("'=1+1", "''=1+1"),
        ("'plain", "'plain"),
    ],
)
def test_cells(value, cell):
    assert storage.csv_cell(value) == cell


def test_a_long_almost_number_takes_no_time():
    text = "-" + "1" * 1_000_000 + "x"
    assert storage.csv_cell(text) == "'" + text


@given(st.lists(st.lists(st.text(max_size=8), min_size=2, max_size=2), max_size=5))
def test_csv_reads_back(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    rows = [[cell.encode("utf-8", "ignore").decode() for cell in row] for row in rows]
    storage.write_csv(path, ["a", "=b"], iter(rows))
    with path.open(encoding="utf-8", newline="") as file:
        read = list(csv.reader(file))
    assert read == [["a", "'=b"], *([storage.csv_cell(cell) for cell in row] for row in rows)]


def test_csv_lines_end_in_lf_and_a_broken_source_changes_nothing(tmp_path):
    path = tmp_path / "x.csv"
    storage.write_csv(path, ["node", "p"], [["a\rb", 0.5], ['q"\r\n', -1]])
    old = path.read_bytes()
    assert old == b'node,p\n"a\rb",0.5\n"q""\r\n",-1\n'

    def rows():
        yield ["x", 1]
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError):
        storage.write_csv(path, ["node", "p"], rows())
    assert path.read_bytes() == old
    assert names(tmp_path) == ["x.csv"]
