"""Files that claim more than they hold, and columns that hold what a table cannot."""

import gzip
import io
import warnings
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lgdgcn.data import tables
from lgdgcn.data.user_graph import read_graph
from lgdgcn.errors import InputError, LGDWarning
from lgdgcn.progress import show_with


def read(folder, features="degree"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LGDWarning)
        return read_graph(folder, features, require_labels=False)


def member(array_header, data=b""):
    """A file of an npz archive whose header says what we like."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"fortran_order": False, **array_header})
    return file.getvalue() + data


def archive(path, **members):
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)


@pytest.mark.parametrize("key", ["x", "y", "train_mask"])
def test_rows_without_columns_are_refused(tmp_path, key):
    archive(tmp_path / "nodes.npz", **{key: member({"descr": "<f4", "shape": (10**12, 0)})})
    (tmp_path / "edges.csv").write_text("0,1\n")
    with pytest.raises(InputError, match=r"nodes\.npz: the ids of 1,000,000,000,000 nodes would"):
        read(tmp_path)


def test_more_ids_than_fit_are_refused(tmp_path, monkeypatch):
    np.savez(tmp_path / "nodes.npz", ids=np.arange(1000).astype(str))
    (tmp_path / "edges.csv").write_text("0,1\n")
    assert len(read(tmp_path).node_ids) == 1000
    monkeypatch.setattr("lgdgcn.runtime.available_memory", lambda device=None: 10**5)
    with pytest.raises(InputError, match="the ids of 1,000 nodes would take about"):
        read(tmp_path)


def bomb(folder, stem, suffix, rows):
    """A table of few bytes and many rows."""
    if suffix == "parquet":
        columns = {"id": pa.array(map(str, range(rows)))} if stem == "nodes" else {}
        columns |= {"target": pa.array(["1"] * rows), "source": pa.array(["2"] * rows)}
        pq.write_table(pa.table(columns), folder / f"{stem}.parquet")
        return
    lines = "".join(f"{i},1\n" for i in range(rows)) if stem == "nodes" else "1,2\n" * rows
    header = "id,f\n" if stem == "nodes" else "source,target\n"
    (folder / f"{stem}.csv.gz").write_bytes(gzip.compress((header + lines).encode()))


@pytest.mark.parametrize("stem", ["edges", "nodes"])
@pytest.mark.parametrize("suffix", ["csv.gz", "parquet"])
def test_rows_are_bounded_by_the_memory(tmp_path, monkeypatch, stem, suffix):
    bomb(tmp_path, stem, suffix, 20_000)
    if stem == "nodes":
        (tmp_path / "edges.csv").write_text("1,2\n")
    assert read(tmp_path).edge_index.size(1) == 2
    monkeypatch.setattr(tables, "available_memory", lambda: 10**6)
    words = rf"{stem}\.{suffix} has more than [1-9],\d+ rows, .* 0\.00093 GiB of memory that are"
    with pytest.raises(InputError, match=words):
        read(tmp_path)


def test_long_names_count(tmp_path, monkeypatch):
    lines = "".join(f"{i}{'x' * 100_000},1\n" for i in range(30))
    (tmp_path / "nodes.csv.gz").write_bytes(gzip.compress(("id,f\n" + lines).encode()))
    (tmp_path / "edges.csv").write_text("")
    monkeypatch.setattr(tables, "available_memory", lambda: 10**6)
    with pytest.raises(InputError, match="has more than 9 rows"):
        read(tmp_path)


@pytest.mark.parametrize("suffix", ["csv.gz", "parquet"])
def test_reading_tells_how_far_it_is(tmp_path, suffix):
    bomb(tmp_path, "edges", suffix, 20_000)
    seen, works = [], []

    class Work:
        def __init__(self, what, unit):
            works.append((what, unit))

        def __enter__(self):
            return lambda done, share: seen.append((done, share))

        def __exit__(self, *error):
            works.append("over")

    show_with(Work)
    try:
        read(tmp_path)
    finally:
        show_with(None)
    assert works[:2] == [(f"reading edges.{suffix}", "rows"), "over"]
    assert ("checking the edges", "") in works
    assert seen == sorted(seen)
    assert 16_000 < seen[-1][0] <= 20_000
    assert 0 < seen[-1][1] <= 1


def test_parquet_rows_that_cannot_be_read_are_missed(tmp_path, monkeypatch):
    """A damaged page can end a column, and with it the table, without an error of the reader."""
    pq.write_table(pa.table({"a": ["0", "1"], "b": ["1", "0"]}), tmp_path / "edges.parquet")
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda self, size: iter(()))
    with pytest.raises(InputError, match=r"edges\.parquet is damaged: 0 of 2 rows can be read"):
        read(tmp_path)
