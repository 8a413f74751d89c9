"""Training with views: warm-up, confidence and the moving average of the weights."""

from dataclasses import replace

import pytest
import torch

from lgdgcn.config import Settings
from lgdgcn.errors import CheckpointError
from lgdgcn.train import memory
from lgdgcn.train.population import Member
from lgdgcn.train.trainer import Trainer
from models.toy import toy_graph
from train.test_propagation import model_of, same, settings_of

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"  # there it is recorded
ALL = {"consistency_warmup": 4, "confidence": 0.4, "weight_average": 0.7}
KINDS = [{}, {"structure": "both"}, {"model": "grand", "batch_norm": True}]
PAPER = {"variant": "paper", "encoder_channels": 0, "hops": 0, "views": 1, "k": 2, "epochs": 9}
PAPER |= {"iterations": 2, "space": True, "diversity": True, "latent_graph": True, "dropout": 0.0}


def trained(members, model="lgdgcn", data=None, **options):
    trainer, reports = Trainer(data or toy_graph(), members, model, **options), []
    trainer.train(reports.append)
    return trainer, reports


# Warm-up


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


# Moving average


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
