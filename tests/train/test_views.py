"""Training with random propagation in front, its views, and averages of the weights."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from lgdgcn.config import Settings
from lgdgcn.errors import CheckpointError, LGDWarning
from lgdgcn.train import memory
from lgdgcn.train.memory import _activations
from lgdgcn.train.population import Member
from lgdgcn.train.trained import TrainedModel
from lgdgcn.train.trainer import Trainer
from models.toy import toy_graph
from train.one_seed import train_seed

BASE = {
    "variant": "ours", "encoder_channels": 8, "hops": 3, "views": 3, "factors": 2,
    "hidden_channels": 8, "epochs": 6, "iterations": 0, "space": False, "diversity": False,
    "latent_graph": False, "refresh_every": 2, "structure_neighbours": 3,
}  # fmt: skip


KINDS = [
    {},
    {"iterations": 1, "hop_weights": "signed"},
    {"input_dropout": 0.3, "batch_norm": True},
    {"propagate": "features", "batch_norm": True, "hop_weights": "learned"},
    {"structure": "local"},
    {"structure": "both", "input_dropout": 0.3},
    {"unit_length": True, "structure": "both"},
    {"model": "grand", "input_dropout": 0.3, "batch_norm": True},
]


def settings_of(kind, **changes):
    return Settings(**{k: v for k, v in {**BASE, **kind, **changes}.items() if k != "model"})


def model_of(kind):
    return kind.get("model", "lgdgcn")


def same(one, other):
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert torch.equal(tensor, other[name]), name


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_model_says_the_same(kind, tmp_path):
    data = toy_graph()
    _, trained = train_seed(
        data, settings_of(kind, epochs=5, lr=0.05), model_of(kind), 0, torch.device("cpu")
    )
    trained.save(tmp_path / "model.safetensors")
    again = TrainedModel.load(tmp_path / "model.safetensors")
    assert torch.equal(trained(data).logits, again(data).logits)
    same(trained.model.state_dict(), again.model.state_dict())


def test_a_graph_that_was_not_trained_on_has_its_own_structure():
    data = toy_graph()
    kind = {"structure": "both", "epochs": 60, "lr": 0.05}
    _, trained = train_seed(data, settings_of(kind), "lgdgcn", 0, torch.device("cpu"))
    before = trained(data).logits
    order = torch.randperm(36, generator=torch.Generator().manual_seed(1))
    other = data.clone()  # the same graph with its nodes in another order
    other.x, other.y = data.x[order], data.y[order]
    other.edge_index = order.argsort()[data.edge_index]
    found = trained(other).logits
    agree = found.argmax(-1) == before[order].argmax(-1)
    assert agree.float().mean() > 0.8  # its own structure is not the trained one, but alike
    larger = toy_graph(nodes=48, seed=1)
    right = trained(larger).logits.argmax(-1) == larger.y
    assert right.float().mean() > 0.8
    assert torch.equal(trained(data).logits, before)


def test_the_structure_is_found_anew_every_so_many_epochs():
    data = toy_graph()
    trainer = Trainer(data, [Member(settings_of({"structure": "both"}), 0)])
    seen = []
    for _ in range(5):
        trainer.epoch()
        seen.append(trainer.state(0).tensors["model.propagation_graph.value"])
    changed = [not torch.equal(a, b) for a, b in pairwise(seen)]
    assert changed == [True, False, True, False]  # after epochs 2 and 4


def test_settings_of_the_propagation_without_it_are_named():
    for changes in ({"hops": 2}, {"views": 2}, {"structure": "local"}):
        settings = Settings(variant="ours", hidden_channels=16, k=2, **changes)
        with pytest.warns(LGDWarning, match="not used without encoder_channels"):
            Trainer(toy_graph(), [Member(settings, 0)])


@pytest.mark.parametrize("kind", [{}, {"propagate": "features"}, {"model": "grand"}])
def test_every_view_takes_memory(kind):
    data = toy_graph()
    one, four = (
        _activations(data, settings_of(kind, views=views), model_of(kind), 3) for views in (1, 4)
    )
    assert four == 4 * one
    if model_of(kind) == "lgdgcn":
        without = settings_of(kind, encoder_channels=0, views=4)
        assert _activations(data, without, "lgdgcn", 3) < one


DEVICE = "cuda" if torch.cuda.is_available() else "cpu"  # there it is recorded


ALL = {"consistency_warmup": 4, "confidence": 0.4, "weight_average": 0.7}


PAPER = {"variant": "paper", "encoder_channels": 0, "hops": 0, "views": 1, "k": 2, "epochs": 9}


PAPER |= {"iterations": 2, "space": True, "diversity": True, "latent_graph": True, "dropout": 0.0}


def trained(members, model="lgdgcn", data=None, **options):
    trainer, reports = Trainer(data or toy_graph(), members, model, **options), []
    trainer.train(reports.append)
    return trainer, reports


def test_the_weight_of_agreement_grows_over_the_first_epochs():
    epochs = [0, 1, 4, 100]
    members = [
        Member(settings_of({}, consistency_warmup=n, lambda_consistency=3.0, lambda_edge=0.0), n)
        for n in epochs
    ]
    _, reports = trained(members)
    assert len(reports) == 4 * 6
    for report in reports:
        row, warmup = report.metrics, epochs[report.index]
        share = min(1, row["epoch"] / warmup) if warmup else 1
        weighed = row["total"] - row["classification"]
        assert weighed == pytest.approx(3 * share * row["consistency"], abs=1e-5)
        assert row["consistency"] > 1e-3


class SlowAverage(Trainer):
    """Averages the parameters of a single run in a loop and copies them for every evaluation."""

    decay = 0.7

    def __init__(self, *args):
        super().__init__(*args)
        self._runner.capture = False
        self.count, self.slow = 0, [p.detach().clone() for p in self.network.parameters()]
        evaluate = self.loader._evaluate
        self.loader._evaluate = lambda: self._with_slow(evaluate)

    def steps(self):
        losses = super().steps()
        self.count += 1
        decay = min(self.decay, (1 + self.count) / (10 + self.count))
        present = [p.detach() for p in self.network.parameters()]
        self.slow = [decay * a + (1 - decay) * p for a, p in zip(self.slow, present, strict=True)]
        return losses

    @torch.no_grad()
    def _with_slow(self, call, *args):
        parameters = list(self.network.parameters())
        plain = [p.clone() for p in parameters]
        for parameter, average in zip(parameters, self.slow, strict=True):
            parameter.copy_(average)
        result = call(*args)
        for parameter, value in zip(parameters, plain, strict=True):
            parameter.copy_(value)
        self.loader.known = []
        return result

    def _refresh(self):
        self._with_slow(super()._refresh)

    def _keep_best(self, *args):
        self._with_slow(super()._keep_best, *args)

    def _release_finished(self):
        pass


@pytest.mark.parametrize(
    "kind", [*KINDS, PAPER, PAPER | {"num_layers": 2, "dropout": 0.3}, {"model": "gcn"}]
)
def test_evaluated_and_kept_is_the_average_of_all_steps(kind):
    data, model = toy_graph(dtype=torch.float64).to(DEVICE), model_of(kind)
    settings = settings_of(kind, lr=0.02)
    averaged, reports = trained([Member(replace(settings, weight_average=0.7), 1)], model, data)
    slow, rows = SlowAverage(data, [Member(settings, 1)], model), []
    for _ in range(settings.epochs):
        rows += slow.epoch()
    for found, want in zip(reports, rows, strict=True):
        assert found.metrics == pytest.approx(want.metrics, rel=1e-5)
    found, want = averaged.state(0), slow.state(0)
    for name in ("model", "best"):
        for key, tensor in want.weights(name).items():
            torch.testing.assert_close(found.weights(name)[key], tensor, rtol=1e-5, atol=1e-6)
    names = [name for name, _ in slow.model(0).named_parameters()]
    for name, tensor in zip(names, slow.slow, strict=True):
        torch.testing.assert_close(found.weights("average")[name], tensor[0], rtol=1e-5, atol=1e-6)
        if found.best_epoch == settings.epochs:
            assert torch.equal(found.weights("best")[name], found.weights("average")[name])
            assert not torch.equal(found.weights("best")[name], found.weights("model")[name])


def test_nothing_moves_in_memory():
    settings = settings_of({}, **ALL)
    trainer = Trainer(toy_graph().to(DEVICE), [Member(settings, 0), Member(settings, 1)])

    def places():
        now = trainer.population
        return [t.data_ptr() for t in (*now.average.values(), *now.parameters().values())]

    before = places()
    trainer.epoch()
    assert places() == before
    assert len(set(before)) == 2 * len(trainer.population.average)


def test_an_error_inside_leaves_the_parameters_as_they_were():
    trainer = Trainer(toy_graph(), [Member(settings_of({}, **ALL), 0)])
    trainer.steps()
    before = trainer.state(0).tensors
    with pytest.raises(ValueError, match="spoiled"), trainer.population.averaged():
        raise ValueError("spoiled")
    same(trainer.state(0).tensors, before)


def test_only_members_with_an_average_have_one():
    members = [Member(settings_of({}, weight_average=decay, epochs=4), 0) for decay in (0.0, 0.9)]
    trainer = Trainer(toy_graph(), members)
    trainer.epoch()
    assert trainer.state(0).weights("average") == {}
    assert trainer.state(1).weights("average").keys() == trainer.population.parameters().keys()
    trainer.retire([1])
    assert trainer.population.average == {}


@pytest.mark.parametrize("decay", [0.0, 0.9])
def test_an_average_of_another_run(decay):
    member = Member(settings_of({}, weight_average=0.9 - decay), 0)
    first = Trainer(toy_graph(), [member])
    first.epoch()
    other = Member(settings_of({}, weight_average=decay), 0)
    words = "average weights of another model: .* is " + ("missing" if decay else "unknown")
    with pytest.raises(CheckpointError, match=words):
        Trainer(toy_graph(), [other], states=[first.state(0)])


def test_an_average_takes_memory(monkeypatch):
    sizes = []
    monkeypatch.setattr(memory, "require_memory", lambda size, *others: sizes.append(size))
    plain, data = Settings(hidden_channels=8, k=3), toy_graph()
    for settings in ([plain] * 2, [plain, replace(plain, weight_average=0.9)]):
        memory.check_memory(data, settings, "lgdgcn", torch.device("cpu"))
    weights = memory._weights("lgdgcn", plain, 12, 3)
    assert sizes[1] - sizes[0] == 2 * 4 * weights
