import warnings

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data, HeteroData
from torch_geometric.utils import to_undirected

from lgdgcn.data.validate import canonical, fingerprint, with_features
from lgdgcn.errors import InputError, LGDWarning

RING = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])


def graph(**changes):
    """A good graph of six nodes, with changes; ``None`` takes an attribute away."""
    values = {
        "x": torch.arange(12.0).view(6, 2),
        "edge_index": to_undirected(RING),
        "y": torch.tensor([0, 1, 0, 1, 0, 1]),
        "train_idx": [0, 1],
        "val_idx": [2, 3],
        "test_idx": [4, 5],
    } | changes
    return Data(**{key: value for key, value in values.items() if value is not None})


def quiet(data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LGDWarning)
        return canonical(data, **options)


def same(a, b):
    return fingerprint(a) == fingerprint(b)


def test_a_good_graph_is_silent_and_keeps_everything():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = canonical(graph(y_factor=torch.ones(6, 4), name="six", node_ids=list("abcdef")))
    assert torch.equal(data.x, graph().x)
    assert torch.equal(data.edge_index, graph().edge_index)
    assert data.classes == [0, 1]
    assert [int(data[m].sum()) for m in ("train_mask", "val_mask", "test_mask")] == [2, 2, 2]
    assert data.name == "six"
    assert data.node_ids == list("abcdef")
    assert data.y_factor.shape == (6, 4)
    assert "train_idx" not in data


def _big(value=1.0):
    return scipy.sparse.coo_matrix(([value], ([1], [1])), shape=(6, 10**9))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": torch.tensor([[0.0, 1], [2, float("nan")]] * 3)}, "3 values .* row 1, column 1"),
        ({"x": torch.tensor([[0.0, -float("inf")]] * 6)}, "6 values .*-inf at row 0, column 1"),
        ({"x": scipy.sparse.csr_matrix(np.diag([1, 2, np.nan, 4, 5, 6]))}, "row 2, column 2"),
        ({"x": torch.full((6, 2), float("nan")).to_sparse()}, "12 values"),
        ({"x": None}, "--features degree"),
        ({"x": torch.zeros(6, 0)}, "--features degree"),
        ({"x": torch.zeros(0, 3)}, "no nodes"),
        ({"x": torch.zeros(6)}, r"shape \[6\]"),
        ({"x": torch.zeros(6, 2, dtype=torch.complex64)}, "complex64"),
        ({"x": np.array([["a", "b"]] * 6)}, "type"),
        ({"x": [[1.0], [2.0, 3.0]]}, "x "),
        ({"x": torch.zeros(5, 2), "num_nodes": 6}, "num_nodes is 6 but x has 5 rows"),
        ({"x": _big(float("inf"))}, "1 values"),
        ({"y": torch.zeros(5)}, "y has 5 rows but x has 6"),
        ({"y": torch.rand(6)}, "real-valued"),
        ({"y": torch.zeros(6)}, "single class"),
        ({"train_idx": None}, "train split has no labelled node"),
        ({"train_idx": [0, 2]}, "train and val splits share"),
        ({"train_idx": None, "train_mask": torch.ones(5).bool()}, "train_mask has 5 entries"),
        ({"edge_index": torch.tensor([[0, 1], [2, -1]])}, r"edge_index\[1, 1\] = -1 .*0\.\.5"),
        ({"edge_index": torch.tensor([[0, 6], [2, 1]])}, r"edge_index\[0, 1\] = 6 "),
        ({"edge_index": torch.tensor([[0, 1], [2.0, 2.5]])}, r"\[1, 1\] = 2.5 is not an integer"),
        ({"edge_index": torch.tensor([[0, np.nan], [2, 1]])}, r"\[0, 1\] = nan is not an integer"),
        ({"edge_index": torch.tensor([[0.0, 1], [2, 1]])}, r"\[0, 0\] = 0.0 is not an integer"),
        ({"edge_index": torch.zeros(2, 3).bool()}, "bool"),
        ({"edge_index": RING.t()}, r"shape \[6, 2\]; give its transpose"),
        ({"edge_index": torch.zeros(3, 4).long()}, r"shape \[3, 4\]"),
        ({"edge_index": torch.eye(2).to_sparse()}, "sparse"),
        ({"edge_index": torch.tensor(3)}, r"edge_index has shape \[\]; give \[2, E\]"),
        ({"edge_index": np.array(3)}, r"edge_index has shape \[\]; give \[2, E\]"),
        ({"edge_index": 3}, r"edge_index has shape \[\]; give \[2, E\]"),
        ({"edge_index": torch.tensor([3, 4])}, r"edge_index has shape \[2\]; give \[2, E\]"),
        ({"x": torch.tensor(3.0)}, r"x has shape \[\]"),
        ({"y": torch.tensor(3)}, "y has 0 rows but x has 6"),
        ({"train_idx": torch.tensor(3)}, r"train_idx has shape \[\]"),
        ({"edge_index": [["a"], ["b"]]}, "cannot be read"),
        ({"edge_index": None}, "edge_index is missing"),
    ],
)
def test_faults_are_refused_in_one_line(changes, message):
    with pytest.raises(InputError, match=message) as caught:
        quiet(graph(**changes))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("wrong", [None, {}, HeteroData()])
