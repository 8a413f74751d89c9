"""Losses, the score that is fair to the labels, and predictions, against loops and scikit-learn."""

import dataclasses

import numpy as np
import pytest
import torch
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    f1_score,
    roc_auc_score,
)
from torch_geometric.data import Data

from lgdgcn.config import Settings
from lgdgcn.data.labels import is_labelled
from lgdgcn.errors import InputError
from lgdgcn.models import build
from lgdgcn.models.population import stack
from lgdgcn.runs.fit import fit
from lgdgcn.train.scores import METRICS
from lgdgcn.train.targets import Targets
from lgdgcn.train.task import Task, choose_metric
from lgdgcn.train.trainer import loss_terms
from literal import scores as literal
from literal import voting
from literal.seeds import seeds
from models.toy import toy_graph
from train.one_seed import train_seed
from train.single import Member, trainer_of

SEEDS = seeds(3)


def single(seed, nodes=30, classes=4):
    torch.manual_seed(seed)
    mask = torch.rand(nodes) < 0.6
    mask[0] = True
    logits = 2 * torch.randn(nodes, classes, dtype=torch.float64)
    return logits, torch.randint(0, classes, (nodes,)), mask


def multi(seed, nodes=30, labels=6):
    logits, _, mask = single(seed, nodes, labels)
    y = (torch.rand(nodes, labels) < 0.3).float()
    y[:, -1] = 0  # a label that nobody has
    return logits, y, mask


def loss_of(task, logits, y, mask):
    """The loss of one member."""
    targets = Targets.of([Data(y=y, part=mask)], "part")
    return task.loss(targets.pick(logits.unsqueeze(0)), targets).squeeze(0)


@pytest.mark.parametrize("seed", SEEDS)
def test_softmax_loss_and_accuracy(seed):
    logits, y, mask = single(seed)
    task = Task(4, multi_label=False)
    assert task.metric == "accuracy"
    np.testing.assert_allclose(
        loss_of(task, logits, y, mask), literal.cross_entropy(logits.tolist(), y, mask)
    )
    predicted = logits.argmax(-1)
    assert torch.equal(task.predict(logits), predicted)
    want = accuracy_score(y[mask], predicted[mask])
    scores = task.scores(logits, y, mask)
    assert list(scores) == ["accuracy", "balanced_accuracy", "macro_f1"]
    assert scores["accuracy"] == pytest.approx(want)
    torch.testing.assert_close(task.probabilities(logits).sum(1), torch.ones(30).double())


@pytest.mark.parametrize("seed", SEEDS)
def test_sigmoid_loss_sums_the_labels_of_a_node(seed):
    logits, y, mask = multi(seed)
    task = Task(6, multi_label=True)
    want = literal.sigmoid_loss(logits.tolist(), y.tolist(), mask)
    np.testing.assert_allclose(loss_of(task, logits, y, mask), want)
    np.testing.assert_allclose(task.probabilities(logits), 1 / (1 + np.exp(-logits.numpy())))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("labels_per_node", [None, 1, 2, 6])
def test_f1(seed, labels_per_node):
    logits, y, mask = multi(seed)
    task = Task(6, True, labels_per_node)
    half = logits[mask].numpy() > 0
    chosen = (
        half if labels_per_node is None else literal.top(logits[mask].tolist(), labels_per_node)
    )
    assert np.array_equal(task.predict(logits[mask]), chosen)
    got = task.scores(logits, y, mask)
    assert next(iter(got)) == task.metric
    for suffix, predicted in {"": chosen, "_at_0.5": half}.items():
        for average in ("micro", "macro"):
            want = f1_score(y[mask], predicted, average=average, zero_division=0)
            assert got[f"{average}_f1{suffix}"] == pytest.approx(want)
    micro, macro = literal.f1(chosen, y[mask].numpy())
    assert (got["micro_f1"], got["macro_f1"]) == pytest.approx((micro, macro))


def test_the_epoch_is_chosen_by_a_score_that_no_threshold_stops():
    assert Task(6, True).metric == "average_precision"
    assert Task(6, True, 2).metric == "micro_f1"
    assert Task(4, False).metric == "accuracy"
    logits, y, mask = multi(0)
    early, late = logits - 100, logits + 5 * y - 100  # at 0.5 both predict nothing
    targets = Targets.of([Data(y=y, part=mask)], "part")
    ranked = [Task(6, True).selection_score(targets.pick(x[None]), targets) for x in (early, late)]
    assert ranked[0] < ranked[1]


def test_only_sets_of_different_sizes_have_a_threshold():
    logits, y, mask = multi(0)
    for task in (Task(6, True, 2), Task(4, False)):
        assert task.tuned(logits, y, mask) is task
    untuned = Task(6, True).tuned(logits, y, mask & False)
    assert (untuned.threshold, untuned.label_thresholds) == (0.5, None)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize("seed", SEEDS)
