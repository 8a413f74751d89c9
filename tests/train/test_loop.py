"""A training run: when it stops, what it keeps, and that it can be repeated."""

import numpy as np
import pytest
import torch

from lgdgcn.config import Settings
from lgdgcn.errors import DivergedError
from lgdgcn.models import LGDGCN, MODELS
from lgdgcn.train.loop import Progress, Run, evaluate
from lgdgcn.train.task import Task
from literal.latent_space import updated
from models.toy import toy_graph

SMALL = {"hidden_channels": 24, "num_layers": 2, "k": 3}
BOTH = pytest.mark.parametrize("variant", ["paper", "released"])


def run_of(data=None, model="lgdgcn", seed=0, **settings):
    return Run(toy_graph() if data is None else data, Settings(**SMALL | settings), model, seed)


def copy_of(run):
    return {name: tensor.clone() for name, tensor in run.model.state_dict().items()}


def same(first, second):
    return first.keys() == second.keys() and all(torch.equal(first[n], second[n]) for n in first)


# Early stopping


@pytest.fixture
def scripted(monkeypatch):
    """Make validation scores and losses follow a script, one entry per epoch."""

    def follow(*epochs):
        entries = iter(epochs)
        current = {}
        real = Task.loss

        def scores(self, logits, y, mask):
            current["score"], current["loss"] = next(entries, (0.0, 9.0))
            return {"accuracy": current["score"]}

        def loss(self, logits, y, mask):
            return (
                real(self, logits, y, mask)
                if logits.requires_grad
                else torch.tensor(current["loss"])
            )

        monkeypatch.setattr(Task, "scores", scores)
        monkeypatch.setattr(Task, "loss", loss)

    return follow


@pytest.mark.parametrize(
    ("script", "best"),
    [
        ([(0.5, 1.0), (0.6, 1.0), (0.7, 1.0), (0.6, 0.1)], 3),
        ([(0.5, 1.0), (0.5, 0.9), (0.5, 0.9), (0.5, 0.95)], 2),
        ([(0.5, 1.0)], 1),
        ([(0.0, 1.0), (0.0, 0.5), (0.0, 2.0)], 2),
    ],
    ids=["score", "loss breaks the tie", "first", "zero"],
)
def test_patience_counts_from_the_best_epoch_and_its_weights_come_back(scripted, script, best):
    scripted(*script)
    run = run_of(patience=5, epochs=50)
    weights = []
    run.train(lambda metrics: weights.append(copy_of(run)))
    assert run.progress.best_epoch == best
    assert run.progress.epoch == len(weights) == best + 5
    assert (run.progress.best_score, run.progress.best_loss) == pytest.approx(script[best - 1])
    assert same(copy_of(run), weights[best - 1])
    assert not same(copy_of(run), weights[-1])


def test_the_epochs_end_the_run(scripted):
    scripted(*((0.1 * epoch, 1.0) for epoch in range(1, 9)))
    run = run_of(patience=5, epochs=4)
    assert not run.finished
    run.train()
    assert run.finished
    assert run.progress.epoch == run.progress.best_epoch == 4


@pytest.mark.parametrize(
    ("score", "loss", "better"),
    [(0.6, 9, True), (0.5, 0.9, True), (0.5, 1, False), (0.5, 1.1, False), (0.4, 0, False)],
)
def test_improvement(score, loss, better):
    assert Progress(best_score=0.5, best_loss=1.0).improves(score, loss) == better
    assert Progress().improves(0.0, 1e9)


def test_an_exception_in_the_callback_leaves_the_run_where_it_is():
    def stop(metrics):
        raise KeyboardInterrupt

    run = run_of(epochs=9)
    with pytest.raises(KeyboardInterrupt):
        run.train(stop)
    assert run.progress.epoch == 1
    run.train()
    assert run.progress.epoch == 9


# Divergence


def poison(run, kind):
    with torch.no_grad():
        if kind == "classification":
            run.model.classifier.bias.fill_(torch.nan)
        elif kind == "projection":
            next(run.model.parameters()).fill_(torch.inf)
        else:
            space = run.model.layers[-1].latent_space
            (space.cov if kind == "diversity" else space.mean).fill_(torch.nan)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("classification", {}),
        ("projection", {}),
        ("space", {}),
        ("diversity", {"space": False}),
    ],
)
def test_a_loss_that_is_not_finite_names_term_and_epoch(kind, settings):
    run = run_of(**settings)
    run.epoch()
    run.epoch()
    kept = {name: tensor.clone() for name, tensor in run.best_state.items()}
    poison(run, kind)
    term = {"projection": "classification"}.get(kind, kind)
    with pytest.raises(DivergedError, match=f"the {term} loss is nan in epoch 3.*lr"):
        run.epoch()
    assert run.progress.epoch == 2
    assert same(run.best_state, kept)
    assert all(tensor.isfinite().all() for tensor in kept.values())


def test_a_step_into_the_void_is_noticed_before_anything_is_kept(monkeypatch):
    run = run_of()
    monkeypatch.setattr(run.optimizer, "step", lambda: poison(run, "classification"))
    with pytest.raises(DivergedError, match="the validation loss is nan in epoch 1"):
        run.train()
    assert run.progress.epoch == 0
    assert not run.best_state


@pytest.mark.parametrize("model", [n for n, spec in MODELS.items() if spec.cls is not LGDGCN])
def test_a_far_too_high_learning_rate(model):  # LGD-GCN's unit-length layers bound its losses
    run = run_of(model=model, lr=1e30, weight_decay=0.0, epochs=20)
    with pytest.raises(DivergedError, match=r"diverged: the \w+ loss is \S+ in epoch"):
        run.train()


