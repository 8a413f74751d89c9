"""``lgdgcn train`` for real: what it prints and leaves behind."""

import json
import random
import tomllib
from pathlib import Path

import pytest
import torch

from cli.conftest import write_graph
from cli.runner import (
    GRAPH,
    call,
    content,
    result_of,
    rows,
    train,
    widest_table,
)
from lgdgcn.config import Settings, portfolio, preset, resolve
from lgdgcn.runs.naming import default_folder

PNG = b"\x89PNG\r\n\x1a\n"
TERMS = ["classification", "edge", "total"]


# The run folder


def test_the_run_folder_is_complete(finished):
    folder, outcome = finished
    assert (outcome.code, outcome.err) == (0, "")
    files = content(folder)
    own = {name for name in files if not name.startswith("compared/gcn/")}
    models = {f"model-seed-{seed}.safetensors" for seed in (0, 1)}
    assert models < own  # explanations say how much seeds differ
    own -= models
    assert own == {
        "config.toml",
        "metrics.jsonl",
        "model.safetensors",
        "result.json",
        "run.lock",
        "units.png",
    }
    assert {f"compared/gcn/{name}" for name in own - {"units.png"}} == files.keys() - own - models
    assert files["units.png"].startswith(PNG)
    assert files["units.png"].endswith(b"IEND\xaeB`\x82")


def test_the_log_has_every_epoch_and_every_term(finished):
    folder, _ = finished
    used = tomllib.loads((folder / "config.toml").read_text())["settings"]
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [(line["seed"], line["epoch"]) for line in lines] == [
        (seed, epoch) for epoch in range(1, 9) for seed in (0, 1)
    ]
    for line in lines:
        assert list(line) == ["seed", "epoch", *TERMS, "val_loss", "val_micro_f1"]
        total = line["classification"] + used["lambda_edge"] * line["edge"]
        assert line["total"] == pytest.approx(total, rel=1e-5)
        assert 0 <= line["val_micro_f1"] <= 1


def test_the_result_says_what_was_run_and_how_well(finished):
    folder, _ = finished
    result = json.loads((folder / "result.json").read_text())
    assert (result["dataset"], result["model"], result["metric"]) == (GRAPH, "lgdgcn", "micro_f1")
    assert [run["seed"] for run in result["runs"]] == [0, 1]
    tests = torch.tensor([run["test"] for run in result["runs"]], dtype=torch.float64)
    assert result["mean"] == pytest.approx(tests.mean().item())
    assert result["std"] == pytest.approx(tests.std().item())
    for run in result["runs"]:
        assert run["epochs"] == 8
        assert run["seconds"] > 0
        assert run["scores"]["test"]["micro_f1"] == run["test"]
        assert run["scores"]["val"]["micro_f1"] == run["val"]
    assert 0 <= result["factors"]["routing_entropy"] <= 1
    assert 1 <= result["factors"]["factor_usage"] <= 2
    assert 0 <= result["factors"]["edge_attribution"] <= 1
    assert 0 <= result["factors"]["dci_disentanglement"] <= 1
    assert result["factors"]["correlation_ratio"] > 0
    assert json.loads((folder / "compared/gcn/result.json").read_text())["factors"] == {}


def tables(text):
    """The rows of both tables, scores and factors."""
    scores, _, factors = text.partition("\nFactors")
    return rows(scores), rows(factors)


def test_the_tables_show_both_models(finished):
    folder, outcome = finished
    result = json.loads((folder / "result.json").read_text())
    scores, factors = tables(outcome.out)
    assert scores["LGD-GCN (ours)"][0] == f"{100 * result['mean']:.1f} ± {100 * result['std']:.1f}"
    assert len(scores["GCN"]) == len(scores["LGD-GCN (ours)"])
    assert factors["LGD-GCN (ours)"] == [
        f"{100 * result['factors']['edge_attribution']:.1f}",
        f"{result['factors']['routing_entropy']:.4f}",
        f"{result['factors']['factor_usage']:.2f}",
        f"{result['factors']['dci_disentanglement']:.3f}",
        f"{result['factors']['correlation_ratio']:.2f}",
    ]
    assert "GCN" not in factors  # it has no factors to score
    assert "mean ± std of 2 seeds" in outcome.out
    assert f"run folder: {folder}" in outcome.out
    assert widest_table(outcome.out) <= 80


