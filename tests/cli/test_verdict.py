"""Which of two models is better is said after the table, and whether that is more than chance."""

import random

import pytest

from cli.runner import result_of, train


def compare(folder, *args, shown, linked, validated=True):
    """An MLP with a GCN beside it, on a graph of two classes.

    Args:
        folder: Where the graph and the run are written.
        args: More of the command.
        shown: Share of the nodes whose feature is that of their class.
        linked: Share of the edges that join nodes of one class.
        validated: Whether there are validation nodes.
    """
    graph, chance = folder / "graph", random.Random(0)
    graph.mkdir()
    classes = [chance.choice("ab") for _ in range(400)]
    nodes, edges = ["id,f1,f2,label,split"], ["source,target"]
    of_class = {name: [i for i, own in enumerate(classes) if own == name] for name in "ab"}
    for i, name in enumerate(classes):
        other = "b" if name == "a" else "a"
        told = "ab".index(name if chance.random() < shown else other)
        split = ("train", "train", "val" if validated else "test", "test")[i % 4]
        nodes.append(f"n{i},{told},{chance.random():.3f},{name},{split}")
        ends = (name if chance.random() < linked else other for _ in range(5))
        edges += [f"n{i},n{chance.choice(of_class[end])}" for end in ends]
    (graph / "nodes.csv").write_text("\n".join(nodes) + "\n")
    (graph / "edges.csv").write_text("\n".join(edges) + "\n")
    both = ["--model", "mlp", "--compare", "gcn", "--set", "lr=0.03", *args]
    outcome = train(folder / "run", *both, graph=graph, epochs=60)
    assert outcome.code == 0, outcome.err
    return outcome.out, result_of(folder / "run")


@pytest.mark.parametrize("more", [[], ["--metric", "roc_auc", "--seeds", 2]])
def test_a_baseline_that_is_better_is_named_each_time_the_run_is_shown(tmp_path, more):
    out, result = compare(tmp_path, *more, shown=0.7, linked=0.95)
    beside = result_of(tmp_path / "run/compared/gcn")
    means = [sum(run["val"] for run in one["runs"]) / len(one["runs"]) for one in (beside, result)]
    title = "ROC-AUC" if "roc_auc" in more else "accuracy"
    sentence = "GCN is better here than MLP: {:.1f} against {:.1f} in validation {}".format(
        *(100 * mean for mean in means), title
    )
    assert result["verdict"] == {"sentence": sentence, "better": "gcn"}
    line = f"warning: {sentence}; the better run is in {tmp_path / 'run/compared/gcn'}"
    assert out.splitlines().count(line) == 1
    assert out.index(line) > out.index("\n GCN ")
    assert "verdict" not in beside
    before = (tmp_path / "run/result.json").read_bytes()
    args = ["--set", "lr=0.03", "--model", "mlp", "--compare", "gcn", "--resume", *more]
    again = train(tmp_path / "run", *args, graph=tmp_path / "graph", epochs=60)
    assert (again.out, (tmp_path / "run/result.json").read_bytes()) == (out, before)


def test_a_model_that_is_better_than_its_baseline_is_no_warning(tmp_path):
    out, result = compare(tmp_path, shown=0.95, linked=0.5)
    assert result["verdict"]["better"] is None
    assert result["verdict"]["sentence"].startswith("MLP is better here than GCN: ")
    assert out.splitlines().count(result["verdict"]["sentence"]) == 1
    assert not any("is better here" in line for line in out.splitlines() if "warning: " in line)


@pytest.mark.parametrize("more", [[], ["--seeds", 2]])
def test_a_difference_within_the_noise_is_called_that(tmp_path, more):
    """Neither features nor edges tell much: whoever scores higher does so by chance."""
    out, result = compare(tmp_path, *more, shown=0.6, linked=0.6)
    sentence = result["verdict"]["sentence"]
    nodes = "100 nodes and 2 seeds" if more else "100 nodes"
    assert f"within the noise of {nodes} (± " in sentence
    assert "scores higher than" in sentence or "scores as high as" in sentence
    assert f"; on test within the noise of {nodes} (± " in sentence
    assert "is better" not in out
    lost = result["verdict"]["better"] == "gcn"
    assert out.count(f"warning: {sentence}") == lost
    assert out.count(sentence) == 1


def test_test_scores_choose_nothing(tmp_path):
    out, result = compare(tmp_path, shown=0.7, linked=0.95, validated=False)
    assert "verdict" not in result
    assert not any(word in out for word in ("better", "higher", "noise"))
