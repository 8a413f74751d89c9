"""Edges in one form, with their weights."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from lgdgcn.data.edges import undirected_edges
from lgdgcn.data.user_graph import read_graph
from lgdgcn.data.validate import canonical, fingerprint
from lgdgcn.errors import InputError

NODES = "id,f\na,1\nb,2\nc,3\n"


def test_weights_of_repeated_edges_are_added_and_of_directions_averaged():
    edges = torch.tensor([[0, 0, 1, 1, 2], [1, 1, 0, 2, 2]])
    found, weight, one_way = undirected_edges(edges, 3, [1.0, 2.0, 5.0, 7.0, 9.0])
    assert found.t().tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert weight.tolist() == [4, 4, 7, 7]
    assert one_way == 1


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        ([1.0], "1 entries for 2 edges"),
        ([1.0, 0.0], r"edge_weight\[1\] is 0.0"),
        ([1.0, np.inf], "is inf"),
        ([np.nan, 1.0], "is nan"),
        (["a", "b"], "cannot be read"),
    ],
)
def test_weights_that_are_none(weight, words):
    with pytest.raises(InputError, match=words):
        canonical(Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1], [1, 0]]),
                       edge_weight=weight))  # fmt: skip


def read(folder, edges):
    (folder / "nodes.csv").write_text(NODES)
    (folder / "edges.csv").write_text(edges)
    return read_graph(folder, require_labels=False)


def test_edges_listed_once_are_a_normal_list(tmp_path, recwarn):
    data = read(tmp_path, "source,target\na,b\nc,b\n")
    assert not len(recwarn)
    assert data.listed_once
    both = read(tmp_path, "source,target\na,b\nb,a\nc,b\nb,c\n")
    assert "listed_once" not in both
    assert fingerprint(data) == fingerprint(both)


def test_weights_are_part_of_the_graph(tmp_path):
    plain = fingerprint(read(tmp_path, "source,target\na,b\nc,b\n"))
    weighed = fingerprint(read(tmp_path, "source,target,weight\na,b,1\nc,b,2\n"))
    assert plain != weighed
