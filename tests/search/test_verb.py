"""``lgdgcn tune``: what it leaves, what it refuses, and how it goes on."""

import csv
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections import Counter
from datetime import date
from pathlib import Path

import optuna
import pytest

from cli.conftest import write_graph
from cli.runner import call, content, widest_table
from cli.runner import rows as table_of
from lgdgcn.config import from_toml, preset, resolve
from lgdgcn.search import tuning, winner
from lgdgcn.search.space import read_space

GRAPH = "synthetic:nodes=60,factors=2,classes=3"
NAME = "synthetic_nodes_60_factors_2_classes_3-mlp"
SPACE = """
[space]
lr = {low = 0.01, high = 0.3, log = true}
dropout = {low = 0.0, high = 0.8}
[settings]
epochs = 12
hidden_channels = 8
[[starts]]
lr = 0.05
"""
TRIALS = 9


@pytest.fixture(autouse=True)
def few_finalists(monkeypatch):
    monkeypatch.setattr(winner, "FINALISTS", 2)
    monkeypatch.setattr(winner, "FRESH_SEEDS", 4)


def words(folder: Path, *args: object, model: str = "mlp", trials: int = TRIALS, space=SPACE):
    file = folder / "space.toml"
    folder.mkdir(exist_ok=True)
    file.write_text(space)
    how = {"--model": model, "--trials": trials, "--space": file, "--out": folder / "out"}
    own = [word for pair in how.items() if pair[0] not in args for word in pair]
    return ["tune", GRAPH, *own, *args]


def tune(folder: Path, *args: object, **how):
    return call(*words(folder, *args, **how))


def trials_of(folder: Path, name: str = NAME) -> list[optuna.trial.FrozenTrial]:
    storage = f"sqlite:///{folder / 'out/study.db'}"
    return optuna.load_study(study_name=name, storage=storage).trials


def states_of(folder: Path) -> Counter:
    return Counter(trial.state.name for trial in trials_of(folder))


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """The folder of a finished search, and what was printed; not to be changed."""
    folder = tmp_path_factory.mktemp("tuned")
    with pytest.MonkeyPatch.context() as patch:
        few_finalists.__wrapped__(patch)
        return folder, tune(folder)


