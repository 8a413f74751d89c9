"""Edges in one form, with their weights."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from lgdgcn.data.edges import undirected_edges
from lgdgcn.data.user_graph import read_graph
from lgdgcn.data.validate import canonical, fingerprint
from lgdgcn.errors import InputError, LGDNote, LGDWarning

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


@pytest.mark.parametrize("header", ["source,target,weight", "Weight,to,from", "u,WEIGHT,v"])
def test_a_column_of_weights_is_read(tmp_path, recwarn, header):
    order = [name.lower() for name in header.split(",")]
    cells = {"source": "a", "from": "a", "u": "a", "target": "b", "to": "b", "v": "b"}
    row = ",".join("2.5" if name == "weight" else cells[name] for name in order)
    data = read(tmp_path, f"{header}\n{row}\n")
    assert data.edge_index.tolist() == [[0, 1], [1, 0]]
    assert data.edge_weight.tolist() == [2.5, 2.5]
    assert not len(recwarn)


@pytest.mark.parametrize("cell", ["-1", "nan", "inf", "heavy", "1e99", "1e-60"])
def test_a_weight_that_is_none_is_placed(tmp_path, cell):
    with pytest.raises(
        InputError, match=r"edges\.csv line 3: weight is '.*'; give a finite number"
    ):
        read(tmp_path, f"source,target,weight\na,b,1\nb,c,{cell}\n")


def test_an_edge_without_a_weight_gets_the_mean_of_the_others(tmp_path):
    with pytest.warns(LGDNote, match=r"edges.csv: 1 edge has no weight: .*the others, 2\.5$"):
        data = read(tmp_path, "source,target,weight\na,b,1\nb,c,4\nc,a,\n")
    assert data.edge_weight.tolist() == [1, 2.5, 1, 4, 2.5, 4]
    with pytest.warns(LGDNote, match=r"edges.csv: 2 edges have no weight: it is taken as 1"):
        data = read(tmp_path, "source,target,weight\na,b,\nb,c\n")
    assert data.edge_weight.tolist() == [1, 1, 1, 1]


def test_an_edge_of_weight_0_is_left_out(tmp_path):
    with pytest.warns(LGDWarning, match=r"edges.csv: 2 edges have weight 0: left out"):
        data = read(tmp_path, "source,target,weight,type\na,b,1,x\nb,c,0,y\nc,a,-0.0,x\n")
    assert data.edge_index.tolist() == [[0, 1], [1, 0]]
    assert (data.edge_weight.tolist(), data.edge_type_names) == ([1, 1], ["x"])


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
