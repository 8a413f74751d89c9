"""Counted dropout: the numbers themselves, and that they depend on nothing else."""

import pytest
import torch
import torch.nn.functional as F

from lgdgcn.nn import RandomStreams, dropout, dropout_everywhere

BACKENDS = pytest.mark.parametrize("backend", ["torch", "numba"])


def streams(seed=0, epoch=1, rate=0.5):
    """One member, or as many as the longest list has."""
    seeds, epochs, rates = (torch.atleast_1d(torch.tensor(v)) for v in (seed, epoch, rate))
    seeds, epochs, rates = torch.broadcast_tensors(seeds, epochs, rates)
    return RandomStreams(seeds, epochs, rates.float())


def kept(*, shape=(1, 1000), calls=0, **options):
    """Which elements are kept in one call after so many others."""
    source = streams(**options)
    for _ in range(calls):
        source.drop(torch.ones(shape))
    return source.drop(torch.ones(shape)) != 0


# The numbers


def test_known_answers():
    """So that a run can be repeated with a later version."""
    first = kept(shape=(1, 32), seed=0, epoch=1)
    second = kept(shape=(1, 32), seed=12345678901, epoch=77, rate=0.25, calls=2)
    bits = ["".join(map(str, row.int().flatten().tolist())) for row in (first, second)]
    assert bits == ["00111000101011000000011011001101", "11111111110101001010111111100101"]


def test_neighbours_in_place_epoch_call_and_seed_are_uncorrelated():
    base = {"seed": 11, "epoch": 5, "calls": 1}
    keep = kept(shape=(1, 50_000), **base).double() - 0.5
    for change in ({"seed": 12}, {"seed": 11 + 2**32}, {"epoch": 6}, {"calls": 2}):
        other = kept(shape=(1, 50_000), **base | change).double() - 0.5
        assert abs((keep * other).mean().item()) < 5 * 0.25 / 50_000**0.5, change
    for distance in (1, 2, 64, 1024):
        shifted = keep[:, distance:] * keep[:, :-distance]
        assert abs(shifted.mean().item()) < 5 * 0.25 / 48_000**0.5, distance


def test_streams_differ_by_seed_epoch_and_call():
    masks = [
        kept(seed=seed, epoch=epoch, calls=calls)
        for seed in (0, 1, 2**32, -1)
        for epoch in (1, 2)
        for calls in (0, 1)
    ]
    for number, mask in enumerate(masks):
        assert not any(torch.equal(mask, other) for other in masks[:number])


# Members and backends


@BACKENDS
def test_a_member_draws_what_it_would_draw_alone(monkeypatch, backend):
    monkeypatch.setenv("LGDGCN_BACKEND", backend)
    members = {"seed": [5, -8, 2**35], "epoch": [1, 1, 40], "rate": [0.5, 0.0, 0.8]}
    x = torch.rand(3, 7, 4, 5)
    together = streams(**members).drop(x)
    for member in range(3):
        own = {name: values[member] for name, values in members.items()}
        assert torch.equal(streams(**own).drop(x[member : member + 1])[0], together[member])
    assert torch.equal(together[1], x[1])


@BACKENDS
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_value_and_gradient_are_the_scaled_mask(monkeypatch, backend, dtype):
    monkeypatch.setenv("LGDGCN_BACKEND", backend)
    options = {"seed": [1, 2], "rate": [0.25, 0.5]}
    keep = kept(shape=(2, 40), **options)
    x = torch.randn(2, 40, dtype=dtype).requires_grad_()
    out = streams(**options).drop(x)
    scale = torch.tensor([[4 / 3], [2.0]], dtype=torch.float64)
    mask = (keep * scale).to(dtype)
    assert out.dtype == dtype
    torch.testing.assert_close(out, x * mask)
    (gradient,) = torch.autograd.grad(out.sum(), x)
    torch.testing.assert_close(gradient, mask)
    assert torch.equal(gradient != 0, keep)


# In networks


def test_without_streams_it_is_torchs_own():
    x = torch.rand(50, 4)
    torch.manual_seed(0)
    want = F.dropout(x, 0.5)
    torch.manual_seed(0)
    assert torch.equal(dropout(x, 0.5, training=True), want)
    assert dropout(x, 0.5, training=False) is x


def test_active_streams_are_used_in_training_and_left_behind():
    x, source = torch.ones(1, 1000), streams(rate=0.5)
    with source.active():
        assert dropout(x, 0.9, training=False) is x
        found = dropout(x, 0.9, training=True)  # the streams know the rate
        with streams(seed=3).active():
            other = dropout(x, 0.9, training=True)
        second = dropout(x, 0.9, training=True)
    assert torch.equal(found != 0, kept())
    assert torch.equal(other != 0, kept(seed=3))
    assert torch.equal(second != 0, kept(calls=1))
    torch.manual_seed(0)
    assert not torch.equal(dropout(x, 0.5, training=True), found)


def test_streams_are_left_behind_after_an_error():
    with pytest.raises(ZeroDivisionError), streams().active():
        _ = 1 / 0
    x = torch.ones(1, 100)
    torch.manual_seed(0)
    want = F.dropout(x, 0.5)
    torch.manual_seed(0)
    assert torch.equal(dropout(x, 0.5, training=True), want)


def test_torchs_own_dropout_is_replaced_and_restored():
    x = torch.ones(1000)
    module = torch.nn.Dropout(0.9)
    original = F.dropout
    with streams(seed=[6]).active(), dropout_everywhere():
        found = F.dropout(x, 0.9)
        second = F.dropout(x, p=0.9, training=True)
        third = module(x)
        assert torch.equal(F.dropout(x, 0.9, training=False), x)
        assert torch.equal(F.relu(-x), torch.zeros(1000))
    for calls, values in enumerate((found, second, third)):
        assert torch.equal((values != 0).unsqueeze(0), kept(seed=6, calls=calls))
    assert F.dropout is original
    torch.manual_seed(0)
    want = F.dropout(x, 0.5)
    torch.manual_seed(0)
    with dropout_everywhere():  # nothing to replace it by
        assert torch.equal(F.dropout(x, 0.5), want)


def test_streams_of_some_members_start_anew():
    source = streams(seed=[1, 2, 3])
    x = torch.ones(3, 500)
    want = source.drop(x)
    for member in range(3):
        own = source.of(slice(member, member + 1))
        assert torch.equal(own.drop(x[member : member + 1])[0], want[member])
