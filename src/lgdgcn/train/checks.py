"""Whether a finished training has learned anything, and what is likely in its way.

A loss that is finite is not yet a result: these checks compare it with guessing, and the score of
the kept epoch with that of one answer for all nodes and with chance. Good trainings pass without a
word.
Whether edges are routed is a question of its own (:mod:`lgdgcn.metrics.routing`): a model may
classify well and not do it.
"""

import math
from collections.abc import Sequence
from statistics import variance
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.config import LOSS_WEIGHTS, Settings
from lgdgcn.data.labels import identifier_warning
from lgdgcn.data.node_arrays import node_array
from lgdgcn.errors import DivergedError
from lgdgcn.models import NodeOutput, settings_of
from lgdgcn.train.population import TrainState
from lgdgcn.train.scores import METRICS
from lgdgcn.train.targets import Targets
from lgdgcn.train.task import Task
from lgdgcn.train.trained import TrainedModel

__all__ = [
    "Scored",
    "likely_cause",
    "noise_of_difference",
    "null_score",
    "sanity_warnings",
    "usage_warning",
]

_EXPLODED = 10  # times the loss of guessing: a training that works is below one time
_FEW_EPOCHS = 10  # in which a score may well stay what it is
_UNUSED = 0.01  # share of the edges below which a factor is not needed
_ROWS = 1 << 16  # of features that are looked at at once
_COLLAPSED = 1.5  # effective number of classes below which nearly all nodes share one
_SHUFFLES = 20
_ONE_IN_TWENTY = 1.645  # standard deviations above the mean, of a single epoch
_RESAMPLES = 100  # which give the noise to 7 %
_MOST = 20_000  # entries of a resample; with more nodes the noise is less, by the square root
_FEWEST = 6  # nodes: that five favour one of two equal models has a chance of 1 in 16


def sanity_warnings(
    trained: TrainedModel, graph: Data, output: NodeOutput, state: TrainState
) -> list[str]:
    """What a reader of a training's scores should know, one sentence each.

    The model is that of the kept epoch, the graph is as its network sees it.

    Raises:
        DivergedError: The loss has exploded and nothing was learned.
    """
    split = "val" if graph.val_mask.any() else "train"
    targets, task = Targets.of([graph], f"{split}_mask"), trained.task
    logits = _rows_of(output.logits, targets.nodes[0])[None]
    score = float(task.selection_score(logits, targets))
    same_answer = task.constant_score(targets)
    unknown = (
        f"lr may not fit (now {trained.settings.lr:g}), or the graph says little of the labels"
    )
    if state.epoch < _FEW_EPOCHS:
        unknown = f"train for more epochs (now {state.epoch})"
    cause = likely_cause(trained.settings, graph.x, trained.name, unknown)
    title = f"{'validation' if split == 'val' else 'training'} {METRICS[task.metric]}"
    answer = "the same labels" if task.multi_label else "the most common class"
    kept = f"the {title} of the kept epoch is {100 * score:.1f} %"
    compared = f"{kept}, that of {answer} for every node {100 * same_answer:.1f} %"

    found = [said for said in (identifier_warning(graph.y),) if said is not None]
    found += _collapse(graph.x, output, trained.model.owned_factors())
    first, last, guess = state.first_loss, state.last_loss, task.guessing_loss
    if last is not None and last > _EXPLODED * guess:
        grown = first is not None and last > _EXPLODED * first
        loss = f"the classification loss is {last:.3g} in the last of {state.epoch} epochs"
        loss += f", {first:.3g} in the first" if grown else ""
        loss += f", {guess:.3g} by guessing"
        # Among many epochs of noise the best is better than one answer: allow for chance.
        chance = 3 * math.sqrt(same_answer * (1 - same_answer) / targets.nodes.numel())
        if score <= same_answer + (chance if grown else 0):
            raise DivergedError(f"training diverged: {loss}, and {compared}; {cause}")
        found.append(f"{loss}; {cause}")
    moved = state.lowest_score != state.best_score
    if score <= same_answer:
        found.append(f"{compared}: nothing was learned; {cause}")
    elif (
        split == "val"
        and score < 1
        and score <= (by_chance := null_score(task, logits, targets, state.epoch))
    ):
        found.append(
            f"{kept}, and with shuffled labels the best of as many epochs may have "
            f"{100 * by_chance:.1f} %: this may be chance; {cause}"
        )
    elif split == "val" and state.epoch >= _FEW_EPOCHS and not moved and score < 1:
        found.append(f"the {title} was the same in all {state.epoch} epochs; {cause}")
    if split == "val" and state.best_epoch == 1 < state.epoch:
        found.append(f"the kept epoch is the first of {state.epoch}; {cause}")
    return found


