"""The layer and the network: against a literal composition, and what must not change the result."""

import dataclasses
import itertools
import warnings

import numpy as np
import pytest
import torch

from lgdgcn.errors import InputError, LGDWarning
from lgdgcn.models import LGDGCN, ClassUnitGCN, build
from lgdgcn.nn import VARIANTS as READINGS
from lgdgcn.nn import ClassUnitConv, FactorProjection, LGDConv
from literal import aggregation, latent_space, routing, voting
from literal.seeds import seeds
from models.toy import VARIANTS, toy_graph

SEEDS = seeds(2)
EVERY = pytest.mark.parametrize("variant", VARIANTS)


def network(seed=0, dtype=torch.float64, **options):
    torch.manual_seed(seed)
    options = {"num_layers": 2, "k": 3, "dropout": 0.0, "hidden_channels": 24, **options}
    model = build("lgdgcn", options, 12, 3)
    for module in model.modules():  # few coordinates at 0: units in general position have no ties
        if isinstance(module, FactorProjection):
            torch.nn.init.uniform_(module.bias, 0.2, 0.8)
    return model.to(dtype).eval()


# Against the paper, step by step


def literal_units(model, layer, h, edge_index, is_first):
    variant = model.variant
    projection = layer.projection or (model.projection if is_first else None)
    if projection is None:
        z = np.array([[routing.normalise(u) for u in np.split(row, 4)] for row in h])
    else:
        weight, bias = (p.detach().numpy() for p in projection.parameters())
        if isinstance(layer, ClassUnitConv):
            scores = (h @ weight + bias).reshape(len(h), 4, -1)
            return voting.vote(scores, edge_index, layer.iterations, layer.tau)
        z = latent_space.projection(h, weight, bias, 4)
    flags = variant.uniform_start, variant.normalize_last
    return routing.route(z, edge_index, layer.iterations, layer.tau, *flags)[0]


def literal_forward(model, x, edge_index):
    """The network in numpy; returns class scores and every layer's local and global units."""
    variant, h, outputs = model.variant, x.numpy(), []
    for layer in model.layers:
        local = literal_units(model, layer, h, edge_index, is_first=not outputs)
        units = local.copy()
        if layer.has_latent_graph:
            for m in range(4):
                points = local[:, m]
                if variant.normalization == "symmetric":
                    adjacency = getattr(aggregation, layer.graph)(points, layer.k)
                    units[:, m] = aggregation.symmetric(adjacency, points)
                else:
                    choice = {"knn": aggregation.knn_lists, "cknn": aggregation.cknn}[layer.graph]
                    units[:, m] = aggregation.released(choice(points, layer.k), points)
        outputs.append((local, units))
        h = units.reshape(len(units), -1)
    if isinstance(model, ClassUnitGCN):
        start, weight = model.classifier.start, model.classifier.weight
        return voting.label_scores(units, start.numpy(), weight.detach().numpy()), outputs
    weight, bias = (p.detach().numpy() for p in model.classifier.parameters())
    return h @ weight.T + bias, outputs


@EVERY
@pytest.mark.parametrize("graph", ["knn", "cknn"])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_network_equals_the_literal_composition(seed, graph, variant):
    data = toy_graph(24, seed=seed, dtype=torch.float64)
    model = network(seed, variant=variant, graph=graph, iterations=3, tau=0.7)
    want, layers = literal_forward(model, data.x, data.edge_index)
    output = model.disentangle(data.x, data.edge_index)
    for got, (local, units) in zip(output.layers, layers, strict=True):
        np.testing.assert_allclose(got.local_units.detach(), local, atol=1e-10)
        np.testing.assert_allclose(got.units.detach(), units, atol=1e-10)
    np.testing.assert_allclose(output.logits.detach(), want, atol=1e-10)
    assert torch.equal(model(data.x, data.edge_index), output.logits)


