"""What a reason is about: what the ends of its edges have in common, its size, typical edges."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lgdgcn.reasons.agreement_columns import NodeColumn
from lgdgcn.reasons.edge_reasons import EdgeReasons
from lgdgcn.reasons.edges import Array, Edges
from lgdgcn.reasons.in_common import InCommon, in_common
from lgdgcn.reasons.traits import NodeTraits, title_of

__all__ = ["LARGEST_Q", "Description", "EnrichedTrait", "describe_reasons", "named"]

CHANCE = "chance"  # the reason of edges that nothing explains

LARGEST_Q = 0.05  # of a trait that is named: of those named, about one in twenty is by chance


@dataclass(frozen=True)
class EnrichedTrait:
    """What more of a reason's nodes have than chance would give them.

    Attributes:
        kind: "label", "feature" or "word".
        name: Of the trait.
        inside: Share of the reason's nodes that have it.
        overall: Share of all linked nodes that have it.
        q: Share of false discoveries among traits at least as enriched (Benjamini–Hochberg).
    """

    kind: str
    name: str
    inside: float
    overall: float
    q: float

    def __str__(self) -> str:
        shares = f"{100 * self.inside:.0f} % against {100 * self.overall:.0f} %"
        return f"{title_of(self.kind, self.name)} ({shares}, q = {self.q:.1g})"


@dataclass(frozen=True)
class Description:
    """What one reason is about.

    Attributes:
        name: An observed type, what the ends have in common, or "group" and a number.
        noun: What it is called: "type", "factor", "reason", or "group" if it only says which part
            of the network an edge is in.
        size: Number of edges whose likeliest reason it is, each counted once.
        share: Of all edges.
        in_common: What the ends of these edges have in common.
        traits: What its nodes have more often than others, the most enriched first; none where
            chance could explain them, or without edges.
        edges: Its most typical edges: ids of both ends and probability.
        nodes: Its most active nodes: id and expected number of edges; none without edges.
        unknown: How many of its edges are hardly explained by it, or by any.
    """

    name: str
    noun: str
    size: int
    share: float
    in_common: InCommon
    traits: list[EnrichedTrait]
    edges: list[tuple[str, str, float]]
    nodes: list[tuple[str, float]]
    unknown: int = 0

    @property
    def lines(self) -> list[str]:
        """Lines to be read: what is in common, size and edges, nodes; one without edges."""
        if not self.size:
            return ["no edges: it is the likeliest of none"]
        ends = f"its ends have: {self.in_common}"
        if self.name == CHANCE:
            ends = f"nothing explains these edges better than chance; {self.in_common}"
        elif self.in_common.is_group:
            ends = f"a part of the network, by nothing else unlike other edges; {self.in_common}"
        edges = ", ".join(f"{a} – {b}" for a, b, _ in self.edges)
        size = f"{self.size} edges ({100 * self.share:.0f} %)"
        size += f", {self.unknown} of them unknown" if self.unknown else ""
        nodes = ", ".join(f"{node} ({count:.1f} edges)" for node, count in self.nodes)
        more = [f"more than usual: {', '.join(map(str, self.traits))}"] if self.traits else []
        return [
            ends,
            *more,
            f"{size}, typical: {edges}",
            f"most active: {nodes}",
        ]


def describe_reasons(
    reasons: EdgeReasons,
    columns: Sequence[NodeColumn],
    traits: NodeTraits,
    ids: Sequence[str],
    *,
    most: int = 5,
) -> list[Description]:
    """Describe every reason of a graph's edges.

    Its edges are those whose likeliest reason it is. What their ends have in common is compared
    with random pairs of nodes and with the other edges (:mod:`~lgdgcn.reasons.in_common`).

    The nodes of a reason are those where its share of the edges is above its usual share. Fisher's
    exact test, one-sided, says which traits are enriched among them; all tests of all reasons are
    corrected together. The test takes nodes as independent. Neighbours often have the same labels
    and the same reasons, so q is a ranking of traits rather than an exact error rate.

    Args:
        reasons: Observed types keep their names.
        columns: Of the nodes.
        traits: What the nodes have.
        ids: Of the nodes.
        most: How many traits, edges and nodes to list.
    """
    edges, shares, activity = reasons.edges, reasons.probability, reasons.activity
    likeliest, count = reasons.predict(), len(reasons.names)
    sizes = np.bincount(likeliest, minlength=count)
    common = in_common(edges, likeliest, count, columns)
    enriched = _enriched(activity, edges.degree, traits, most)
    names = _names(common, reasons) if reasons.noun == "factor" else reasons.names
    return [
        Description(
            name=names[k],
            noun=_noun(reasons, k, common[k]),
            size=int(sizes[k]),
            share=float(sizes[k] / max(len(edges), 1)),
            in_common=common[k],
            traits=enriched[k] if sizes[k] else [],
            edges=_typical_edges(shares[:, k], likeliest == k, edges, ids, most),
            nodes=[
                (ids[i], float(activity[i, k])) for i in _largest(activity[:, k], most) if sizes[k]
            ],
            unknown=int(reasons.unknown[likeliest == k].sum()),
        )
        for k in range(count)
    ]


def named(reasons: EdgeReasons, columns: Sequence[NodeColumn]) -> EdgeReasons:
    """The same reasons, called by what the ends of their edges have in common.

    Observed types and the reason that stands for chance keep their names.
    """
    if reasons.noun != "reason" or not len(reasons.edges):
        return reasons
    common = in_common(reasons.edges, reasons.predict(), len(reasons.names), columns)
    return replace(reasons, names=_names(common, reasons))


def _noun(reasons: EdgeReasons, number: int, common: InCommon) -> str:
    by_chance = reasons.names[number] == CHANCE
    is_group = reasons.noun == "reason" and common.is_group and not by_chance
    return "group" if is_group else reasons.noun


def _names(common: Sequence[InCommon], reasons: EdgeReasons) -> list[str]:
    """What tells a reason's edges from others, with a number where several have the same."""
    found: list[str] = []
    for number, (one, name) in enumerate(zip(common, reasons.names, strict=True), start=1):
        if name == CHANCE:
            found.append(name)
        elif one.is_group or not (one.columns or reasons.noun == "reason"):
            found.append(f"{'group' if reasons.noun == 'reason' else reasons.noun} {number}")
        elif one.columns:
            found.append(one.columns[0].phrase)
        else:
            found.append("close in the network")
    return [
        name if found.count(name) == 1 else f"{name} ({found[: k + 1].count(name)})"
        for k, name in enumerate(found)
    ]