def test_scores_of_sets_of_different_sizes(seed):
    logits, y, mask = multi(seed)
    task = Task(6, True).tuned(logits, y, mask)
    scores = task.scores(logits, y, mask)
    own, truth = logits[mask].numpy(), y[mask].numpy()
    predicted = {
        "": task.probabilities(logits[mask]).numpy() > task.label_thresholds,
        "_at_0.5": own > 0,
        "_with_true_set_size": literal.top_own(own, truth),
    }
    want = {
        f"{average}_f1{suffix}": f1_score(truth, found, average=average, zero_division=0)
        for suffix, found in predicted.items()
        for average in ("micro", "macro")
    }
    want["average_precision"] = average_precision_score(truth.ravel(), own.ravel())
    both = (truth.min(0) == 0) & (truth.max(0) == 1)
    want["roc_auc"] = roc_auc_score(truth[:, both], own[:, both])
    assert scores == pytest.approx(want)
    assert next(iter(scores)) == task.metric


@pytest.mark.parametrize(
    ("example", "task"),
    [(single, Task(4, False)), (multi, Task(6, True)), (multi, Task(6, True, 2))],
)
def test_nothing_to_score_is_none(example, task):
    logits, y, mask = example(0)
    scores = task.scores(logits, y, mask & False)
    assert set(scores.values()) == {None}
    assert list(scores) == list(task.scores(logits, y, mask))


def graph(y, train=None):
    y = torch.as_tensor(y)
    mask = torch.ones(len(y), dtype=torch.bool) if train is None else torch.tensor(train)
    return Data(y=y, train_mask=mask, val_mask=~mask)


def unlabelled(data):
    """A graph whose nodes without a label are in no split."""
    data.val_mask &= False
    return data


@pytest.mark.parametrize(
    ("data", "task"),
    [
        (unlabelled(graph([0, 2, 1, -1], [True, True, True, False])), Task(3, False)),
        (graph([[1.0, 0, 1], [0, 1, 1]]), Task(3, True, 2)),
        (graph([[1.0, 0, 1], [0, 1, 0]]), Task(3, True, None)),
        (
            graph([[1.0, 0, 1], [0, 1, 0]], [True, False]),
            Task(3, True, 2, metric="average_precision"),
        ),
        (graph([[0.0, 0, 0], [0, 0, 0]]), Task(3, True, None)),
        (unlabelled(graph([[1.0, 0], [torch.nan, torch.nan]], [True, False])), Task(2, True, 1)),
    ],
    ids=["classes", "same number", "other numbers", "training nodes only", "none", "unlabelled"],
)
def test_the_task_is_read_off_the_labels(data, task):
    assert Task.of(data) == task


def test_named_classes_count_even_where_no_node_has_them():
    data = graph([0, 1])
    data.classes = ["a", "b", "c"]
    assert Task.of(data).outputs == 3


@pytest.mark.parametrize("variant", ["paper", "ours"])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("multi_label", [False, True])
def test_the_objective_is_equation_7(seed, multi_label, variant):
    data = toy_graph(seed=seed, dtype=torch.float64, multi_label=multi_label)
    task = Task.of(data)
    settings = Settings(num_layers=3, hidden_channels=24, dropout=0.0, variant=variant)
    torch.manual_seed(seed)
    models = [build("lgdgcn", settings.as_dict(), 12, task.outputs).double() for _ in range(2)]
    network = stack(models)
    output = network.disentangle(data.x, data.edge_index)
    network.update_statistics(output, "first_epoch")
    given = {"space": [0.3, 0.4], "diversity": [0.02, 0.5], "edge": [0.7, 0.1]}
    weights = {name: torch.tensor(own, dtype=torch.float64) for name, own in given.items()}
    targets = Targets.of([data], "train_mask")
    output = output._replace(logits=targets.pick(output.logits))
    terms = loss_terms(network, output, task, targets, data.edge_index, weights)
    names = {"classification", "space", "diversity", "total"}
    assert set(terms) == (names | {"edge"} if variant == "ours" else names)
    for member, model in enumerate(models):
        with torch.no_grad():
            output = model.disentangle(data.x, data.edge_index)
            model.update_statistics(output, "first_epoch")
            losses = [
                (
                    layer.latent_space.space_loss(o.local_units),
                    layer.latent_space.diversity_loss(o.local_units),
                )
                for layer, o in zip(model.layers, output.layers, strict=True)
            ]
        classification = (literal.sigmoid_loss if multi_label else literal.cross_entropy)(
            output.logits.tolist(), data.y.tolist(), data.train_mask
        )
        own = {name: weight[member].item() for name, weight in weights.items()}
        space, diversity = zip(*losses, strict=True)
        regularizers = [(own["space"], space), (own["diversity"], diversity)]
        if variant == "ours":
            edge = [
                voting.edge_loss(o.local_units, data.edge_index, layer.factor_weights.tolist())
                for layer, o in zip(model.layers, output.layers, strict=True)
            ]
            regularizers.append((own["edge"], edge))
        want = literal.total_loss(classification, regularizers)
        np.testing.assert_allclose(terms["classification"][member].item(), classification)
        np.testing.assert_allclose(terms["total"][member].item(), want)


