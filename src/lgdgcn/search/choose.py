"""What a user gets on a graph without settings of its own: the winner of a race on validation.

Every caller hands over candidates of one family or of all, from
:func:`lgdgcn.search.families.candidates`, and gets a :class:`Choice`: ``lgdgcn train``,
:class:`~lgdgcn.LGDClassifier`, ``lgdgcn tune``.
"""

import math
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev
from typing import Any

import torch
from torch_geometric.data import Data

from lgdgcn.config import AUTO, Settings, belongs, resolve
from lgdgcn.errors import InputError
from lgdgcn.reasons.propagation import attach_reasons
from lgdgcn.runtime import StopRequest
from lgdgcn.search.factors import FOUND, FoundFactors, find_factors
from lgdgcn.search.families import FAMILIES, Candidate
from lgdgcn.search.race import Metrics, Outcome, Split, Standing, followed, race
from lgdgcn.search.sample import (
    is_for_graph,
    is_searched_by_sample,
    repeated_splits,
    search_sample,
)
from lgdgcn.train.population import TrainState
from lgdgcn.train.task import choose_metric

__all__ = ["RUNGS", "Choice", "Ranked", "choose"]

RUNGS = (25, 50, 100, 200)  # epochs after which candidates are judged
KEPT = {25: 12, 50: 7, 100: 4}  # how many go on then
ALIKE = 0.25  # standard errors of a validation score; scores that are nearer say nothing


@dataclass(frozen=True)
class Ranked:
    """The best candidate of one family.

    Attributes:
        candidate: Its model and settings.
        score: Mean validation score when it was last judged; ``None`` if it was not.
        noise: Standard error of the score.
        epochs: How long it had been trained then.
        tried: How many of the family were judged.
        state: Where its training on the graph's own split stands, to go on with; ``None`` if it
            was not trained on the graph.
        log: The metrics of the epochs of ``state``.
    """

    candidate: Candidate
    score: float | None = None
    noise: float = 0.0
    epochs: int = 0
    tried: int = 1
    state: TrainState | None = field(default=None, repr=False, compare=False)
    log: tuple[Metrics, ...] = field(default=(), repr=False, compare=False)

    def as_row(self) -> dict[str, Any]:
        """Return what ``result.json`` says of it; without a score it was not judged."""
        row: dict[str, Any] = {
            "model": self.candidate.name,
            "tried": self.tried,
            "epochs": self.epochs,
        }
        if self.score is not None:
            row |= {"validation": round(self.score, 4), "noise": round(self.noise, 4)}
        return row


@dataclass(frozen=True)
class Choice:
    """What was chosen, and from what.

    Attributes:
        ranking: The best candidate of every family, first the one that is chosen, then the others
            by score.
        metric: The score.
        splits: On how many splits each candidate was trained; 0 if there was nothing to choose.
        sample: Nodes of the part of the graph that they were trained on; 0 for all of it.
        early: Whether time was over before the end.
        searched: Settings that were tried beyond the portfolio.
        untried: Candidates of which none was judged before time was over.
        too_large: Candidates that took no part, as the whole graph is too large for them.
        factors: How ``factors = "auto"`` was answered, if it was asked.
    """

    ranking: tuple[Ranked, ...]
    metric: str = AUTO
    splits: int = 0
    sample: int = 0
    early: bool = False
    searched: int = 0
    untried: int = 0
    too_large: int = 0
    factors: FoundFactors | None = None

    @property
    def best(self) -> Candidate:
        """What is chosen."""
        return self.ranking[0].candidate

    @property
    def state(self) -> TrainState | None:
        """Where its training stands, to go on with."""
        return self.ranking[0].state

    @property
    def log(self) -> tuple[Metrics, ...]:
        """The metrics of its epochs so far."""
        return self.ranking[0].log

    @property
    def tried(self) -> int:
        """How many candidates were judged; without a race, how many there are."""
        return sum(row.tried for row in self.ranking)

    def of(self, model: str) -> Ranked | None:
        """The best candidate of a family, if any took part."""
        return next((row for row in self.ranking if row.candidate.model == model), None)

    def __str__(self) -> str:
        if not self.splits:
            if self.tried == 1:
                return "settings: the only ones there are to try"
            return (
                f"settings: the first of {self.tried}, as without validation nodes nothing could "
                "be chosen"
            )
        text = f"settings: the best of {self.tried} on validation"
        if self.untried:
            text = f"settings: the best of the first {self.tried} of {self.tried + self.untried} "
            text += "on validation"
        if self.searched:
            text += f", {self.searched} of them by a search near the best"
        if self.splits > 1:
            text += f", each on {self.splits} splits"
        if self.sample:
            text += f", on a sample of {self.sample:,} nodes"
        if self.too_large:
            text += f"; {self.too_large} more are not for a graph of this size"
        if self.early:
            text += f"; time was over after {max(row.epochs for row in self.ranking)} epochs"
        return text

    def as_dict(self) -> dict[str, Any]:
        """Return what ``config.toml`` and ``result.json`` say of it."""
        return {
            "metric": self.metric,
            "splits": self.splits,
            "sample": self.sample,
            "early": self.early,
            "searched": self.searched,
            "ranking": [row.as_row() for row in self.ranking],
        }