def _rows_of(logits: Tensor, nodes: Tensor) -> Tensor:
    """The scores of some nodes ``[n, C]``, of many in a mapped file."""
    if not logits.is_cpu:
        return logits[nodes]
    found = node_array((len(nodes), logits.size(1)), logits.dtype)
    return torch.index_select(logits.detach(), 0, nodes, out=found)


def _collapse(x: Tensor, output: NodeOutput, owned: Tensor | None) -> list[str]:
    """Say where nothing tells nodes apart; of factors that are free :func:`usage_warning` does."""
    if _same_rows(x):
        return [
            "all nodes have the same features, so only the edges tell them apart; "
            "use other features, or --features degree or identity"
        ]
    if not output.layers:
        return []
    units = output.layers[-1].units  # [N, M, d]
    spread = (units.amax(0) - units.amin(0)).amax(-1)  # [M]
    if owned is not None:
        spread = spread[owned]
    if len(units) > 1 and bool((spread <= 1e-6 * units.abs().amax()).any()):
        return [
            "all nodes have the same unit in a factor, so it tells nothing about them; "
            "check for constant features, fewer factors or another lr"
        ]
    return []


def _same_rows(x: Tensor) -> bool:
    """Whether all of several nodes have the same features, dense or sparse."""
    if x.size(0) < 2:
        return False
    if x.layout != torch.sparse_csr:
        return all(bool((piece == x[0]).all()) for piece in torch.split(x, _ROWS))
    sizes = x.crow_indices().diff()
    if bool((sizes != sizes[0]).any()):
        return False
    parts = [part.reshape(len(sizes), int(sizes[0])) for part in (x.col_indices(), x.values())]
    return all(bool((part == part[0]).all()) for part in parts)


def usage_warning(trained: TrainedModel, output: NodeOutput) -> str | None:
    """Say in one sentence that free factors of our variant are not needed, where that is so.

    A factor that no label owns is unused if it takes under 1 % of the edges. It has collapsed if
    its nodes nearly all share one class: the effective number of classes is below 1.5.

    Returns:
        The sentence; ``None`` where all factors are needed, or where none is free.
    """
    owned = trained.model.owned_factors()
    if owned is None or not output.layers:
        return None
    last, count = output.layers[-1], len(owned)
    if last.edge_factors.size(0) == 0:
        return None
    classes = last.units.square().mean(0)  # [M, d]
    entropy = torch.special.entr(classes / classes.sum(-1, keepdim=True)).sum(-1)
    unused = ~owned & (last.edge_factors.mean(0) < _UNUSED)
    collapsed = ~owned & ~unused & (entropy < math.log(_COLLAPSED))
    found = [
        f"{number} of {count} factors {verb + 's' * (number == 1)} {what}"
        for number, verb, what in (
            (int(unused.sum()), "take", "under 1 % of the edges"),
            (int(collapsed.sum()), "give", "nearly all nodes the same class"),
        )
        if number
    ]
    if not found:
        return None
    needed = count - int((unused | collapsed).sum())
    channels = needed * max(1, last.units.size(-1))
    return f"{' and '.join(found)}; factors={needed}, hidden_channels={channels} would do"


