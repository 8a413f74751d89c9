"""A trainer of one: when it stops, what it keeps, and that it can be repeated."""

import pytest
import torch
import torch.nn.functional as F

from lgdgcn import kernels
from lgdgcn.config import MODEL_NAMES, Settings, model_and_variant
from lgdgcn.errors import DivergedError
from lgdgcn.train.loader import WholeGraph
from lgdgcn.train.population import PopulationAdam
from lgdgcn.train.targets import Targets
from models.toy import VARIANTS, toy_graph
from train.single import Single

SMALL = {"hidden_channels": 24, "num_layers": 2, "k": 3, "lambda_space": 1e-5}
EVERY = pytest.mark.parametrize("variant", VARIANTS)


def run_of(data=None, model="lgdgcn", seed=0, **settings):
    return Single(toy_graph() if data is None else data, Settings(**SMALL | settings), model, seed)


def copy_of(run):
    return {name: tensor.clone() for name, tensor in run.weights.items()}


def same(first, second):
    return first.keys() == second.keys() and all(torch.equal(first[n], second[n]) for n in first)


# Early stopping


@pytest.mark.parametrize("seed", range(5))
def test_patience_counts_from_the_best_epoch_and_its_weights_come_back(seed):
    run = run_of(model="gcn", seed=seed, patience=5, epochs=50, lr=0.05)
    log, weights = [], []

    def follow(metrics):
        log.append((metrics["val_accuracy"], -metrics["val_loss"]))  # a loss decides among equals
        weights.append(copy_of(run))

    run.train(follow)
    best = log.index(max(log)) + 1  # the first of those
    assert run.progress.best_epoch == best
    assert run.progress.epoch == len(log) == min(50, best + 5)
    assert (run.progress.best_score, -run.progress.best_loss) == pytest.approx(log[best - 1])
    assert same(run.best, weights[best - 1])
    assert same(dict(run.model().state_dict()), weights[best - 1])


# Divergence


def poison(run, kind):
    with torch.no_grad():
        if kind == "classification":
            run.network.classifier.bias.fill_(torch.nan)
        elif kind == "projection":
            next(run.network.parameters()).fill_(torch.inf)
        else:
            space = run.network.layers[-1].latent_space
            (space.cov if kind == "diversity" else space.mean).fill_(torch.nan)
    run.forget()


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
    kept = run.best
    poison(run, kind)
    term = {"projection": "classification"}.get(kind, kind)
    words = f"^training diverged: the {term} loss is nan in epoch 3$"
    with pytest.raises(DivergedError, match=words):
        run.epoch()
    assert run.finished
    assert run.progress.epoch == 2
    assert same(run.best, kept)
    assert all(tensor.isfinite().all() for tensor in kept.values())


@pytest.mark.parametrize(("validated", "term"), [(True, "validation"), (False, "evaluation")])
def test_a_step_into_the_void_is_noticed_before_anything_is_kept(monkeypatch, validated, term):
    data = toy_graph()
    data.val_mask &= validated
    run = run_of(data)
    before = copy_of(run)
    monkeypatch.setattr(PopulationAdam, "step", lambda self: poison(run, "classification"))
    with pytest.raises(DivergedError, match=f"the {term} loss is nan in epoch 1"):
        run.train()
    assert run.progress.epoch == 0
    assert same(run.best, before)


@EVERY
@pytest.mark.parametrize("precision", ["scaled", "exact", "released"])
def test_features_that_overflow_diverge_in_the_first_epoch(variant, precision):
    data = toy_graph()
    data.x *= 3e38
    run = run_of(data, variant=variant, precision=precision)
    with pytest.raises(DivergedError, match=r"epoch 1$"):
        run.train()


# Repeatability


@pytest.mark.parametrize("seed", [-1, 2**31, 2**40 + 1, 2**63 - 1, 2**64 - 1])
def test_any_seed_that_torch_takes(seed):
    run = run_of(seed=seed, epochs=2)
    run.train()
    assert run.progress.epoch == 2


# What was already computed


def count_of_routes(monkeypatch):
    calls = []
    real = kernels.route
    monkeypatch.setattr(kernels, "route", lambda *a, **k: calls.append(None) or real(*a, **k))
    return calls