def choose(
    candidates: Sequence[Candidate],
    data: Data,
    device: torch.device,
    *,
    seed: int = 0,
    seconds: float | None = None,
    stop: StopRequest | None = None,
    budget: int | None = None,
    fixed: Collection[str] = (),
) -> Choice:
    """Race candidates on validation, and choose; labels of test nodes have no say in it.

    On a large graph, or where candidates are trained in batches of nodes, they are trained on a
    sample of it, all nodes of the sample at once. Where few nodes are judged, each candidate is
    trained on several splits (:func:`~lgdgcn.search.sample.repeated_splits`).

    Of one family those are alike whose score is within a quarter of its standard error of the best;
    of these the one of lowest validation loss is chosen. Between families losses cannot be
    compared: of those alike the simplest is chosen, in the order of
    :data:`~lgdgcn.search.families.FAMILIES`.

    Args:
        candidates: Of one family or several. ``factors = "auto"`` is replaced by a number first.
            A single one is not trained.
        data: The canonical graph, on the CPU.
        device: Where to train.
        seed: Of the training on the graph's own split; others have the next ones.
        seconds: Time limit; the choice then depends on the machine, if ``early`` says so.
        stop: Becomes true when a signal asks to stop.
        budget: How many settings to try; of those beyond several candidates, which are of the
            family that has won, Optuna searches on.
        fixed: Names of settings that stay as they are in this.

    Raises:
        InputError: No candidate can be trained here.
    """
    if any(one.model == "reasons" for one in candidates):
        attach_reasons(data)
    candidates, factors = _with_factors(candidates, data, seed, device, stop)
    usable = list(candidates)
    by_sample = any(is_searched_by_sample(data, one.settings) for one in candidates)
    if by_sample:
        usable = [one for one in candidates if is_for_graph(data, one.settings, one.model, device)]
        usable = usable or list(candidates)  # what a user has asked for
    about: dict[str, Any] = {"factors": factors, "too_large": len(candidates) - len(usable)}
    metric = choose_metric(data, usable[0].settings.metric).metric
    if len(usable) == 1 or not bool(data.val_mask.any()):
        return Choice(_untried(usable), metric, **about)
    graph = search_sample(data, seed) if by_sample else data
    # all are judged by the score of the whole graph, on its own split and all others
    alike: dict[str, Any] = {"metric": metric, "batch_size": 0}
    tried = [Candidate(one.model, replace(one.settings, **alike)) for one in usable]
    splits = [Split(part, seed + i) for i, part in enumerate(repeated_splits(graph, seed))]
    end = math.inf if seconds is None else time.monotonic() + seconds

    def raced(some: Sequence[Candidate]) -> Outcome:
        left = None if seconds is None else end - time.monotonic()
        # a GPU takes longer to begin with a model again than to train it for the first rung
        rungs = RUNGS[1:] if device.type == "cuda" else RUNGS
        planned = _planned(len(some), rungs) * len(splits)
        with followed("trying settings", planned, stop) as follow:
            return race(some, splits, rungs, _keep, device, on_epoch=follow, seconds=left)

    outcome = raced(tried)
    asked = dict(zip(outcome.standings, usable, strict=True))
    more = (budget or 0) - len(candidates)
    if more > 0 and not outcome.early:
        from lgdgcn.search.tuning import search_on  # with Optuna, which is slow to import

        best = next(_ranking(outcome, splits, asked)).candidate
        multi_label, usual = (
            data.y.dim() == 2,
            {name: getattr(best.settings, name) for name in alike},
        )
        trials = search_on(best, raced, more, multi_label=multi_label, fixed=fixed, seed=seed)
        for one in trials.standings:
            asked[one] = Candidate(best.model, replace(one.candidate.settings, **usual))
        outcome = Outcome(outcome.standings + trials.standings, trials.early)
        about["searched"] = len(trials.standings)
    ranking = tuple(_ranking(outcome, splits, asked))
    if by_sample:  # a training on a part of the graph is not gone on with
        ranking = tuple(replace(row, state=None, log=()) for row in ranking)
    sample = 0 if graph is data else int(graph.num_nodes or 0)
    about["untried"] = len(asked) - sum(row.tried for row in ranking)
    return Choice(ranking, metric, len(splits), sample, outcome.early, **about)


def _with_factors(
    candidates: Sequence[Candidate],
    data: Data,
    seed: int,
    device: torch.device,
    stop: StopRequest | None,
) -> tuple[list[Candidate], FoundFactors | None]:
    """Replace ``factors = "auto"``, by the same number for all candidates."""
    first = next((one for one in candidates if one.settings.factors == AUTO), None)
    if first is None:
        return list(candidates), None
    settings, found = find_factors(first.settings, data, first.model, seed, device, stop)
    sizes = {name: getattr(settings, name) for name in FOUND}

    def sized(one: Settings) -> Settings:
        return resolve(one.as_dict(), sizes) if one.factors == AUTO else one

    return [Candidate(one.model, sized(one.settings)) for one in candidates], found