def test_only_data_is_a_graph(wrong):
    with pytest.raises(InputError, match="Data"):
        canonical(wrong)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edge_index": torch.cat([RING, RING[:, :2].flip(0)], 1)}, "made undirected"),
        ({"val_idx": None}, "validation split is empty"),
        ({"train_idx": [0, 4], "test_idx": None}, "1 of 2 classes have no node in the train"),
        ({"train_idx": None, "val_idx": None, "test_idx": None}, "60/20/20"),
        ({"edge_attr": torch.ones(12)}, "edge attributes are not used: edge_attr"),
    ],
)
def test_doubtful_graphs_warn_once(changes, message):
    with pytest.warns(LGDWarning, match=message) as caught:
        data = canonical(graph(**changes))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert torch.equal(data.edge_index, graph().edge_index)


def test_edges_that_are_listed_once_are_no_directed_ones():
    """Whichever end comes first; an edge given twice and loops do not change that."""
    loops_and_twice = torch.tensor([[3, 0], [3, 1]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = canonical(graph(edge_index=torch.cat([RING, loops_and_twice], 1)))
    assert data.listed_once
    assert same(data, canonical(graph()))
    assert "listed_once" not in canonical(graph())


def test_unlabelled_nodes_leave_the_masks():
    data = canonical(graph(y=torch.tensor([0, 1, 0, -1, 0, -1])))
    assert data.val_mask.nonzero().view(-1).tolist() == [2]
    assert data.test_mask.nonzero().view(-1).tolist() == [4]
    with pytest.raises(InputError, match="train split has no labelled node"):
        canonical(graph(y=torch.tensor([-1, -1, 0, 1, 0, 1])))


@pytest.mark.parametrize("y", [None, torch.full((6,), -1)])
def test_a_graph_without_labels(y):
    data = canonical(graph(y=y))
    assert data.y.tolist() == [-1] * 6
    assert data.classes == []
    assert not data.train_mask.any()
    assert same(canonical(data), data)
    with pytest.raises(InputError, match="training needs labels"):
        canonical(graph(y=y), require_labels=True)


def test_for_prediction_poor_labels_are_fine():
    poor = graph(y=torch.tensor([0, -1, -1, -1, -1, -1]), train_idx=None, val_idx=None)
    data = canonical(poor, require_labels=False)
    assert data.classes == [0]


def test_one_node_and_no_edges():
    for empty in (torch.empty(2, 0), torch.empty(2, 0).long(), torch.zeros(2, 1).long()):
        data = canonical(Data(x=torch.ones(1, 1), edge_index=empty))
        assert data.edge_index.shape == (2, 0)
        assert data.edge_index.dtype == torch.int64


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (torch.float64, torch.float64),
        (torch.float32, torch.float32),
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.int64, torch.float32),
        (torch.uint8, torch.float32),
        (torch.bool, torch.float32),
    ],
)
@pytest.mark.parametrize("layout", ["dense", "coo", "csr", "csc", "numpy", "scipy"])
def test_feature_types_and_layouts(dtype, expected, layout):
    dense = torch.eye(6)[:, :4].to(dtype)
    if dtype == torch.bfloat16 and layout in ("numpy", "scipy"):
        pytest.skip("numpy has no bfloat16")
    if dtype == torch.float16 and layout == "scipy":
        pytest.skip("scipy has no float16")
    x = {
        "dense": lambda: dense,
        "coo": dense.to_sparse_coo,
        "csr": dense.to_sparse_csr,
        "csc": dense.to_sparse_csc,
        "numpy": dense.numpy,
        "scipy": lambda: scipy.sparse.csc_array(dense.numpy()),
    }[layout]()
    data = canonical(graph(x=x))
    assert data.x.dtype == expected
    assert data.x.layout == (torch.strided if layout in ("dense", "numpy") else torch.sparse_csr)
    assert torch.equal(data.x.to_dense(), dense.to(expected))
    assert same(canonical(data), data)


def test_sparse_duplicates_are_summed_and_the_input_kept():
    parts = (np.array([1.0, 2.0, 0.0]), np.array([3, 3, 1]), np.array([0, 3, 3, 3, 3, 3, 3]))
    x = scipy.sparse.csr_matrix(parts, shape=(6, 4))
    data = canonical(graph(x=x))
    assert data.x.values().tolist() == [3.0]
    assert x.data.tolist() == [1.0, 2.0, 0.0]


@pytest.mark.parametrize("kind", ["scipy", "torch"])
def test_a_large_sparse_matrix_is_never_dense(kind):
    n, d = 200_000, 100_000  # 80 GB if dense
    index, values = np.array([[0, 5, n - 1], [0, 7, d - 1]]), np.ones(3, np.float32)
    if kind == "scipy":
        x = scipy.sparse.coo_matrix((values, index), shape=(n, d))
    else:
        x = torch.sparse_coo_tensor(torch.tensor(index), torch.tensor(values), (n, d))
    data = canonical(Data(x=x, edge_index=torch.tensor([[0, 1], [1, 0]])))
    assert data.x.shape == (n, d)
    assert data.x.values().tolist() == [1, 1, 1]


