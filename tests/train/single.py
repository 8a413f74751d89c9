"""Trainers of members that are settings and seeds, and one with the words of a single training."""

from dataclasses import dataclass

from lgdgcn.config import Settings
from lgdgcn.errors import DivergedError
from lgdgcn.models.population import single_names
from lgdgcn.train.loader import Loader, WholeGraph
from lgdgcn.train.population import Training
from lgdgcn.train.trainer import Trainer


@dataclass(frozen=True)
class Member:
    settings: Settings
    seed: int = 0


def trainings_of(graphs, members, model="lgdgcn", states=None):
    """Trainings of these members, on a graph each or on one for all."""
    graphs = graphs if isinstance(graphs, list) else [graphs] * len(members)
    states = states or [None] * len(members)
    return [
        Training(model, member.settings, member.seed, graph, state)
        for graph, member, state in zip(graphs, members, states, strict=True)
    ]


def trainer_of(graphs, members, model="lgdgcn", states=None):
    """A trainer of these members, on graphs or a loader."""
    is_loader = isinstance(graphs, Loader)
    trainings = trainings_of(graphs.graphs if is_loader else graphs, members, model, states)
    return Trainer(trainings, graphs if is_loader else WholeGraph(graphs))


def part(state, name):
    """The tensors of one part of a member's state: ``model``, ``best``, ``mean``, ``square``."""
    prefix = f"{name}."
    return {k.removeprefix(prefix): t for k, t in state.tensors.items() if k.startswith(prefix)}


class Single:
    def __init__(self, data, settings=None, model="lgdgcn", seed=0, **changes):
        settings = settings or Settings(**changes)
        self.trainer = trainer_of(data, [Member(settings, seed)], model)
        self.data = data
        self.task = self.trainer.tasks[0]

    @property
    def network(self):
        return self.trainer.network

    @property
    def progress(self):
        return self.trainer.states[0]

    @property
    def finished(self):
        return self.trainer.finished

    @property
    def weights(self):
        """The present weights, sharing memory while the training goes on."""
        if self.finished:
            return part(self.trainer.state(0), "model")
        return {name: t[0] for name, t in single_names(self.network.state_dict()).items()}

    @property
    def best(self):
        return part(self.trainer.state(0), "best")

    def epoch(self):
        (report,) = self.trainer.epoch()
        if report.state.diverged:
            raise DivergedError(report.state.diverged)
        return report.metrics

    def train(self, on_epoch=lambda metrics: None):
        while not self.finished:
            on_epoch(self.epoch())

    def forget(self):
        """Weights were changed by hand: nothing computed before is of use."""
        self.trainer.loader.known = []

    def model(self, part="best"):
        return self.trainer.model(0, part)

    def logits(self):
        model = self.model().eval()
        return model(self.data.x, self.data.edge_index).detach()

    def scores(self):
        logits = self.logits()
        return {
            part: self.task.scores(logits, self.data.y, self.data[f"{part}_mask"])
            for part in ("train", "val", "test")
        }
