"""The statistics of the data are the paper's where the data are."""

import pytest
import torch

from lgdgcn.data.synthetic import synthetic_graph
from lgdgcn.reproduce.graphs import connection_probabilities, data_tables


def test_the_probabilities_of_the_generator_are_found_again():
    data = synthetic_graph(factors=3, nodes=800, classes=8, p=0.2, q=0.004, seed=3)
    p, q = connection_probabilities(data.edge_index, data.y_factor)
    assert p == pytest.approx(0.2, rel=0.03)
    assert q == pytest.approx(0.004, rel=0.1)


def test_the_probabilities_of_a_graph_one_can_count():
    # pairs (0, 1) and (2, 3) share the first factor, (0, 2) and (1, 3) the second, two none
    y_factor = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]])
    edges = torch.tensor([[0, 1, 0, 2, 0, 3], [1, 0, 2, 0, 3, 0]])
    p, q = connection_probabilities(edges, y_factor)
    assert q == pytest.approx(1 - 0.5**0.5)
    assert p == pytest.approx(1 - 0.5 / (1 - q))


def test_both_tables(shared_data):
    real, synthetic = data_tables(str(shared_data))
    rows = {name: values for name, *values in real.rows}
    assert real.header[1:3] == ["Cora, paper", "Cora, here"]
    assert rows["average neighbours"] == ["3.9", "3.9", "2.8", "2.7", "4.5", "4.5"]
    for name in ("nodes", "features", "classes", "training nodes", "test nodes"):
        assert rows[name][::2] == rows[name][1::2]
    rows = {name: values for name, *values in synthetic.rows}
    assert all(len(values) == len(synthetic.header) - 1 for values in rows.values())
    paper = [float(value) for value in rows["p, paper"]]
    for name in ("published graphs", "our generator"):
        measured = [float(value) for value in rows[f"p, measured in {name}"]]
        assert measured == pytest.approx(paper, abs=0.002)
    assert rows["average neighbours, published graphs"] == ["40.1", "40.2", "39.9", "39.9", "40.3"]


def test_only_what_the_graphs_in_question_have_to_do_with_is_read(shared_data, tmp_path):
    (table,) = data_tables(str(shared_data), ["cora", "citeseer"])
    assert (table.title, len(table.header)) == ("Citation graphs", 5)
    (table,) = data_tables(str(tmp_path), ["synthetic:average_degree=6"])  # no files needed
    assert table.title == "Synthetic graphs"
    assert not any("published" in row[0] for row in table.rows)
    assert data_tables(str(tmp_path), ["karate_club"]) == []
