"""Which family of models a graph's links follow and how many reasons they have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lgdgcn.reasons.activity import Activity
from lgdgcn.reasons.agreement import held_agreement
from lgdgcn.reasons.agreement_columns import NodeColumn
from lgdgcn.reasons.clique_kinds import memberships_log_likelihood
from lgdgcn.reasons.cliques import CliqueCover, cover_by_cliques
from lgdgcn.reasons.consensus import fit_from_line_graph
from lgdgcn.reasons.edges import Array, Edges
from lgdgcn.reasons.held_out import HeldOut, activity_score, clique_score, hold_out
from lgdgcn.reasons.paying_cliques import PayingCliques, description_length, find_paying

__all__ = ["CANDIDATES", "ModelChoice", "choose_model", "fewest_within_one_error"]

CANDIDATES = (1, 2, 3, 4, 6, 8, 12, 16, 24)
RIVALS = (1, 4, 12, 24)  # activities that agreements are compared with
SPLITS = 3
MANY_PAIRS = 10_000  # from which a single split hides enough of them
FEWEST_PAIRS = 20  # fewer say nothing when a part is hidden
KINDS = 2  # of cliques: the memberships' likelihood does not tell how many
LEAST_SHARE = 0.05  # of the pairs in cliques that pay, for cliques to be a reason


@dataclass(frozen=True)
class ModelChoice:
    """A family with its number of reasons, and the held-out likelihoods behind the choice.

    Attributes:
        cliques: Whether all reasons are kinds of cliques and none is an activity.
        num_factors: M.
        use_classes: Whether the node labels make the activities predict better.
        counts: Numbers of activities that were tried.
        mean: Held-out log-likelihood of a pair at each of them ``[len(counts)]``.
        error: Standard error of each one's distance from the best ``[len(counts)]``.
        clique_mean: The same of the clique cover, None where nothing was held out.
        kinds: How many of the reasons, the last ones, are kinds of cliques; the numbers and
            likelihoods of activities are then of the pairs outside them.
        agreement_mean: The same of agreements, None where they are not the reasons.
        blanks_teach: Of agreements, how blanks are treated.
    """

    cliques: bool
    num_factors: int
    use_classes: bool = False
    counts: tuple[int, ...] = ()
    mean: tuple[float, ...] = ()
    error: tuple[float, ...] = ()
    clique_mean: float | None = None
    kinds: int = 0
    agreement_mean: float | None = None
    blanks_teach: bool = True

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "ModelChoice":
        """Read a choice back from JSON, which has lists for tuples."""
        every: dict[str, Any] = {
            key: tuple(v) if isinstance(v, list) else v for key, v in values.items()
        }
        return cls(**every)

    @property
    def family(self) -> str:
        """What the reasons are, in words."""
        if self.agreement_mean is not None:
            return "agreements of nodes"
        if self.cliques:
            return "kinds of cliques"
        if self.kinds:
            activities = self.num_factors - self.kinds
            first = f"{activities} activit{'y' if activities == 1 else 'ies'} of nodes"
            return f"reasons: {first} and {self.kinds} kind{'s' * (self.kinds > 1)} of cliques"
        return "activities of nodes"


def choose_model(
    pairs: Edges,
    *,
    num_factors: int | None = None,
    classes: Array | None = None,
    candidates: Sequence[int] = CANDIDATES,
    columns: Sequence[NodeColumn] = (),
    seed: int = 0,
) -> ModelChoice:
    """Choose agreements, activities, kinds of cliques, or some of the last two.

    Agreements need columns of the nodes and must predict hidden pairs better than activities and
    cliques do. The number of activities has the best likelihood of hidden pairs among pairs that
    are not linked. Common neighbours predict hidden pairs on nearly every graph, so cliques must
    also describe the whole graph in fewer nats than as many activities do.

    Args:
        pairs: The graph.
        num_factors: The number of reasons where it is known.
        classes: Class of each node, tried beside none ``[N]``.
        candidates: Numbers of reasons to try where it is not known.
        columns: Of the nodes, in which the ends of edges may agree.
        seed: Of the pairs that are hidden.
    """
    if len(pairs) < FEWEST_PAIRS:
        return ModelChoice(False, num_factors or 1)
    if columns and (choice := _choose_agreement(pairs, columns, num_factors, seed)) is not None:
        return choice
    cover = cover_by_cliques(pairs)
    paying = find_paying(pairs, cover)
    apart = paying.inside.mean() >= LEAST_SHARE and not paying.are_predicted()
    wanted = num_factors or KINDS
    # A rest below half of an equal share is what smaller cliques leave over.
    only = apart and 1 - paying.inside.mean() < 1 / (2 * wanted)
    if apart and not only and wanted > 1:
        both = _choose_both(paying, num_factors, classes, candidates, seed)
        if both is not None:
            return both
    counts = (num_factors,) if num_factors else tuple(candidates)
    choice = _choose_activities(pairs, counts, classes, seed)
    shorter = only and _cliques_describe_shorter(pairs, cover, wanted)
    if shorter and choice.clique_mean is not None and choice.clique_mean > max(choice.mean):
        return replace(choice, cliques=True, num_factors=wanted, kinds=wanted)
    return choice


def _choose_agreement(
    pairs: Edges, columns: Sequence[NodeColumn], num_factors: int | None, seed: int
) -> ModelChoice | None:
    """Agreements if they have a column to rest on and predict hidden pairs best, else None."""
    held = hold_out(pairs, 1000 * seed)
    if not held.can_be_judged:
        return None
    found, likelihood = held_agreement(held, columns, num_factors, seed)
    if not found.rests_on_columns:
        return None
    mean = likelihood.mean()
    counts = tuple(count for count in RIVALS if 4 * count <= len(pairs))
    curve = np.stack([_of_splits([held], count, None) for count in counts])
    cliques = held.log_likelihood(clique_score(held)).mean()
    if mean <= max(curve.mean(1).max(), cliques):
        return None
    best = curve[curve.mean(1).argmax()]
    error = (curve - best).std(1) / np.sqrt(curve.shape[1])
    return ModelChoice(
        False,
        len(found.names),
        counts=counts,
        mean=tuple(curve.mean(1).tolist()),
        error=tuple(error.tolist()),
        clique_mean=float(cliques),
        agreement_mean=float(mean),
        blanks_teach=found.blanks_teach,
    )


def _choose_both(
    paying: PayingCliques,
    num_factors: int | None,
    classes: Array | None,
    candidates: Sequence[int],
    seed: int,
) -> ModelChoice | None:
    """Activities for the pairs outside cliques; None if activities alone describe all shorter."""
    rest = paying.rest
    if len(rest) < FEWEST_PAIRS:
        return None
    counts = tuple(candidates)
    if num_factors:
        counts = tuple(sorted({c for c in counts if c < num_factors} | {num_factors - 1}))
    choice = _choose_activities(rest, counts, classes, seed)
    if not choice.counts:
        return None
    activities = choice.num_factors
    if num_factors:  # the fewest would leave more kinds of cliques, not fewer reasons
        activities = choice.counts[int(np.argmax(choice.mean))]
    total = num_factors or activities + 1
    alone = fit_from_line_graph(paying.pairs, total).log_likelihood(paying.pairs)
    if description_length(paying, fit_from_line_graph(rest, activities)) > -alone:
        return None
    return replace(choice, num_factors=total, kinds=total - activities)


def _choose_activities(
    pairs: Edges, counts: Sequence[int], classes: Array | None, seed: int
) -> ModelChoice:
    """The number of activities, and whether to use classes, by hidden pairs."""
    count = SPLITS if len(pairs) < MANY_PAIRS else 1
    splits = [hold_out(pairs, 1000 * seed + split) for split in range(count)]
    if not all(held.can_be_judged for held in splits):  # nearly every pair of nodes is linked
        return ModelChoice(False, min(counts))
    counts = tuple(c for c in counts if len(counts) == 1 or 4 * c <= len(pairs))
    curve = np.stack([_of_splits(splits, count, None) for count in counts])  # [counts, pairs]
    cliques = np.concatenate([held.log_likelihood(clique_score(held)) for held in splits])
    mean, best = curve.mean(1), int(curve.mean(1).argmax())
    error = (curve - curve[best]).std(1) / np.sqrt(curve.shape[1])
    chosen = fewest_within_one_error(counts, mean, error)
    use_classes = False
    if classes is not None:
        with_classes = _of_splits(splits, chosen, classes)
        use_classes = bool(with_classes.mean() > curve[counts.index(chosen)].mean())
    return ModelChoice(
        False,
        chosen,
        use_classes,
        counts,
        tuple(mean.tolist()),
        tuple(error.tolist()),
        float(cliques.mean()),
    )


def fewest_within_one_error(counts: Sequence[int], mean: Array, error: Array) -> int:
    """The smallest number whose distance from the best is at most its standard error.

    Where not even the best is better than a coin, the smallest of all.
    """
    near = (mean + error >= mean.max()) | (mean.max() <= -np.log(2))
    return min(count for count, ok in zip(counts, near, strict=True) if ok)


def _cliques_describe_shorter(pairs: Edges, cover: CliqueCover, count: int) -> bool:
    """Whether to write down the cliques takes fewer nats than all links by activities."""
    one_kind = np.zeros(cover.member.shape[0], dtype=int)
    by_activities = fit_from_line_graph(pairs, count).log_likelihood(pairs)
    return memberships_log_likelihood(cover, one_kind, 1) > by_activities


def _of_splits(splits: Sequence[HeldOut], count: int, classes: Array | None) -> Array:
    """Held-out log-likelihood of every pair of all splits."""

    def fit(rest: Edges) -> Activity:
        return fit_from_line_graph(rest, count, classes=classes)

    return np.concatenate([held.log_likelihood(activity_score(held, fit)) for held in splits])
