"""A folder with columns of every kind, from training to the prediction of new nodes."""

import csv
from random import Random

import pytest

from cli.runner import call, train
from lgdgcn.data.packed import PackedGraph
from lgdgcn.train.trained import TrainedModel

CITIES = ["Oslo", "Rome", "Lima"]


def write(folder, rows, change=lambda row: row, seed=0):
    """A ring of nodes whose city is their label."""
    random = Random(seed)
    folder.mkdir()
    table = []
    for i in range(rows):
        city = CITIES[i % 3]
        table.append(
            change(
                {
                    "key": f"n{i}",
                    "town": city,
                    "age": "" if i % 5 == 0 else random.randint(20, 60),
                    "bio": f"node number {i} lives there",
                    "kind": city.lower(),
                    "fold": ["train", "val", "test"][i // 3 % 3],
                    "junk": "nothing",
                }
            )
        )
    with (folder / "nodes.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, table[0])
        writer.writeheader()
        writer.writerows(table)
    lines = [f"n{i},n{(i + 1) % rows}" for i in range(rows)]
    (folder / "edges.csv").write_text("\n".join(["source,target", *lines]) + "\n")
    return folder


OPTIONS = ["--id", "key", "--label", "kind", "--split", "fold", "--ignore", "junk"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("columns")
    graph = write(folder / "graph", 36)
    outcome = train(folder / "run", *OPTIONS, "--model", "mlp", graph=f"{graph}/", epochs=100)
    assert outcome.code == 0, outcome
    return folder / "run", graph, outcome


def predicted(run, graph, target):
    options = [] if graph is None else ["--graph", f"{graph}/"]
    outcome = call("predict", run, *options, "--out", target)
    assert outcome.code == 0, outcome
    with target.open(newline="", encoding="utf-8") as file:
        return outcome, list(csv.DictReader(file))


def test_training_says_what_was_done_with_each_column(trained):
    lines = trained[2].err.splitlines()
    for words in ("'town' (3 values)", "'bio' (36 cells)", "'age' (8 of 36)"):
        assert sum(words in line for line in lines) == 1, lines


def test_predictions_show_the_text_and_know_the_columns(trained, tmp_path):
    run, _, _ = trained
    _, rows = predicted(run, None, tmp_path / "p.csv")
    assert [row["bio"] for row in rows] == [f"node number {i} lives there" for i in range(36)]
    assert [row["label"] for row in rows] == [CITIES[i % 3].lower() for i in range(36)]


def test_new_nodes_are_encoded_as_in_training(trained, tmp_path):
    """Other values, none of one category, no blanks, labels or split: the same columns."""
    run, _, _ = trained

    def change(row):
        row = {**row, "age": row["age"] or "33", "town": row["town"].replace("Lima", "Rome")}
        return {key: row[key] for key in ("bio", "age", "key", "town")}

    _, rows = predicted(run, write(tmp_path / "new", 9, change), tmp_path / "p.csv")
    assert [row["label"] for row in rows] == ["oslo", "rome", "rome"] * 3


def test_a_value_that_training_has_not_seen_is_said(trained, tmp_path):
    run, _, _ = trained

    def change(row):
        return {**row, "town": row["town"].replace("Lima", "Paris")}

    outcome, rows = predicted(run, write(tmp_path / "new", 9, change), tmp_path / "p.csv")
    assert "values that training has not seen count as none: 'town' (3 cells)" in outcome.err
    assert [row["label"] for row in rows][:2] == ["oslo", "rome"]


def test_ids_in_another_column_are_refused(trained, tmp_path):
    def change(row):
        return {("id" if key == "key" else key): value for key, value in row.items()}

    graph = write(tmp_path / "new", 9, change)
    outcome = call("predict", trained[0], "--graph", f"{graph}/", "--out", tmp_path / "p.csv")
    outcome.refused("'key' (id)")


# Scaling


def scaling_of(run):
    return TrainedModel.load(run / "model.safetensors").scaling


def test_the_scaling_is_said_once_kept_and_used_for_new_nodes(trained, tmp_path):
    run, graph, outcome = trained
    (line,) = [line for line in outcome.out.splitlines() if "scaling = " in line]
    assert "standardised by the training nodes (scaling = standard)" in line
    scaling = scaling_of(run)
    ages = [row["age"] for row in csv.DictReader((graph / "nodes.csv").open()) if row["age"]]
    assert min(map(float, ages)) < scaling.mean[3] < max(map(float, ages))
    # five nodes whose own mean and deviation are others: each is predicted as it was
    _, want = predicted(run, graph, tmp_path / "a.csv")
    few = write(tmp_path / "few", 36, lambda row: {**row, "age": row["age"] or 40})
    text = (few / "nodes.csv").read_text().splitlines()
    (few / "nodes.csv").write_text("\n".join(text[:6]) + "\n")
    (few / "edges.csv").write_text("source,target\nn0,n1\n")
    _, found = predicted(run, few, tmp_path / "b.csv")
    assert [row["probability"] for row in found[1:5]] == [row["probability"] for row in want[1:5]]


def test_models_beside_another_have_the_same_scaling(trained, tmp_path):
    run, graph = tmp_path / "run", f"{trained[1]}/"
    more = ["--model", "gcn", "--compare", "appnp,lgdgcn-paper"]
    for given, kind in ([], "standard"), (["--set", "scaling=rows"], "rows"):
        outcome = train(run / kind, *OPTIONS, *more, *given, graph=graph, epochs=2)
        assert outcome.code == 0
        folders = [run / kind, *(run / kind / "compared").iterdir()]
        assert [scaling_of(folder).kind for folder in folders] == [kind] * 3


def test_words_of_several_columns_in_either_form(tmp_path):
    """Repeated or with a comma, the option is the same, and a run goes on with the other form."""
    graph = write(tmp_path / "graph", 36, lambda row: row | {"note": f"a note of {row['key']}"})
    forms = {"once": ["--features", "text:bio,text:note"],
             "twice": ["--features", "text:bio", "--features", "text:note"]}  # fmt: skip
    options, models = [*OPTIONS, "--model", "mlp"], []
    for name, form in forms.items():
        outcome = train(tmp_path / name, *options, *form, graph=f"{graph}/", epochs=2)
        assert outcome.code == 0, outcome
        models.append(TrainedModel.load(tmp_path / name / "model.safetensors"))
        other = forms["once" if name == "twice" else "twice"]
        args = (*options, *other, "--resume")
        assert train(tmp_path / name, *args, graph=f"{graph}/", epochs=2).code == 0
    configs = [(tmp_path / name / "config.toml").read_text() for name in forms]
    assert configs[0] == configs[1]
    assert models[0].feature_names == models[1].feature_names
    for verb in (["check"], ["pack", "--out", tmp_path / "packed.lgd"]):
        outcome = call("data", *verb[:1], f"{graph}/", *verb[1:], *OPTIONS, *forms["twice"])
        assert outcome.code == 0, outcome
        if verb == ["check"]:
            assert outcome.out.count(" words ") == 2
    roles = PackedGraph.open(tmp_path / "packed.lgd").encoding.roles
    assert (roles["bio"], roles["note"]) == ("words", "words")
