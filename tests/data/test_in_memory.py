"""Graphs of networkx and pandas, splits by number, and parts of a graph to train on."""

import networkx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from lgdgcn.data.in_memory import (
    from_networkx,
    from_pandas,
    node_numbers,
    one_split,
    training_part,
)
from lgdgcn.data.user_graph import read_graph
from lgdgcn.errors import InputError, LGDNote, LGDWarning
from lgdgcn.estimator import LGDClassifier

MASKS = ("train_mask", "val_mask", "test_mask")


def path_graph(**more):
    """a - b - c, two numbers and a class each."""
    graph = networkx.Graph()
    for number, (name, club) in enumerate(zip("abc", ("x", "y", "x"), strict=True)):
        graph.add_node(name, size=number + 0.5, spin=[number, -number], club=club, **more)
    graph.add_edges_from([("a", "b"), ("b", "c")])
    return graph


# networkx


def test_a_networkx_graph_is_read_by_its_attributes():
    data = from_networkx(path_graph(), label="club")
    assert data.node_ids == ["a", "b", "c"]
    assert data.feature_names == ["size", "spin_0", "spin_1"]
    assert data.x.tolist() == [[0.5, 0, 0], [1.5, 1, -1], [2.5, 2, -2]]
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert (data.classes, data.y.tolist(), data.name) == (["x", "y"], [0, 1, 0], "graph")
    assert not any(mask in data for mask in MASKS)  # none is named


def test_the_split_of_a_networkx_graph():
    graph = path_graph()
    for name, split in zip("abc", ("train", "val", "test"), strict=True):
        graph.nodes[name]["split"] = split
    data = from_networkx(graph, label="club")
    assert [data[mask].tolist() for mask in MASKS] == torch.eye(3).bool().tolist()


def test_a_networkx_graph_without_messages(recwarn):
    from_networkx(path_graph(id=9), label="club")  # whose nodes have other names than their ids
    assert not [str(one.message) for one in recwarn]


def test_a_directed_networkx_graph_says_so():
    graph = networkx.DiGraph(path_graph())
    graph.remove_edge("a", "b")
    with pytest.warns(LGDNote, match="made undirected"):
        assert from_networkx(graph, label="club").edge_index.size(1) == 4


@pytest.mark.parametrize(
    ("spin", "words"),
    [([1.0], "'spin' differ in their lengths"), ("up", "'spin' differ in their lengths")],
)
def test_vectors_of_other_lengths_are_refused(spin, words):
    graph = path_graph()
    graph.nodes["b"]["spin"] = spin
    with pytest.raises(InputError, match=words):
        from_networkx(graph, label="club")


def test_matrices_of_a_node_are_refused():
    graph = path_graph()
    for name in graph:
        graph.nodes[name]["spin"] = [[1, 2], [3, 4]]
    with pytest.raises(InputError, match=r"'spin' have shape \[2, 2\]"):
        from_networkx(graph, label="club")


def test_messages_do_not_name_a_folder_that_nobody_has_made():
    graph = path_graph()
    graph.nodes["b"]["size"] = float("inf")
    with pytest.raises(InputError) as caught:
        from_networkx(graph, label="club")
    assert str(caught.value).startswith("graph/nodes.csv")


# pandas


def tables():
    pandas = pytest.importorskip("pandas")
    nodes = pandas.DataFrame(
        {"id": ["a", "b", "c"], "size": [0.1, 1 / 3, 2.5], "club": ["x", "y", None]}
    )
    return nodes, pandas.DataFrame({"source": ["a", "b"], "target": ["b", "c"]})


def test_tables_of_pandas(tmp_path):
    nodes, edges = tables()
    nodes.rename(columns={"club": "label"}).to_csv(tmp_path / "nodes.csv", index=False)
    edges.to_csv(tmp_path / "edges.csv", index=False)
    data, read = from_pandas(nodes, edges, label="club"), read_graph(tmp_path, None, False)
    for key in ("x", "edge_index", "y"):
        assert torch.equal(data[key], read[key])
    assert (data.node_ids, data.classes) == (["a", "b", "c"], ["x", "y"])
    assert (data.y.tolist(), data.feature_names) == ([0, 1, -1], ["size"])


def test_the_index_names_nodes_and_columns_the_ends():
    nodes, edges = tables()
    edges = edges.assign(weight=[1, 2])[["weight", "target", "source"]]
    data = from_pandas(nodes.set_index("id"), edges, label="club")
    assert data.node_ids == ["a", "b", "c"]
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    other = edges[["source", "target"]].set_axis(["left", "right"], axis=1)
    assert torch.equal(from_pandas(nodes, other, "club").edge_index, data.edge_index)


# Splits


