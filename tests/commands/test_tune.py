"""``lgdgcn tune``: what it leaves, what it refuses, and how it goes on."""

import csv
import multiprocessing
import os
import re
import shlex
import shutil
import signal
import time
import tomllib
import warnings
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path

import optuna
import pytest
import torch

from commands.conftest import write_graph
from commands.runner import Outcome, call, content, widest_table
from commands.runner import rows as table_of
from lgdgcn.cli import trial_table
from lgdgcn.commands import tune as command
from lgdgcn.config import from_toml, preset, resolve
from lgdgcn.data.source import GraphSource
from lgdgcn.errors import LGDWarning
from lgdgcn.search import processes
from lgdgcn.search import tuning as search
from lgdgcn.search.space import read_space
from tune.processes import kill, stop_hearts

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
    monkeypatch.setattr(search, "FINALISTS", 2)
    monkeypatch.setattr(search, "FRESH_SEEDS", 4)


def tune(folder: Path, *args: object, model: str = "mlp", trials: int = TRIALS, space: str = SPACE):
    file = folder / "space.toml"
    folder.mkdir(exist_ok=True)
    file.write_text(space)
    how = {"--model": model, "--trials": trials, "--space": file, "--out": folder / "out"}
    own = [word for pair in how.items() if pair[0] not in args for word in pair]
    return call("tune", GRAPH, *own, *args)


def last_line(outcome: Outcome) -> Outcome:
    """Without the lines on the progress before it."""
    return outcome._replace(err=outcome.err.splitlines()[-1])


def trials_of(folder: Path, name: str = NAME) -> list[optuna.trial.FrozenTrial]:
    storage = f"sqlite:///{folder / 'out/study.db'}"
    return optuna.load_study(study_name=name, storage=storage).trials


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """The folder of a finished search, and what was printed; not to be changed."""
    folder = tmp_path_factory.mktemp("tuned")
    with pytest.MonkeyPatch.context() as patch:
        few_finalists.__wrapped__(patch)
        return folder, tune(folder)


