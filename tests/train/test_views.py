"""Training with random propagation in front, its views, and averages of the weights."""

from itertools import pairwise

import pytest
import torch

from lgdgcn.config import Settings
from lgdgcn.errors import CheckpointError, LGDWarning
from lgdgcn.train.population import with_weights
from models.toy import toy_graph
from train.one_seed import train_seed
from train.single import Member, trainer_of

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
    trainer = trainer_of(data, [Member(settings_of({"structure": "both"}), 0)])
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
            trainer_of(toy_graph(), [Member(settings, 0)])


DEVICE = "cuda" if torch.cuda.is_available() else "cpu"  # there it is recorded


ALL = {"consistency_warmup": 4, "confidence": 0.4, "weight_average": 0.7}


def trained(members, model="lgdgcn", data=None, **options):
    trainer, reports = trainer_of(data or toy_graph(), members, model, **options), []
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


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_evaluated_and_kept_is_the_average_of_all_steps(kind):
    data, decay = toy_graph(dtype=torch.float64), 0.7
    settings = settings_of(kind, lr=0.02, weight_average=decay)
    trainer = trainer_of(data, [Member(settings, 1)], model_of(kind))
    means = trainer.state(0).weights("average")
    for step in range(1, settings.epochs + 1):
        (report,) = trainer.epoch()
        state = trainer.state(0)
        share = 1 - min(decay, (1 + step) / (10 + step))
        present = state.weights("model")
        means = {name: mean.lerp(present[name], share) for name, mean in means.items()}
        torch.testing.assert_close(state.weights("average"), means)
        if state.best_epoch == step:
            model = with_weights(trainer.new_model(0), state, "best").eval()
            logits = model(data.x, data.edge_index)[data.val_mask]
            loss = torch.nn.functional.cross_entropy(logits, data.y[data.val_mask])
            assert report.metrics["val_loss"] == pytest.approx(float(loss))
            for name, mean in means.items():
                torch.testing.assert_close(state.weights("best")[name], mean)
    assert not torch.equal(present[name], means[name])


def test_nothing_moves_in_memory():
    settings = settings_of({}, **ALL)
    trainer = trainer_of(toy_graph().to(DEVICE), [Member(settings, 0), Member(settings, 1)])

    def places():
        now = trainer.population
        return [t.data_ptr() for t in (*now.average.values(), *now.parameters().values())]

    before = places()
    trainer.epoch()
    assert places() == before
    assert len(set(before)) == 2 * len(trainer.population.average)


def test_an_error_inside_leaves_the_parameters_as_they_were():
    trainer = trainer_of(toy_graph(), [Member(settings_of({}, **ALL), 0)])
    trainer.steps()
    before = trainer.state(0).tensors
    with pytest.raises(ValueError, match="spoiled"), trainer.population.averaged():
        raise ValueError("spoiled")
    same(trainer.state(0).tensors, before)


def test_only_members_with_an_average_have_one():
    members = [Member(settings_of({}, weight_average=decay, epochs=4), 0) for decay in (0.0, 0.9)]
    trainer = trainer_of(toy_graph(), members)
    trainer.epoch()
    assert trainer.state(0).weights("average") == {}
    assert trainer.state(1).weights("average").keys() == trainer.population.parameters().keys()
    trainer.retire([1])
    assert trainer.population.average == {}


@pytest.mark.parametrize("decay", [0.0, 0.9])
def test_an_average_of_another_run(decay):
    member = Member(settings_of({}, weight_average=0.9 - decay), 0)
    first = trainer_of(toy_graph(), [member])
    first.epoch()
    other = Member(settings_of({}, weight_average=decay), 0)
    words = "average weights of another model: .* is " + ("missing" if decay else "unknown")
    with pytest.raises(CheckpointError, match=words):
        trainer_of(toy_graph(), [other], states=[first.state(0)])
