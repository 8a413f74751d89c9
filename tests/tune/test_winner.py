"""The preset of a search: it says how it was found, and is what was found."""

import tomllib
from datetime import date

import optuna
import pytest

from lgdgcn.config import Settings, from_toml, preset, preset_names, resolve
from lgdgcn.data.source import GraphSource
from lgdgcn.search.tuning import Finalist
from lgdgcn.search.winner import write_preset
from tune.problems import GRAPH, new_study, problem_of

PARAMS = {"lr": 0.0123456789, "num_layers": 2, "dropout": 0.5, "tau": 12345.678}
FINALISTS = [Finalist(7, PARAMS, (0.81239, 0.8, 0.79)), Finalist(2, {"lr": 0.1}, (0.7, 0.7, 0.7))]
COMMAND = "lgdgcn tune 'a \"graph\"/' --trials 5"


def study_of(states="CCPFRW"):
    study = new_study()
    names = {state.name[0]: state for state in optuna.trial.TrialState}
    for letter in states:
        value = 0.5 if letter == "C" else None
        study.add_trial(optuna.create_trial(state=names[letter], value=value))
    return study


def written(folder, **problem):
    problem = problem_of(**problem)
    return write_preset(folder, problem, study_of(), FINALISTS, COMMAND, multi_label=True)


def test_it_reads_back_to_what_won(tmp_path):
    path = written(tmp_path, graph="knn", normalize_features=True, weight_decay=0)
    expected = Settings(
        lr=0.01235,
        num_layers=2,
        dropout=0.5,
        tau=12350.0,
        hidden_channels=8,
        factors=2,
        epochs=12,
        graph="knn",
        normalize_features=True,
        weight_decay=0.0,
    )
    assert resolve(from_toml(path)) == expected
    assert resolve(preset(GRAPH.preset_name, "mlp"), from_toml(path)) == expected  # as train does


@pytest.mark.parametrize("model", ["gcn", "gat", "appnp"])
def test_nothing_of_the_shipped_preset_shows_through(tmp_path, model):
    shipped = preset("cora", model)
    assert shipped["normalize_features"]
    path = written(tmp_path, source=GraphSource("cora"), model=model)
    assert not resolve(shipped, from_toml(path)).normalize_features
    assert resolve(shipped, from_toml(path)) == resolve(from_toml(path))


def test_it_says_how_it_was_found(tmp_path):
    about = tomllib.loads(written(tmp_path).read_text(encoding="utf-8"))["preset"]
    assert about == {
        "search": COMMAND,
        "trials": 3,
        "pruned": 1,
        "seeds": 3,
        "finalists": "best 2 trained again on 3 fresh seeds",
        "validation": 0.8008,
        "validation_std": 0.0112,
        "date": date.today(),
    }


def test_it_says_how_well_factors_are_told_apart(tmp_path):
    best = Finalist(7, PARAMS, (0.8,), {"edge_attribution": 0.123456, "routing_entropy": 0.5})
    path = write_preset(tmp_path, problem_of(), study_of(), [best], COMMAND, multi_label=True)
    about = tomllib.loads(path.read_text(encoding="utf-8"))["preset"]
    assert (about["edge_attribution"], about["routing_entropy"]) == (0.1235, 0.5)


@pytest.mark.parametrize(
    ("graph", "model", "variant", "name"),
    [
        ("cora", "gcn", None, "cora-gcn"),
        ("Cora", "lgdgcn", "paper", "cora-lgdgcn-paper"),
        ("cora", "lgdgcn", "released", "cora-lgdgcn-released"),
        ("synthetic", "disengcn", "paper", "synthetic-disengcn-paper"),
        (GRAPH.dataset, "mlp", None, "synthetic_nodes_60_factors_2_classes_3-mlp"),
        ("synthetic:average_degree=6.5", "gcn", None, "synthetic_average_degree_6.5-gcn"),
        ("some/folder", "gcn", None, "folder-gcn"),
        ("some/My (2nd) graph.v2", "gcn", None, "my_2nd_graph.v2-gcn"),
        ("some/граф", "gcn", None, "graph-gcn"),
        ("some/" + 255 * "x", "gcn", None, 100 * "x" + "-gcn"),
    ],
)
def test_its_name_is_the_one_that_is_looked_for(tmp_path, graph, model, variant, name):
    source = GraphSource(graph)
    fixed = {} if variant is None else {"variant": variant}
    path = written(tmp_path, source=source, model=model, **fixed)
    assert path == tmp_path / f"{name}.toml"
    if source.preset_name:
        assert path.stem in preset_names(source.preset_name, model, variant)[:2]
    assert resolve(from_toml(path)).variant == (variant or "paper")


def test_the_command_in_it_is_for_the_same_graph(tmp_path):
    source = GraphSource("cora", split="random", features="degree")
    first = written(tmp_path, source=source, model="gcn").read_text().splitlines()[0]
    assert first == "# lgdgcn train cora --model gcn --split random --features degree"


@pytest.mark.parametrize("folder", ["line\nbreak/x", 'quote " back\\slash/x', "мой граф/x"])
def test_any_name_of_a_folder(tmp_path, folder):
    path = written(tmp_path, source=GraphSource(folder))
    assert resolve(from_toml(path)).lr == 0.01235
    assert path.read_text(encoding="utf-8").startswith("# lgdgcn train ")
