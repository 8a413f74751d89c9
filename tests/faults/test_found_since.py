"""Faults 41 to 50: files lost and results silently wrong, found by attacking a landed version."""

import csv
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from cli.conftest import write_graph
from cli.runner import GRAPH, SMALL, call, content, train
from faults.graphs import SPLITS, arrays, replaced, saved
from lgdgcn import tensor_file


def rows_of(file: Path) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8") as opened:
        return list(csv.DictReader(opened))


@pytest.fixture
def run(mine, tmp_path) -> Path:
    """A copy of a finished run on a user's graph, to be damaged."""
    shutil.copytree(mine[1], tmp_path / "run")
    return tmp_path / "run"


def again(mine, run: Path, *args: object):
    """The command that has made the run, with --resume."""
    return train(run, "--resume", *args, graph=mine[0], epochs=40)


# 41


def test_fault_41_a_configuration_is_not_lost_to_its_own_run(tmp_path):
    """A run folder owns what its own naming makes; ``--config`` is not replaced by its own run.

    Files and links under a run's names: ``tests/runs/test_folder.py``.
    """
    (tmp_path / "config.toml").write_text("hidden_channels = 12")
    args = ["--config", tmp_path / "config.toml", "--set", "epochs=1", "--out", tmp_path]
    call("train", GRAPH, "--model", "mlp", *args).refused("config.toml")
    assert content(tmp_path) == {"config.toml": b"hidden_channels = 12"}


# 42