def test_what_it_leaves(tuned):
    folder, outcome = tuned
    assert outcome.code == 0
    files = {"study.db", "trials.csv", f"{NAME}.toml"}
    files |= {f"{plot}.{kind}" for plot in ("history", "importance") for kind in ("png", "svg")}
    assert files <= set(content(folder / "out"))
    assert not [name for name in content(folder / "out") if name.endswith(".tmp")]
    about = tomllib.loads((folder / f"out/{NAME}.toml").read_text())["preset"]
    assert about["search"] == f"lgdgcn tune {GRAPH} --model mlp --trials 9 --space space.toml"
    assert about["date"] == date.today()
    assert (about["trials"], about["seeds"]) == (TRIALS, 3)
    with (folder / "out/trials.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [*rows[0]] == ["trial", "state", "validation", "dropout", "lr"]
    assert Counter(row["state"] for row in rows) == {"complete": TRIALS}
    best = sorted(rows, key=lambda row: -float(row["validation"]))[:2]
    assert from_toml(folder / f"out/{NAME}.toml")["lr"] in [
        float(f"{float(row['lr']):.4g}") for row in best
    ]
    assert widest_table(outcome.out) <= 80
    winner, _ = table_of(outcome.out)["4 fresh seeds"]
    assert float(winner) == pytest.approx(100 * about["validation"], abs=0.06)


def test_the_shipped_settings_and_the_starts_come_first(tuned):
    first, second = trials_of(tuned[0])[:2]
    shipped = read_space(tuned[0] / "space.toml").inside(preset("synthetic", "mlp"))
    assert shipped
    assert shipped.items() <= first.params.items()
    assert second.params["lr"] == 0.05


def test_starts_are_queued_under_the_lock_of_the_study(tmp_path, monkeypatch):
    held, real = [], command.study_lock

    def watched(*where):
        @contextmanager
        def lock():
            with real(*where)():
                held.append(True)
                yield
                held.pop()

        return lock

    def queue(*args):
        raise RuntimeError(f"held: {held}")

    monkeypatch.setattr(command, "study_lock", watched)
    monkeypatch.setattr(command, "_enqueue_starts", queue)
    assert "held: [True]" in tune(tmp_path).err


def test_the_printed_command_uses_the_preset(tuned, tmp_path):
    folder, outcome = tuned
    (line,) = [line for line in outcome.out.splitlines() if line.startswith("use it: ")]
    command = shlex.split(line.removeprefix("use it: "))
    assert command[:3] == ["lgdgcn", "train", GRAPH]
    assert call(*command[1:], "--out", tmp_path / "run").code == 0
    used = resolve(from_toml(tmp_path / "run/config.toml"))
    assert used == resolve(from_toml(folder / f"out/{NAME}.toml"))


def test_it_repeats_itself(tuned, tmp_path):
    folder, first = tuned
    second = tune(tmp_path)
    table = first.out.partition("preset: ")[0]
    assert second.out.partition("preset: ")[0] == table
    for name in (f"{NAME}.toml", "trials.csv"):
        assert (tmp_path / "out" / name).read_bytes() == (folder / "out" / name).read_bytes()


# Going on


@pytest.fixture
def again(tuned, tmp_path):
    """A copy of the finished search."""
    for name, data in content(tuned[0]).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    return tmp_path


def test_nothing_is_searched_twice_by_accident(again):
    before = content(again)
    assert tune(again).refused(f"study {NAME} already exists", "study.db", "--resume")
    assert content(again) == before


def test_a_finished_search_is_not_repeated(again, monkeypatch):
    monkeypatch.setattr("lgdgcn.train.jobs.Trainer", None)  # trains nothing
    before = content(again)
    assert tune(again, "--resume").code == 0
    after = content(again)
    for name in (f"out/{NAME}.toml", "out/trials.csv", "out/history.png"):
        assert after[name] == before[name]


def test_more_trials(again, tuned):
    assert tune(again, "--resume", trials=TRIALS + 3).code == 0
    trials = trials_of(again)
    assert [t.state.name for t in trials] == ["COMPLETE"] * (TRIALS + 3)
    assert len({t.params["lr"] for t in trials}) == TRIALS + 3  # none is drawn again
    assert tomllib.loads((again / f"out/{NAME}.toml").read_text())["preset"]["trials"] == 12


def test_only_the_same_search_goes_on(again):
    before = content(again / "out")
    other = SPACE.replace("high = 0.8", "high = 0.7")
    assert tune(again, "--resume", space=other).refused("of another search", "dropout", "0.7")
    assert tune(again, "--resume", "--seeds", 4).refused("of another search", "seeds: 3 -> 4")
    wanted = ["of another search", 'features: null -> "degree"', "another --storage or --out"]
    assert tune(again, "--resume", "--features", "degree").refused(*wanted)
    assert tune(again, "--resume", model="gcn").refused("there is no study", "-gcn in ")
    assert content(again / "out") == before


def test_nothing_to_go_on_with(tmp_path):
    assert tune(tmp_path, "--resume").refused("there is no study", "leave out --resume")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_search_is_gone_on_with(tmp_path, monkeypatch, number, code):
    epochs = []

    def interrupted(problem, study, worker, on_change, stop):
        def look():
            epochs.append(1)
            if len(epochs) == 20:
                signal.raise_signal(number)

        search.search(problem, study, worker, look, stop)

    monkeypatch.setattr(command, "search", interrupted)
    stopped = tune(tmp_path)
    assert stopped.refused("stopped with 4 trials complete; go on with --resume", code=code)
    assert len(epochs) == 20
    states = Counter(t.state.name for t in trials_of(tmp_path))
    assert states == {"COMPLETE": 4, "FAIL": 4}  # a batch is handed back
    assert set(content(tmp_path / "out")) == {"study.db", "study.db.lock"}
    assert tune(tmp_path, "--resume").code == 0
    states = Counter(t.state.name for t in trials_of(tmp_path))
    assert states == {"COMPLETE": TRIALS, "FAIL": 4}


def test_stopped_among_the_finalists(tmp_path, monkeypatch):
    def interrupted(problem, study, on_epoch):
        signal.raise_signal(signal.SIGINT)
        search.train_finalists(problem, study, on_epoch)

    with monkeypatch.context() as patch:
        patch.setattr(command, "train_finalists", interrupted)
        stopped = last_line(tune(tmp_path, trials=2))
        assert stopped.refused("stopped among the finalists; go on with --resume", code=130)
    assert tune(tmp_path, "--resume", trials=2).code == 0


def test_a_folder_is_known_by_what_it_holds(tmp_path):
    graph = write_graph(tmp_path / "here/graph")
    file = tmp_path / "space.toml"
    file.write_text(SPACE)
    how = ["--model", "mlp", "--trials", 1, "--space", file, "--out", tmp_path / "out"]
    assert call("tune", graph, *how).code == 0
    moved = Path(shutil.copytree(graph, tmp_path / "there/graph"))
    assert call("tune", moved, *how, "--resume").code == 0
    nodes = moved / "nodes.csv"
    nodes.write_text(nodes.read_text().replace(",train", ",test", 1))
    assert call("tune", moved, *how, "--resume").refused("of another search: data: ")


# Workers


def job_without_study(tmp_path, storage=None, space=None):
    chosen = command._space(space, "mlp", None, True, {})
    problem = search.SearchProblem(GraphSource(GRAPH), "mlp", chosen, 3, torch.device("cpu"))
    return processes.SearchJob(problem, NAME, storage or str(tmp_path / "absent.db"), 1, True)


def test_a_worker_that_fails_says_why_and_is_missed(tmp_path, capfd):
    with (
        pytest.warns(LGDWarning, match="a worker ended early with exit code 2; the others"),
        processes.spawn_workers(job_without_study(tmp_path), 1),
    ):
        pass
    (line,) = [line for line in capfd.readouterr().err.splitlines() if line.startswith("lgdgcn: ")]
    assert line.startswith(f"lgdgcn: worker 2: there is no study {NAME} in ")


def test_a_worker_whose_database_fails_says_so_in_one_line(tmp_path, capsys, monkeypatch):
    def fail(*args, **how):
        raise optuna.exceptions.StorageInternalError("gone")

    monkeypatch.setattr(processes.SearchJob, "open", fail)
    with warnings.catch_warnings(), pytest.raises(SystemExit) as end:
        processes._run_worker(job_without_study(tmp_path, "sqlite:///some.db"), 1)
    assert end.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("lgdgcn: worker 2: the study's database some.db failed: gone")


class FakeProcess:
    """A process of which only what is done to it is known."""

    def __init__(self, started: list, fails: bool):
        self.done, self.pid, self.exitcode, self.fails = started, None, None, fails

    def start(self):
        if self.fails:
            raise OSError("too many processes")
        self.pid = 1
        self.done.append("start")

    def terminate(self):
        self.exitcode = 143
        self.done.append("terminate")

    def join(self):
        self.done.append("join")


def test_no_orphans_where_not_all_workers_start(tmp_path, monkeypatch, recwarn):
    done = []
    fates = iter([False, True, False])

    class Context:
        Process = staticmethod(lambda **_: FakeProcess(done, next(fates)))

    monkeypatch.setattr(processes.multiprocessing, "get_context", lambda _: Context)
    hearing = signal.getsignal(signal.SIGINT)
    with (
        pytest.raises(OSError, match="too many"),
        processes.spawn_workers(job_without_study(tmp_path), 3),
    ):
        raise AssertionError
    assert done == ["start", "terminate", "join"]
    assert signal.getsignal(signal.SIGINT) is hearing
    assert not recwarn.list  # our own ending of a worker is no news


def test_a_database_that_fails_at_any_read_is_one_line(tmp_path, monkeypatch):
    def fail(*_):
        raise optuna.exceptions.StorageInternalError("gone")

    for step, code in (("_enqueue_starts", 1), ("_print", 1)):
        with monkeypatch.context() as patch:
            patch.setattr(command, step, fail)
            storage = f"sqlite:///{tmp_path / step}.db"
            failed = last_line(tune(tmp_path, "--storage", storage, trials=1))
            assert failed.refused("the study's database", "failed: gone", code=code)


def first_process(job, space, shipped, claimed):
    """What a search does until its first trials train."""
    study = job.open(resume=False)
    command._enqueue_starts(study, space, shipped)
    job.worker(study).ask(3)
    claimed.set()
    signal.pause()


def test_two_workers_go_on_where_a_killed_one_was(tmp_path, monkeypatch):
    monkeypatch.setattr(torch, "set_num_threads", lambda count: None)
    fork = multiprocessing.get_context("fork")
    claimed = fork.Event()
    (tmp_path / "space.toml").write_text(SPACE)
    job = job_without_study(tmp_path, str(tmp_path / "out/study.db"), tmp_path / "space.toml")
    args = (replace(job, trials=10), job.problem.space, preset("synthetic", "mlp"), claimed)
    process = fork.Process(target=first_process, args=args)
    process.start()
    assert claimed.wait(60)
    kill(process)
    assert [t.state.name for t in trials_of(tmp_path)] == ["RUNNING"] * 3
    stop_hearts(str(tmp_path / "out/study.db"))

    def with_company(problem, study, worker, *more):
        deadline = time.monotonic() + 120
        while len({t.user_attrs.get("claimed_by") for t in study.trials} - {None}) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        search.search(problem, study, worker, *more)

    monkeypatch.setattr(command, "search", with_company)
    outcome = tune(tmp_path, "--resume", "--workers", 2, trials=10)
    assert outcome.code == 0, outcome
    trials = trials_of(tmp_path)
    done = [t for t in trials if t.state.name == "COMPLETE"]
    assert len(done) == len({t.params["lr"] for t in done}) == 10
    assert len({t.user_attrs["claimed_by"] for t in done}) == 2
    assert [t.state.name for t in trials if t not in done] == ["FAIL"] * 3
    first, second = sorted(t.system_attrs["fixed_params"]["lr"] for t in trials[:2])
    assert {first, second} < {t.params["lr"] for t in done}  # the starts are not lost


# Models, graphs and spaces


def test_the_models_preset_lies_under_the_fixed_settings(tmp_path):
    shipped = preset("", "appnp")
    assert shipped["num_layers"] == 2 != resolve({}).num_layers
    file = tmp_path / "space.toml"
    file.write_text("[space]\nlr = {low = 0.01, high = 0.3}\n[settings]\npropagation = 3")
    found = command._space(file, "appnp", None, False, {})
    assert "lr" not in found.settings
    rest = {name: value for name, value in shipped.items() if name != "lr"}
    assert found.settings == {**rest, "propagation": 3}
    assert found.settings_of({"lr": 0.1}).num_layers == 2


def test_features_and_splits(tmp_path):
    outcome = tune(tmp_path, "--features", "degree", "--split", "random", trials=1)
    assert outcome.code == 0, outcome
    options = f"{GRAPH} --split random --features degree --model mlp"
    assert f"use it: lgdgcn train {options} --config " in outcome.out
    (file,) = (tmp_path / "out").glob("*.toml")
    assert f"lgdgcn tune {options}" in tomllib.loads(file.read_text())["preset"]["search"]
    assert tune(tmp_path, "--split", "odd").refused("odd")
    assert tune(tmp_path, "--features", "odd").refused("odd")


def test_a_folder_and_the_shipped_space(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    graph = write_graph(tmp_path / "мой граф")
    outcome = call("tune", graph, "--model", "mlp", "--trials", 1)
    assert outcome.code == 0, outcome
    (file,) = Path("runs/tune").glob("*/graph-mlp.toml")
    assert resolve(from_toml(file)).feature_scaling == "auto"
    (line,) = [line for line in outcome.out.splitlines() if line.startswith("use it: ")]
    used = shlex.split(line.removeprefix("use it: "))[1:]
    assert call(*used, "--set", "epochs=2", "--out", "run").code == 0


@pytest.mark.parametrize(
    ("space", "args", "variant"),
    [
        (SPACE, [], "ours"),
        (SPACE, ["--variant", "paper"], "paper"),
        (SPACE, ["--variant", "released"], "released"),
        (SPACE.replace("epochs", 'variant = "released"\nepochs'), [], "released"),
    ],
    ids=["default", "paper", "option", "file"],
)
def test_variants(tmp_path, space, args, variant):
    outcome = tune(tmp_path, *args, model="lgdgcn", trials=1, space=space)
    assert outcome.code == 0, outcome
    (file,) = (tmp_path / "out").glob("*.toml")
    assert file.stem.endswith(f"-lgdgcn-{variant}")
    assert from_toml(file)["variant"] == variant
    assert f"--variant {variant}" in tomllib.loads(file.read_text())["preset"]["search"]
    run = call("train", GRAPH, "--config", file, "--set", "epochs=1", "--out", tmp_path / "run")
    assert run.code == 0
    assert resolve(from_toml(tmp_path / "run/config.toml")).variant == variant


def test_names_of_studies():
    def name(dataset, model="gcn", variant=None):
        found = command._study_name(GraphSource(dataset), model, variant)
        assert len(found) <= 64
        return found

    assert name("Cora", "lgdgcn", "released") == "cora-lgdgcn-released"
    assert name("some/gräph no. 5") == "gr_ph_no._5-gcn"
    long = "synthetic:nodes=60,factors=2,classes=3,average_degree=12,seed=1"
    names = {name(long), name(long, "mlp"), name(long[:-1] + "2"), name(long, "lgdgcn", "paper")}
    assert len(names) == 4
    assert {one.rpartition("3_")[0] for one in names} == {"synthetic_nodes_60_factors_2_classes_"}


def test_the_cores_are_shared(monkeypatch):
    asked = []
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    monkeypatch.setenv("OMP_NUM_THREADS", "5")  # so that it is put back
    processes.share_threads(2)
    monkeypatch.delenv("OMP_NUM_THREADS")
    processes.share_threads(1)
    assert asked == []
    processes.share_threads(3)
    assert asked == [2]
    assert os.environ["OMP_NUM_THREADS"] == "2"


# The table


def test_every_tenth_of_a_search_is_a_line(tmp_path, monkeypatch):
    monkeypatch.setattr(trial_table, "_SECONDS", 0)
    outcome = tune(tmp_path, trials=5)
    assert outcome.code == 0
    lines = outcome.err.splitlines()
    shape = re.compile(
        r"(\d+) %: (\d) of 5 trials \(\d (?:complete|pruned).*\), best validation (\d+\.\d), .+"
    )
    seen = [tuple(map(float, shape.fullmatch(line).groups())) for line in lines]
    assert [int(share) for share, _, _ in seen] == [20 * int(done) for _, done, _ in seen]
    assert len({done for _, done, _ in seen}) == len(seen) > 1
    assert [best for _, _, best in seen] == sorted(best for _, _, best in seen)
    top = max(trial.value for trial in trials_of(tmp_path))
    assert lines[-1].startswith("100 %: 5 of 5 trials (")
    assert f"best validation {100 * top:.1f}" in lines[-1]


# What is refused


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--seeds", 2], ["--seeds is 2", "one lucky seed", "at least 3"]),
        (["--trials", 0], ["--trials is 0", "at least 1"]),
        (["--workers", 0], ["--workers is 0", "at least 1"]),
        (["--trials", "many"], ["'--trials'", "lgdgcn tune --help"]),
        (["--model", "transformer"], ["model is 'transformer'", "choose from lgdgcn, disengcn"]),
        (["--variant", "Paper", "--model", "lgdgcn"], ["variant is 'Paper'", "choose from paper"]),
        (["--device", "gpu"], ["device is 'gpu'", "use auto, cpu"]),
        (["--space", "absent.toml"], ["absent.toml: no such file"]),
        (["--storage", "mysql://x"], ["mysql"]),
        (["--set", "variant=ours"], ["--set variant: choose it with --variant"]),
        (["--set", "lr"], ["'lr'; write key=value"]),
        (["--set", "lr=fast"], ["lr is 'fast'; it must be a number"]),
        (["--set", "dropuot=0"], ["did you mean dropout?"]),
        (["--set", "factors=0"], ["factors is 0"]),
        (["--set", "factors=3", "--set", "hidden_channels=64"], ["which 3 factors do not divide"]),
        (["--set", "factors=2"], ["factors is a setting of lgdgcn and disengcn, not of mlp"]),
        (["--variant", "paper"], ["variant is a setting of lgdgcn and disengcn, not of mlp"]),
        (["--set", "k=3", "--model", "lgdgcn"], ["k is used only with latent_graph = true"]),
        (["--set", "checkpoint_every=3"], ["checkpoint_every is for lgdgcn train"]),
        (["--metric", "accuracy", "--set", "metric=auto"], ["--metric accuracy and --set metric"]),
        (["--set", "lr=1", "--set", "dropout=0"], ["--set leaves nothing to search"]),
    ],
)
def test_wrong_arguments(tmp_path, args, words):
    assert tune(tmp_path, *args).refused(*words)
    assert not (tmp_path / "out/study.db").exists()