def test_unusual_memory_is_read_and_left_alone(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(12, dtype=np.float32).reshape(6, 2))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    strided = torch.arange(12.0).view(6, 2).t().contiguous().t()
    learned = torch.arange(12.0).view(6, 2).requires_grad_()
    swapped = mapped.astype(">f4")
    for x in (mapped, strided, learned, swapped):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            data = canonical(graph(x=x, edge_index=to_undirected(RING).int()))
        assert same(data, canonical(graph()))
        assert data.x.is_contiguous()
        assert not data.x.requires_grad
        data.x.zero_()
        data.train_mask.zero_()
        assert x[5, 1].item() == 11
    assert learned.requires_grad


def test_input_data_is_not_changed():
    given_data = graph(edge_index=RING, edge_attr=torch.ones(6))
    before = dict(given_data.to_dict())
    quiet(given_data)
    after = given_data.to_dict()
    assert list(after) == list(before)
    assert all(after[key] is before[key] for key in before)


edges = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=20)


@settings(deadline=None)
@given(edges)
def test_junk_edges_equal_the_clean_ones_and_canonical_is_idempotent(pairs):
    edge_index = torch.tensor(pairs, dtype=torch.int64).view(-1, 2).t()
    clean = sorted({e for a, b in pairs if a != b for e in ((a, b), (b, a))})
    data = quiet(graph(edge_index=torch.cat([edge_index, edge_index[:, :3]], dim=1)))
    assert data.edge_index.t().tolist() == [list(e) for e in clean]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert same(canonical(data), data)


labels = st.one_of(
    st.lists(st.integers(-1, 9), min_size=6, max_size=6),
    st.lists(st.sampled_from(["a", "b", "", "ß"]), min_size=6, max_size=6),
    st.lists(st.lists(st.sampled_from([0.0, 1.0]), min_size=2, max_size=2), min_size=6, max_size=6),
)


@settings(deadline=None)
@given(labels)
def test_canonical_is_idempotent_for_any_labels(y):
    try:
        data = quiet(graph(y=y, train_idx=None, val_idx=None, test_idx=None))
    except InputError as error:
        assert "single class" in str(error)  # noqa: PT017
        return
    again = quiet(data)
    assert same(again, data)
    assert again.classes == data.classes


def test_multi_label_graph():
    y = torch.tensor([[0, 1, 1]] * 5 + [[-1, -1, -1]])
    data = quiet(graph(y=y))
    assert data.y.shape == (6, 3)
    assert data.classes == [0, 1, 2]
    assert data.test_mask.sum() == 1


def test_with_features():
    star = Data(edge_index=torch.tensor([[0, 0, 0, 1], [1, 2, 3, 0]]), num_nodes=5, name="star")
    degree = quiet(with_features(star, "degree"))
    assert degree.x.shape == (5, 17)
    assert degree.x[:, 0].expm1().round().tolist() == [3, 1, 1, 1, 0]
    assert degree.x[:, 1:].argmax(1).tolist() == [2, 1, 1, 1, 0]
    identity = quiet(with_features(star, "identity"))
    assert identity.x.layout == torch.sparse_csr
    assert torch.equal(identity.x.to_dense(), torch.eye(5))
    assert identity.name == "star"
    assert star.x is None
    assert with_features(Data(edge_index=RING, y=["a"] * 7), "identity").x.shape == (7, 7)
    assert with_features(Data(edge_index=RING), "identity").x.shape == (6, 6)


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        (Data(edge_index=RING), "random", "degree or identity"),
        (Data(edge_index=torch.empty(2, 0)), "degree", "no nodes"),
        (Data(edge_index=RING, num_nodes=0), "degree", "0 nodes"),
        (Data(edge_index=RING * 10**12), "degree", "without gaps"),
        (Data(edge_index=-RING, num_nodes=6), "degree", "outside"),
        (Data(), "degree", "edge_index is missing"),
        (Data(edge_index=torch.tensor(3)), "degree", r"edge_index has shape \[\]"),
        (Data(edge_index=RING, x=torch.tensor(3.0)), "degree", "0 nodes"),
    ],
)
def test_with_features_faults(data, kind, message):
    with pytest.raises(InputError, match=message):
        with_features(data, kind)


def test_fingerprint_sees_every_part():
    base = canonical(graph())
    variants = [
        graph(x=torch.arange(12.0).view(6, 2) + 1e-6),
        graph(x=torch.arange(12.0, dtype=torch.float64).view(6, 2)),
        graph(x=torch.arange(12.0).view(6, 2).to_sparse()),
        graph(edge_index=to_undirected(RING[:, 1:])),
        graph(y=torch.tensor([1, 0, 0, 1, 0, 1])),
        graph(y=list("ababab")),
        graph(test_idx=[4]),
    ]
    hashes = {fingerprint(canonical(variant)) for variant in variants} | {fingerprint(base)}
    assert len(hashes) == 8
    assert same(canonical(graph(name="other")), base)