@pytest.mark.parametrize("variant", ["paper", "ours"])
@pytest.mark.parametrize("seed", SEEDS)
def test_losses_weigh_layers_by_powers_of_ten(seed, variant):
    data = toy_graph(20, seed=seed, dtype=torch.float64)
    model = network(seed, num_layers=3, variant=variant)
    found = model.disentangle(data.x, data.edge_index)
    model.update_statistics(found, "first_epoch")
    space = diversity = edge = 0.0
    for weight, layer, output in zip([0.01, 0.1, 1], model.layers, found.layers, strict=True):
        statistics = layer.latent_space
        statistics.cov += 0.3 * torch.eye(6)  # wide enough for the factors to overlap
        arguments = [t.detach() for t in (output.local_units, statistics.mean, statistics.cov)]
        arrays = [t.numpy() for t in arguments]
        precision = "exact" if variant == "paper" else "scaled"
        space += weight * latent_space.space_loss(*arrays, precision).mean()
        volume = latent_space.diversity(*arrays, precision, jitter=1e-6)
        diversity += weight * -np.log(volume).mean()
        if variant == "ours":
            shares = layer.factor_weights.tolist()
            edge += weight * voting.edge_loss(arrays[0], data.edge_index, shares)
    losses = model.losses(found, data.edge_index)
    np.testing.assert_allclose(losses["space"].item(), space, rtol=1e-8)
    np.testing.assert_allclose(losses["diversity"].item(), diversity, rtol=1e-6)
    assert diversity > 0.1
    assert ("edge" in losses) == (variant == "ours")
    if variant == "ours":
        np.testing.assert_allclose(losses["edge"].item(), edge, rtol=1e-8)


def test_dropout_acts_in_training_only():
    data = toy_graph()
    model = network(dtype=torch.float32, dropout=0.5)
    first, second = (model(data.x, data.edge_index) for _ in range(2))
    assert torch.equal(first, second)
    model.train()
    first, second = (model(data.x, data.edge_index) for _ in range(2))
    assert not torch.equal(first, second)


# What must not change the result


def test_the_input_is_left_alone():
    data = toy_graph()
    model = network(dtype=torch.float32)
    wide = torch.cat([data.x, data.x], dim=1)
    strided = wide[:, :12].requires_grad_()
    assert not strided.is_contiguous()
    copy, edges = strided.detach().clone(), data.edge_index.clone()
    got = model(strided, data.edge_index)
    torch.testing.assert_close(got, model(data.x, data.edge_index))
    assert torch.equal(strided, copy)
    assert torch.equal(data.edge_index, edges)
    (gradient,) = torch.autograd.grad(got.sum(), strided)
    assert gradient.isfinite().all()


@EVERY
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_the_dtype_is_kept_and_the_result_is_finite(variant, dtype):
    data = toy_graph(dtype=torch.float32)
    model = network(dtype=dtype, variant=variant)
    output = model.disentangle(data.x.to(dtype), data.edge_index)
    model.update_statistics(output, "first_epoch")
    model.update_statistics(output, "before_loss")
    losses = model.losses(output, data.edge_index)
    assert output.logits.dtype == dtype
    sum(losses.values(), start=output.logits.float().square().sum()).backward()
    for tensor in (output.logits, *losses.values(), *(p.grad for p in model.parameters())):
        assert tensor.isfinite().all()
    statistics = model.layers[-1].latent_space
    assert statistics.cov.dtype == torch.promote_types(dtype, torch.float32)


# Small and strange graphs


@EVERY
@pytest.mark.parametrize("nodes", [1, 2, 3])
@pytest.mark.parametrize("features", ["random", "zero", "constant"])
def test_few_nodes_without_edges(variant, nodes, features):
    torch.manual_seed(0)
    x = {"random": torch.rand, "zero": torch.zeros, "constant": torch.ones}[features](nodes, 12)
    model = network(dtype=torch.float32, variant=variant, k=4).train()
    edges = torch.zeros(2, 0, dtype=torch.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LGDWarning)
        output = model.disentangle(x, edges)
        for moment in ("first_epoch", "before_loss", "after_step"):
            model.update_statistics(output, moment)
    losses = model.losses(output, edges)
    assert output.logits.shape == (nodes, 3)
    assert output.layers[0].edge_factors.shape == (0, 4)
    sum(losses.values(), start=output.logits.sum()).backward()
    for tensor in (output.logits, *losses.values(), *(p.grad for p in model.parameters())):
        assert tensor.isfinite().all()