def columns(graph: Path, order: list[int], names: dict[str, str]) -> None:
    """Put the columns of the nodes table into another order, with other names."""
    with (graph / "nodes.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    table = [[names.get(name, name) for name in header], *rows]
    with (graph / "nodes.csv").open("w", newline="") as file:
        csv.writer(file).writerows([row[i] for i in order] for row in table)


def test_fault_42_features_are_matched_by_name(mine, tmp_path):
    """Another order of the feature columns gives the same predictions."""
    for name, order in (("same", [0, 1, 2, 3]), ("other", [3, 0, 2, 1])):
        graph = write_graph(tmp_path / name, labels=False)
        columns(graph, order, {})
        target = tmp_path / f"{name}.csv"
        assert call("predict", mine[1], "--graph", graph, "--out", target).code == 0
    assert rows_of(tmp_path / "other.csv") == rows_of(tmp_path / "same.csv")


@pytest.mark.parametrize(
    ("order", "names", "words"),
    [
        ([0, 1, 2, 3], {"f3": "age"}, ["f3", "age"]),
        ([0, 1, 2], {}, ["f3"]),
        ([0, 1, 2, 3, 4], {"f4": "age"}, ["age"]),
    ],
    ids=["renamed", "missing", "new"],
)
def test_fault_42_missing_and_new_features_are_named(mine, tmp_path, order, names, words):
    """A feature column that is missing or new is refused by name, whatever their number."""
    graph = write_graph(tmp_path / "graph", labels=False)
    lines = (graph / "nodes.csv").read_text().splitlines()
    wider = [f"{line},{'f4' if i == 0 else i}" for i, line in enumerate(lines)]
    (graph / "nodes.csv").write_text("\n".join(wider) + "\n")
    columns(graph, order, names)
    outcome = call("predict", mine[1], "--graph", graph, "--out", tmp_path / "p.csv")
    outcome.refused(*words)
    assert not (tmp_path / "p.csv").exists()


# 43


NUMBERS = ["1_0", "10", "1e5", "100000", "+1", "1", "\u0661"]  # the last is an Arabic 1
ODD = [*NUMBERS, "12345678901234567890", "NaN", "#tag"]


def table(folder: Path, ids: list[str], labels: list[str]) -> Path:
    """A graph whose nodes form a ring, with every label in every split."""
    folder.mkdir()
    parts = ["train", "val", "test"] * len(ids)
    rows = [
        [name, i, label, part]
        for i, (name, label, part) in enumerate(zip(ids, labels, parts, strict=False))
    ]
    with (folder / "nodes.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["id", "f", "label", "split"], *rows])
    ring = zip(ids, ids[1:] + ids[:1], strict=True)
    with (folder / "edges.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["source", "target"], *ring])
    return folder


def test_fault_43_ids_come_back_as_written(tmp_path):
    """Ids are text: none is a number or a comment below the header, and none merge."""
    ids = [*ODD, "a,b", "007", "7", "source", "target"]
    graph = table(tmp_path / "graph", ids, ["x", "y", "z"] * 5)
    assert train(tmp_path / "run", graph=graph, epochs=1).code == 0
    assert call("predict", tmp_path / "run", "--out", tmp_path / "p.csv").code == 0
    assert [row["node"] for row in rows_of(tmp_path / "p.csv")] == ids
    found = {frozenset([row["source"], row["target"]]) for row in rows_of(tmp_path / "p-edges.csv")}
    assert found == {frozenset(pair) for pair in zip(ids, ids[1:] + ids[:1], strict=True)}


# 44


def test_fault_44_a_finished_run_is_resumed_on_the_same_data_only(mine, run, tmp_path):
    """Resuming a finished run whose graph has changed is refused with what differs."""
    nodes = mine[0] / "nodes.csv"
    before, files = nodes.read_text(), content(run)
    try:
        replaced(nodes, ",train", ",test", count=1)
        again(mine, run).refused("data")
    finally:
        nodes.write_text(before)
    assert content(run) == files
    assert again(mine, run).code == 0


@pytest.mark.parametrize("damage", ["gone", "changed"])
def test_fault_44_a_finished_run_is_resumed_with_its_model_only(mine, run, damage):
    """Resuming a finished run whose model is gone or damaged is refused by name."""
    model = run / "model.safetensors"
    if damage == "gone":
        model.unlink()
    else:
        model.write_bytes(model.read_bytes()[:-1] + b"\xff")
    again(mine, run).refused("model.safetensors")


def test_fault_44_a_finished_run_without_its_configuration_is_kept(mine, run):
    """A finished run that has lost its configuration is not replaced by one of other settings."""
    (run / "config.toml").unlink()
    files = content(run)
    again(mine, run, "--set", "lr=0.5").refused("config.toml")
    assert content(run) == files


def test_fault_44_there_is_something_to_resume(mine, run, tmp_path):
    """Other settings and a folder without a run are refused; no training is started."""
    again(mine, run, "--set", "lr=0.5").refused("settings.lr", "-> 0.5")
    again(mine, tmp_path / "typo").refused(str(tmp_path / "typo"))
    assert not (tmp_path / "typo").exists()


# 45


@pytest.fixture
def quick_measures(monkeypatch):
    """The page without the seconds that measures take."""
    monkeypatch.setattr("lgdgcn.metrics.controls.measure", lambda trained, data: [])


DOUBTS = {
    "majority": "that of the most common class for every node",
    "first epoch": "the kept epoch is the first of",
}


def test_fault_45_a_loss_that_explodes_but_stays_finite_is_no_result(tmp_path):
    """A training that has exploded ends with exit code 3 and the likely cause, without a score."""
    outcome = train(tmp_path / "run", "--set", "lr=1000", graph=saved(tmp_path / "g", **arrays(18)))
    assert outcome.code == 3
    assert re.search("diverged.* lower lr", " ".join(outcome.err.split()))
    assert not (tmp_path / "run/result.json").exists()


@pytest.mark.usefixtures("quick_measures")
@pytest.mark.parametrize("kind", DOUBTS)
def test_fault_45_a_score_that_means_nothing_is_said_everywhere(tmp_path, kind):
    """A score no better than the most common class and a kept first epoch are warned of.

    The warning has the likely cause, and is in the table, in ``result.json`` and on the page.
    """
    args, graph = [], arrays(18)
    if kind == "majority":  # nothing to learn from but how frequent the classes are
        graph |= {"x": np.ones_like(graph["x"]), "y": np.array([0, 0, 0, 0, 1, 2] * 3)}
        graph |= {split: np.arange(18) // 6 == i for i, split in enumerate(SPLITS)}
    elif kind == "first epoch":  # steps too small for any score to change
        args = ["--set", "lr=1e-30"]
    folder = saved(tmp_path / "graph", **graph)
    outcome = train(tmp_path / "run", *args, graph=folder, epochs=20)
    assert outcome.code == 0, outcome
    assert call("explore", tmp_path / "run").code == 0
    files = [(tmp_path / "run" / name).read_text() for name in ("result.json", "explore.html")]
    for text in (outcome.out, *files):
        assert re.search(DOUBTS[kind], " ".join(text.split()))


def test_fault_45_label_sets_of_any_size_are_selected_by_a_score_that_moves(tmp_path):
    """Label sets of different sizes are selected by a score that moves, unlike F1 at 0.5."""
    generator = np.random.default_rng(0)
    y = np.eye(20, dtype=int)[np.arange(60) % 20]
    y[::2] |= np.eye(20, dtype=int)[(np.arange(60) + 7) % 20][::2]
    graph = arrays(60) | {"x": generator.random((60, 8), np.float32), "y": y}
    graph |= {split: np.arange(60) // 20 == i for i, split in enumerate(SPLITS)}
    args = ["--set", "patience=40", "--set", "lr=0.03"]
    assert train(tmp_path / "run", *args, graph=saved(tmp_path / "g", **graph), epochs=40).code == 0
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").open()]
    scores = [key for key in lines[0] if key.startswith("val_") and key != "val_loss"]
    assert max(len({line[key] for line in lines[10:]}) for key in scores) > 3


# 46


@pytest.fixture
def at_home(tmp_path, monkeypatch) -> Path:
    """A working folder, and a small graph in the place of the set karate_club."""
    monkeypatch.setenv("LGDGCN_DATA", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    small = {key: arrays(18)[key] for key in ("x", "y", "edge_index")}
    np.savez(tmp_path / "data/karate_club.npz", **small)
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    return tmp_path / "home"


def test_fault_46_a_data_sets_name_means_the_data_set(at_home):
    """A folder of the same name does not win over a data set; written ./NAME it is taken."""
    saved(at_home / "karate_club")
    named, path = (call("data", "check", name) for name in ("karate_club", "./karate_club"))
    assert (named.code, path.code) == (0, 0)
    assert re.search(r"nodes\s+18\b", named.out)
    assert re.search(r"nodes\s+12\b", path.out)
    assert "./karate_club" in named.out + named.err  # what was taken, and how to take the other


def test_fault_46_a_run_folder_named_like_its_data_set_can_be_used(at_home):
    """A run whose folder has the name of its data set can be predicted from."""
    args = ["train", "karate_club", *SMALL, "--set", "epochs=1"]
    assert call(*args, "--out", "karate_club").code == 0
    assert call("predict", "karate_club", "--out", "p.csv").code == 0
    assert len(rows_of(at_home / "p.csv")) == 18


def test_fault_46_a_file_of_another_size_is_said(at_home):
    """A file named like a data set but of another size than the registry's is warned of."""
    outcome = call("train", "karate_club", "--model", "mlp", "--epochs", 1)
    assert outcome.code == 0
    assert "warning: " in outcome.err
    for word in ("karate_club.npz", "18", "34"):
        assert word in outcome.err


# 47


AMOUNT = r"\d+(\.\d+)?(e\+\d+)? ?[GTP]i?B"


@pytest.mark.parametrize(
    ("model", "setting"),
    [("lgdgcn", "hidden_channels"), ("gat", "heads"), ("monet", "kernel_size")],
)
def test_fault_47_memory_is_estimated_before_it_is_taken(tmp_path, model, setting):
    """Settings that need more memory than there is are refused with the amount and the setting.

    Progress of work above five seconds is not tested here, where nothing takes so long.
    """
    args = ["--model", model, "--set", f"{setting}=1000000000"]
    outcome = call("train", GRAPH, *args, "--out", tmp_path / "run")
    outcome.refused(setting)
    assert re.search(AMOUNT, outcome.err)
    assert not (tmp_path / "run/result.json").exists()


def test_fault_47_a_wide_sparse_matrix_is_refused_in_one_line(tmp_path):
    """Features of 10^13 columns, which sparse storage allows, are refused with the amount."""
    parts = {
        "x_data": np.ones(12, np.float32),
        "x_indices": np.arange(12),
        "x_indptr": np.arange(13),
        "x_shape": np.array([12, 10**13]),
    }
    graph = saved(tmp_path / "graph", x=None, **parts)
    outcome = train(tmp_path / "run", graph=graph)
    assert outcome.refused("features")
    assert re.search(AMOUNT, outcome.err)


# 48


REAL_LIFE = {  # cells of a column by turns, and the line that says what became of it
    "town": (["Oslo", "Rome", ""], "categories are one-hot encoded: 'town' (2 values)"),
    "since": (["2020-01-31", "2021-06-01"], "days since 1970: 'since'"),
    "member": (["yes", "No"], "taken as 1 and 0: 'member'"),
    "age": (["31", "n/a", "47", "25", "40", "60"], "marked by a feature of their own: 'town'"),
    "size": (["1", "2", "3", "?!", "5", "6"], "'size' (4 no number, such as '?!')"),
    "bio": ([f"a long text of {i} about it" for i in range(24)], "no feature"),
    "empty": (["", "NA"], "without a value are not used: 'empty'"),
}


def test_fault_48_columns_are_read_by_their_role(tmp_path):
    """Text, categories, dates, blanks and mixed types are read by role, each said in one line."""
    graph = write_graph(tmp_path / "graph")
    lines = (graph / "nodes.csv").read_text().splitlines()
    rows = [[cells[i % len(cells)] for cells, _ in REAL_LIFE.values()] for i in range(len(lines))]
    rows = [[*REAL_LIFE], *rows]
    wider = [",".join([line, *row]) for line, row in zip(lines, rows, strict=False)]
    (graph / "nodes.csv").write_text("\n".join(wider) + "\n")
    outcome = train(tmp_path / "run", graph=graph, epochs=2)
    assert outcome.code == 0, outcome
    for _, said in REAL_LIFE.values():
        assert sum(said in line for line in outcome.err.splitlines()) == 1, (said, outcome.err)
    target = tmp_path / "p.csv"
    assert call("predict", tmp_path / "run", "--graph", graph, "--out", target).code == 0
    assert [row["bio"] for row in rows_of(target)][:2] == ["a long text of 0 about it",
                                                           "a long text of 1 about it"]  # fmt: skip


def test_fault_49_hidden_truths_do_not_reach_training(tmp_path):
    """Other labels of the test nodes, which nothing may look at, give the same model to the bit."""
    y = arrays()["y"]
    hidden = np.where(arrays()["test_mask"], (y + 1) % 3, y)
    for name, labels in (("one", y), ("other", hidden)):
        graph = saved(tmp_path / f"graph-{name}", y=labels)
        assert train(tmp_path / name, "--budget", 7, graph=graph, epochs=4).code == 0
    one, other = (
        tensor_file.load(tmp_path / name / "model.safetensors", "model")[0]
        for name in ("one", "other")
    )
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    log, same = (
        [json.loads(line) for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
        for name in ("one", "other")
    )
    assert log == same


@pytest.mark.parametrize("how", ["cut off", "changed"])
def test_fault_50_a_packed_graph_that_is_damaged_never_looks_whole(tmp_path, how):
    """A packed graph that is cut short or changed is refused, and named.

    In part: ranks that differ, and one that hangs, are in ``tests/train/test_ranks.py``.
    """
    packed = tmp_path / "graph.lgd"
    assert call("data", "pack", saved(tmp_path / "graph"), "--out", packed).code == 0
    file = packed / "column.bin"
    content = bytearray(file.read_bytes())
    content[0] ^= 1
    file.write_bytes(content[:-4] if how == "cut off" else content)
    train(tmp_path / "run", graph=packed).refused("column.bin", how, "lgdgcn data pack")
    assert not (tmp_path / "run").exists()