@pytest.mark.parametrize("kind", [torch.as_tensor, np.asarray])
def test_one_of_several_splits(kind):
    several = np.eye(3, dtype=bool)
    other = several[::-1].copy()
    data = Data(train_mask=kind(several), val_mask=kind(other), test_mask=kind(several[2]))
    chosen = one_split(data, 2)
    assert chosen.train_mask.tolist() == [False, False, True]
    assert chosen.val_mask.tolist() == [True, False, False]
    assert chosen.test_mask is data.test_mask  # the same for all splits
    assert data.train_mask.shape == (3, 3)


@pytest.mark.parametrize("split", [3, -1, None, 1.0, True])
def test_a_split_that_is_not_there(split):
    data = Data(train_mask=torch.eye(3).bool())
    with pytest.raises(InputError, match=f"split is {split}; train_mask has 3 splits, 0 to 2"):
        one_split(data, split)


def test_a_single_split_stays():
    data = Data(train_mask=torch.ones(3).bool())
    assert one_split(data, 0) is one_split(data, 1) is data


# Nodes


@pytest.mark.parametrize("nodes", [[0, 2], np.array([[0], [2]]), torch.tensor([0, 2])])
def test_node_numbers(nodes):
    assert node_numbers(nodes, 3).tolist() == [0, 2]


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([0, 3], "X names node 3; the graph has nodes 0 to 2"),
        ([-1], "X names node -1"),
        (
            [0.5],
            "type float64; give a graph, node numbers or ids, or features together with edge_index",
        ),
        (np.zeros((2, 2), int), r"X has shape \[2, 2\]"),
        ([True, False, True], "type bool"),
    ],
)
def test_what_are_no_node_numbers(nodes, words):
    with pytest.raises(InputError, match=words):
        node_numbers(nodes, 3)


def test_a_part_to_train_on_hides_all_other_labels():
    total = 20
    y = torch.arange(total) % 2
    data = Data(x=torch.zeros(total, 1), edge_index=torch.empty(2, 0).long(), y=y)
    data.test_mask = torch.ones(total).bool()
    nodes = torch.arange(1, 11)
    part = training_part(data, nodes, None, seed=0)
    assert part.y[nodes].tolist() == y[nodes].tolist()
    assert (part.y[[0, *range(11, total)]] == -1).all()
    assert "test_mask" not in part
    assert (part.train_mask.sum(), part.val_mask.sum()) == (8, 2)
    assert sorted(part.y[part.val_mask].tolist()) == [0, 1]  # by class
    assert (part.train_mask | part.val_mask).nonzero().flatten().tolist() == nodes.tolist()
    others = [training_part(data, nodes, None, seed) for seed in range(5)]
    assert torch.equal(others[0].val_mask, part.val_mask)
    assert len({tuple(one.val_mask.tolist()) for one in others}) > 1


def test_labels_of_a_part_may_be_given():
    data = Data(x=torch.zeros(6, 1), y=torch.zeros(6).long(), classes=["old"])
    part = training_part(data, torch.tensor([4, 2]), np.array(["b", "a"]), seed=0)
    assert (part.y.tolist(), part.classes) == ([-1, -1, 0, -1, 1, -1], ["a", "b"])
    sets = training_part(data, torch.tensor([4, 2]), np.eye(2), seed=0)
    assert sets.y[[4, 2]].tolist() == np.eye(2).tolist()
    assert sets.y[[0, 1, 3, 5]].isnan().all()


def test_a_node_is_named_once():
    with pytest.raises(InputError, match="X names a node twice"):
        training_part(Data(x=torch.zeros(6, 1)), torch.tensor([4, 4]), [0, 1], seed=0)


def test_new_tables_become_the_same_features():
    """Values, blanks and dates are read as in the graph that was fitted, whatever is in them."""
    pandas = pytest.importorskip("pandas")
    nodes = pandas.DataFrame(
        {
            "age": [20, None, 40, 60] * 5,
            "town": ["Oslo", "Rome", "Lima", None] * 5,
            "born": ["1/2/2020", "13/2/2020", "5/6/2021", "7/8/2022"] * 5,
            "label": ["a", "b"] * 10,
        }
    )
    edges = pandas.DataFrame({"source": range(20), "target": [*range(1, 20), 0]})
    data = from_pandas(nodes, edges)
    new = pandas.DataFrame({"age": [30, 50], "town": ["Rome", "Rome"], "born": ["1/2/2020"] * 2})
    few = pandas.DataFrame({"source": [0], "target": [1]})
    alike = from_pandas(new, few, like=data)
    assert alike.feature_names == data.feature_names
    found = dict(zip(alike.feature_names, alike.x.t().tolist(), strict=True))
    known = dict(zip(data.feature_names, data.x.t().tolist(), strict=True))
    assert found["age"] == [30, 50]
    assert found["town=Rome"] == [1, 1]
    assert found["born"] == [known["born"][0]] * 2  # the first of February, as only all dates tell
    assert found["age missing"] == found["town missing"] == [0, 0]
    graph = networkx.Graph([("x", "y")])
    networkx.set_node_attributes(graph, {"x": 30, "y": 50}, "age")
    networkx.set_node_attributes(graph, "Rome", "town")
    networkx.set_node_attributes(graph, "1/2/2020", "born")
    assert from_networkx(graph, like=data).x.tolist() == alike.x.tolist()


