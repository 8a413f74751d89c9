"""Faults 1 to 18: graphs that are wrong, strange or of an unusual form."""

import csv
import json
import resource
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse
import torch

from cli.conftest import CLASSES, write_graph
from cli.runner import call, content, train
from faults.graphs import SPLITS, arrays, as_data, fitted, saved
from lgdgcn.config import model_name
from lgdgcn.errors import LGDWarning
from lgdgcn.nn import VARIANTS, LatentSpace, diversity_loss, knn_graph, space_loss
from models.test_lgd_gcn import network
from models.toy import toy_graph

NO_EDGES = np.zeros((2, 0), dtype=np.int64)


def same(model, other) -> bool:
    """Whether two models say the same of every node, to the bit."""
    return np.array_equal(model.predict_proba(), other.predict_proba())


@contextmanager
def warned(*words: str):
    """Expect one warning for each of these words, and no other but those about scores (45)."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LGDWarning)
        yield
    about_scores = ("nothing was learned", "the kept epoch is", "all nodes have the same")
    messages = [str(warning.message) for warning in caught if warning.category is LGDWarning]
    said = [text for text in messages if not any(words in text for words in about_scores)]
    assert len(said) == len(words), said
    assert all(word in message for word, message in zip(words, said, strict=True)), said


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_fault_01_features_that_are_no_numbers_are_counted_and_placed(tmp_path, value):
    """NaN or infinite features are refused with their count and the first row and column.

    In part: of a csv, tsv or parquet table the first infinite cell is named with line and column,
    but they are not counted. There, NaN is a blank (48).
    """
    x = arrays()["x"]
    x[[3, 5], [2, 0]] = value
    graph = saved(tmp_path / "graph", x=x)
    train(tmp_path / "run", graph=graph).refused("2 values", f"{value} at row 3, column 2")
    table = write_graph(tmp_path / "table")
    lines = (table / "nodes.csv").read_text().splitlines()
    lines[7] = f"n6,1,{value},1,{CLASSES[0]},train"
    (table / "nodes.csv").write_text("\n".join(lines))
    if np.isnan(value):
        return
    train(tmp_path / "run", graph=table).refused("nodes.csv line 8: column 'f2'", f"'{value}'")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("variant", VARIANTS)
def test_fault_02_isolated_nodes_are_fine(variant):
    """Nodes without edges train and get finite output."""
    edges = arrays()["edge_index"]
    graph = as_data(edge_index=edges[:, (edges > 4).all(axis=0)])
    assert np.isfinite(fitted(graph, model=model_name("lgdgcn", variant)).predict_proba()).all()


@pytest.mark.filterwarnings("ignore:all nodes have the same unit")
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("kind", ["zero rows", "zero matrix", "constant column"])
def test_fault_03_features_that_say_nothing_are_fine(kind, variant):
    """Rows or a matrix of zeros and constant columns give finite losses and finite steps."""
    places = {"zero rows": np.s_[:3], "zero matrix": np.s_[:], "constant column": np.s_[:, 0]}
    x = arrays()["x"]
    x[places[kind]] = 7.0 if kind == "constant column" else 0.0
    model = fitted(as_data(x=x), model=model_name("lgdgcn", variant))
    assert np.isfinite(model.predict_proba()).all()
    assert all(p.isfinite().all() for p in model.trained_.model.parameters())


@pytest.mark.parametrize("x", [None, np.zeros((12, 0))], ids=["absent", "no columns"])
def test_fault_04_no_features_names_the_way_out(tmp_path, x):
    """A folder without features gets spectral ones and says so; ``x`` without columns is refused.

    Both name ``--features spectral|degree|identity``, which work.
    """
    graph = saved(tmp_path / "graph", x=x)
    outcome = train(tmp_path / "run", graph=graph, epochs=1)
    if x is None:
        (line,) = outcome.err.splitlines()
        assert "made from the structure" in line
        assert "--features spectral; degree and identity" in line
    else:
        outcome.refused("--features degree or --features identity")
    for kind in ("spectral", "degree", "identity"):
        outcome = train(tmp_path / kind, "--features", kind, graph=graph, epochs=1)
        assert (outcome.code, outcome.err) == (0, "")


def test_fault_05_tiny_graphs_use_fewer_neighbours(tmp_path):
    """No nodes are refused; one node, no edges, N ≤ k and N < M work, with one warning about k.

    The warning is about k alone: a graph without edges that has more than k nodes gets none.
    """
    empty = saved(tmp_path / "0", x=np.zeros((0, 4)), y=np.zeros(0), edge_index=NO_EDGES)
    train(tmp_path / "run", graph=empty).refused("no nodes")
    masks = dict(zip(SPLITS, np.eye(3, dtype=bool), strict=True))
    masks["train_mask"][:] = [True, True, False]
    masks["val_mask"][:] = False
    three = saved(
        tmp_path / "3", x=arrays()["x"][:3], y=np.array([0, 1, 1]), edge_index=NO_EDGES, **masks
    )
    more = ["--set", "factors=4", "--set", "hidden_channels=8"]
    assert train(tmp_path / "ours", *more, graph=three, epochs=2).code == 0
    more += ["--set", "k=9", "--model", "lgdgcn-paper"]
    outcome = train(tmp_path / "run", *more, graph=three, epochs=2)
    assert outcome.code == 0
    assert outcome.err.count("k is 9, but there are only 3 nodes: using k = 2") == 1
    nothing = dict.fromkeys((*SPLITS, "y"))
    one = saved(tmp_path / "1", x=arrays()["x"][:1], edge_index=NO_EDGES, **nothing)
    outcome = call("predict", tmp_path / "run", "--graph", one, "--out", tmp_path / "p.csv")
    assert outcome.code == 0
    assert outcome.err.count("using k = 0") == 1
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 2


def test_fault_06_directed_edges_are_made_undirected():
    """Directed edges give one warning and the result of the symmetrised graph.

    An edge list, which names every edge once, gives the same without a warning.
    """
    edges = arrays()["edge_index"]
    with warned("directed: made undirected"):
        model = fitted(as_data(edge_index=edges[:, :14]))  # two of them in both directions
    assert same(model, fitted(as_data()))
    with warned():
        model = fitted(as_data(edge_index=edges[:, :12]))
    assert same(model, fitted(as_data()))


def test_fault_07_duplicates_and_self_loops_change_nothing():
    """Edges given twice and self loops give the result of the coalesced graph."""
    edges = arrays()["edge_index"]
    loops = np.array([[0, 5, 5], [0, 5, 5]])
    junk = np.concatenate([edges, loops, edges[:, ::3], edges[::-1]], axis=1)
    with warned():
        model = fitted(as_data(edge_index=junk))
    assert same(model, fitted(as_data()))


@pytest.mark.parametrize("value", [-1, 12, 1.5, np.nan])
def test_fault_08_edge_ids_are_checked_before_device_work(tmp_path, monkeypatch, value):
    """A negative, too large, fractional or NaN edge id is refused before any device work."""
    edges = arrays()["edge_index"].astype(type(value))
    edges[1, 4] = value
    monkeypatch.setattr("lgdgcn.cli.train_nodes.fit", None)  # no way to a device
    graph = saved(tmp_path / "graph", edge_index=edges)
    train(tmp_path / "run", graph=graph).refused(f"edge_index[1, 4] = {value}", "correct this edge")
    assert not (tmp_path / "run").exists()


def test_fault_09_int32_edges_and_text_ids(mine, tmp_path):
    """Edges in int32 are fine, and ids that are text come back on output."""
    edges = arrays()["edge_index"].astype(np.int32)
    assert same(fitted(as_data(edge_index=edges)), fitted(as_data()))

    graph, run, _ = mine
    assert call("predict", run, "--out", tmp_path / "p.csv").code == 0
    files = graph / "nodes.csv", tmp_path / "p.csv", tmp_path / "p-edges.csv"
    given, nodes, ends = ([*csv.DictReader(file.open(newline=""))] for file in files)
    names = [row["id"] for row in given]
    assert [row["node"].removeprefix("'") for row in nodes] == names  # ' guards a formula
    found = {row[end].removeprefix("'") for row in ends for end in ("source", "target")}
    assert found == set(names)


@pytest.mark.parametrize("bad", ["c", "c,nobody"], ids=["one cell", "unknown node"])
def test_fault_10_a_bad_line_of_an_edge_list_is_named(tmp_path, bad):
    """Header, comments, CRLF, BOM, blank lines, a third column and .gz: read, or a line number.

    That they are read: ``edge-list-dialects`` and others of the tables in ``tests/golden``.
    """
    (tmp_path / "nodes.csv").write_text("id,f,label\na,1,x\nb,2,y\nc,3,x\n")
    (tmp_path / "edges.csv").write_text(f"# made by hand\nsource,target\na,b\n\n{bad}\n")
    train(tmp_path / "run", graph=tmp_path).refused("edges.csv line 5")


def test_fault_11_labels_of_every_kind(tmp_path):
    """A class missing from train warns; one class and real values are refused; the rest works.

    Unlabelled nodes (-1, NaN) stay out of loss and metrics, gaps and text are mapped and mapped
    back, and a 0/1 matrix means several labels per node.
    """
    y, masks = arrays()["y"], {split: arrays()[split] for split in SPLITS}
    with warned("1 of 3 classes have no node in the train split (2)"):
        fitted(as_data(y=np.where(masks["train_mask"] & (y == 2), 1, y)))
    for name, labels in (("single class", y * 0), ("real-valued", y + 0.5)):
        train(tmp_path / "run", graph=saved(tmp_path / name, y=labels)).refused(name)

    known = np.isin(np.arange(12), [0, 7], invert=True)  # a training and a test node are not
    fewer = fitted(as_data(**{split: mask & known for split, mask in masks.items()}))
    for missing in (-1, np.nan):
        model = fitted(as_data(y=np.where(known, y, missing)))
        assert same(model, fewer)
        assert model.result_.scores == fewer.result_.scores

    plain = fitted(as_data()).predict()
    for names in (np.array([0, 2, 5]), np.array(["-1 x", "b", "ü"])):
        assert fitted(as_data(y=names[y])).predict().tolist() == names[plain].tolist()
    several = np.eye(3, dtype=int)[y]
    several[:, 0] = 1
    assert fitted(as_data(y=several)).predict().shape == (12, 3)


def test_fault_12_splits_of_every_kind(tmp_path):
    """Overlap, an empty train split and a wrong length are refused; masks and indices are equal.

    An empty validation split warns that there is no early stop; without test nodes the test
    metric is null.
    """
    masks = {split: arrays()[split] for split in SPLITS}
    nothing = np.zeros(12, dtype=bool)
    for name, changes, words in (
        ("overlap", {"val_mask": masks["train_mask"]}, "train and val splits share"),
        ("no train", {"train_mask": nothing}, "train split has no labelled node"),
        ("length", {"train_mask": nothing[:-1]}, "train_mask has 11 entries but x has 12 rows"),
    ):
        train(tmp_path / "run", graph=saved(tmp_path / name, **changes)).refused(words)
    with warned("validation split is empty: no early stop"):
        model = fitted(as_data(val_mask=nothing), epochs=5, patience=1)
    assert model.result_.epochs == 5
    graph = saved(tmp_path / "no test", test_mask=nothing)
    assert train(tmp_path / "run", graph=graph, epochs=1).code == 0
    result = json.loads((tmp_path / "run/result.json").read_text())
    assert result["mean"] is result["runs"][0]["test"] is None
    index = {split.replace("mask", "idx"): np.flatnonzero(mask) for split, mask in masks.items()}
    assert same(fitted(as_data(**dict.fromkeys(SPLITS), **index)), fitted(as_data()))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"y": np.arange(11) % 3}, "y has 11 rows but x has 12"),
        ({"x": np.ones((13, 4))}, "y has 12 rows but x has 13"),
        ({"ids": np.arange(9), "edge_index": NO_EDGES}, "num_nodes is 9 but x has 12 rows"),
    ],
    ids=["y", "x", "ids"],
)
def test_fault_13_row_counts_that_differ_name_both(tmp_path, changes, words):
    """Rows of x or y that are not N are refused with both numbers."""
    train(tmp_path / "run", graph=saved(tmp_path / "graph", **changes)).refused(words)


@pytest.mark.filterwarnings("ignore:all nodes have the same unit")
def test_fault_14_features_of_every_type(monkeypatch):
    """float64 is computed in float64, half precision never in half, sparse is never made dense.

    Half-precision, integer, Boolean and sparse features train like float32 ones.
    """
    x = torch.from_numpy((arrays()["x"] * 4).round())
    # dropout draws for the stored entries of a sparse matrix alone, and only these are scaled
    whole = {"settings": {"input_dropout": 0.0, "scaling": "none"}}
    wanted = fitted(as_data(x=x), **whole).predict_proba()
    assert fitted(as_data(x=x.double())).predict_proba().dtype == np.float64
    sparse = x.to_sparse_csr(), x.to_sparse_coo(), scipy.sparse.coo_matrix(x.numpy())
    for form in (x.half(), x.bfloat16(), x.int(), *sparse):
        found = fitted(as_data(x=form), **whole).predict_proba()
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert same(fitted(as_data(x=x > 2)), fitted(as_data(x=(x > 2).float())))

    units, space = torch.rand(20, 2, 4).half(), LatentSpace(2, 4).half()
    space.update(units)
    assert space.mean.dtype == space.cov.dtype == torch.float32
    for loss in (space_loss, diversity_loss):
        want = loss(units.float(), space.mean, space.cov)
        assert torch.equal(loss(units, space.mean, space.cov), want)
    assert torch.equal(knn_graph(units[:, 0], 3), knn_graph(units[:, 0].float(), 3))

    cells = np.ones(12, np.float32), (np.arange(12), np.arange(12))
    wide = scipy.sparse.csr_matrix(cells, shape=(12, 10**6))
    for owner, name in ((torch.Tensor, "to_dense"), (scipy.sparse.csr_matrix, "toarray")):
        monkeypatch.setattr(owner, name, None)  # to call it would be an error
    assert np.isfinite(fitted(as_data(x=wide), epochs=1).predict_proba()).all()


def test_fault_15_unusual_memory_is_read_and_left_alone(tmp_path):
    """Strided, memory-mapped read-only and gradient-carrying features work and stay unchanged."""
    x, edges = arrays()["x"], torch.from_numpy(arrays()["edge_index"])
    np.save(tmp_path / "x.npy", x)
    forms = [
        torch.from_numpy(np.repeat(x, 2, axis=1))[:, ::2],
        np.load(tmp_path / "x.npy", mmap_mode="r"),
        torch.from_numpy(x.copy()).requires_grad_(),
    ]
    wanted = fitted(as_data())
    for form in forms:
        graph = as_data(x=None, edge_index=edges)
        graph.x = form
        assert same(fitted(graph), wanted)
        assert graph.x is form
        assert np.array_equal(np.array(form.tolist(), np.float32), x)
        assert np.array_equal(edges, arrays()["edge_index"])
    assert forms[-1].grad is None


@contextmanager
def at_most(more: int):
    """Let this process take at most so many bytes more than it has."""
    with open("/proc/self/statm") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_fault_16_a_hub_and_components_fit_into_memory():
    """A hub of degree 100,000 and components apart from it train within 1 GiB.

    Without latent graphs: their exact search among 100,000 nodes takes long, whatever the degrees.
    """
    nodes = 100_004
    spokes = np.stack([np.zeros(100_000, np.int64), np.arange(1, 100_001)])
    apart = np.array([[100_001, 100_002], [100_002, 100_003]])
    edges = np.concatenate([spokes, spokes[::-1], apart, apart[::-1]], axis=1)
    masks = {split: np.arange(nodes) % 3 == i for i, split in enumerate(SPLITS)}
    x = np.random.default_rng(0).random((nodes, 4), dtype=np.float32)
    graph = as_data(x=x, y=np.arange(nodes) % 2, edge_index=edges, **masks)
    # what is compiled and loaded once does not count
    fitted(as_data(), settings={"latent_graph": False})
    with at_most(2**30):
        model = fitted(graph, epochs=1, settings={"latent_graph": False, "views": 1})
    assert np.isfinite(model.predict_proba()).all()


def test_fault_17_channels_and_factors(tmp_path):
    """Channels that the factors do not divide are refused with both; one factor has diversity 0."""
    graph = saved(tmp_path / "graph")
    args = ["--set", "hidden_channels=9", "--set", "factors=4"]
    train(tmp_path / "run", *args, graph=graph).refused("hidden_channels is 9", "4 factors")
    assert "run" not in content(tmp_path)
    one = ["--set", "factors=1", "--model", "lgdgcn-paper"]
    assert train(tmp_path / "run", *one, graph=graph, epochs=2).code == 0
    lines = (tmp_path / "run/metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["diversity"] for line in lines] == [0, 0]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", [0, 1])
def test_fault_18_node_and_edge_order_do_not_matter(seed, variant):
    """Permuted nodes give permuted scores to 1e-5, permuted edges the same scores to 1e-6."""
    data = toy_graph(seed=seed, dtype=torch.float64)
    model = network(seed, variant=variant)
    want = model.disentangle(data.x, data.edge_index)
    order = torch.randperm(36)
    got = model(data.x[order], order.argsort()[data.edge_index])
    torch.testing.assert_close(got, want.logits[order], rtol=0, atol=1e-5)
    order = torch.randperm(data.num_edges)
    other = model.disentangle(data.x, data.edge_index[:, order])
    torch.testing.assert_close(other.logits, want.logits, rtol=0, atol=1e-6)
    for mine, first in zip(other.layers, want.layers, strict=True):
        torch.testing.assert_close(mine.edge_factors, first.edge_factors[order], rtol=0, atol=1e-6)
