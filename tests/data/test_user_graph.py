import gzip
import io
import pickle
import sys
import time
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgdgcn.data.spectral import SPECTRAL_NAMES
from lgdgcn.data.tables import find_table
from lgdgcn.data.user_graph import column_summaries, read_graph
from lgdgcn.data.validate import fingerprint
from lgdgcn.errors import InputError, LGDWarning

NODES = """id,label,split,f1,f2
ann,x,train,1,0.5
bob,y,train,0,1e-3
cat,x,val,-2,3
dan,,test,4,5
eve,y,test,0,0
"""
EDGES = "source,target\nann,bob\nbob,ann\nbob,cat\ncat,dan\n"
PAIRS = [[0, 1], [1, 0], [1, 2], [2, 1], [2, 3], [3, 2]]


@pytest.fixture
def write(tmp_path):
    """A function that writes files into one folder and returns it."""

    def files(**contents):
        for name, content in ({"edges_csv": EDGES, "nodes_csv": NODES} | contents).items():
            if content is not None:
                data = content.encode() if isinstance(content, str) else content
                (tmp_path / name.replace("_", ".")).write_bytes(data)
        return tmp_path

    return files


def read(folder, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LGDWarning)
        return read_graph(folder, **options)


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def parquet(**columns):
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


def test_a_csv_folder(write):
    data = read(write())
    assert data.node_ids == ["ann", "bob", "cat", "dan", "eve"]
    assert data.classes == ["x", "y"]
    assert data.y.tolist() == [0, 1, 0, -1, 1]
    assert data.x.dtype == torch.float32
    assert data.x[2].tolist() == [-2, 3]
    assert data.edge_index.t().tolist() == PAIRS
    assert data.test_mask.nonzero().view(-1).tolist() == [4]  # dan has no label
    assert data.name == write().name


@pytest.mark.parametrize(
    "edges",
    [
        "ann,bob\nbob,cat\ncat,dan\n",
        '\ufeff# note, "this\r\n  # that\r\n\r\nsource,target\r\nann,bob\r\n\r\nbob,cat\r\ncat,dan',
        "from,to,weight\nann,bob,1\nbob,cat,2\ncat,dan,.5\n",
        "weight,Target,Source\n1,bob,ann\n1,cat,bob\n1,dan,cat\n",
        "who,whom\nann,bob\nbob,cat\ncat,dan\n",
        ' ann , bob\n"bob","cat"\ncat,   dan\nann,ann\n',
    ],
)
def test_edge_list_dialects(write, edges):
    assert read(write(edges_csv=edges)).edge_index.t().tolist() == PAIRS


def test_compressed_and_tab_separated_files(write, tmp_path):
    expected = fingerprint(read(write()))
    for name, content in {
        "edges.csv.gz": gzip.compress(EDGES.encode()),
        "edges.tsv": EDGES.replace(",", "\t").encode(),
        "edges.tsv.gz": gzip.compress(EDGES.replace(",", "  ").encode()),
    }.items():
        for old in tmp_path.glob("edges*"):
            old.unlink()
        (tmp_path / name).write_bytes(content)
        assert fingerprint(read(tmp_path)) == expected
    (tmp_path / "nodes.csv").unlink()
    (tmp_path / "nodes.tsv").write_text(NODES.replace(",", "\t"))
    assert fingerprint(read(tmp_path)) == expected


def test_parquet_equals_csv(write):
    expected = read(write())
    nodes = parquet(
        id=["ann", "bob", "cat", "dan", "eve"],
        label=["x", "y", "x", None, "y"],
        split=["train", "train", "val", "test", "test"],
        f1=[1, 0, -2, 4, 0],
        f2=[0.5, 1e-3, 3, 5, 0],
    )
    edges = parquet(a=["ann", "bob", "bob", "cat"], b=["bob", "ann", "cat", "dan"])
    folder = write()
    (folder / "edges.csv").unlink()
    (folder / "nodes.csv").unlink()
    data = read(write(edges_csv=None, nodes_csv=None, edges_parquet=edges, nodes_parquet=nodes))
    assert fingerprint(data) == fingerprint(expected)
    assert data.node_ids == expected.node_ids