def test_cells_of_new_tables_that_count_as_blank_are_said():
    pandas = pytest.importorskip("pandas")
    nodes = pandas.DataFrame({"age": range(20), "born": ["2020-01-02"] * 20, "on": ["yes"] * 20})
    edges = pandas.DataFrame({"source": [0], "target": [1]})
    with pytest.warns(LGDNote):
        data = from_pandas(nodes, edges)
    new = pandas.DataFrame(
        {"age": [None, None, None], "born": ["2/1/2020", "soon", None], "on": ["yes", "no", 7]}
    )
    with pytest.warns(LGDNote) as caught:
        alike = from_pandas(new, edges, like=data)
    assert [str(one.message) for one in caught] == [
        "graph/nodes.csv: cells that do not fit their column count as blank: "
        "'born' (2 no date, such as '2/1/2020'), 'on' (1 no boolean, such as '7')",
        "graph/nodes.csv: columns that had values in training are all blank here: 'age'",
    ]
    assert alike.x[:, 0].tolist() == [9.5] * 3


def test_an_index_that_was_read_from_a_file_is_no_end_of_an_edge():
    nodes, edges = tables()
    edges = edges.set_axis(["left", "right"], axis=1)
    edges.insert(0, "Unnamed: 0", ["a", "a"])
    data = from_pandas(nodes, edges, label="club")
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]


def test_the_label_that_is_named_is_the_label():
    """Graphs drawn by other programs have an attribute ``label`` that is the name of a node."""
    pandas = pytest.importorskip("pandas")
    graph = networkx.path_graph(30)
    networkx.set_node_attributes(graph, {i: "uv"[i % 2] for i in graph}, "club")
    networkx.set_node_attributes(graph, {i: f"Node {i}" for i in graph}, "label")
    nodes = pandas.DataFrame(
        {"club": ["u", "v"] * 15, "label": [f"Node {i}" for i in range(30)], "f": range(30)}
    )
    edges = pandas.DataFrame({"source": range(29), "target": range(1, 30)})
    for data in (from_networkx(graph, "club"), from_pandas(nodes, edges, "club")):
        assert data.classes == ["u", "v"]
        assert data.y.tolist() == [0, 1] * 15
        assert list(data.node_text) == ["label"]


def test_whole_numbers_beside_blanks_stay_whole():
    pandas = pytest.importorskip("pandas")
    nodes = pandas.DataFrame({"id": [3.0, 4.0, 7.0], "label": [1.0, None, 2.0], "f": [0.5, 1, 2]})
    edges = pandas.DataFrame({"source": [3.0, 4.0], "target": [4, 7], "weight": [0.5, 2.0]})
    data = from_pandas(nodes, edges)
    assert data.classes == [1, 2]
    assert data.node_ids == ["3", "4", "7"]
    assert data.edge_weight.tolist() == [0.5, 0.5, 2, 2]
    with pytest.raises(InputError, match="real-valued"):
        from_pandas(nodes.assign(label=[0.5, 1, 2]), edges)


def test_attributes_that_are_vectors_may_be_labels():
    graph = networkx.path_graph(4)
    networkx.set_node_attributes(graph, {i: [i % 2, int(i > 1), 1] for i in graph}, "tags")
    networkx.set_node_attributes(graph, {i: float(i) for i in graph}, "f")
    data = from_networkx(graph, "tags")
    assert data.y.tolist() == [[0, 0, 1], [1, 0, 1], [0, 1, 1], [1, 1, 1]]
    assert data.feature_names == ["f"]


def test_words_of_a_column_become_features():
    pandas = pytest.importorskip("pandas")
    titles = [f"a study of {'cats' if i % 2 else 'dogs'} number {i}" for i in range(30)]
    nodes = pandas.DataFrame({"title": titles, "label": ["u", "v"] * 15, "f": range(30)})
    edges = pandas.DataFrame({"source": range(29), "target": range(1, 30)})
    with pytest.warns(LGDNote, match=r"no feature \(words=\[COLUMN\] makes it one\): 'title'"):
        plain = from_pandas(nodes, edges)
    assert plain.feature_names == ["f"]
    data = from_pandas(nodes, edges, words=["title"])
    assert data.feature_names[:2] == ["title#0", "title#1"]
    assert data.x.layout == torch.sparse_csr
    again = from_pandas(nodes.drop(columns="label").iloc[:5], edges.iloc[:3], like=data)
    assert torch.equal(again.x.to_dense(), data.x.to_dense()[:5])
    graph = networkx.path_graph(30)
    networkx.set_node_attributes(graph, dict(enumerate(titles)), "title")
    assert from_networkx(graph, words=["title"]).x.shape == (30, 1024)


