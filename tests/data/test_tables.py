"""Files that claim more than they hold, and columns that hold what a table cannot."""

import datetime
import decimal
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


@pytest.mark.parametrize("key", ["ids", "classes", "y"])
@pytest.mark.parametrize("kind", ["<U0", "|S0", "|V0"])
def test_text_without_width_is_refused(tmp_path, key, kind):
    huge = member({"descr": kind, "shape": (10**12,)})
    x = member({"descr": "<f4", "shape": (2, 1)}, bytes(8))
    archive(tmp_path / "nodes.npz", **{"x": x, key: huge})
    (tmp_path / "edges.csv").write_text("0,1\n")
    with pytest.raises(InputError, match=rf"nodes\.npz: {key} has 1,000,000,000,000 entries"):
        read(tmp_path)


def test_arrays_that_a_damaged_zip_directory_hides_are_missed(tmp_path):
    """The length of an entry's comment, if a bit of it flips, swallows the entries behind it."""
    np.savez(tmp_path / "nodes.npz", x=np.ones((2, 1)), y=[0, 1], classes=["b", "a"])
    content = bytearray((tmp_path / "nodes.npz").read_bytes())
    *_, entry, last = [i for i in range(len(content)) if content[i : i + 4] == b"PK\1\2"]
    end = content.rindex(b"PK\5\6")
    content[entry + 32 : entry + 34] = (end - last).to_bytes(2, "little")
    (tmp_path / "nodes.npz").write_bytes(content)
    (tmp_path / "edges.csv").write_text("0,1\n")
    with pytest.raises(InputError, match=r"nodes\.npz is damaged: 2 of 3 arrays are listed"):
        read(tmp_path)


def test_bytes_behind_the_arrays_are_no_damage(tmp_path):
    np.savez(tmp_path / "nodes.npz", x=np.ones((2, 1)), y=[0, 1])
    with (tmp_path / "nodes.npz").open("ab") as file:
        file.write(b"\n")
    (tmp_path / "edges.csv").write_text("0,1\n")
    assert read(tmp_path, None).y.tolist() == [0, 1]


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


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pa.array([[1, 2], [3]]), r"has type list<.*; save it as text or numbers"),
        (pa.array([{"a": 1}, {"a": 2}]), r"has type struct<"),
        (pa.array([b"a", b"b"]), "has type binary"),
        (pa.array([1.0, float("inf")]), "row 2: column 'f' holds 'inf'"),
    ],
    ids=["list", "struct", "bytes", "infinite"],
)
def test_parquet_columns_that_are_no_features(tmp_path, column, words):
    pq.write_table(pa.table({"id": ["a", "b"], "f": column}), tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text("a,b\n")
    with pytest.raises(InputError, match=words) as caught:
        read(tmp_path, None)
    assert "nodes.parquet" in str(caught.value)


@pytest.mark.parametrize(
    ("column", "names", "x"),
    [
        (pa.array(["a", "b"]), ["f=a", "f=b"], [[1, 0], [0, 1]]),
        (pa.array(["a", "b"]).dictionary_encode(), ["f=a", "f=b"], [[1, 0], [0, 1]]),
        (pa.array([1.0, None]), ["f", "f missing"], [[1, 0], [1, 1]]),
        (pa.array([True, False]), ["f"], [[1], [0]]),
        (pa.array([datetime.date(1970, 1, 2), None]), ["f", "f missing"], [[1, 0], [1, 1]]),
        (pa.array([datetime.datetime(1970, 1, 2, 12)] * 2), ["f"], [[1.5], [1.5]]),
    ],
    ids=["text", "dictionary", "null", "boolean", "date", "time"],
)
def test_parquet_columns_by_their_role(tmp_path, column, names, x):
    pq.write_table(pa.table({"id": ["a", "b"], "f": column}), tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text("a,b\n")
    data = read(tmp_path, None)
    assert (data.feature_names, data.x.tolist()) == (names, x)


def test_parquet_rows_that_cannot_be_read_are_missed(tmp_path, monkeypatch):
    """A damaged page can end a column, and with it the table, without an error of the reader."""
    pq.write_table(pa.table({"a": ["0", "1"], "b": ["1", "0"]}), tmp_path / "edges.parquet")
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda self, size: iter(()))
    with pytest.raises(InputError, match=r"edges\.parquet is damaged: 0 of 2 rows can be read"):
        read(tmp_path)


def test_parquet_text_comes_back(tmp_path):
    ids = pa.array([" a", "a ", "#b", "1.0"]).dictionary_encode()
    sizes = [
        decimal.Decimal("1.10"),
        decimal.Decimal("1.00"),
        decimal.Decimal("2.00"),
        decimal.Decimal("1.10"),
    ]
    table = pa.table({"id": ids, "label": pa.array(["x ", " x", None, "x "]), "f": sizes})
    pq.write_table(table, tmp_path / "nodes.parquet")
    pq.write_table(pa.table({"a": [" a"], "b": ["1.0"]}), tmp_path / "edges.parquet")
    data = read(tmp_path, None)
    assert data.node_ids == [" a", "a ", "#b", "1.0"]
    assert [data.classes[i] for i in data.y.tolist()][::3] == ["x ", "x "]
    assert data.edge_index.tolist() == [[0, 3], [3, 0]]