def test_parquet_without_pyarrow_names_the_extra(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    folder = write(edges_csv=None, edges_parquet=b"")
    with pytest.raises(InputError, match=r"pip install 'lgdgcn\[parquet\]'"):
        read(folder)


def test_npz_dense_and_sparse(write):
    x = scipy.sparse.random(5, 9, 0.4, "csr", dtype=np.float64, random_state=0)
    shared = {"y": np.array([0, 2, 0, -1, 2]), "train_idx": [0, 1], "val_idx": [2]}
    csr = {"x_data": x.data, "x_indices": x.indices, "x_indptr": x.indptr, "x_shape": x.shape}
    edges = npz(edge_index=np.array([[0, 1, 2], [1, 2, 3]], dtype=np.int32))
    names = np.array(["ann", "bob", "cat", "dan", "eve"])
    folder = write(edges_csv=None, nodes_csv=None, edges_npz=edges)
    (folder / "nodes.npz").write_bytes(npz(**csr, **shared, ids=names))
    sparse = read(folder)
    (folder / "nodes.npz").write_bytes(npz(x=x.toarray(), **shared))
    dense = read(folder)
    assert torch.equal(sparse.x.to_dense(), dense.x)
    assert sparse.x.dtype == torch.float64
    assert sparse.edge_index.t().tolist() == PAIRS
    assert sparse.classes == [0, 2]
    assert sparse.node_ids == names.tolist()
    assert dense.node_ids == ["0", "1", "2", "3", "4"]
    (folder / "edges.npz").unlink()
    (folder / "edges.csv").write_text("0,1\n1,2\n2,3\n")
    assert fingerprint(read(folder)) == fingerprint(dense)


class Payload:
    def __init__(self, marker):
        self.marker = str(marker)

    def __reduce__(self):
        return (open, (self.marker, "w"))


@pytest.mark.parametrize("name", ["edges.npz", "nodes.npz"])
@pytest.mark.parametrize("kind", ["array", "pickle"])
def test_a_pickle_payload_never_runs(write, tmp_path, name, kind):
    marker = tmp_path / "marker"
    folder = write()
    (folder / name.replace("npz", "csv")).unlink()
    if kind == "array":
        payload = np.array([Payload(marker)], dtype=object)
        np.savez(folder / name, x=payload, edge_index=payload)
    else:
        (folder / name).write_bytes(pickle.dumps(Payload(marker)))
    with pytest.raises(InputError, match=name):
        read(folder)
    assert not marker.exists()


@pytest.mark.parametrize(
    ("labels", "numbers", "classes"),
    [
        ("5,2,,5,-1", [1, 0, -1, 1, -1], [2, 5]),
        ("1.0,0.0,,1.0,nan", [1, 0, -1, 1, -1], ["0.0", "1.0"]),
        ("007,010,,007,", [0, 1, -1, 0, -1], ["007", "010"]),
        ("=cmd(),</script>,,=cmd(),", [1, 0, -1, 1, -1], ["</script>", "=cmd()"]),
    ],
)
def test_labels_are_mapped_and_kept(write, labels, numbers, classes):
    rows = "".join(f"{i},{label}\n" for i, label in enumerate(labels.split(",")))
    data = read(write(nodes_csv="node,class\n" + rows, edges_csv="0,1\n"), features="degree")
    assert data.y.tolist() == numbers
    assert data.classes == classes


def test_several_label_columns_are_multi_label(write):
    nodes = "name,label:red,label_big,y\na,1,0,2.5\nb,0,1,3\nc,,,4\n"
    data = read(write(nodes_csv=nodes, edges_csv="a,b\n"))
    assert data.classes == ["red", "big"]
    assert data.y[:2].tolist() == [[1, 0], [0, 1]]
    assert data.y[2].isnan().all()
    assert data.x.view(-1).tolist() == [2.5, 3, 4]  # y is a feature beside label columns


def test_without_an_id_column_rows_count_from_zero(write):
    data = read(write(nodes_csv="label,f\na,1\nb,2\n", edges_csv="src,dst\n0,1\n"))
    assert data.node_ids == ["0", "1"]
    assert data.edge_index.tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("edges", "ids"),
    [
        ("x,y\n10,7\n7,3\n", ["10", "7", "3"]),
        ("u,v\nb,a\n", ["b", "a"]),
        ("b,a\na,c\n", ["b", "a", "c"]),
    ],
)
def test_without_a_nodes_file(write, edges, ids):
    folder = write(nodes_csv=None, edges_csv=edges)
    with pytest.raises(InputError, match=r"no nodes file; add nodes\.csv"):
        read(folder)
    with pytest.warns(LGDWarning, match="no features: they are made from the structure"):
        assert read_graph(folder, require_labels=False).feature_names == SPECTRAL_NAMES
    data = read(folder, features="identity", require_labels=False)
    assert data.node_ids == ids
    assert data.x.shape == (len(ids), len(ids))