@pytest.fixture
def again(tuned, tmp_path):
    """A copy of the finished search."""
    shutil.copytree(tuned[0], tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_what_it_leaves(tuned):
    folder, outcome = tuned
    assert outcome.code == 0
    pictures = {f"{plot}.{kind}" for plot in ("history", "importance") for kind in ("png", "svg")}
    assert set(content(folder / "out")) == {"study.db", "trials.csv", f"{NAME}.toml"} | pictures
    about = tomllib.loads((folder / f"out/{NAME}.toml").read_text())["preset"]
    searched = f"lgdgcn tune {GRAPH} --model mlp --trials 9 --seeds 3 --space space.toml"
    with (folder / "out/trials.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [*rows[0]] == ["trial", "state", "validation", "dropout", "lr"]
    assert Counter(row["state"] for row in rows) == {"complete": TRIALS}
    best = sorted(rows, key=lambda row: -float(row["validation"]))[:2]
    assert from_toml(folder / f"out/{NAME}.toml")["lr"] in [
        float(f"{float(row['lr']):.4g}") for row in best
    ]
    assert widest_table(outcome.out) <= 80
    top = max(float(row["validation"]) for row in rows)
    said = f"100 %: 9 of 9 trials, best validation {100 * top:.1f}"
    assert (len(outcome.err.splitlines()), outcome.err.splitlines()[-1]) == (TRIALS, said)
    winner, _ = table_of(outcome.out)["4 fresh seeds"]
    spread, _ = table_of(outcome.out)["±"]
    assert float(winner) == pytest.approx(100 * about["validation"], abs=0.06)
    assert float(spread) == pytest.approx(100 * about["validation_std"], abs=0.06)
    scores = {key: about.pop(key) for key in ("validation", "validation_std")}
    assert all(0 < score < 1 for score in scores.values())
    again = "best 2 trained again on 4 fresh seeds"
    assert about == {"search": searched, "trials": TRIALS, "pruned": 0, "seeds": 3,
                     "finalists": again, "date": date.today()}  # fmt: skip


def test_the_shipped_settings_and_the_starts_come_first(tuned):
    first, second = trials_of(tuned[0])[:2]
    shipped = read_space(tuned[0] / "space.toml").inside(preset("synthetic", "mlp"))
    assert shipped
    assert shipped.items() <= first.params.items()
    assert second.params["lr"] == 0.05


def test_the_printed_command_uses_the_preset(tuned, tmp_path):
    folder, outcome = tuned
    (line,) = [line for line in outcome.out.splitlines() if line.startswith("use it: ")]
    command = shlex.split(line.removeprefix("use it: "))
    assert command[:3] == ["lgdgcn", "train", GRAPH]
    assert call(*command[1:], "--out", tmp_path / "run").code == 0
    used = resolve(from_toml(tmp_path / "run/config.toml"))
    assert used == resolve(from_toml(folder / f"out/{NAME}.toml"))


# Going on


def test_a_finished_search_trains_nothing_and_more_trials_go_on(again, monkeypatch):
    before = content(again)
    with monkeypatch.context() as patch:
        patch.setattr("lgdgcn.training.Trainer", None)
        assert tune(again, "--resume").code == 0
    after = content(again)
    for name in (f"out/{NAME}.toml", "out/trials.csv", "out/history.png", "out/importance.svg"):
        assert after[name] == before[name]
    assert tune(again, "--resume", trials=TRIALS + 3).code == 0
    trials = trials_of(again)
    assert [t.state.name for t in trials] == ["COMPLETE"] * (TRIALS + 3)
    assert len({t.params["lr"] for t in trials}) == TRIALS + 3  # none is drawn again
    assert tomllib.loads((again / f"out/{NAME}.toml").read_text())["preset"]["trials"] == 12


def test_a_stopped_search_is_gone_on_with(tmp_path, monkeypatch):
    real, epochs = tuning.race, []

    def interrupted(*args, on_epoch):
        def look(reports):
            epochs.append(1)
            if len(epochs) == 20:
                signal.raise_signal(signal.SIGTERM)
            return on_epoch(reports)

        return real(*args, on_epoch=look)

    with monkeypatch.context() as patch:
        patch.setattr(tuning, "race", interrupted)
        stopped = tune(tmp_path)
    stopped.refused_last("stopped; what is finished is kept", "--resume", code=143)
    assert len(epochs) == 20
    assert states_of(tmp_path) == {"COMPLETE": 4, "FAIL": 4}
    assert set(content(tmp_path / "out")) == {"study.db"}
    assert tune(tmp_path, "--resume").code == 0
    assert states_of(tmp_path) == {"COMPLETE": TRIALS, "FAIL": 4}


def waited(condition, process=None) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        assert process is None or process.poll() is None
        time.sleep(0.05)


@pytest.fixture
def started():
    """Starts a command in a process of its own; none is left."""
    begun = []

    def start(*args):
        command = [sys.executable, "-m", "lgdgcn", *map(str, args)]
        how = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        begun.append(subprocess.Popen(command, **how))
        return begun[-1]

    yield start
    for process in begun:
        process.terminate()
        process.communicate(timeout=60)


def of_process(folder: Path, state: str) -> dict[str, list[int]]:
    """The trials of a state, by the process that asked for them; none while there is no study."""
    found: dict[str, list[int]] = {}
    try:
        trials = trials_of(folder)
    except Exception:  # the tables are just being made
        return found
    for trial in trials:
        if trial.state.name == state and "process" in trial.user_attrs:
            process = trial.user_attrs["process"].rpartition(":")[2]
            found.setdefault(process, []).append(trial.number)
    return found


LONG = SPACE.replace("epochs = 12", "epochs = 150\npatience = 150")
# other workers, which load their libraries first, come while a batch is trained
LONGER = SPACE.replace("epochs = 12", "epochs = 600\npatience = 600")


def test_a_killed_search_keeps_what_is_finished(tmp_path, started):
    process = started(*words(tmp_path, trials=40, space=LONG))
    waited(lambda: len(trials_of(tmp_path)) > 5 if of_process(tmp_path, "RUNNING") else 0, process)
    process.kill()
    process.wait()
    before = trials_of(tmp_path)
    done = [trial.number for trial in before if trial.state.name == "COMPLETE"]
    assert len(done) >= 4
    assert of_process(tmp_path, "RUNNING")
    assert tune(tmp_path, "--resume", trials=len(done) + 2, space=LONG).code == 0
    after = trials_of(tmp_path)
    assert [after[number].value for number in done] == [before[n].value for n in done]
    assert not of_process(tmp_path, "RUNNING")
    assert sum(states_of(tmp_path)[name] for name in ("COMPLETE", "PRUNED")) == len(done) + 2


def test_fault_34_workers_share_a_search_and_one_may_be_killed(tmp_path, started):
    """Of three processes a worker dies in its first batch: at least all trials are finished."""
    process = started(*words(tmp_path, "--workers", 3, trials=30, space=LONGER))
    own = str(process.pid)
    waited(lambda: {*of_process(tmp_path, "RUNNING")} - {own}, process)
    killed = next(iter({*of_process(tmp_path, "RUNNING")} - {own}))
    os.kill(int(killed), signal.SIGKILL)
    _, said = process.communicate(timeout=240)
    assert process.returncode == 0, said
    assert "a worker ended early, its trials are lost" in said
    trials = trials_of(tmp_path)
    ends = [t for t in trials if t.state.name in ("COMPLETE", "PRUNED")]
    assert 30 <= len(ends) <= 30 + 8  # perhaps a batch of each more
    lost = [t for t in trials if t.state.name == "FAIL"]
    assert {t.user_attrs["process"].rpartition(":")[2] for t in lost} == {killed}
    assert len({t.user_attrs["process"] for t in ends}) > 1
    assert not of_process(tmp_path, "RUNNING")
    assert (tmp_path / f"out/{NAME}.toml").is_file()


def test_ctrl_c_ends_all_workers(tmp_path, started):
    process = started(*words(tmp_path, "--workers", 2, trials=40, space=LONGER))
    waited(lambda: len(of_process(tmp_path, "RUNNING")) == 2, process)
    others = {*of_process(tmp_path, "RUNNING")} - {str(process.pid)}
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.splitlines()[-1].startswith("lgdgcn: stopped; ")
    assert said.count("lgdgcn: ") == 1
    assert "Traceback" not in said
    for other in others:
        waited(lambda other=other: not Path(f"/proc/{other}").exists())
    assert not of_process(tmp_path, "RUNNING")


# Models, graphs and folders


def test_features_and_splits(tmp_path):
    outcome = tune(tmp_path, "--features", "degree", "--split", "random", trials=1)
    assert outcome.code == 0, outcome
    options = f"{GRAPH} --split random --features degree --model mlp"
    assert f"use it: lgdgcn train {options} --config " in outcome.out
    (file,) = (tmp_path / "out").glob("*.toml")
    assert file.read_text().startswith(f"# lgdgcn train {options}\n")
    assert f"lgdgcn tune {options}" in tomllib.loads(file.read_text())["preset"]["search"]


def test_a_folder_of_any_name_and_the_shipped_space(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    graph = write_graph(tmp_path / 'мой\n"граф"')
    outcome = call("tune", graph, "--model", "mlp", "--trials", 1, "--set", "epochs=3")
    assert outcome.code == 0, outcome
    (file,) = Path("runs/tune").glob("*/*.toml")
    assert file.parts[2:] == ("graph-mlp", "graph-mlp.toml")
    assert resolve(from_toml(file)).feature_scaling == "auto"
    use = ["train", graph, "--model", "mlp", "--config", file, "--out", "run"]
    assert call(*use).code == 0
    moved = shutil.copytree(graph, tmp_path / "elsewhere" / graph.name)
    how = ["--model", "mlp", "--trials", 1, "--set", "epochs=3", "--resume"]
    assert call("tune", moved, *how).code == 0  # it is known by what it holds
    nodes = moved / "nodes.csv"
    nodes.write_text(nodes.read_text().replace(",train", ",test", 1))
    call("tune", moved, *how).refused("of another search: data: ")


@pytest.mark.parametrize("model", ["lgdgcn", "lgdgcn-released"])
def test_readings_of_our_model(tmp_path, model):
    outcome = tune(tmp_path, model=model, trials=1)
    assert outcome.code == 0, outcome
    (file,) = (tmp_path / "out").glob("*.toml")
    assert file.stem.endswith(f"2_classes_3-{model}")
    assert from_toml(file)["variant"] == (model.partition("-")[2] or "ours")
    assert tomllib.loads(file.read_text())["preset"]["routing_entropy"] >= 0
    assert "routing entropy" in outcome.out.lower()


def test_what_is_set_is_not_searched(tmp_path):
    given = ["--set", "lr=0.02", "--set", "epochs=6", "--metric", "average_precision"]
    outcome = tune(tmp_path, *given, trials=2)
    assert outcome.code == 0
    assert "metric: average precision, as asked for" in outcome.out
    assert [sorted(trial.params) for trial in trials_of(tmp_path)] == [["dropout"]] * 2
    found = tomllib.loads((tmp_path / f"out/{NAME}.toml").read_text())
    assert found["settings"].items() >= {"lr": 0.02, "epochs": 6}.items()
    assert found["preset"]["search"].endswith(
        " --set lr=0.02 --set epochs=6 --metric average_precision"
    )
    tune(tmp_path, "--set", "lr=0.03", "--resume").refused("of another search", "lr: 0.02")


def test_a_database_that_fails_is_one_line(tmp_path, monkeypatch):
    def fail(*_):
        raise optuna.exceptions.StorageInternalError("gone")

    monkeypatch.setattr(tuning, "enqueue", fail)
    tune(tmp_path).refused_last("the study's database", "failed: gone", "--resume", code=1)