@EVERY
@pytest.mark.parametrize(("dropout", "saved"), [(0.0, 3), (0.4, 1)])
def test_a_step_goes_on_from_the_evaluation_before(monkeypatch, variant, dropout, saved):
    calls = count_of_routes(monkeypatch)
    run = run_of(variant=variant, dropout=dropout, num_layers=3)
    counts = []
    for _ in range(3):
        run.epoch()
        counts.append(len(calls))
        calls.clear()
    each = 7 if variant == "ours" else 1  # its rounds are calls of their own
    assert counts == [6 * each, (6 - saved) * each, (6 - saved) * each]


@EVERY
@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("model", ["lgdgcn", "disengcn"])
def test_that_changes_no_bit(monkeypatch, model, variant, dropout):
    options = {"variant": variant, "dropout": dropout, "epochs": 6, "lr": 0.05}
    saving, metrics = run_of(model=model, **options), []
    saving.train(metrics.append)
    real = WholeGraph.steps

    def steps(self):
        self.known = []
        return real(self)

    monkeypatch.setattr(WholeGraph, "steps", steps)
    wasting, wasted = run_of(model=model, **options), []
    wasting.train(wasted.append)
    assert wasted == metrics
    assert same(wasting.weights, saving.weights)
    assert same(wasting.best, saving.best)


# Against a plain loop


# "reasons" hides labels by chance in every step
REPEATABLE = [model_and_variant(name) for name in MODEL_NAMES if name != "reasons"]


@pytest.mark.usefixtures("general_position")
@pytest.mark.parametrize(("model", "variant"), REPEATABLE)
def test_the_weights_are_those_of_a_plain_loop_with_torchs_adam(model, variant):
    data = toy_graph(dtype=torch.float64)
    names = {"space": "lambda_space", "diversity": "lambda_div", "edge": "lambda_edge"}
    weights = {"space": 0.5, "diversity": 0.125, "edge": 0.75}
    exact = {"lr": 2**-6, "weight_decay": 2**-8} | {names[n]: w for n, w in weights.items()}
    run = run_of(
        data, model, dropout=0.0, drop_nodes=0.0, variant=variant or "paper", epochs=5, **exact
    )
    network = run.model("model")
    optimizer = torch.optim.Adam(network.parameters(), lr=2**-6, weight_decay=2**-8)

    run.train()
    for epoch in range(5):
        network.train()
        optimizer.zero_grad()
        output = network.disentangle(data.x, data.edge_index)
        loss = F.cross_entropy(output.logits[data.train_mask], data.y[data.train_mask])
        if epoch == 0:
            network.update_statistics(output, "first_epoch")
        network.update_statistics(output, "before_loss")
        terms = network.losses(output, data.edge_index)
        loss += sum(weights[name] * term for name, term in terms.items())
        loss.backward()
        optimizer.step()
        network.eval()
        with torch.no_grad():
            output = network.disentangle(data.x, data.edge_index)
            network.update_statistics(output, "after_step")
    torch.testing.assert_close(run.weights, dict(network.state_dict()), rtol=1e-7, atol=1e-9)


# Alg. 2


def test_validation_is_scored_without_dropout():
    run = run_of(dropout=0.5)
    metrics = run.epoch()
    targets = Targets.of([run.data], "val_mask")
    loss = run.task.loss(targets.pick(run.logits().unsqueeze(0)), targets)
    assert metrics["val_loss"] == pytest.approx(loss.item(), rel=1e-6)
    assert metrics["val_accuracy"] == run.scores()["val"]["accuracy"]


# Learning


@EVERY
def test_lgd_gcn_fits_its_training_nodes(variant):
    run = run_of(variant=variant, lr=0.03, dropout=0.0, weight_decay=0.0, epochs=50)
    metrics = []
    run.train(metrics.append)
    assert run.scores()["train"]["accuracy"] == 1
    assert metrics[-1]["total"] < metrics[0]["total"]
    names = ["epoch", "classification", "edge", "space", "diversity", "total", "val_loss"]
    wanted = [name for name in names if name != "edge" or variant == "ours"]
    assert list(metrics[0]) == [*wanted, "val_accuracy"]
    assert [row["epoch"] for row in metrics] == list(range(1, len(metrics) + 1))


def test_parts_without_nodes():
    data = toy_graph()
    data.val_mask[:] = data.test_mask[:] = False
    run = run_of(data, epochs=6, patience=2)
    metrics = []
    run.train(metrics.append)
    assert len(metrics) == 6  # no early stop
    assert metrics[0]["val_accuracy"] is None
    assert metrics[0]["val_loss"] is None
    assert same(run.best, run.weights)  # the last epoch is kept
    scores = run.scores()
    assert set(scores["val"].values()) == set(scores["test"].values()) == {None}