@BOTH
@pytest.mark.parametrize("precision", ["scaled", "exact", "released"])
def test_features_that_overflow_diverge_in_the_first_epoch(variant, precision):
    data = toy_graph()
    data.x *= 3e38
    run = run_of(data, variant=variant, precision=precision)
    with pytest.raises(DivergedError, match="epoch 1;"):
        run.train()


@BOTH
@pytest.mark.parametrize("lr", [1.0, 1e3])
def test_a_high_learning_rate_ends_in_numbers_or_an_error(variant, lr):
    run = run_of(variant=variant, lr=lr, epochs=15)
    try:
        run.train()
    except DivergedError:
        return
    assert evaluate(run.model, run.data).isfinite().all()


# Repeatability


@pytest.mark.parametrize("model", ["lgdgcn", "gat"])
def test_the_same_seed_gives_the_same_bits(model):
    results = []
    for seed in (3, 3, 4):
        torch.rand(5)  # whatever was drawn before
        run = run_of(model=model, seed=seed, epochs=5)
        run.train()
        results.append(copy_of(run))
    assert same(results[0], results[1])
    assert not same(results[0], results[2])


# Alg. 2


def arrays(space):
    return space.mean.numpy().copy(), space.cov.numpy().copy()


def test_statistics_follow_algorithm_2():
    run = run_of(toy_graph(dtype=torch.float64), dropout=0.0, update_rate=0.3)
    run.epoch()
    for epoch in (2, 3):
        spaces = [layer.latent_space for layer in run.model.layers]
        old = [arrays(space) for space in spaces]
        run.epoch()
        with torch.no_grad():  # the updated network on the whole graph, after aggregation
            layers = run.model.eval().disentangle(run.data.x, run.data.edge_index).layers
        for space, before, output in zip(spaces, old, layers, strict=True):
            mean, cov = updated(*before, output.units.numpy(), 0.3)
            np.testing.assert_allclose(space.mean, mean, atol=1e-12)
            np.testing.assert_allclose(space.cov, cov, atol=1e-12)
            assert space.updates == epoch + 1  # the first forward counts as one


def test_released_statistics_come_before_the_loss():
    run = run_of(toy_graph(dtype=torch.float64), dropout=0.0, update_rate=0.3, variant="released")
    run.epoch()
    for epoch in (2, 3):
        space = run.model.layers[-1].latent_space
        old = arrays(space)
        with torch.no_grad():  # the network before the step, before aggregation
            layers = run.model.disentangle(run.data.x, run.data.edge_index).layers
        run.epoch()
        mean, cov = updated(*old, layers[-1].local_units.numpy(), 0.3, centre="new")
        np.testing.assert_allclose(space.mean, mean, atol=1e-12)
        np.testing.assert_allclose(space.cov, cov, atol=1e-12)
        assert space.updates == epoch


def test_evaluation_leaves_the_statistics_alone():
    run = run_of()
    run.epoch()
    before = copy_of(run)
    evaluate(run.model, run.data)
    run.scores()
    assert same(copy_of(run), before)


def test_validation_is_scored_without_dropout():
    run = run_of(dropout=0.5)
    metrics = run.epoch()
    logits, mask = evaluate(run.model, run.data), run.data.val_mask
    assert metrics["val_loss"] == run.task.loss(logits, run.data.y, mask).item()
    assert metrics["val_accuracy"] == run.scores()["val"]["accuracy"]


# Learning


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("multi_label", [False, True])
def test_a_small_graph_is_learnt(model, multi_label):
    run = run_of(
        toy_graph(multi_label=multi_label), model, lr=0.02, dropout=0.1, epochs=60, heads=4
    )
    run.train()
    scores = run.scores()
    assert list(scores) == ["train", "val", "test"]
    assert scores["train"][run.task.metric] >= 0.9
    assert scores["test"][run.task.metric] >= 0.6


@BOTH
def test_lgd_gcn_fits_its_training_nodes(variant):
    run = run_of(variant=variant, lr=0.02, dropout=0.0, weight_decay=0.0, epochs=80, patience=80)
    metrics = []
    run.train(metrics.append)
    assert run.scores()["train"]["accuracy"] == 1
    assert metrics[-1]["total"] < metrics[0]["total"]
    names = ["epoch", "classification", "space", "diversity", "total", "val_loss", "val_accuracy"]
    assert list(metrics[0]) == names
    assert [row["epoch"] for row in metrics] == list(range(1, len(metrics) + 1))


def test_float64_features_train_in_float64():
    run = run_of(toy_graph(dtype=torch.float64))
    run.epoch()
    assert {tensor.dtype for tensor in copy_of(run).values()} == {torch.float64, torch.int64}


def test_parts_without_nodes():
    data = toy_graph()
    data.val_mask[:] = data.test_mask[:] = False
    run = run_of(data, epochs=6, patience=2)
    metrics, last = [], {}

    def on_epoch(row):
        metrics.append(row)
        last.update(copy_of(run))

    run.train(on_epoch)
    assert len(metrics) == 6  # no early stop
    assert metrics[0]["val_accuracy"] is None
    assert metrics[0]["val_loss"] is None
    for name, tensor in run.model.state_dict().items():
        assert torch.equal(tensor, last[name])  # the last epoch is kept
    scores = run.scores()
    assert scores["val"] == scores["test"] == {"accuracy": None}
