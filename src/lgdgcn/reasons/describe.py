"""What a reason is about: its name, what its nodes have in common, its size and typical edges."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lgdgcn.reasons.edge_reasons import EdgeReasons
from lgdgcn.reasons.edges import Array, Edges
from lgdgcn.reasons.traits import NodeTraits

__all__ = ["LARGEST_Q", "Description", "EnrichedTrait", "describe_reasons"]

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
        return f"{self.kind} {self.name} ({shares}, q = {self.q:.1g})"


@dataclass(frozen=True)
class Description:
    """What one reason is about.

    Attributes:
        name: Its most enriched trait, or its number.
        size: Number of edges whose likeliest reason it is, each counted once.
        unknown: How many of these are hardly explained by it, or by any.
        share: Of all edges.
        traits: The most enriched first; none where chance could explain them, or without edges.
        edges: Its most typical edges: ids of both ends and probability.
        nodes: Its most active nodes: id and expected number of edges; none without edges.
    """

    name: str
    size: int
    share: float
    traits: list[EnrichedTrait]
    edges: list[tuple[str, str, float]]
    nodes: list[tuple[str, float]]
    unknown: int = 0

    @property
    def lines(self) -> list[str]:
        """Three lines to be read: what is enriched, size and edges, nodes; one without edges."""
        if not self.size:
            return ["no edges: it is the likeliest of none"]
        about = ", ".join(map(str, self.traits)) or "nothing that chance could not explain"
        edges = ", ".join(f"{a} – {b}" for a, b, _ in self.edges)
        size = f"{self.size} edges ({100 * self.share:.0f} %)"
        size += f", {self.unknown} of them unknown" if self.unknown else ""
        nodes = ", ".join(f"{node} ({count:.1f} edges)" for node, count in self.nodes)
        return [
            f"more than usual: {about}",
            f"{size}, typical: {edges}",
            f"most active: {nodes}",
        ]


def describe_reasons(
    reasons: EdgeReasons, traits: NodeTraits, ids: Sequence[str], *, most: int = 5
) -> list[Description]:
    """Describe every reason of a graph's edges.

    The nodes of a reason are those where its share of the edges is above its usual share. Fisher's
    exact test, one-sided, says which traits are enriched among them; all tests of all reasons are
    corrected together. A reason that is the likeliest of no edge is not about anything.

    The test takes nodes as independent. Neighbours often have the same labels and the same
    reasons, so q is a ranking of traits rather than an exact error rate.

    Args:
        reasons: Observed types keep their names.
        traits: What the nodes have.
        ids: Of the nodes.
        most: How many traits, edges and nodes to list.
    """
    edges, shares, activity = reasons.edges, reasons.probability, reasons.activity
    likeliest = reasons.predict()
    sizes = np.bincount(likeliest, minlength=len(reasons.names))
    enriched = _enriched(activity, edges.degree, traits, most)
    enriched = [own if size else [] for own, size in zip(enriched, sizes, strict=True)]
    names = reasons.names if reasons.noun == "type" else _names(enriched, reasons.noun)
    return [
        Description(
            name=names[k],
            size=int(sizes[k]),
            share=float(sizes[k] / max(len(edges), 1)),
            traits=enriched[k],
            edges=_typical_edges(shares[:, k], likeliest == k, edges, ids, most),
            nodes=[
                (ids[i], float(activity[i, k])) for i in _largest(activity[:, k], most) if sizes[k]
            ],
            unknown=int(reasons.unknown[likeliest == k].sum()),
        )
        for k in range(len(names))
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


def _names(enriched: list[list[EnrichedTrait]], noun: str) -> list[str]:
    """The first trait of each reason, with the reason's number where several have the same."""
    first = [f"{own[0].kind} {own[0].name}" if own else None for own in enriched]
    return [
        f"{noun} {number}" if name is None
        else f"{name} ({number})" if first.count(name) > 1
        else name
        for number, name in enumerate(first, start=1)
    ]  # fmt: skip


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