def likely_cause(settings: Settings, x: Tensor, model: str, otherwise: str | None = None) -> str:
    """Name the setting or the input that is farthest from what usually works, and the way out.

    Args:
        settings: Of the training.
        x: Features as the network sees them.
        model: A key of :data:`lgdgcn.models.MODELS`.
        otherwise: What to say where all are as usual; to lower the learning rate if ``None``.
    """
    values = x.values() if x.layout == torch.sparse_csr else x
    pieces = torch.split(values, _ROWS) if values.numel() else ()
    largest = max((float(piece.abs().max()) for piece in pieces), default=0.0)
    lower_lr = f"lower lr (now {settings.lr:g})"
    suspects = [  # how many times beyond the usual, what to do
        (settings.lr / 0.2, lower_lr),
        (1e-5 / settings.lr, f"raise lr (now {settings.lr:g})"),
        (largest / 100, f"scale the features (the largest is {largest:.3g})"),
        (settings.weight_decay / 0.1, f"lower weight_decay (now {settings.weight_decay:g})"),
    ]
    if "factors" in settings_of(model):
        suspects.append((0.01 / settings.tau, f"raise tau (now {settings.tau:g})"))
        for name in LOSS_WEIGHTS.values():
            weight = getattr(settings, name)
            suspects.append((weight / 100, f"lower {name} (now {weight:g})"))
    times, advice = max(suspects)
    return advice if times > 1 else otherwise or lower_lr


def null_score(task: Task, logits: Tensor, targets: Targets, epochs: int) -> float:
    r"""The score that guesses may reach, given that the best of several epochs is kept.

    The labels are shuffled among the nodes, which leaves how common they are and how often they
    are predicted by the scores ``[1, n, C]``, and nothing else. The best of E such scores is about

    .. math:: \text{mean} + \sqrt{2 \ln E} \cdot \text{standard deviation}

    for a single epoch it is the 95th percentile; no score is above 1. Epochs resemble each other,
    so that the best of them is rather lower.
    """
    generator = torch.Generator().manual_seed(0)
    scores = []
    for _ in range(_SHUFFLES):
        order = torch.randperm(targets.y.size(1), generator=generator).to(targets.y.device)
        shuffled = targets._replace(y=targets.y[:, order])
        scores.append(float(task.selection_score(logits, shuffled)[0]))
    found = torch.tensor(scores, dtype=torch.float64)
    spread = max(_ONE_IN_TWENTY, math.sqrt(2 * math.log(max(1, epochs))))
    return min(1.0, float(found.mean() + spread * found.std()))


class Scored(NamedTuple):
    """A model's scores of a graph, with the split that it was trained on.

    Attributes:
        logits: Its scores of all nodes ``[N, C]``, on the CPU.
    """

    task: Task
    logits: Tensor
    graph: Data

    def score(self, nodes: Tensor) -> float:
        """The :attr:`~lgdgcn.train.task.Task.metric` of these nodes, which may occur repeatedly."""
        targets = Targets(nodes[None], self.graph.y[nodes][None], torch.ones(1, len(nodes)))
        return float(self.task.selection_score(self.logits[nodes][None], targets)[0])


def noise_of_difference(
    first: Scored, second: Scored, split: str, differences: Sequence[float]
) -> float:
    r"""The difference of two scores that chance alone would hardly exceed.

    .. math:: 2 \sqrt{s_\text{nodes}^2 + s_\text{seeds}^2 / S} + 1 / n

    s_nodes is the standard deviation of the difference over resamples of the scored nodes
    (bootstrap), each of them the same for both models: what both have right says nothing of which
    is better. s_seeds is that of the differences of S seeds; of one seed it is not known and taken
    as 0. 1/n, one node, corrects for scores that move in steps. That each model is itself the best
    of several on these nodes is not counted. It is infinite where too few nodes are scored to show
    anything.
    """
    masks = [one.graph[f"{split}_mask"] for one in (first, second)]
    nodes = (masks[0] | masks[1]).nonzero().flatten()
    count = min(int(mask.sum()) for mask in masks)
    if count < _FEWEST:
        return math.inf
    generator = torch.Generator().manual_seed(0)
    most = max(_MOST // first.logits.size(1), 1)
    part = nodes[torch.randperm(len(nodes), generator=generator)[:most]]
    found = []
    for _ in range(_RESAMPLES):
        drawn = part[torch.randint(len(part), (len(part),), generator=generator)]
        own = [drawn[mask[drawn]] for mask in masks]
        if all(map(len, own)):
            found.append(first.score(own[0]) - second.score(own[1]))
    of_nodes = variance(found) * len(part) / len(nodes)
    of_seeds = variance(differences) / len(differences) if len(differences) > 1 else 0.0
    return 2 * math.sqrt(of_nodes + of_seeds) + 1 / count
