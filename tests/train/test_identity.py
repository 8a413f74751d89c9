"""What a resumed run must share with the old one."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lgdgcn.errors import CheckpointError, LGDWarning
from lgdgcn.runs.checkpoint import check_same, differences


def test_differences():
    old = {"lr": 0.01, "model": {"k": 3, "dims": [1, 2]}, "gone": "x", "same": float("nan")}
    new = {"lr": 0.02, "model": {"k": 3, "dims": (1, 3)}, "new": None, "same": float("nan")}
    assert differences(old, new) == [
        "lr: 0.01 -> 0.02",
        "model.dims: [1, 2] -> [1, 3]",
        'gone: "x" -> (absent)',
        "new: (absent) -> null",
    ]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=3), VALUES))
def test_what_json_gives_back_does_not_differ(config):
    assert differences(json.loads(json.dumps(config)), config) == []


def test_check_same():
    old = {
        "config": {"lr": 0.01, "seed": 1},
        "data": "abc",
        "schema": 1,
        "versions": {"torch": "2.12"},
        "epoch": 17,
    }
    new = {key: old[key] for key in ("config", "data", "schema", "versions")}
    check_same(old, new)
    with pytest.warns(LGDWarning, match=r'versions\.torch: "2\.12" -> "2\.13"'):
        check_same(old, new | {"versions": {"torch": "2.13"}})
    other = {"config": {"lr": 0.02, "seed": 1}, "data": "def", "schema": 2, "versions": {}}
    with pytest.raises(CheckpointError) as caught:
        check_same(old, other)
    for part in ("config.lr: 0.01 -> 0.02", 'data: "abc" -> "def"', "schema: 1 -> 2", "--out"):
        assert part in str(caught.value)
    assert "seed" not in str(caught.value)
    assert "epoch" not in str(caught.value)


def test_check_same_misses_nothing():
    with pytest.raises(CheckpointError, match=r'data: \(absent\) -> "abc"'):
        check_same({"config": {}}, {"config": {}, "data": "abc"})