CPU = torch.device("cpu")


OF_SETS = ["macro_f1", "micro_f1", "roc_auc", "average_precision"]


def test_the_setting_has_every_score():
    (field,) = (field for field in dataclasses.fields(Settings) if field.name == "metric")
    assert field.metadata["options"] == ("auto", *METRICS)


@pytest.mark.parametrize(
    ("y", "metric", "reason"),
    [
        ([0, 1, 2, 2, -1, -1, -1], "accuracy", "as every node has one class"),
        ([0] * 2 + [1], "accuracy", "as every node has one class"),
        ([0] * 7 + [1] * 3, "roc_auc", "as 70.0 % of the training nodes have the same class"),
        ([1] * 7 + [0] * 3 + [-1] * 9, "roc_auc", "as 70.0 % of the training nodes"),
        ([0] * 8 + [1, 2], "macro_f1", "as 80.0 % of the training nodes have the same class"),
        ([[1.0, 0, 1], [0, 1, 1]], "micro_f1", "as every node has 2 labels"),
        ([[1.0, 0, 1], [torch.nan] * 3, [0, 1, 1]], "micro_f1", "as every node has 2 labels"),
        ([[1.0, 0, 1], [0, 1, 0]], "average_precision", "as nodes have 1 to 2 labels"),
        ([[0.0, 0, 0], [0, 0, 0]], "average_precision", "as nodes have 0 to 0 labels"),
    ],
)
def test_the_default_follows_the_labels(y, metric, reason):
    y = torch.tensor(y)
    known = is_labelled(y)
    found = choose_metric(Data(y=y, train_mask=known, val_mask=known & False))
    assert found.metric == metric
    assert str(found).startswith(f"metric: {METRICS[metric]}, {reason}")


@pytest.mark.parametrize("metric", ["accuracy", "balanced_accuracy"])
def test_sets_of_labels_have_no_accuracy(metric):
    data = toy_graph(multi_label=True)
    with pytest.raises(InputError, match=f"metric is '{metric}', which sets of labels do not"):
        trainer_of(data, [Member(Settings(metric=metric))], "mlp")


def members(classes, different):
    """Scores of three members, labels, and each member's nodes."""
    torch.manual_seed(SEEDS[0])
    y = torch.randint(0, classes, (40,))
    masks = [torch.rand(40) < share for share in ((0.4, 0.6, 0.8) if different else (0.5,) * 3)]
    masks = masks if different else masks[:1] * 3
    return 2 * torch.randn(3, 40, classes, dtype=torch.float64), y, masks


def by_scikit_learn(metric, logits, y):
    probability, predicted = logits.softmax(-1).numpy(), logits.argmax(-1).numpy()
    present = np.unique(y)
    truth = np.eye(logits.size(1))[y][:, present]
    return {
        "accuracy": lambda: accuracy_score(y, predicted),
        "balanced_accuracy": lambda: balanced_accuracy_score(y, predicted),
        "macro_f1": lambda: f1_score(y, predicted, average="macro"),
        "micro_f1": lambda: f1_score(y, predicted, average="micro"),
        "roc_auc": lambda: roc_auc_score(truth, probability[:, present]),
        "average_precision": lambda: average_precision_score(truth, probability[:, present]),
    }[metric]()


@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
@pytest.mark.parametrize("different", [False, True], ids=["one split", "splits of their own"])
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("metric", METRICS)
def test_scores_of_classes(metric, classes, different):
    logits, y, masks = members(classes, different)
    task = Task(classes, False, metric=metric)
    targets = Targets.of([Data(y=y, part=mask) for mask in masks], "part")
    found = task.selection_score(targets.pick(logits), targets)
    for member, (own, mask) in enumerate(zip(logits, masks, strict=True)):
        want = by_scikit_learn(metric, own[mask], y[mask])
        assert found[member].item() == pytest.approx(want)
        scores = task.scores(own, y, mask)
        assert next(iter(scores)) == metric
        assert scores[metric] == pytest.approx(want)
    if classes == 2:
        want = roc_auc_score(y[mask], logits[2, mask, 1] - logits[2, mask, 0])
        assert task.scores(logits[2], y, mask)["roc_auc"] == pytest.approx(want)