@EVERY
def test_isolated_nodes_and_zero_rows(variant):
    data = toy_graph()
    edges = data.edge_index[:, (data.edge_index > 5).all(0)]
    data.x[:3] = 0
    model = network(dtype=torch.float32, variant=variant)
    output = model.disentangle(data.x, edges)
    model.update_statistics(output, "first_epoch")
    model.update_statistics(output, "before_loss")
    losses = model.losses(output, edges)
    sum(losses.values(), start=output.logits.sum()).backward()
    for tensor in (output.logits, *losses.values(), *(p.grad for p in model.parameters())):
        assert tensor.isfinite().all()


@EVERY
def test_hidden_size_must_be_a_multiple_of_the_factors(variant):
    with pytest.raises(InputError, match=r"64.*5 factors"):
        build("lgdgcn", {"hidden_channels": 64, "factors": 5, "variant": variant}, 12, 3)
    with pytest.raises(InputError, match=r"7.*4 factors"):
        LGDConv(12, 7, factors=4)


def test_unknown_variant():
    with pytest.raises(InputError, match=r"papr.*paper, released"):
        LGDGCN(12, 64, 3, variant="papr")


# The readings of the paper: every difference shows


def test_shared_projection():
    models = {variant: network(variant=variant, num_layers=3) for variant in VARIANTS}
    count = {v: sum(p.numel() for p in model.parameters()) for v, model in models.items()}
    first, second, classifier = 12 * 24 + 24, 24 * 24 + 24, 24 * 3 + 3
    assert count["paper"] == first + 2 * second + classifier
    assert count["released"] == first + classifier
    assert count["ours"] == count["paper"] - 3  # a label is as likely as its classes


def test_global_layers():
    for variant in VARIANTS:
        wanted = [False, False, True] if variant == "released" else [True] * 3
        model = network(variant=variant, num_layers=3)
        assert [layer.has_latent_graph for layer in model.layers] == wanted
        assert [layer.latent_space is not None for layer in model.layers] == wanted


def test_length_of_the_routed_units():
    data = toy_graph(dtype=torch.float64)
    lengths = {
        variant: network(variant=variant)
        .disentangle(data.x, data.edge_index)
        .layers[-1]
        .local_units.norm(dim=-1)
        for variant in VARIANTS
    }
    ones = torch.ones_like(lengths["paper"])
    torch.testing.assert_close(lengths["paper"], ones)
    torch.testing.assert_close(lengths["ours"], ones)
    assert (lengths["released"] > 1.1).any()  # grows with the degree


def test_precision():
    precisions = {"paper": "exact", "released": "released", "ours": "scaled"}
    for variant, own in precisions.items():
        assert network(variant=variant).layers[-1].latent_space.precision == own
        for given in ("exact", "scaled"):
            model = network(variant=variant, precision=given)
            assert model.layers[-1].latent_space.precision == given


@pytest.mark.parametrize(
    "choice", ["uniform_start", "normalize_last", "normalization", "one_sided_weight"]
)
def test_each_choice_changes_the_layer(choice):
    data = toy_graph(dtype=torch.float64)
    outputs = []
    paper = READINGS["paper"]
    other = dataclasses.replace(paper, **{choice: getattr(READINGS["released"], choice)})
    for variant in (paper, other):
        torch.manual_seed(0)
        conv = LGDConv(12, 24, k=3, graph="knn", iterations=2, variant=variant).double()
        outputs.append(conv(data.x, data.edge_index))
    assert (outputs[0] - outputs[1]).abs().max() > 1e-4


def test_when_the_statistics_are_updated():
    data = toy_graph(dtype=torch.float64)
    for variant in VARIANTS:
        model = network(variant=variant)
        counts = []
        statistics = model.layers[-1].latent_space
        for epoch in range(2):
            output = model.disentangle(data.x, data.edge_index)
            layers = output.layers
            if epoch == 0:
                model.update_statistics(output, "first_epoch")
            model.update_statistics(output, "before_loss")
            before = layers[-1].local_units if variant == "released" else layers[-1].units
            if not counts:  # either way the first units set the statistics
                torch.testing.assert_close(statistics.mean, before.mean(0).detach())
            counts.append(int(statistics.updates))
            model.update_statistics(output, "after_step")
            counts.append(int(statistics.updates))
        assert counts == ([1, 1, 2, 2] if variant == "released" else [1, 2, 2, 3])
        assert statistics.centre == ("new" if variant == "released" else "old")


