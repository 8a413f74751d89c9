"""Many models as one: each output is what the model would say alone."""

from contextlib import nullcontext
from unittest import mock

import pytest
import torch

from lgdgcn.config import Settings
from lgdgcn.models import MODELS, NodeModel, build
from lgdgcn.models.population import Ensemble, single_names, stack
from lgdgcn.nn import RandomStreams
from models.toy import VARIANTS, toy_graph

EVERY = pytest.mark.parametrize("name", MODELS)
BASELINES = pytest.mark.parametrize(
    "name", [n for n, spec in MODELS.items() if not spec.cls.is_batched]
)
VARIANT = pytest.mark.parametrize("variant", VARIANTS)
SETTINGS = Settings(hidden_channels=24, num_layers=2, heads=4, dropout=0.5)
OWN = [{"k": 3, "tau": 1.0}, {"k": 5, "tau": 0.5}, {"k": 2, "tau": 2.0}]


def models_of(name, dtype=torch.float64, own=OWN, **changes):
    models = []
    for seed, settings in enumerate(own):
        torch.manual_seed(seed)
        models.append(build(name, SETTINGS.as_dict() | changes | settings, 12, 3).to(dtype))
    return models


def weights(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def member_state(stacked, member):
    return {name: tensor[member] for name, tensor in single_names(stacked.state_dict()).items()}


def close(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


# Outputs


@VARIANT
@EVERY
@pytest.mark.parametrize("sparse", [False, True])
def test_every_member_says_what_it_would_say_alone(name, variant, sparse):
    data = toy_graph(dtype=torch.float64)
    x = data.x.to_sparse_csr() if sparse else data.x
    models = models_of(name, variant=variant)
    logits = stack(models).eval()(x, data.edge_index)
    assert logits.shape == (3, 36, 3)
    for own, model in zip(logits, models, strict=True):
        close(own, model.eval()(x, data.edge_index))


@VARIANT
@pytest.mark.parametrize("graph", ["knn", "cknn"])
@pytest.mark.parametrize("k", [2, 5, 35, 99])
def test_one_k_for_all_needs_no_mask(variant, graph, k):
    data = toy_graph(dtype=torch.float64)
    changes = {"variant": variant, "graph": graph}
    models = models_of("lgdgcn", own=[{"k": k}] * 2, **changes)
    stacked = stack(models)
    with pytest.warns(match="k is 99") if k == 99 else torch.no_grad():
        logits = stacked.eval()(data.x, data.edge_index)
        single = [model.eval()(data.x, data.edge_index) for model in models]
    assert all(layer.own_k.dim() == 0 for layer in stacked.layers)
    close(logits, torch.stack(single))
    mixed = stack(models_of("lgdgcn", own=[{"k": 3}, {"k": k}], **changes))
    assert mixed.layers[0].k == max(3, k)


@VARIANT
def test_layers_losses_and_statistics_are_each_members_own(variant):
    data = toy_graph(dtype=torch.float64)
    rates = (0.3, 1.0, 0.0)
    own = [{**one, "update_rate": rate} for one, rate in zip(OWN, rates, strict=True)]
    models = models_of("lgdgcn", own=own, variant=variant, dropout=0.0)
    stacked = stack(models)
    for _ in range(3):
        both = [(m, m.disentangle(data.x, data.edge_index)) for m in (*models, stacked)]
        for model, output in both:
            for moment in ("first_epoch", "before_loss", "after_step"):
                model.update_statistics(output, moment)
        *alone, together = [
            (output.layers, model.losses(output, data.edge_index)) for model, output in both
        ]
        for member, (layers, losses) in enumerate(alone):
            for name, loss in losses.items():
                close(together[1][name][member], loss)
            for mine, layer in zip(together[0], layers, strict=True):
                for got, want in zip(mine, layer, strict=True):
                    close(got[member], want)
            close(member_state(stacked, member), dict(models[member].state_dict()))


@EVERY
def test_gradients_are_each_members_own(name):
    data = toy_graph(dtype=torch.float64)
    models = models_of(name)
    stacked = stack(models).eval()
    stacked(data.x, data.edge_index).square().sum().backward()
    for member, model in enumerate(models):
        model.eval()(data.x, data.edge_index).square().sum().backward()
        own = dict(model.named_parameters())
        for key, parameter in stacked.named_parameters():
            close(parameter.grad[member], own[key.replace("/", ".")].grad)


# Weights


@EVERY
def test_the_state_of_a_member_makes_the_model_again(name):
    data = toy_graph(dtype=torch.float64)
    models = models_of(name)
    stacked = stack(models)
    for member, model in enumerate(models):
        state = member_state(stacked, member)
        assert state.keys() == model.state_dict().keys()
        other = models_of(name, own=[OWN[member]])[0]
        other.load_state_dict(state)
        assert torch.equal(
            other.eval()(data.x, data.edge_index), model.eval()(data.x, data.edge_index)
        )


@EVERY
def test_the_models_and_the_stack_share_nothing(name):
    models = models_of(name)
    before = [weights(model) for model in models]
    stacked = stack(models)
    with torch.no_grad():
        for parameter in stacked.parameters():
            parameter.fill_(7)
    for model, state in zip(models, before, strict=True):
        assert all(torch.equal(tensor, state[key]) for key, tensor in model.state_dict().items())
    view = member_state(stacked, 1)
    for name, _ in models[1].named_parameters():
        assert (view[name] == 7).all()
        assert not view[name].requires_grad


# Baselines in one pass


def streams(rates=(0.5, 0.2, 0.8), seeds=(3, 2**40, -5)):
    epoch = torch.full((len(seeds),), 4)
    return RandomStreams(torch.tensor(seeds), epoch, torch.tensor(rates))


def scores(stacked, x, edge_index, own):
    with own.active() if own else nullcontext():
        return stacked(x, edge_index)


def at_once(stacked, x, edge_index, own):
    """What a GPU does, here on the CPU."""
    with mock.patch.object(Ensemble, "in_one_pass", True):
        return scores(stacked, x, edge_index, own)


def test_models_with_layers_of_dropout_and_concerns():
    class Own(NodeModel):
        def __init__(self, rate):
            super().__init__()
            self.dropout = torch.nn.Dropout(rate)
            self.linear = torch.nn.Linear(12, 3)

        def forward(self, x, edge_index):
            return self.linear(self.dropout(x))

        def concerns(self):
            return ["it knows no graph"]

    data = toy_graph(dtype=torch.float32)
    stacked = stack([Own(0.0), Own(0.5)])
    assert stacked.concerns() == ["it knows no graph"]
    with streams((0.0, 0.5)).active():
        dropped = stacked.train()(data.x, data.edge_index)
    kept = stacked.eval()(data.x, data.edge_index)
    torch.testing.assert_close(dropped[0], kept[0])
    assert not torch.equal(dropped[1], kept[1])


@BASELINES
@pytest.mark.parametrize("rates", [(0.5, 0.2, 0.8), (0.0, 0.5, 0.0)])
def test_one_pass_equals_turns(name, rates):
    data = toy_graph(dtype=torch.float64)
    stacked = stack(models_of(name, own=[{"dropout": rate} for rate in rates]))
    assert isinstance(stacked, Ensemble)
    for training, own in ((False, lambda: None), (True, lambda: streams(rates))):
        stacked.train(training)
        turns = scores(stacked, data.x, data.edge_index, own())
        once = at_once(stacked, data.x, data.edge_index, own())
        close(once, turns)
        gradients = [
            torch.autograd.grad(logits.square().sum(), [*stacked.parameters()])
            for logits in (turns, once)
        ]
        close(*gradients)


@BASELINES
@pytest.mark.parametrize("training", [False, True])
def test_one_pass_keeps_sparse_features_sparse(name, training):
    data = toy_graph(dtype=torch.float64)
    x = data.x.to_sparse_csr()
    stacked = stack(models_of(name)).train(training)
    own = streams if training else lambda: None
    turns = scores(stacked, x, data.edge_index, own())
    once = at_once(stacked, x, data.edge_index, own())
    close(once, turns)
    gradients = [
        torch.autograd.grad(logits.square().sum(), [*stacked.parameters()])
        for logits in (turns, once)
    ]
    close(*gradients)


@BASELINES
def test_streams_decide_what_is_dropped(name):
    data = toy_graph(dtype=torch.float64)
    stacked = stack(models_of(name)).train()
    torch.manual_seed(0)
    first = scores(stacked, data.x, data.edge_index, streams())
    torch.manual_seed(1)
    assert torch.equal(scores(stacked, data.x, data.edge_index, streams()), first)
    other = scores(stacked, data.x, data.edge_index, streams(seeds=(3, 4, -5)))
    assert torch.equal(other[[0, 2]], first[[0, 2]])
    assert not torch.equal(other[1], first[1])
    assert not torch.equal(stacked.eval()(data.x, data.edge_index), first)


@BASELINES
def test_a_rate_of_zero_drops_nothing(name):
    data = toy_graph(dtype=torch.float64)
    stacked = stack(models_of(name)).train()
    found = scores(stacked, data.x, data.edge_index, streams(rates=(0.0, 0.5, 0.0)))
    without = stacked.eval()(data.x, data.edge_index)
    close(found[[0, 2]], without[[0, 2]])
    assert not torch.allclose(found[1], without[1])


# A model with buffers, losses and statistics of its own


class BatchNormNet(NodeModel):
    """What a user may add: batch norm, an own loss, and a buffer that is updated in place."""

    def __init__(self, in_channels, out_channels, hidden_channels=8):
        super().__init__()
        self.first = torch.nn.Linear(in_channels, hidden_channels)
        self.norm = torch.nn.BatchNorm1d(hidden_channels)
        self.last = torch.nn.Linear(hidden_channels, out_channels)
        self.register_buffer("largest", torch.zeros(()))

    def forward(self, x, edge_index):
        return self.last(self.norm(self.first(x)).relu())

    def losses(self, output, edge_index):
        return {"confidence": output.logits.square().mean() + self.last.weight.square().sum()}

    def update_statistics(self, output, moment):
        if moment == "after_step":
            self.largest.copy_(torch.maximum(self.largest, output.logits.detach().amax()))


@pytest.mark.parametrize("one_pass", [False, True])
def test_members_have_their_own_batch_norm_losses_and_statistics(one_pass):
    data = toy_graph(dtype=torch.float64)
    models = []
    for seed in range(3):
        torch.manual_seed(seed)
        models.append(BatchNormNet(12, 3).double())
    stacked = stack(models)
    with mock.patch.object(Ensemble, "in_one_pass", one_pass):
        for _ in range(3):
            output = stacked.train().disentangle(data.x, data.edge_index)
            losses = stacked.losses(output, data.edge_index)["confidence"]
            stacked.update_statistics(output, "after_step")
            for member, model in enumerate(models):
                own = model.train().disentangle(data.x, data.edge_index)
                close(losses[member], model.losses(own, data.edge_index)["confidence"])
                model.update_statistics(own, "after_step")
        for member, model in enumerate(models):
            close(member_state(stacked, member), dict(model.state_dict()))
            evaluated = model.eval()(data.x, data.edge_index)
            close(stacked.eval()(data.x, data.edge_index)[member], evaluated)
    assert (models[0].norm.running_mean != models[1].norm.running_mean).all()
    assert int(stacked.state_dict()["norm/num_batches_tracked"][0]) == 3