def test_what_is_set_is_not_searched(tmp_path):
    given = ["--set", "lr=0.02", "--set", "epochs=6"]
    outcome = tune(tmp_path, *given, trials=2)
    assert outcome.code == 0
    assert [sorted(trial.params) for trial in trials_of(tmp_path)] == [["dropout"]] * 2
    found = tomllib.loads((tmp_path / f"out/{NAME}.toml").read_text())
    assert (found["settings"]["lr"], found["settings"]["epochs"]) == (0.02, 6)
    assert found["preset"]["search"].endswith(" --set lr=0.02 --set epochs=6")
    other = ["--set", "lr=0.03", "--set", "epochs=6"]
    assert tune(tmp_path, *other, "--resume", trials=2).refused("of another search", "lr: 0.02")


def test_the_ours_variant_has_a_space_and_settings_of_its_own():
    own = preset("", "lgdgcn", "ours", multi_label=True)
    given = {"tau": 0.2, "factors": 3, "latent_graph": True}
    found = command._space(None, "lgdgcn", "ours", True, given)
    assert command._space(None, "lgdgcn", None, True, given) == found
    paper = command._space(None, "disengcn", None, True, {})
    assert paper == command._space(None, "disengcn", "paper", True, {})
    assert paper.settings["variant"] == "paper"
    assert "lambda_edge" in found.ranges
    assert not found.ranges.keys() & {*given, "k"}
    assert found.settings.items() >= given.items()
    assert found.settings["iterations"] == own["iterations"]
    assert found.settings["space"] is False
    assert found.settings_of({}).hidden_channels == 63  # the nearest multiple