# The switches of the ablation


@EVERY
@pytest.mark.parametrize(
    ("space", "diversity", "latent_graph"), list(itertools.product([True, False], repeat=3))
)
def test_a_switch_removes_its_part(variant, space, diversity, latent_graph):
    data = toy_graph(dtype=torch.float64)
    model = network(variant=variant, space=space, diversity=diversity, latent_graph=latent_graph)
    output = model.disentangle(data.x, data.edge_index)
    model.update_statistics(output, "first_epoch")
    model.update_statistics(output, "before_loss")
    on = {"space": space, "diversity": diversity, "edge": variant == "ours"}
    wanted = {name for name, is_on in on.items() if is_on}
    assert set(model.losses(output, data.edge_index)) == wanted
    assert any("latent_space" in name for name in model.state_dict()) == (space or diversity)
    last = output.layers[-1]
    assert torch.equal(last.units, last.local_units) == (not latent_graph)
    # the losses' switches have no part in the forward pass
    assert torch.equal(
        output.logits, network(variant=variant, latent_graph=latent_graph)(data.x, data.edge_index)
    )


@EVERY
def test_disengcn_is_lgd_gcn_with_all_off(variant):
    data = toy_graph()
    settings = {"hidden_channels": 24, "num_layers": 2, "variant": variant}
    torch.manual_seed(0)
    disengcn = build("disengcn", settings, 12, 3).eval()
    torch.manual_seed(0)
    off = {"space": False, "diversity": False, "latent_graph": False}
    model = build("lgdgcn", settings | off, 12, 3).eval()
    assert not any("latent_space" in name for name in disengcn.state_dict())
    assert torch.equal(disengcn(data.x, data.edge_index), model(data.x, data.edge_index))


def test_reset_parameters_starts_over():
    data = toy_graph()
    model = network(dtype=torch.float32)
    before = model(data.x, data.edge_index)
    model.update_statistics(model.disentangle(data.x, data.edge_index), "first_epoch")
    model.reset_parameters()
    assert not any(layer.latent_space.updates for layer in model.layers)
    assert not torch.equal(model(data.x, data.edge_index), before)
    assert str(model.layers[0]) == "LGDConv(12, 24, M=4, T=7, cknn=3)"


# What each factor says


@EVERY
def test_what_the_factors_add_makes_up_a_labels_score(variant):
    data = toy_graph(dtype=torch.float64)
    model = network(variant=variant)
    model.begin(torch.nn.functional.one_hot(data.y, 3), data.x, data.edge_index)
    with torch.no_grad():
        logits, layers, _ = model.disentangle(data.x, data.edge_index)
        label = torch.randint(3, (36,))
        shares = model.factor_shares(layers[-1].units, label)
    assert shares.shape == (36, 4)
    score = logits[torch.arange(36), label]
    wanted = score.sigmoid() if variant == "ours" else score - model.classifier.bias[label]
    torch.testing.assert_close(shares.sum(1), wanted)


def test_label_groups_are_a_switch():
    data = toy_graph(dtype=torch.float64)
    y = torch.nn.functional.one_hot(data.y, 3)
    models = [network(variant="ours", label_groups=groups) for groups in (True, False)]
    before = models[1].classifier.shares()
    for model in models:
        model.begin(y, data.x, data.edge_index)
    # all three labels exclude each other: one factor has nearly all of each
    certain = models[0].classifier.shares().view(3, 4, 6).sum(-1).amax(-1)
    assert (certain > 0.95).all()
    assert torch.equal(models[1].classifier.shares(), before)
    paper = network()
    weight = paper.classifier.weight.clone()
    paper.begin(y, data.x, data.edge_index)
    assert torch.equal(paper.classifier.weight, weight)


def test_units_that_are_classes_need_a_projection():
    with pytest.raises(InputError, match="need a projection; give in_channels"):
        ClassUnitConv(None, 8, factors=2)