def _enriched(
    activity: Array, degree: Array, traits: NodeTraits, most: int
) -> list[list[EnrichedTrait]]:
    """The enriched traits of every reason, the most certain first."""
    from scipy.stats import false_discovery_control, hypergeom

    linked = degree > 0
    share = activity[linked] / degree[linked, None]
    usual = activity.sum(0) / max(activity.sum(), 1e-12)
    inside = share > usual + 1e-9  # [n, M]
    has = traits.has[np.flatnonzero(linked)]
    total, count = np.asarray(has.sum(0)).ravel(), inside.sum(0)  # [T], [M]
    both = np.asarray(has.T @ inside.astype(float))  # [T, M]
    p = hypergeom.sf(both - 1, len(inside), total[:, None], count[None, :])
    p = np.nan_to_num(p, nan=1.0).clip(0, 1)  # without an edge there is nothing to test
    q = false_discovery_control(p, axis=None).reshape(p.shape) if p.size else p
    result = []
    for m in range(activity.shape[1]):
        ratio = both[:, m] / np.maximum(total, 1)
        order = np.lexsort((-ratio, q[:, m]))[:most]
        result.append(
            [
                EnrichedTrait(
                    traits.kinds[t],
                    traits.names[t],
                    float(both[t, m] / max(count[m], 1)),
                    float(total[t] / max(len(inside), 1)),
                    float(q[t, m]),
                )
                for t in order
                if q[t, m] < LARGEST_Q
            ]
        )
    return result


def _typical_edges(
    share: Array, own: Array, pairs: Edges, ids: Sequence[str], most: int
) -> list[tuple[str, str, float]]:
    """Its edges of highest probability; among those that look alike, between large degrees."""
    candidates = np.flatnonzero(own)
    degree = pairs.degree[pairs.ends].sum(0)
    order = np.lexsort((-degree[candidates], -share[candidates].round(2)))[:most]
    return [
        (ids[pairs.ends[0, pair]], ids[pairs.ends[1, pair]], float(share[pair]))
        for pair in candidates[order]
    ]


def _largest(values: Array, most: int) -> Array:
    order = np.argsort(-values, kind="stable")[:most]
    return np.asarray(order[values[order] > 0])
