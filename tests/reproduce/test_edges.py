"""The table of edge types: what methods see, what is kept, what is written."""

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

from lgdgcn.data.labels import stratified_split
from lgdgcn.errors import InputError
from lgdgcn.reasons import fit_edges
from lgdgcn.reasons.shown import shown_types
from lgdgcn.reproduce import edge_methods
from lgdgcn.reproduce.edge_methods import LEVELS, METHODS, EdgeMethod
from lgdgcn.reproduce.edge_report import edge_table, mean_of, write_edge_report
from lgdgcn.reproduce.edges import load_typed, run_graph, run_method
from reasons.graphs import planted_graph, random_graph
from reasons.test_references import hidden_types_permuted

LEVEL = {level.id: level for level in LEVELS}
FAST = [method for method in METHODS if method.id not in ("ours", "untrained")]


def graph(seed=0):
    data = planted_graph(seed)
    data.name = "planted"
    data.y = torch.arange(data.num_nodes) % 3 - 1
    data.classes = [0, 1]
    for name, mask in stratified_split(data.y).items():
        data[name] = mask
    return data


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The rows of all fast methods, of two seeds; what was said on the way; where they are."""
    folder, said = tmp_path_factory.mktemp("edges"), []
    return list(run_graph(graph(), folder, range(2), FAST, said.append)), said, folder


def test_ids_are_unique_and_levels_known():
    assert len({method.id for method in METHODS}) == len(METHODS)
    assert len({method.title for method in METHODS}) == len(METHODS)
    for method in METHODS:
        assert re.fullmatch(r"[a-z0-9-]+", method.id)
        assert {*method.levels} <= {*LEVEL}


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.id)
def test_a_method_sees_no_hidden_type_and_no_label_unless_given(level):
    seen = {}

    def spy(data, shown, seed):
        seen.update(keys=set(data.keys()), shown=shown)
        return np.full((data.edge_index.size(1) // 2, shown.size(1)), 0.5)

    data = graph()
    run_method(data, EdgeMethod("spy", "spy", "control", spy, (level.id,)), level, seed=4)
    assert not {"edge_type", "edge_type_names"} & seen["keys"]
    assert ("y" in seen["keys"]) == level.labels
    if level.share is None:
        assert seen["shown"].equal(data.edge_type)
    else:
        assert seen["shown"].equal(shown_types(data.edge_index, data.edge_type, level.share, 4))


@pytest.mark.parametrize("method", FAST, ids=lambda method: method.id)
def test_permuting_hidden_types_changes_no_probability(method):
    level = LEVEL[method.levels[-1]]
    if level.share is None:
        level = replace(level, share=0.3)
    first = random_graph(5, nodes=40, edges=240)
    first.y = torch.arange(40) % 3 - 1
    shown = shown_types(first.edge_index, first.edge_type, level.share, 0)
    second = hidden_types_permuted(first, shown)
    kept = []

    def keep(data, shown, seed):
        kept.append(method.run(data, shown, seed))
        return kept[-1]

    for data in (first, second):
        edge_methods._fits.clear()  # or the second would be read, not fitted
        run_method(data, replace(method, run=keep), level, 0)
    assert np.array_equal(*kept)


def test_rows_that_share_a_fit_make_it_once(monkeypatch):
    data, fits = graph(), []
    monkeypatch.setattr(edge_methods, "_fits", {})

    def counted(*args, **options):
        fits.append(options["seed"])
        return fit_edges(*args, **options)

    monkeypatch.setattr(edge_methods, "fit_edges", counted)
    shown = [shown_types(data.edge_index, data.edge_type, 0.5, seed) for seed in (0, 1)]
    plain = [edge_methods.reasons(data, one, seed) for seed, one in enumerate(shown)]
    weighted = [edge_methods.balanced_reasons(data, one, seed) for seed, one in enumerate(shown)]
    assert fits == [0, 1]
    assert not np.array_equal(plain[0], plain[1])
    assert not np.array_equal(plain[0], weighted[0])
    np.testing.assert_allclose(weighted[0].sum(1), 1, atol=1e-5)


@pytest.mark.parametrize("method", [edge_methods.ours, edge_methods.untrained_ours])
def test_ours_gives_every_pair_a_probability(method):
    data = graph()
    found = method(data, shown_types(data.edge_index, data.edge_type, 0), 0)
    assert found.shape == (data.edge_index.size(1) // 2, 2)
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-5)


def test_all_levels_are_run_and_nothing_twice(trained, tmp_path):
    first, said, folder = trained
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    said = [*said]
    assert {(one["level"], one["method"]) for one in first} == {
        (level, method.id) for method in FAST for level in method.levels
    }
    assert len(said) == len(first)
    again = list(run_graph(graph(), tmp_path, range(2), FAST, said.append))
    assert len(said) == len(first)
    assert again == json.loads(json.dumps(first))
    other = graph()
    other.edge_type = other.edge_type.flip(1)  # the same graph with other types
    list(run_graph(other, tmp_path, range(2), FAST[:1], said.append))
    list(run_graph(graph(), tmp_path, range(3), FAST[1:2], said.append))
    assert len(said) == len(first) + len(FAST[0].levels) + len(FAST[1].levels)
    (tmp_path / "planted.none.majority.json").write_text("{")
    assert len(list(run_graph(graph(), tmp_path, range(2), FAST[:1], said.append))) == 4


def test_a_graph_without_labels_has_no_level_of_labels(tmp_path):
    data = graph()
    data.y = torch.full((data.num_nodes,), -1)
    found = run_graph(data, tmp_path, [0], FAST)
    assert "labels" not in {one["level"] for one in found}


def test_the_best_is_better_than_the_controls(trained):
    found = {(one["level"], one["method"]): one for one in trained[0]}
    spectral = mean_of(found["none", "line-spectral-mean"], "information")[0]
    assert spectral > mean_of(found["none", "random-vectors"], "information")[0] + 0.2
    regression, chance = (
        mean_of(found["shown-20", name], "balanced")[0] for name in ("regression", "permuted")
    )
    assert regression > 0.9 > 0.7 > chance
    assert mean_of(found["none", "majority"], "calibration_error") is None


def test_report_and_figure(trained, tmp_path):
    results = trained[0]
    evil = [{**one, "graph": "a|b_<script>"} for one in results[:3]]
    files = write_edge_report(tmp_path, results + evil)
    assert [file.name for file in files] == ["edges.md", "edges.json", "edges.png"]
    text = files[0].read_text()
    assert "## planted" in text
    assert "a\\|b\\_\\<script\\>" in text
    for level in LEVELS:
        assert (level.title in text) == any(one["level"] == level.id for one in results)
    assert json.loads(files[1].read_text())[0]["method"] == "majority"
    assert files[2].read_bytes()[:4] == b"\x89PNG"
    again = files[2].read_bytes()
    assert write_edge_report(tmp_path, results + evil)[2].read_bytes() == again


def test_cells_have_mean_and_spread():
    runs = [{"accuracy": value, "seconds": 1.0} for value in (0.2, 0.4)]
    row = {"graph": "g", "level": "none", "method": "m", "title": "M", "runs": runs}
    table = edge_table([row])
    assert "| M | 0.300 ± 0.141 | – |" in table
    assert mean_of(row, "balanced") is None


def write_folder(folder, types):
    data = planted_graph(1)
    pairs = [pair for pair in zip(*data.edge_index.tolist(), strict=True) if pair[0] < pair[1]]
    rows = "".join(f"{a},{b},{types(a, b)}\n" for a, b in pairs)
    (folder / "edges.csv").write_text(f"source,target,type\n{rows}")


@pytest.mark.filterwarnings("ignore")
def test_a_folder_of_one_s_own(tmp_path):
    write_folder(tmp_path, lambda a, b: "low" if a + b < 60 else "high")
    data = load_typed(str(tmp_path))
    assert data.edge_type_names == ["high", "low"]
    for label, known in ((lambda n: n % 2, True), (lambda n: 0, False)):  # one class is no help
        nodes = "".join(f"{n},{n / 7},{label(n)}\n" for n in range(60))
        (tmp_path / "nodes.csv").write_text(f"id,a,label\n{nodes}")
        assert bool((load_typed(str(tmp_path)).y >= 0).any()) == known
    write_folder(tmp_path, lambda a, b: "one")
    with pytest.raises(InputError, match="no edges with two known types"):
        load_typed(str(tmp_path))
