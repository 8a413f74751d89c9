"""Folders that are none or must not be trusted; what else they mean is in ``golden``."""

import pickle
import sys

import numpy as np
import pytest

from faults.hostile import Payload
from lgdgcn.data.tables import find_table
from lgdgcn.data.user_graph import read_graph
from lgdgcn.errors import InputError

NODES = "id,label,f\nann,x,1\nbob,y,0\n"
EDGES = "source,target\nann,bob\n"


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "edges.parquet").touch()
    with pytest.raises(InputError, match=r"pip install 'lgdgcn\[parquet\]'"):
        read_graph(tmp_path)


@pytest.mark.parametrize("name", ["edges.npz", "nodes.npz"])
@pytest.mark.parametrize("kind", ["array", "pickle"])
def test_a_pickle_payload_never_runs(tmp_path, name, kind):
    marker = tmp_path / "marker"
    for stem, text in (("nodes", NODES), ("edges", EDGES)):
        if not name.startswith(stem):
            (tmp_path / f"{stem}.csv").write_text(text)
    if kind == "array":
        payload = np.array([Payload(marker)], dtype=object)
        np.savez(tmp_path / name, x=payload, edge_index=payload)
    else:
        (tmp_path / name).write_bytes(pickle.dumps(Payload(marker)))
    with pytest.raises(InputError, match=name):
        read_graph(tmp_path)
    assert not marker.exists()


def test_folders_that_are_none(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "odd" / "edges.csv").mkdir(parents=True)
    for name, message in {
        "absent": "does not exist",
        "file": "is a file",
        "empty": "no edges file",
        "odd": "is not a file",
    }.items():
        with pytest.raises(InputError, match=message):
            read_graph(tmp_path / name)
    assert find_table(tmp_path, "nodes") is None


def test_unpacked_size_of_arrays_is_bounded(tmp_path, monkeypatch):
    np.savez(tmp_path / "edges.npz", edge_index=np.zeros((2, 1), np.int64))
    np.savez_compressed(tmp_path / "nodes.npz", x=np.zeros((2, 100_000)), y=np.arange(2))
    monkeypatch.setattr("lgdgcn.data.tables.MAX_BYTES", 10**5)
    with pytest.raises(InputError, match="unpacked"):
        read_graph(tmp_path)