def test_npz_edges_alone(write):
    edges = npz(edge_index=np.array([[0, 1], [1, 3]]))
    data = read(
        write(nodes_csv=None, edges_csv=None, edges_npz=edges), features="degree", require_labels=0
    )
    assert data.node_ids == ["0", "1", "2", "3"]


@pytest.mark.filterwarnings("ignore::lgdgcn.errors.LGDWarning")
def test_warnings(write):
    with pytest.warns(LGDWarning, match="beyond source and target are ignored"):
        read_graph(write(edges_csv="ann,bob,2\nbob,ann,2\n"))
    with pytest.warns(LGDWarning, match="'who' and 'whom' are taken as a header, since neither"):
        read_graph(write(edges_csv="who,whom\nann,bob\n"))
    with pytest.warns(LGDWarning, match="60/20/20"):
        read_graph(write(nodes_csv="id,label,f\nann,1,1\nbob,2,2\n", edges_csv="ann,bob\n"))


def _nodes(line, header="id,label,f1"):
    return f"# people\n{header}\nann,x,1\n{line}\n"


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ({"edges_csv": "ann,bob\n\nann\n"}, r"edges\.csv line 3: 1 cells \('ann'\)"),
        ({"edges_csv": "ann,bob\nann,\n"}, r"edges\.csv line 2: .*needs a source and a target"),
        ({"edges_csv": "# who\nann,bob\n\nann,zoe\n"}, r"edges\.csv line 4: unknown node 'zoe'"),
        ({"edges_csv": "ann,zoe\n"}, r"edges\.csv line 1: unknown node 'zoe'"),
        ({"edges_csv": "7,8\n"}, r"edges\.csv line 1: unknown node '7'"),
        ({"edges_csv": 'ann,bob\n"ann,bob\n'}, r"edges\.csv line 2: not valid csv"),
        ({"edges_csv": "ann,bob\n" + "x" * 200_000}, r"edges\.csv line 2: not valid csv"),
        ({"edges_csv": b"ann,bob\nan\xff,bob\n"}, r"edges\.csv is not UTF-8"),
        ({"edges_csv": EDGES.encode("utf-16")}, r"edges\.csv is not UTF-8"),
        ({"edges_csv": None, "edges_csv_gz": b"no"}, r"edges\.csv\.gz cannot be read"),
        ({"edges_csv": None}, "no edges file; add one of edges.csv"),
        ({"edges_tsv": EDGES}, r"edges\.csv and edges\.tsv; keep one"),
        ({"nodes_npz": b""}, r"nodes\.csv and nodes\.npz; keep one"),
        ({"edges_csv": None, "edges_npz": b"junk"}, r"edges\.npz cannot be read"),
        ({"edges_csv": None, "edges_npz": npz(e=1)}, r"\['e'\] but no edge_index"),
        ({"edges_csv": None, "edges_npz": npz(edge_index=[[0], [9]])}, r"edge_index\[1, 0\] = 9"),
        ({"edges_csv": None, "edges_parquet": b"junk"}, r"edges\.parquet cannot be read"),
        ({"edges_csv": None, "edges_parquet": parquet(a=["ann"], b=["?"])}, "row 1: unknown"),
        ({"nodes_csv": _nodes("bob,y,-inf")}, r"nodes\.csv line 4: column 'f1' holds '-inf'"),
        ({"nodes_csv": _nodes("bob,y,1e99")}, r"nodes\.csv line 4: column 'f1' holds '1e99'"),
        ({"nodes_csv": _nodes("bob,y")}, r"nodes\.csv line 4: 2 cells but 3 columns"),
        ({"nodes_csv": _nodes("ann,y,2")}, r"line 4: id 'ann' is already on line 3"),
        ({"nodes_csv": _nodes(",y,2")}, "line 4: the id is empty"),
        ({"nodes_csv": _nodes("bob,y,2", "id,split,f1")}, "line 3: split is 'x'; use train"),
        ({"nodes_csv": _nodes("bob,y,2", "id,label:a,f1")}, "'label:a' holds 'x'; use 0, 1"),
        ({"nodes_csv": _nodes("bob,y,2", "id,label,label_a")}, "both 'label' and 'label_a'"),
        ({"nodes_csv": _nodes("bob,y,2", "id,f1,f1")}, "two columns are named 'f1'"),
        ({"nodes_csv": _nodes("bob,y,2", "id,label,ID")}, "both 'id' and 'ID'; rename one"),
        ({"nodes_csv": "1,2,3\n4,5,6\n"}, "line 1: no column names"),
        ({"nodes_csv": ""}, "line 1: no column names"),
        ({"nodes_csv": "id,label,f\n", "edges_csv": ""}, "no nodes"),
        ({"nodes_csv": "id,label\nann,x\nbob,y\n", "edges_csv": ""}, "neither features nor edges"),
        (
            {"nodes_csv": "id,f\nann,1\nbob,2\n", "edges_csv": ""},
            "has no labels; call",
        ),
        ({"nodes_csv": "id,label,f\nann,.5,1\nbob,2,2\n", "edges_csv": ""}, "real-valued"),
        ({"nodes_csv": None, "nodes_npz": npz(z=1)}, "none of x, y, ids"),
        ({"nodes_csv": None, "nodes_npz": npz(x_data=[1.0])}, "no x_indices"),
        ({"nodes_csv": None, "nodes_npz": npz(ids=["a", "a"])}, "'a' is already"),
        ({"nodes_csv": None, "nodes_npz": npz(ids=[0.5])}, "ids has shape"),
    ],
)
def test_faults_name_the_place(write, tmp_path, contents, message):
    folder = write(**{k: v for k, v in contents.items() if k != "edges_csv_gz"})
    if "edges_csv_gz" in contents:
        (tmp_path / "edges.csv.gz").write_bytes(contents["edges_csv_gz"])
    with pytest.raises(InputError, match=message) as caught:
        read(folder)
    assert "\n" not in str(caught.value)