def test_the_study_of_an_earlier_version(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/study.log").write_text('{"op_code":0,"worker_id":"x"}\n')
    for how in ([], ["--resume"]):
        assert tune(tmp_path, *how).refused("study.log is the study of an earlier version")


def test_wrong_spaces(tmp_path):
    wrong = SPACE.replace("dropout", "dropuot")
    assert tune(tmp_path, space=wrong).refused("space.toml: ", "did you mean dropout?")
    searched = SPACE.replace("[settings]", 'variant = {choices = ["paper"]}\n[settings]')
    assert tune(tmp_path, space=searched).refused("space.toml: variant cannot be searched")
    assert not (tmp_path / "out").exists()


def test_wrong_graphs(tmp_path):
    out = ["--out", tmp_path / "out"]
    assert call("tune", "coral", *out).refused("coral")
    graph = write_graph(tmp_path / "graph")
    nodes = graph / "nodes.csv"
    nodes.write_text(nodes.read_text().replace(",val", ",test"))
    outcome = call("tune", graph, "--model", "mlp", *out)
    assert outcome.code == 2
    assert f"{graph} has no validation nodes" in outcome.err.splitlines()[-1]
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_to(tmp_path):
    (tmp_path / "out").write_text("a file")
    assert tune(tmp_path).refused(f"cannot write {tmp_path / 'out'}", "a file stands")


def test_trials_that_all_fail(tmp_path):
    wild = "[space]\nlr = {low = 1e29, high = 1e30}\n[settings]\nepochs = 12\nnum_layers = 2"
    outcome = last_line(tune(tmp_path, model="gcn", space=wild, trials=2))
    assert outcome.refused("no trial has come to an end")
    assert Counter(t.state.name for t in trials_of(tmp_path, NAME.replace("mlp", "gcn"))) == {
        "FAIL": 2
    }


def test_help_has_examples():
    outcome = call("tune", "--help")
    assert outcome.code == 0
    assert "lgdgcn tune cora --variant released --trials 200" in outcome.out
    assert "--storage postgresql://" in outcome.out


@pytest.mark.parametrize(
    "storage",
    ["postgresql:/me:secret@host/x", "postgresql//me:secret@host/x", "me:secret@host/x"],
)
def test_a_mistyped_address_is_no_folder_and_its_password_is_not_shown(
    tmp_path, monkeypatch, storage
):
    monkeypatch.chdir(tmp_path)
    outcome = call("tune", "synthetic", "--model", "mlp", "--storage", storage)
    outcome.refused("--storage", "postgresql://user:password@host")
    assert "secret" not in outcome.err
    assert not list(tmp_path.iterdir())


def test_trials_are_compared_by_the_score_that_is_named(tmp_path):
    one = tune(tmp_path / "a", "--metric", "average_precision", trials=2)
    assert one.code == 0
    assert "metric: average precision, as asked for" in one.out
    (file,) = (tmp_path / "a/out").glob("*.toml")
    assert tomllib.loads(file.read_text())["settings"]["metric"] == "average_precision"
    searched = SPACE.replace(
        "[settings]", 'metric = {choices = ["micro_f1", "roc_auc"]}\n[settings]'
    )
    tune(tmp_path / "b", space=searched).refused("metric cannot be searched")
    tune(tmp_path / "c", "--metric", "accuracy").refused("which sets of labels do not have")
