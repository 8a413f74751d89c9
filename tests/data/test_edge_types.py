"""Types of edges survive whatever is done to the edges."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from lgdgcn.data.edge_types import types_of_cells
from lgdgcn.data.in_memory import from_networkx, from_pandas
from lgdgcn.data.validate import canonical, fingerprint, with_features
from lgdgcn.errors import InputError


def graph(edge_index, edge_type, nodes=6, **more):
    return Data(
        x=torch.eye(nodes), edge_index=torch.tensor(edge_index), edge_type=edge_type, **more
    )


def literal(edge_index, edge_type, edges):
    """Union of the types of every row that lists an edge in either direction."""
    rows = []
    for ends in zip(*edges.tolist(), strict=True):
        row = np.zeros(edge_type.shape[1], np.uint8)
        for listed, types in zip(zip(*edge_index, strict=True), edge_type, strict=True):
            if set(listed) == set(ends):
                row |= types
        rows.append(row.tolist())
    return rows


@pytest.mark.filterwarnings("ignore:edge_index was directed")
@pytest.mark.parametrize("seed", range(5))
def test_types_follow_their_edges_through_sorting_and_merging(seed):
    rng = np.random.default_rng(seed)
    listed = rng.integers(0, 6, (2, 25)).tolist()  # with loops, repeats and both directions
    types = rng.integers(0, 2, (25, 3)).astype(np.uint8)
    data = canonical(graph(listed, types))
    assert data.edge_type.dtype == torch.uint8
    assert data.edge_type.tolist() == literal(listed, types, data.edge_index)
    assert data.edge_type_names == ["0", "1", "2"]
    again = canonical(data)
    assert again.edge_type.equal(data.edge_type)
    assert again.edge_type_names == data.edge_type_names
    assert with_features(data, "degree").edge_type.equal(data.edge_type)


def test_numbers_of_single_types_are_read_as_well():
    data = canonical(graph([[0, 1, 1, 2], [1, 0, 2, 1]], [1, 1, -1, -1]))
    assert data.edge_type.tolist() == [[0, 1], [0, 1], [0, 0], [0, 0]]
    named = canonical(graph([[0, 1], [1, 0]], [0, 0], edge_type_names=["air", "sea", "land"]))
    assert named.edge_type.tolist() == [[1, 0, 0]] * 2
    assert named.edge_type_names == ["air", "sea", "land"]


def test_no_edges_and_no_types():
    empty = torch.zeros(0, 2)
    assert canonical(graph([[], []], empty)).edge_type.shape == (0, 2)
    assert "edge_type" not in canonical(Data(x=torch.eye(2), edge_index=torch.tensor([[0], [1]])))


@pytest.mark.parametrize(
    ("edge_type", "names", "words"),
    [
        ([[1, 0]], None, r"shape \[1, 2\] for 2 edges"),
        (torch.ones(2, 1, 1), None, r"shape \[2, 1, 1\]"),
        ([[1, 2], [0, 1]], None, r"edge_type\[0, 1\] is 2"),
        ([[1, float("nan")], [0, 1]], None, r"edge_type\[0, 1\] is nan"),
        ([0, -2], None, r"edge_type\[1\] is -2"),
        ([0, 5], ["a", "b"], r"edge_type\[1\] is 5; give whole numbers in 0\.\.1"),
        ([0, 10**9], None, r"edge_type\[1\] is 1000000000"),
        ([0.5, 1], None, r"edge_type\[0\] is 0\.5"),
        ("abc", None, "edge_type cannot be read"),
        ([[1, 0], [0, 1]], ["a"], "1 names for 2 types"),
        ([[1, 0], [0, 1]], ["a", "a"], "'a' twice"),
    ],
)
def test_what_cannot_be_a_type(edge_type, names, words):
    with pytest.raises(InputError, match=words):
        canonical(graph([[0, 1], [1, 0]], edge_type, edge_type_names=names))


def test_types_are_no_part_of_what_today_s_models_train_on():
    pair = [[0, 1], [1, 0]]
    plain = Data(x=torch.eye(6), edge_index=torch.tensor(pair))
    assert fingerprint(canonical(graph(pair, [1, 1]))) == fingerprint(canonical(plain))


def test_types_of_a_networkx_graph():
    networkx = pytest.importorskip("networkx")
    made = networkx.Graph()
    made.add_nodes_from("xyz", a=1.0)
    made.add_edge("x", "y", type=["bus", "train"])
    made.add_edge("y", "z")
    data = from_networkx(made)
    assert data.edge_type_names == ["bus", "train"]
    assert data.edge_type.tolist() == [[1, 1], [1, 1], [0, 0], [0, 0]]


def test_types_of_a_pandas_table():
    pandas = pytest.importorskip("pandas")
    nodes = pandas.DataFrame({"id": ["x", "y", "z"], "a": [1.0, 2.0, 3.0]})
    edges = pandas.DataFrame({"source": ["x", "y"], "target": ["y", "z"], "type": ["bus", None]})
    data = from_pandas(nodes, edges)
    assert data.edge_type.tolist() == [[1], [1], [0], [0]]


def test_words_for_nothing_are_no_types():
    found = types_of_cells(["bus", "NA", "n/a; bus", "?", "nan"], np.arange(5))
    assert found is not None
    assert found[1] == ["bus"]
    assert found[0].ravel().tolist() == [1, 0, 1, 0, 0]