def test_bad_csr_parts(write):
    parts = {"x_data": [1.0], "x_indices": [5], "x_indptr": [0, 1], "x_shape": [1, 2]}
    odd = {"x_indices": [1], "x_shape": [1.5, 2.5]}
    for change in ({}, {"x_indptr": [0, 9]}, {"x_shape": [1]}, {"x_indices": [0.5]}, odd):
        with pytest.raises(InputError):
            read(write(nodes_csv=None, edges_csv="0,0\n", nodes_npz=npz(**parts | change)))


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
            read(tmp_path / name)
    assert find_table(tmp_path, "nodes") is None


def test_a_million_edges_take_seconds(write):
    ends = np.random.default_rng(0).integers(0, 1000, (1_000_000, 2))
    lines = "\n".join(f"{a},{b}" for a, b in ends.tolist())
    nodes = "id,label,f\n" + "".join(f"{i},{i % 2},1\n" for i in range(1000))
    folder = write(edges_csv=lines, nodes_csv=nodes)
    start = time.perf_counter()
    read(folder)
    assert time.perf_counter() - start < 20


junk = st.lists(
    st.tuples(st.integers(0, 300), st.one_of(st.binary(max_size=3), st.just(b"\n"), st.just(b'"'))),
    max_size=8,
)


@pytest.mark.parametrize("name", ["edges.csv", "nodes.csv", "edges.tsv", "edges.csv.gz"])
@settings(max_examples=80, deadline=None)
@given(junk=junk)
def test_mutated_text_is_read_or_refused(tmp_path_factory, name, junk):
    _mutate(tmp_path_factory, name, junk)