def test_columns_that_this_graph_can_never_fill_are_left_out(mine, tmp_path):
    graph, _, outcome = mine  # whose true factors nobody knows
    _, factors = tables(outcome.out)
    assert len(factors["LGD-GCN (ours)"]) == 3
    assert "–" not in factors["LGD-GCN (ours)"]
    assert "edge attr." not in outcome.out
    outcome = train(tmp_path / "other", "--model", "gcn", graph=graph, epochs=2)
    assert "Factors" not in outcome.out


def test_its_config_makes_the_same_run_again_bitwise(finished, tmp_path):
    folder, _ = finished
    config = tomllib.loads((folder / "config.toml").read_text())
    assert config["run"] == {"dataset": GRAPH, "model": "lgdgcn", "seeds": 2, "split": "standard"}
    given = {"epochs": 8, "hidden_channels": 8, "factors": 2}
    own = preset("synthetic", "lgdgcn", multi_label=True)
    assert Settings(**config["settings"]) == resolve(own, given)
    again = call(
        "train", GRAPH, "--config", folder / "config.toml", "--seeds", 2, "--out", tmp_path
    )
    assert again.code == 0
    beside = {"verdict": result_of(folder)["verdict"]}  # on the model that stands beside it
    assert result_of(tmp_path) | beside == result_of(folder)
    for name in ("config.toml", "metrics.jsonl", "model.safetensors"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def settings_of(run):
    return tomllib.loads((run / "config.toml").read_text())["settings"]


def test_variants_of_lgd_gcn_stand_beside_it(tmp_path):
    names = ["lgdgcn-paper", "lgdgcn-released"]
    args = ["--set", "epochs=2", "--compare", ",".join(["lgdgcn", *names])]
    outcome = call("train", GRAPH, *args, "--out", tmp_path / "run")
    assert outcome.code == 0, outcome
    table = list(rows(outcome.out))
    shown = [table.index(f"LGD-GCN ({name})") for name in ("ours", "paper", "released")]
    assert shown == sorted(shown)
    compared = tmp_path / "run/compared"
    for name in names:
        variant = name.partition("-")[2]
        own = preset("synthetic", "lgdgcn", variant, multi_label=True)
        wanted = resolve({"variant": variant}, own, {"epochs": 2}).as_dict()
        assert settings_of(compared / name) == wanted
    assert result_of(compared / "lgdgcn-paper")["variant"] == "paper"
    # what the run is itself is not trained again
    assert sorted(file.name for file in compared.iterdir()) == names
    assert "--compare lgdgcn: the same is trained already" in outcome.out
    assert outcome.out.count("\n LGD-GCN (ours) ") == 2  # scores and factors


def test_one_label_per_node_and_label_sets_have_other_settings(tmp_path):
    graph = write_graph(tmp_path / "graph")
    for one, multi_label in ((graph, False), (GRAPH, True)):
        run = tmp_path / f"run {multi_label}"
        assert train(run, graph=one, epochs=2).code == 0
        given = {"epochs": 2, "factors": 2, "hidden_channels": 8}
        own = preset("", "lgdgcn", "ours", multi_label=multi_label)
        first = {}
        if one != GRAPH:  # which has a preset
            first = portfolio("lgdgcn", "ours")[0] | {"scaling": "auto"}
            del own["normalize_features"]
        assert settings_of(run) == resolve(own, first, given).as_dict()


def test_names_are_shown_as_they_are(tmp_path):
    graph = write_graph(tmp_path / "$x^ [bold] :smile:")
    outcome = train(tmp_path / "run [" / "dim]", graph=graph, epochs=2)
    assert outcome.code == 0
    assert "$x^ [bold] :smile:" in outcome.out
    assert "run [/dim]" in outcome.out


def test_known_factors_of_a_users_graph_are_scored(tmp_path):
    import numpy as np

    from lgdgcn.data import synthetic_graph

    data = synthetic_graph(nodes=60, classes=3, factors=2, average_degree=8)
    masks = {name: data[name].numpy() for name in ("train_mask", "val_mask", "test_mask")}
    arrays = {"x": data.x.to_dense().numpy(), "y": data.y.numpy(), **masks}
    np.savez(tmp_path / "edges.npz", edge_index=data.edge_index.numpy())
    np.savez(tmp_path / "nodes.npz", **arrays, y_factor=data.y_factor.numpy())
    assert train(tmp_path / "run", graph=f"{tmp_path}/", epochs=2).code == 0
    assert 0 <= result_of(tmp_path / "run")["factors"]["edge_attribution"] <= 1
    assert "known factors" in call("data", "check", f"{tmp_path}/").out


def test_default_folders_are_numbered(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    args = ["train", GRAPH, "--model", "mlp", "--epochs", 1]
    for _ in range(2):
        assert call(*args).code == 0
    assert sorted(f.name for f in (tmp_path / "runs").iterdir()) == [
        "synthetic-mlp",
        "synthetic-mlp-2",
    ]
    call(*args, "--resume").refused("no unfinished run of synthetic-mlp")


@pytest.mark.parametrize(
    ("graph", "model", "folder"),
    [
        ("synthetic", "lgdgcn-paper", "synthetic-lgdgcn-paper"),
        ("my graph ü", "", "my-graph"),
        ("../", "mlp", "..-mlp"),
        ("ü", "", "graph"),
        ("x" * 99, "", "x" * 64),
    ],
)
def test_default_folders_have_the_names_of_graph_and_model(graph, model, folder):
    assert default_folder(graph, model) == Path("runs") / folder


@pytest.mark.parametrize("empty", ["val", "test"])
def test_an_empty_part_of_the_split(tmp_path, empty):
    graph = write_graph(tmp_path / "graph")
    nodes = graph / "nodes.csv"
    nodes.write_text(nodes.read_text().replace(f",{empty}\n", ",train\n"))
    outcome = train(tmp_path / "run", graph=graph, epochs=2)
    assert outcome.code == 0
    assert ("validation split is empty" in outcome.err) == (empty == "val")
    result = result_of(tmp_path / "run")
    assert result["runs"][0][empty] is None
    assert (result["mean"] is None) == (empty == "test")


# What is refused


def test_resuming_a_finished_run_shows_it_again(finished):
    folder, first = finished
    before = content(folder)
    again = train(folder, "--seeds", 2, "--compare", "gcn", "--resume")
    assert again == first
    assert content(folder) == before


def test_overwrite_replaces_a_run_but_not_for_a_graph_that_is_not_there(tmp_path):
    assert train(tmp_path, "--model", "mlp", epochs=3).code == 0
    before = content(tmp_path)
    train(tmp_path, "--overwrite", graph="corra").refused("corra", "did you mean 'cora'")
    assert content(tmp_path) == before
    assert train(tmp_path, "--model", "mlp", "--overwrite", epochs=2).code == 0
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 2


# Label sets of different sizes


def write_sets(folder, validated=True):
    """A graph whose nodes have one to three of five labels, each rare."""
    folder.mkdir()
    chance = random.Random(0)
    rows = ["id,f1,f2,f3,f4,f5,split," + ",".join(f"label:{name}" for name in "abcde")]
    for i in range(150):
        own = {i % 5} | ({(i + 1) % 5} if i % 4 == 0 else set()) | ({2} if i % 7 == 0 else set())
        values = [f"{chance.random() + (j in own):.4f}" for j in range(5)]
        split = ("train", "val" if validated else "train", "test")[i % 3]
        rows.append(",".join([f"n{i}", *values, split, *(str(int(j in own)) for j in range(5))]))
    (folder / "nodes.csv").write_text("\n".join(rows) + "\n")
    edges = [(i, (i + 5) % 150) for i in range(150)]
    text = "".join(f"n{a},n{b}\nn{b},n{a}\n" for a, b in edges)
    (folder / "edges.csv").write_text("source,target\n" + text)
    return folder


def test_label_sets_of_different_sizes(tmp_path):
    graph = write_sets(tmp_path / "graph")
    settings = ["--model", "mlp", "--set", "lr=0.03", "--set", "dropout=0.2"]
    outcome = train(tmp_path / "run", *settings, "--seeds", 2, graph=graph, epochs=60)
    assert outcome.code == 0
    assert "F1 at thresholds per label, tuned on validation (in common 0." in outcome.out
    assert "metric: average precision, as nodes have 1 to 3 labels" in outcome.out
    result = result_of(tmp_path / "run")
    assert result["metric"] == "average_precision"
    for run in result["runs"]:
        test = run["scores"]["test"]
        assert run["test"] == test["average_precision"] > 0.5
        assert test["micro_f1"] > 0.5
        assert test["micro_f1"] != test["micro_f1_at_0.5"]
        assert test["micro_f1_with_true_set_size"] > 0.5
        assert 0 < run["threshold"] < 1
    log = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    first, *_, last = [line["val_average_precision"] for line in log if line["seed"] == 0]
    assert last > first


def test_without_validation_the_threshold_is_a_half(tmp_path):
    graph = write_sets(tmp_path / "graph", validated=False)
    outcome = train(tmp_path / "run", "--model", "mlp", graph=graph, epochs=3)
    assert "F1 at threshold 0.5, as there are no validation nodes to tune it on" in outcome.out
    assert result_of(tmp_path / "run")["runs"][0]["threshold"] == 0.5


# The score


def write_imbalanced(folder):
    """Four of five nodes are of one class, which the first feature shows."""
    folder.mkdir()
    chance = random.Random(0)
    rows = ["id,f1,f2,label,split"]
    for i in range(150):
        own = i % 5 == 0
        values = f"{chance.random() + own:.4f},{chance.random():.4f}"
        rows.append(f"n{i},{values},{'ab'[own]},{('train', 'val', 'test')[i % 3]}")
    (folder / "nodes.csv").write_text("\n".join(rows) + "\n")
    edges = "".join(f"n{i},n{(i + 5) % 150}\nn{(i + 5) % 150},n{i}\n" for i in range(150))
    (folder / "edges.csv").write_text("source,target\n" + edges)
    return folder


def test_the_score_follows_the_balance_of_the_classes(tmp_path):
    graph = write_imbalanced(tmp_path / "graph")
    outcome = train(tmp_path / "run", "--compare", "mlp", graph=graph, epochs=12)
    assert outcome.code == 0
    assert "metric: ROC-AUC, as 80.0 % of the validation nodes have the same class" in outcome.out
    heading, _ = outcome.out.split("LGD-GCN", 1)
    assert "ROC-AUC" in heading
    assert "accuracy" in heading
    for folder in (tmp_path / "run", tmp_path / "run/compared/mlp"):
        result = result_of(folder)
        assert result["metric"] == "roc_auc"
        assert result["runs"][0]["test"] == result["runs"][0]["scores"]["test"]["roc_auc"]
        assert "val_roc_auc" in (folder / "metrics.jsonl").read_text()


# Trainings that have learned nothing


def test_warnings_are_printed_and_kept(tmp_path):
    settings = ["--set", "lr=1e-9", "--seeds", 2, "--compare", "gcn"]
    outcome = train(tmp_path / "run", *settings, epochs=12)
    assert outcome.code == 0
    found = result_of(tmp_path / "run")["warnings"]
    assert any("raise lr (now 1e-09)" in line for line in found)  # of one seed, or of both
    for line in found:
        assert outcome.out.count(f"warning: LGD-GCN (ours): {line}\n") == 1
    assert outcome.out.index("warning: LGD-GCN (ours): ") > outcome.out.index("\n GCN ")
    # resumed, the same is said again
    again = train(tmp_path / "run", *settings, "--resume", epochs=12)
    assert again.out == outcome.out
