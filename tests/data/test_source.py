"""Which graph a command works on."""

import pytest
import torch

from cli.conftest import write_graph
from cli.runner import GRAPH, call, rows, widest_table
from lgdgcn.data.source import GraphSource
from lgdgcn.errors import InputError

MASKS = ("train_mask", "val_mask", "test_mask")


@pytest.mark.parametrize("seed", [1, 2])
def test_a_random_split_of_a_generated_graph_is_another_split_of_the_same_graph(seed):
    source = GraphSource(GRAPH + ",seed=5", split="random")
    first, other = source.load(0), source.load(seed)
    assert torch.equal(first.edge_index, GraphSource(GRAPH + ",seed=5").load().edge_index)
    assert torch.equal(first.edge_index, other.edge_index)
    assert not torch.equal(first.train_mask, other.train_mask)
    for mask in MASKS:
        assert first[mask].sum() == other[mask].sum() > 0
    assert torch.equal(other.train_mask, source.load(seed).train_mask)


def test_a_random_split_of_a_folder_is_drawn_anew_for_every_seed(tmp_path):
    source = GraphSource(str(write_graph(tmp_path / "graph")), split="random")
    first, again, other = (source.load(seed).train_mask for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert first.sum() == other.sum()


def test_a_folder_is_described(tmp_path):
    outcome = call("data", "check", write_graph(tmp_path / "graph"))
    assert (outcome.code, outcome.err) == (0, "")
    table = rows(outcome.out)
    assert table["nodes"] == ["24"]
    assert table["edges"] == ["27"]
    assert table["features"] == ["3 (dense)"]
    assert table["classes"] == ["3"]
    assert table["train / validation / test"] == ["9 / 9 / 6"]


def test_a_known_set_is_described(shared_data, monkeypatch):
    monkeypatch.setenv("LGDGCN_DATA", str(shared_data))
    outcome = call("data", "check", "karate_club")
    assert (outcome.code, outcome.err) == (0, "")
    for words in ("karate_club", "34", "78", "4.59"):
        assert words in outcome.out


def test_the_list_says_how_each_set_can_be_had(tmp_path, monkeypatch):
    place = tmp_path / "a folder with quite a long name, which is not cut"
    place.mkdir()
    (place / "karate_club.npz").touch()
    monkeypatch.setenv("LGDGCN_DATA", str(place))
    monkeypatch.setattr("lgdgcn.data.download.cache_dir", lambda: tmp_path / "cache")
    outcome = call("data", "list")
    assert (outcome.code, outcome.err) == (0, "")
    table = rows(outcome.out)
    assert widest_table(outcome.out) <= 80
    names = ("karate_club", "flickr", "cora", "synthetic")
    assert [table[name][-1] for name in names] == ["here", "own file", "download", "generated"]
    assert f"here: {place}\n" in outcome.out
    assert "download: at first use, or with lgdgcn data get NAME\n" in outcome.out
    assert "own file: put NAME.npz into the folder that $LGDGCN_DATA names\n" in outcome.out


@pytest.mark.parametrize(
    ("source", "varies"),
    [
        (GraphSource("cora"), False),
        (GraphSource("cora", split="random"), True),
        (GraphSource("chameleon_filtered"), True),
        (GraphSource("synthetic:seed=3"), False),
    ],
)
def test_whether_another_seed_is_another_split(source, varies):
    assert source.varies_with_seed is varies


def test_a_folder_that_is_no_data_set_needs_no_slash(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_graph(tmp_path / "mine")
    assert GraphSource("mine").is_folder
    write_graph(tmp_path / "chameleon_filtered")
    assert not GraphSource("./chameleon_filtered").varies_with_seed


@pytest.mark.parametrize("dataset", ["x" * 5000, "./" + "x" * 5000, "a\0b", "./a\0b"])
def test_names_that_no_folder_can_have(dataset):
    with pytest.raises(InputError, match=r"no data set or folder|does not exist"):
        GraphSource(dataset).load()


def test_info_shows_the_split_that_training_draws(tmp_path):
    graph = write_graph(tmp_path / "graph")
    nodes = (graph / "nodes.csv").read_text()
    for split in ("train", "val", "test"):
        nodes = nodes.replace(f",{split}\n", "\n")
    (graph / "nodes.csv").write_text(nodes.replace(",split", ""))
    outcome = call("data", "check", graph)
    assert outcome.code == 0
    data = GraphSource(str(graph)).load()
    sizes = " / ".join(str(int(data[mask].sum())) for mask in MASKS)
    assert rows(outcome.out)["train / validation / test"] == [sizes] == ["15 / 6 / 3"]
    assert "no split was given: labelled nodes are split 60/20/20" in outcome.err


def test_info_says_why_a_graph_cannot_be_trained_on(tmp_path):
    graph = write_graph(tmp_path / "graph")
    nodes = (graph / "nodes.csv").read_text()
    (graph / "nodes.csv").write_text(nodes.replace(",train\n", ",\n"))
    outcome = call("data", "check", graph)
    assert (outcome.code, outcome.err) == (0, "")
    assert rows(outcome.out)["train / validation / test"] == ["0 / 9 / 6"]
    assert "cannot be trained on:" in outcome.out
    assert "the train split has no labelled node" in outcome.out