def _untried(candidates: Sequence[Candidate]) -> tuple[Ranked, ...]:
    """The first of every family, where nothing is trained."""
    families: dict[str, list[Candidate]] = {}
    for one in candidates:
        families.setdefault(one.model, []).append(one)
    return tuple(Ranked(family[0], tried=len(family)) for family in families.values())


def _planned(candidates: int, rungs: Sequence[int]) -> int:
    """How many epochs a race of so many candidates has, on one split, if none stops early."""
    epochs, before = 0, 0
    for rung in rungs:
        epochs += (rung - before) * candidates
        candidates, before = min(candidates, KEPT.get(rung, 1)), rung
    return epochs


def _keep(standings: Sequence[Standing], rung: int) -> list[Standing]:
    """Who goes on: the best of all and, before the last two rungs, the best of every family.

    Of families with factors the best goes on to the end: it may stand beside the winner.
    """
    first = RUNGS.index(rung) < max(1, len(RUNGS) - 2)
    kept, families = [], set()
    for place, one in enumerate(sorted(standings, key=_rank)):
        model = one.candidate.model
        is_best = model not in families and (first or belongs("factors", model))
        families.add(model)
        if place < KEPT[rung] or is_best:
            kept.append(one)
    return kept


def _rank(one: Standing) -> tuple[float, float]:
    """The best first; of two alike the one of lower loss.

    Early on, many name the most common class always: the loss says which of them learn.
    """
    return (-(one.score or 0.0), one.loss)


def _ranking(
    outcome: Outcome, splits: Sequence[Split], asked: dict[Standing, Candidate]
) -> Iterator[Ranked]:
    """The best of every family, the chosen one first."""
    finalists = [one for one in outcome.standings if one.score is not None]
    if not finalists:
        reasons = dict.fromkeys(one.failure for one in outcome.standings if one.failure)
        models = ", ".join(dict.fromkeys(one.candidate.model for one in outcome.standings))
        raise InputError(f"no settings of {models} can be trained here: {'; '.join(reasons)}")
    judged = _judged(splits)
    families: dict[str, list[Standing]] = {}
    for one in outcome.standings:
        families.setdefault(one.candidate.model, []).append(one)
    rows = []
    for family in families.values():
        best = _best_of_family(family, judged)
        noise = 0.0 if best.score is None else _noise(best.scores, judged)
        tried = sum(bool(one.scores or one.failure) for one in family)
        log = tuple(best.log)
        rows.append(Ranked(asked[best], best.score, noise, best.epochs, tried, best.state, log))
    rows.sort(key=lambda row: -math.inf if row.score is None else row.score, reverse=True)
    most = max(one.rungs for one in finalists)
    in_the_end = {asked[one].model for one in finalists if one.rungs == most}
    chosen = _simplest_alike([row for row in rows if row.candidate.model in in_the_end])
    yield chosen
    yield from (row for row in rows if row is not chosen)


def _best_of_family(family: Sequence[Standing], judged: int) -> Standing:
    """Of those that were trained longest and are near the best score, that of lowest loss."""
    known = [one for one in family if one.score is not None]
    if not known:
        return family[0]
    most = max(one.rungs for one in known)
    last = [one for one in known if one.rungs == most]
    best = min(last, key=_rank)
    least = (best.score or 0.0) - ALIKE * _noise(best.scores, judged)
    return min((one for one in last if (one.score or 0.0) >= least), key=lambda one: one.loss)


def _simplest_alike(rows: Sequence[Ranked]) -> Ranked:
    """Of families whose score is near the best one, the simplest; rows are sorted by score."""
    top = rows[0]
    least = (top.score or 0.0) - ALIKE * top.noise
    order = {model: place for place, model in enumerate(FAMILIES)}
    alike = [row for row in rows if row.score is not None and row.score >= least]
    return min(alike, key=lambda row: order.get(row.candidate.model, len(order)))


def _judged(splits: Sequence[Split]) -> int:
    """How many answers are judged: different nodes of all splits, or their labels."""
    nodes = torch.stack([split.graph.val_mask for split in splits]).any(0)
    y = splits[0].graph.y
    return max(1, int(nodes.sum()) * (y.size(1) if y.dim() == 2 else 1))


def _noise(scores: Sequence[float], judged: int) -> float:
    """Standard error of a mean score: of the nodes that are judged, or of the splits if larger."""
    mean = fmean(scores)
    of_nodes = math.sqrt(max(0.0, mean * (1 - mean)) / judged)
    of_splits = stdev(scores) / math.sqrt(len(scores)) if len(scores) > 1 else 0.0
    return max(of_nodes, of_splits)