def test_columns_of_a_table_can_be_named():
    pandas = pytest.importorskip("pandas")
    nodes = pandas.DataFrame({"number": [7.0, 8.0, 9.0], "label": ["u", "v", "u"], "f": [1, 2, 3],
                              "row": [0, 1, 2]})  # fmt: skip
    edges = pandas.DataFrame({"a": [7, 8], "b": [8, 9]})
    data = from_pandas(nodes, edges, id="number", ignore=["row"])
    assert data.node_ids == ["7", "8", "9"]
    assert data.feature_names == ["f"]
    with pytest.raises(InputError, match="no column 'nummer'; it has 'number', 'label'"):
        from_pandas(nodes, edges, id="nummer")
    with pytest.raises(InputError, match=r"column 'number' has it: id=… names it"):
        from_pandas(nodes.assign(id=[1, 2, 3], number=["7", "8", "8"]), edges)
    with pytest.warns(LGDNote, match=r"^graph/nodes\.csv: column 'number' .*\(id=… names another"):
        data = from_pandas(nodes.assign(number=["7", "8", "9"]), edges)  # not the index
    assert data.node_ids == ["7", "8", "9"]
    assert data.feature_names == ["f", "row"]
    again = from_pandas(nodes.assign(number=["9", "8", "7"]), edges, like=data)
    assert again.node_ids == ["9", "8", "7"]


def test_money_and_codes_of_a_table():
    pandas = pytest.importorskip("pandas")
    nodes = pandas.DataFrame(
        {
            "id": ["a", "b", "c"],
            "label": ["x", "y", "x"],
            "price": ["4833,87 €", "0,5 €", None],
            "zip": ["00037", "80331", "00037"],
        }
    )
    edges = pandas.DataFrame({"source": ["a"], "target": ["b"]})
    with pytest.warns(LGDNote, match=r"\('1 234 €' is 1234\)$"):  # of no comma it can be said
        from_pandas(nodes[["id", "label"]].assign(price=["1 234 €", "2 500 €", None]), edges)
    with pytest.warns(LGDNote) as said:
        data = from_pandas(nodes, edges)
    assert data.feature_names == ["price", "price missing", "zip=00037", "zip=80331"]
    assert data.x[1].tolist() == [0.5, 0, 0, 1]
    messages = [str(one.message) for one in said]
    assert any("'4833,87 €' is 4833.87, with a decimal comma" in line for line in messages)
    assert any("codes and no numbers" in line for line in messages)


def test_numbers_in_memory_have_no_decimal_comma():
    pandas = pytest.importorskip("pandas")
    edges = pandas.DataFrame({"source": ["a"], "target": ["b"]})
    ids = [*"abcdef"]
    nodes = pandas.DataFrame({"id": ids, "price": ["4833,87 €", "12,5 €"] * 3})
    like = from_pandas(nodes, edges)
    prices = [1.125, 2.5, 7.0, 1234.567, 0.001, 3.3]
    for cells in (
        prices,
        pandas.Series(prices, dtype=object),
        pandas.Series(prices, dtype="Float64"),
    ):
        again = from_pandas(nodes.assign(price=cells), edges, like=like)
        assert again.x[:, 0].tolist() == pytest.approx(prices)
        assert again.encoding == like.encoding
    graph = networkx.Graph()
    graph.add_nodes_from(
        (name, {"price": price}) for name, price in zip("ab", [1.125, 4.375], strict=True)
    )
    assert from_networkx(graph, like=like).x[:, 0].tolist() == [1.125, 4.375]
    with pytest.warns(
        LGDNote, match=r"follow a point, not a comma as in training: 'price' \('1.125' is 1.125\)"
    ):
        again = from_pandas(nodes.assign(price=[str(price) for price in prices]), edges, like=like)
    assert again.x[:, 0].tolist() == pytest.approx(prices)


def test_a_label_for_every_node_of_a_table_names_no_option():
    pandas = pytest.importorskip("pandas")
    nodes = pandas.DataFrame({"id": range(20), "label": range(100, 120), "f": [0.5, 1.5] * 10})
    nodes["split"] = ["train", "val"] * 10
    edges = pandas.DataFrame({"source": range(19), "target": range(1, 20)})
    with pytest.warns(LGDWarning) as said:
        LGDClassifier(epochs=1, budget="none").fit(from_pandas(nodes, edges))
    messages = [str(one.message) for one in said]
    assert any("choose another column as the label" in line for line in messages)
    assert not any("--label" in line for line in messages)
