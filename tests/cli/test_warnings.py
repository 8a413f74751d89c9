"""What training has said of a run is not said again, but stays in its files and on its page."""

import json
import random
import shutil

import pytest

from cli.runner import call, page_of, result_of, train

# what the features show, how it is trained, and the sentence that this deserves
CASES = {
    "majority": ("nothing", ["--set", "lr=0.003", "--metric", "accuracy"], "nothing was learned; "),
    "good": ("the class", ["--set", "lr=0.3", "--set", "factors=1"], ""),
}


def write_classes(folder, shown):
    """A graph of three classes, one of which has three of five nodes.

    Features show the class, or nothing.
    """
    folder.mkdir()
    chance = random.Random(3)
    names = [("a", "a", "b", "a", "c")[i % 5] for i in range(200)]
    if shown == "nothing":
        chance.shuffle(names)
    rows = ["id,f1,f2,f3,label,split"]
    for i, name in enumerate(names):
        split = ("train", "val", "test", "train")[i // 5 % 4]
        own = "abc".index(name)
        values = [chance.random() + (shown != "nothing" and own == c) for c in range(3)]
        rows.append(",".join([f"n{i}", *(f"{value:.4f}" for value in values), name, split]))
    (folder / "nodes.csv").write_text("\n".join(rows) + "\n")
    pairs = [(i, (i + 20) % 200) for i in range(200)]  # of the same split
    edges = "".join(f"n{a},n{b}\nn{b},n{a}\n" for a, b in pairs)
    (folder / "edges.csv").write_text("source,target\n" + edges)
    return folder


@pytest.mark.parametrize("case", CASES)
def test_training_alone_says_it(case, quick_measures, tmp_path):
    shown, settings, sentence = CASES[case]
    graph, run = write_classes(tmp_path / "graph", shown), tmp_path / "run"
    outcomes = [
        train(run, *settings, graph=graph, epochs=12),
        call("predict", run, "--out", tmp_path / "p.csv"),
        call("measure", run),
        call("explore", run),
    ]
    assert [outcome.code for outcome in outcomes] == [0, 0, 0, 0], outcomes
    kept, page = result_of(run)["warnings"], page_of(run / "explore.html")
    if case == "good":
        assert kept == page["warnings"] == []
    assert sum(sentence in text for text in kept) == bool(sentence)
    assert sum(sentence in text for text in page["warnings"]) == bool(sentence)
    assert outcomes[0].out.count("warning: ") == len(kept)
    # but what the factors say of the edges, which measure looks at
    said = sentence or "warning:"
    assert not any(said in outcome.out + outcome.err for outcome in outcomes[1:])
    told = json.loads(call("predict", run, "--out", tmp_path / "p.csv", "--json").out)
    assert told["warnings"] == kept


def test_of_several_seeds_only_what_is_said_of_the_kept_one(tmp_path):
    graph, run = write_classes(tmp_path / "graph", "nothing"), tmp_path / "run"
    settings = ["--set", "lr=1e-9", "--set", "factors=1", "--seeds", 3]
    assert train(run, *settings, graph=graph, epochs=12).code == 0
    result = result_of(run)
    kept = max(result["runs"], key=lambda one: one["val"])["seed"]
    told = [text.removeprefix(f"seed {kept}: ") for text in result["warnings"]]
    told = [text for text in told if not text.startswith("seed ")]
    assert 0 < len(told) < len(result["warnings"])
    outcome = call("predict", run, "--out", tmp_path / "p.csv", "--json")
    assert json.loads(outcome.out)["warnings"] == told
    (run / "result.json").unlink()
    outcome = call("predict", run, "--out", tmp_path / "p.csv")
    assert outcome.code == 0
    assert "warning: " not in outcome.out


def test_a_strangers_run_does_not_steer_the_terminal(mine, tmp_path):
    run, hostile = tmp_path / "run", "\x1b]0;title\x07\x9b2J\nrun folder: another"
    shutil.copytree(mine[1], run)
    result = json.loads((run / "result.json").read_text())
    result["warnings"] = [hostile]
    (run / "result.json").write_text(json.dumps(result))
    outcome = call("predict", run, "--out", tmp_path / "p.csv", "--json")
    assert json.loads(outcome.out)["warnings"] == [hostile]
    assert all(c.isprintable() or c == "\n" for c in outcome.out + outcome.err)
