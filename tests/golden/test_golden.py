"""What is recorded is still so; the reader's share of it, all of which is ``make golden``."""

import importlib

import pytest

from golden import PARTS, reader
from golden.outcome import changes


def check(found):
    assert not found, "\n".join([f"{len(found)} differences", *found[:20]])


def test_folders_are_read_as_recorded():
    check(reader.differences(("ugly", "tables", "drawn", "damaged"), every=5))


def test_public_data_sets_are_read_as_recorded(shared_data, monkeypatch):
    monkeypatch.setenv("LGDGCN_DATA", str(shared_data))
    check(reader.differences(("public",)))


@pytest.mark.parametrize("name", [name for name in PARTS if name != "reader"])
def test_the_other_parts_are_as_recorded(name):
    check(importlib.import_module(f"golden.{name}").differences())


def test_changes_name_the_array_or_note():
    old = {"y": "int64[2] 0 1", "x in short": [32.0, 3.7808], "notes": ["note: a", "note: b"]}
    assert changes(old, old | {"x in short": [32.0, 3.7809]}) == []
    other = old | {"y": "int64[2] 1 1", "x in short": [32.0, 3.9], "notes": ["note: b", "note: c"]}
    assert changes(old, other) == [
        "x in short was [32.0, 3.7808], is [32.0, 3.9]",
        "y was int64[2] 0 1, is int64[2] 1 1",
        "no longer said: note: a",
        "newly said: note: c",
    ]
    assert changes(old, old | {"notes": ["note: b", "note: a"]}) != []
    assert changes(old, {"refused": "no"}) == ["was read, x absent, is refused (no)"]
