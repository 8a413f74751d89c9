"""``lgdgcn train`` on a graph without a preset: a race, and its winner is what the user gets."""

import json
import shutil
import tomllib

import pytest

from cli import conftest
from cli.runner import call, result_of
from lgdgcn import config
from lgdgcn.cli import train_nodes
from lgdgcn.errors import StoppedError
from lgdgcn.search import choose as choosing
from lgdgcn.search.families import FAMILIES


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Few epochs, and of every family the first settings only."""
    monkeypatch.setattr(choosing, "RUNGS", (2, 3, 4))
    monkeypatch.setattr(choosing, "KEPT", {2: 3, 3: 2})
    monkeypatch.setattr("lgdgcn.search.sample.MOST_SPLITS", 2)
    real = config.portfolio
    monkeypatch.setattr(
        "lgdgcn.search.families.portfolio", lambda *args, **more: real(*args, **more)[:2]
    )


@pytest.fixture
def graph(tmp_path):
    return conftest.write_graph(tmp_path / "mine", nodes=36)


@pytest.fixture
def winner(monkeypatch):
    """Which family wins is said here; how the others did is left."""

    def wins(model):
        def ranked(rows):
            return next(row for row in rows if row.candidate.model == model)

        monkeypatch.setattr(choosing, "_simplest_alike", ranked)
        monkeypatch.setattr(choosing, "KEPT", {2: 99, 3: 99})

    return wins


def run(folder, graph, *args, epochs=6):
    return call("train", graph, "--out", folder, "--epochs", epochs, "--reasons", "factors", *args,
                *([] if "--budget" in args else ["--budget", len(FAMILIES)]))  # fmt: skip


def config_of(folder):
    return tomllib.loads((folder / "config.toml").read_text())


def test_the_winner_is_what_predict_uses_and_the_best_with_factors_stands_beside(
    graph, tmp_path, winner
):
    winner("gcn")
    outcome = run(tmp_path / "run", graph)
    assert outcome.code == 0, outcome
    result = result_of(tmp_path / "run")
    assert (result["model"], config_of(tmp_path / "run")["run"]["model"]) == ("gcn", "gcn")
    assert {row["model"] for row in result["ranking"]} == {*FAMILIES}
    assert result["ranking"][0]["model"] == "gcn"
    assert "→ GCN " in outcome.out
    assert result["verdict"]["sentence"] in outcome.out
    assert f"next: lgdgcn predict {tmp_path / 'run'}" in outcome.out
    beside = tmp_path / "run/compared/lgdgcn"
    assert [file.name for file in beside.parent.iterdir()] == ["lgdgcn"]
    assert result_of(beside)["model"] == "lgdgcn"
    assert call("predict", tmp_path / "run", "--out", tmp_path / "p.csv").code == 0
    rows = (tmp_path / "p.csv").read_text().splitlines()
    alone = tmp_path / "alone"  # the same model, trained by its own settings
    copied = shutil.copy(tmp_path / "run/config.toml", tmp_path / "gcn.toml")
    assert call("train", graph, "--config", copied, "--out", alone).code == 0
    assert call("predict", alone, "--out", tmp_path / "q.csv").code == 0
    assert (tmp_path / "q.csv").read_text().splitlines() == rows
    first = [line for one in (tmp_path / "run", beside)
             for line in (one / "metrics.jsonl").read_text().splitlines()]  # fmt: skip
    assert [json.loads(line)["epoch"] for line in first] == [*range(1, 7)] * 2


def test_a_winner_with_factors_stands_alone(graph, tmp_path, winner):
    winner("lgdgcn")
    outcome = run(tmp_path / "run", graph, "--json")
    assert outcome.code == 0, outcome
    said = json.loads(outcome.out)
    assert (said["model"], said["variant"], said["compared"]) == ("lgdgcn", "ours", {})
    assert said["ranking"] == result_of(tmp_path / "run")["ranking"]
    assert "LGD-GCN (ours)" in said["verdict"]["sentence"]
    assert said["folder"] == str(tmp_path / "run")
    assert not (tmp_path / "run/compared").exists()


def test_a_model_that_is_named_is_trained_and_no_other(graph, tmp_path):
    outcome = run(tmp_path / "run", graph, "--model", "mlp", "--budget", 2, "--compare", "gcn")
    assert outcome.code == 0, outcome
    result = result_of(tmp_path / "run")
    assert [(row["model"], row["tried"]) for row in result["ranking"]] == [("mlp", 2)]
    assert "Race on" not in outcome.out
    assert [file.name for file in (tmp_path / "run/compared").iterdir()] == ["gcn"]
    assert result_of(tmp_path / "run/compared/gcn")["ranking"][0]["tried"] == 2


def test_what_is_compared_has_the_settings_of_the_race(graph, tmp_path, winner):
    winner("gcn")
    words = ("--compare", "mlp,gcn,lgdgcn,lgdgcn-paper")
    outcome = run(tmp_path / "run", graph, *words)
    assert outcome.code == 0, outcome
    for name in ("gcn", "lgdgcn"):
        assert f"--compare {name}: the same is trained already, so not again" in outcome.out
    compared = tmp_path / "run/compared"
    assert sorted(file.name for file in compared.iterdir()) == ["lgdgcn", "lgdgcn-paper", "mlp"]
    assert result_of(compared / "mlp")["ranking"][0]["model"] == "gcn"
    assert "ranking" not in result_of(compared / "lgdgcn-paper")
    again = run(tmp_path / "run", graph, *words, "--resume")
    assert again.code == 0, again


def test_settings_of_one_family_leave_only_that(graph, tmp_path):
    outcome = run(tmp_path / "run", graph, "--set", "hops=3", "--factors", 2)
    assert outcome.code == 0, outcome
    assert [row["model"] for row in result_of(tmp_path / "run")["ranking"]] == ["lgdgcn"]
    assert config_of(tmp_path / "run")["settings"]["hops"] == 3
    refused = ["--set", "heads=2", "--factors", 2]
    run(tmp_path / "no", graph, *refused).refused("no model has all of the settings heads, ")
    assert not (tmp_path / "no").exists()


def test_without_a_budget_the_first_settings_are_taken(graph, tmp_path):
    outcome = run(tmp_path / "run", graph, "--budget", "none")
    assert outcome.code == 0, outcome
    assert result_of(tmp_path / "run")["model"] == "lgdgcn"
    assert "ranking" not in result_of(tmp_path / "run")
    assert "settings:" not in outcome.out


def test_without_validation_nodes_it_says_that_nothing_was_chosen(graph, tmp_path):
    nodes = graph / "nodes.csv"
    nodes.write_text(nodes.read_text().replace(",val\n", ",test\n"))
    outcome = run(tmp_path / "run", graph)
    assert outcome.code == 0, outcome
    assert outcome.out.count("as without validation nodes nothing could be chosen") == 1
    assert result_of(tmp_path / "run")["model"] == "lgdgcn"
    assert not (tmp_path / "run/compared").exists()


def test_test_labels_choose_nothing(graph, tmp_path):
    assert run(tmp_path / "run", graph).code == 0
    nodes = graph / "nodes.csv"
    lines = nodes.read_text().splitlines()
    tests = [line.rsplit(",", 2) for line in lines if line.endswith(",test")]
    labels = [cells[1] for cells in tests]
    shuffled = iter(labels[1:] + labels[:1])
    nodes.write_text("".join(
        (f"{line.rsplit(',', 2)[0]},{next(shuffled)},test" if line.endswith(",test") else line)
        + "\n" for line in lines
    ))  # fmt: skip
    assert nodes.read_text().splitlines() != lines
    assert run(tmp_path / "other", graph).code == 0
    for name in ("", "compared/lgdgcn"):
        one, other = tmp_path / "run" / name, tmp_path / "other" / name
        assert one.exists() == other.exists()
        if one.exists():
            same = [(path / "config.toml").read_text() for path in (one, other)]
            assert same[0] == same[1]
            logs = [(path / "metrics.jsonl").read_text() for path in (one, other)]
            assert logs[0] == logs[1]


def test_a_run_killed_anywhere_is_resumed_as_if_it_had_not_been(
    graph, tmp_path, winner, monkeypatch
):
    winner("gcn")
    assert run(tmp_path / "whole", graph).code == 0
    for killed in ("race", "between", "winner", "beside"):
        with monkeypatch.context() as patch:
            killed_and_resumed(killed, graph, tmp_path / "whole", tmp_path / killed, patch)


def killed_and_resumed(killed, graph, whole, cut, patch):
    """Stop a run at a place, go on with it, and compare it with one that was not stopped."""
    real, choose, write = train_nodes.fit, train_nodes.choose, train_nodes.Run.write_config

    def stopped(*args, **more):
        raise StoppedError("stopped", 130)

    def stopped_at(load, settings, model, *args, **more):
        if model == {"winner": "gcn", "beside": "lgdgcn"}[killed]:
            raise StoppedError("stopped", 130)
        return real(load, settings, model, *args, **more)

    if killed == "race":
        patch.setattr(train_nodes, "choose", stopped)
    elif killed == "between":  # the model beside has begun, the run itself has not
        patch.setattr(train_nodes.Run, "write_config", _once(write))
    else:
        patch.setattr(train_nodes, "fit", stopped_at)
    stop = run(cut, graph)
    assert stop.code == 130
    assert f"--resume --out {cut}" in stop.err
    # what was chosen stays chosen
    patch.setattr(train_nodes, "choose", None if killed in ("winner", "beside") else choose)
    patch.setattr(train_nodes, "fit", real)
    patch.setattr(train_nodes.Run, "write_config", write)
    outcome = run(cut, graph, "--resume")
    assert outcome.code == 0, outcome
    for name in ("", "compared/lgdgcn"):
        assert result_of(cut / name) == result_of(whole / name)
        logs = [(one / name / "metrics.jsonl").read_text() for one in (cut, whole)]
        assert logs[0] == logs[1]


def _once(write):
    """Write the first file, and be killed before the second."""
    written = []

    def write_config(self, text):
        if written:
            raise StoppedError("stopped", 130)
        written.append(self)
        write(self, text)

    return write_config


def test_a_finished_run_is_shown_again_and_other_settings_are_refused(graph, tmp_path, winner):
    winner("mlp")
    first = run(tmp_path / "run", graph)
    again = run(tmp_path / "run", graph, "--resume")
    assert again.code == 0, again
    table = first.out[first.out.index("Race on") :]
    assert again.out[again.out.index("Race on") :] == table
    run(tmp_path / "run", graph, "--resume", "--set", "lr=0.5").refused("settings.lr: ", "-> 0.5")


def test_a_time_limit_ends_the_race_with_a_word(graph, tmp_path):
    outcome = run(tmp_path / "run", graph, "--time-limit", "0.001s")
    assert outcome.code == 0, outcome
    assert "; time was over after 2 epochs" in outcome.out
    assert config_of(tmp_path / "run")["search"]["early"] is True


def test_a_winner_that_is_not_the_highest_is_explained(graph, tmp_path, winner):
    winner("mlp")
    outcome = run(tmp_path / "run", graph)
    file = tmp_path / "run/result.json"
    result = json.loads(file.read_text())
    result["ranking"][0]["validation"], result["ranking"][1]["validation"] = 0.7, 0.71
    result["ranking"][2]["validation"] = result["ranking"][3]["validation"] = 0.6
    file.write_text(json.dumps(result))
    said = "MLP is chosen: "
    assert call("show", tmp_path / "run").out.count(said) == 1
    result["ranking"][0]["validation"] = 0.99
    file.write_text(json.dumps(result))
    assert said not in call("show", tmp_path / "run").out
    whose = f"factors are those of LGD-GCN (ours), in {tmp_path / 'run/compared/lgdgcn'}; MLP"
    assert outcome.out.count(whose) == 1


def test_the_first_seed_and_random_splits_of_a_folder(graph, tmp_path):
    outcome = run(tmp_path / "run", graph, "--model", "mlp", "--budget", "none", "--seed", 3,
                  "--seeds", 2, "--split", "random")  # fmt: skip
    assert outcome.code == 0, outcome
    result = result_of(tmp_path / "run")
    assert [one["seed"] for one in result["runs"]] == [3, 4]
    assert len({one["data"] for one in result["runs"]}) == 2  # each with a split of its own
    assert config_of(tmp_path / "run")["run"] | {"dataset": ""} == {
        "dataset": "", "model": "mlp", "seeds": 2, "split": "random", "first_seed": 3
    }  # fmt: skip
    assert call("predict", tmp_path / "run", "--out", tmp_path / "p.csv").code == 0
    again = run(tmp_path / "run", graph, "--model", "mlp", "--budget", "none", "--seed", 3,
                "--seeds", 2, "--split", "random", "--resume")  # fmt: skip
    assert again.code == 0, again