@pytest.mark.parametrize("labels_per_node", [None, 2])
@pytest.mark.parametrize("metric", OF_SETS)
def test_scores_of_label_sets(metric, labels_per_node):
    """With the thresholds that are tuned later, the score of an epoch is that of its end."""
    logits, _, masks = members(6, different=True)
    y = (torch.rand(40, 6) < 0.3).float()
    task = Task(6, True, labels_per_node, metric=metric)
    targets = Targets.of([Data(y=y, part=mask) for mask in masks], "part")
    found = task.selection_score(targets.pick(logits), targets)
    for member, (own, mask) in enumerate(zip(logits, masks, strict=True)):
        scores = task.tuned(own, y, mask).scores(own, y, mask)
        assert next(iter(scores)) == metric
        assert scores[metric] == pytest.approx(found[member].item())


@pytest.mark.parametrize("metric", METRICS)
def test_one_answer_for_all_nodes(metric):
    y = torch.tensor([0] * 6 + [1] * 3 + [2])
    targets = Targets.of([Data(y=y, part=y >= 0)], "part")
    found = Task(3, False, metric=metric).constant_score(targets)
    want = {"accuracy": 0.6, "micro_f1": 0.6, "macro_f1": 0.25, "roc_auc": 0.5}
    assert found == pytest.approx(want.get(metric, 1 / 3))


@pytest.mark.parametrize("metric", OF_SETS)
def test_one_answer_for_all_nodes_of_different_sets(metric):
    y = torch.zeros(40, 3)
    y[:, 0], y[:10, 1], y[:2, 2] = 1, 1, 1
    targets = Targets.of([Data(y=y, part=y[:, 0] > 0)], "part")
    found = Task(3, True, metric=metric).constant_score(targets)
    assert found == pytest.approx(
        {
            "micro_f1": 2 * 40 / (40 + 52),  # the first label for everybody
            "macro_f1": (1 + 20 / 50 + 4 / 42) / 3,  # all labels for everybody
            "roc_auc": 0.5,
            "average_precision": (40 + 10 * 50 / 80 + 2 * 52 / 120) / 52,
        }[metric]
    )


def balanced(data, size=8):
    """As many training and validation nodes of either class."""
    data = data.clone()
    for name, nodes in (("train_mask", slice(0, size)), ("val_mask", slice(size, 2 * size))):
        data[name] = torch.zeros(len(data.y), dtype=torch.bool)
        for number in (0, 1):
            data[name][(data.y == number).nonzero().flatten()[nodes]] = True
    data.test_mask = ~(data.train_mask | data.val_mask)
    return data


def test_the_test_nodes_have_no_say():
    data = toy_graph(nodes=90)
    data.y = (data.y == 0).long() * (torch.arange(90) < 60)  # 20 of 90
    assert Task.of(data).metric == "roc_auc"
    assert Task.of(balanced(data)).metric == "accuracy"
    sets = toy_graph(multi_label=True)
    sets.y[sets.test_mask] = 1
    assert Task.of(sets).metric == "micro_f1"


@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize("metric", OF_SETS)
def test_the_epoch_that_is_kept_has_the_best_score(metric, multi_label):
    data = toy_graph(nodes=60, multi_label=multi_label)
    if multi_label:
        data.y[::2, 5] = 1  # label sets of different sizes
    settings = Settings(metric=metric, hidden_channels=8, epochs=12)
    trainer = trainer_of(data, [Member(settings)], "mlp")
    seen = []
    trainer.train(lambda report: seen.append(report.metrics[f"val_{metric}"]))
    assert trainer.states[0].best_score == max(seen)
    result, trained = train_seed(data, settings, "mlp", 0, CPU)
    assert result.val == pytest.approx(max(seen))
    assert result.test == result.scores["test"][metric]
    assert trained.task.metric == metric


def test_all_seeds_have_the_score_of_the_first(tmp_path):
    data = toy_graph(nodes=90)
    data.y = (data.y == 0).long() * (torch.arange(90) < 60)
    graphs, settings = (data, balanced(data)), Settings(hidden_channels=8, epochs=3)
    for order, metric in ((graphs, "roc_auc"), (graphs[::-1], "accuracy")):
        results, trained = fit(order.__getitem__, settings, "mlp", [0, 1], CPU)
        assert [next(iter(result.scores["test"])) for result in results] == [metric] * 2
        assert trained.settings == settings
        assert trained.task.metric == metric


SETTINGS = Settings(
    hidden_channels=32, epochs=400, patience=20, lr=0.005, weight_decay=0.0, dropout=0.0
)