@pytest.mark.parametrize("name", ["edges.npz", "nodes.npz", "edges.parquet"])
@settings(max_examples=60, deadline=None)
@given(
    junk=st.lists(st.tuples(st.integers(0, 2000), st.binary(min_size=1, max_size=2)), max_size=6)
)
def test_mutated_binaries_are_read_or_refused(tmp_path_factory, name, junk):
    _mutate(tmp_path_factory, name, junk)


def _mutate(tmp_path_factory, name, junk):
    folder = tmp_path_factory.mktemp("fuzz")
    content = {
        "edges.csv": EDGES.encode(),
        "edges.tsv": EDGES.replace(",", " ").encode(),
        "edges.csv.gz": gzip.compress(EDGES.encode(), mtime=0),
        "nodes.csv": NODES.encode(),
        "edges.npz": npz(edge_index=np.array([[0, 1], [1, 2]])),
        "nodes.npz": npz(x=np.eye(5), y=np.array([0, 1, 0, 1, 2])),
        "edges.parquet": parquet(source=["ann", "bob"], target=["bob", "cat"]),
    }[name]
    for place, piece in junk:
        place %= len(content)
        content = content[:place] + piece + content[place + len(piece) // 2 :]
    (folder / name).write_bytes(content)
    if not name.startswith("edges"):
        (folder / "edges.csv").write_text("0,1\n" if name == "nodes.npz" else EDGES)
    else:
        (folder / "nodes.csv").write_text(NODES)
    try:
        data = read(folder)
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017
        return
    assert data.x.shape[0] == len(data.node_ids) == len(data.y)
    assert data.edge_index.numel() == 0 or int(data.edge_index.max()) < data.x.shape[0]
    assert data.train_mask.any()


def test_a_column_without_a_name_is_refused(tmp_path):
    (tmp_path / "edges.csv").write_text("a,b\n")
    (tmp_path / "nodes.csv").write_text("id,,label,size\na,0,x,1\nb,1,y,2\n")
    with pytest.raises(InputError, match=r"column 2 has no name.*without its index"):
        read_graph(tmp_path)


def test_unpacked_size_of_arrays_is_bounded(tmp_path, monkeypatch):
    np.savez(tmp_path / "edges.npz", edge_index=np.zeros((2, 1), np.int64))
    np.savez_compressed(tmp_path / "nodes.npz", x=np.zeros((2, 100_000)), y=np.arange(2))
    monkeypatch.setattr("lgdgcn.data.tables.MAX_BYTES", 10**5)
    with pytest.raises(InputError, match="unpacked"):
        read_graph(tmp_path)


def test_feature_columns_keep_their_names(tmp_path):
    (tmp_path / "nodes.csv").write_text("b,id,a,label,split\n1,x,2,p,train\n3,y,4,q,train\n")
    (tmp_path / "edges.csv").write_text("x,y\ny,x\n")
    graph = read_graph(tmp_path)
    assert graph.feature_names == ["b", "a"]
    assert graph.x.tolist() == [[1, 2], [3, 4]]
    assert "feature_names" not in read_graph(tmp_path, features="degree")
    assert "feature_names" not in read_graph(tmp_path, features="identity")


def test_indices_of_sparse_features_are_whole_numbers(tmp_path):
    arrays = {
        "x_data": np.ones(2),
        "x_indices": np.zeros(2, int),
        "x_indptr": np.arange(3).astype(complex),
        "x_shape": np.array([2, 1]),
        "y": np.array([0, 1]),
    }
    np.savez(tmp_path / "nodes.npz", **arrays)
    np.savez(tmp_path / "edges.npz", edge_index=np.array([[0], [1]]))
    with pytest.raises(InputError, match="x_indptr has type complex128, not whole numbers"):
        read_graph(tmp_path)


def test_one_column_of_labels_is_a_label_not_two_classes(tmp_path):
    rows = "".join(f"n{i},{i % 2},{i}\n" for i in range(6))
    (tmp_path / "nodes.csv").write_text("id,label:urgent,f\n" + rows)
    (tmp_path / "edges.csv").write_text("source,target\nn0,n1\n")
    data = read_graph(tmp_path)
    assert data.classes == ["urgent"]
    assert data.y.tolist() == [[0.0], [1.0]] * 3


def test_a_split_of_blanks_is_no_split(tmp_path):
    rows = "".join(
        f"n{i},{i % 2},{i},{split}\n" for i, split in enumerate([" train ", "val", "  "])
    )
    (tmp_path / "nodes.csv").write_text("id,label,f,split\n" + rows)
    (tmp_path / "edges.csv").write_text("source,target\nn0,n1\n")
    data = read_graph(tmp_path)
    assert [data.train_mask.tolist(), data.val_mask.tolist()] == [
        [True, False, False],
        [False, True, False],
    ]


def test_a_few_nodes_that_are_not_there_do_not_hide_the_id(tmp_path):
    rows = "".join(f"Anna,u{i},{i % 2},{i}\n" for i in range(30))
    (tmp_path / "nodes.csv").write_text("name,user,label,f\n" + rows)
    edges = "".join(f"u{i},u{i + 1}\n" for i in range(30))
    (tmp_path / "edges.csv").write_text("source,target\n" + edges)
    with (
        pytest.warns(LGDWarning, match="column 'user' is taken as the id"),
        pytest.raises(InputError, match=r"line 31: unknown node 'u30'"),
    ):
        read_graph(tmp_path)
    (tmp_path / "nodes.csv").write_text("name,user,label,f\n" + rows + "Bob,u30,1,2\n")
    found = {c.name: c.role for c in column_summaries(tmp_path, {})}
    assert found == {"name": "category", "user": "id", "label": "label", "f": "number"}


def test_words_for_splits(tmp_path):
    words = ("Training", "TRAIN", " Validation", "valid", "dev", "Testing", "test ", "")
    rows = "".join(f"n{i},{i % 2},{i},{split}\n" for i, split in enumerate(words))
    (tmp_path / "nodes.csv").write_text("id,label,f,split\n" + rows)
    (tmp_path / "edges.csv").write_text("source,target\nn0,n1\n")
    data = read_graph(tmp_path)
    masks = (data.train_mask, data.val_mask, data.test_mask)
    assert [mask.nonzero().flatten().tolist() for mask in masks] == [[0, 1], [2, 3, 4], [5, 6]]


def test_a_link_to_nowhere_is_no_missing_table(tmp_path):
    (tmp_path / "edges.csv").write_text("a,b\n")
    (tmp_path / "nodes.csv").symlink_to(tmp_path / "gone.csv")
    with pytest.raises(InputError, match=r"nodes\.csv is not a file"):
        read_graph(tmp_path, require_labels=False)
