"""A race against scores that were planted: nothing is trained."""

import pytest
import torch
from torch_geometric.data import Data

from lgdgcn.config import Settings
from lgdgcn.errors import DivergedError, InputError
from lgdgcn.search import race as module
from lgdgcn.search.families import Candidate
from lgdgcn.search.race import Split, race
from lgdgcn.train.population import TrainState
from lgdgcn.training import Epoch, Result

CPU = torch.device("cpu")
SPLITS = [Split(Data(), seed) for seed in (3, 4)]


def candidate(lr, **settings):
    """A candidate that is known by its learning rate, which is its score, too."""
    return Candidate("mlp", Settings(lr=lr, **settings))


@pytest.fixture
def planted(monkeypatch):
    """Trainings whose score after every epoch is their learning rate, plus 0.1 for seed 4."""
    passes = []

    def run(trainings, device, on_epoch):
        passes.append([(one.settings.lr, one.seed, one.settings.epochs) for one in trainings])
        for one in trainings:
            state, error = one.state or TrainState(), None
            if one.settings.lr == 0.666:
                error = InputError("too large")
            while error is None and not state.is_finished(one.settings):
                number = state.epoch + 1
                score = one.settings.lr + (0.1 if one.seed == 4 else 0)
                diverged = "it diverged" if one.settings.lr == 0.99 else None
                state = TrainState(number, number, score, 1 / number, diverged=diverged)
                epoch = Epoch(one, 0, {"epoch": number}, state, TrainState)
                given_up = on_epoch([epoch]) or ()
                if diverged:
                    assert one in given_up
                    error = DivergedError(diverged)
            kept = None if isinstance(error, InputError) else state
            yield Result(one, one.graph, None, kept, error, None, None)

    monkeypatch.setattr(module, "run", run)
    return passes


def best_two(standings, rung):
    return sorted(standings, key=lambda one: -one.score)[:2]


def test_those_that_are_kept_go_on_from_where_they_stood(planted):
    tried = [candidate(lr) for lr in (0.1, 0.3, 0.2)]
    found = race(tried, SPLITS, (2, 5, 6), best_two, CPU)
    assert [one.candidate for one in found.standings] == tried
    assert [(one.epochs, one.rungs) for one in found.standings] == [(2, 1), (6, 3), (6, 3)]
    assert [one.score for one in found.standings] == pytest.approx([0.15, 0.35, 0.25])
    assert found.standings[1].loss == pytest.approx(1 / 6)
    assert not found.early
    assert [len(one) for one in planted] == [6, 4, 4]  # two splits of each
    assert {seed for one in planted for _, seed, _ in one} == {3, 4}
    assert [{epochs for *_, epochs in one} for one in planted] == [{2}, {5}, {6}]
    assert [line["epoch"] for line in found.standings[1].log] == [1, 2, 3, 4, 5, 6]
    assert found.standings[1].state.epoch == 6


def test_a_candidate_ends_at_its_last_epoch(planted):
    found = race([candidate(0.1, epochs=3), candidate(0.2)], SPLITS, (2, 5), best_two, CPU)
    assert [one.epochs for one in found.standings] == [3, 5]
    assert [one.candidate.settings.epochs for one in found.standings] == [3, 1000]


@pytest.mark.parametrize(("lr", "words"), [(0.99, "it diverged"), (0.666, "too large")])
def test_what_cannot_be_trained_is_out(planted, lr, words):
    found = race([candidate(lr), candidate(0.1)], SPLITS, (2, 5), best_two, CPU)
    assert found.standings[0].score is None
    assert found.standings[0].failure == words
    assert found.standings[1].score == pytest.approx(0.15)
    [one] = race([candidate(lr)], SPLITS, (2, 5), best_two, CPU).standings
    assert one.score is None


def test_time_ends_the_first_rung_once_somebody_has_reached_it(planted):
    found = race([candidate(0.1), candidate(0.2)], SPLITS[:1], (2, 5), best_two, CPU, seconds=0)
    assert found.early
    assert [one.epochs for one in found.standings] == [2, 0]
    assert [one.rungs for one in found.standings] == [1, 0]


def test_time_ends_a_later_rung_as_if_it_had_not_begun(planted, monkeypatch):
    clock = iter(range(1000))
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock))
    found = race([candidate(0.1), candidate(0.2)], SPLITS, (2, 50), best_two, CPU, seconds=30)
    assert found.early
    assert [one.epochs for one in found.standings] == [2, 2]
    assert [one.rungs for one in found.standings] == [1, 1]


def test_what_sees_the_epochs_may_give_up_or_stop(planted):
    seen = []

    def on_epoch(epochs):
        seen.extend(epoch.state.epoch for epoch in epochs)
        if len(seen) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        race([candidate(0.1)], SPLITS, (3,), best_two, CPU, on_epoch=on_epoch)
    assert seen == [1, 2, 3, 1]
