"""Graphs of many sorts whose edges have known types, planted to try the model of edges on.

Each function draws one graph. They show where its answer holds and where it does not. The way that
families of reasons and their number are chosen was developed with the scores on these graphs in
sight, so they are no independent test of it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

Array = npt.NDArray[np.generic]
Draws = np.random.Generator


@dataclass
class Typed:
    """A graph: pairs ``[2, P]``, 0/1 types ``[P, T]`` (zeros: noise), features and labels."""

    nodes: int
    ends: Array
    types: Array
    x: Array | None = None
    y: Array | None = None


def joined(nodes: int, kinds: Iterable[Array], noise: int = 0, seed: int = 0) -> Typed:
    """The union of the pairs of each type, and some random pairs that have none."""
    kinds = [np.sort(np.asarray(kind).reshape(2, -1), axis=0) for kind in kinds]
    codes = [np.unique((k[0] * nodes + k[1])[k[0] < k[1]]) for k in kinds]
    random = np.sort(np.random.default_rng(seed).integers(0, nodes, (2, noise)), axis=0)
    random = (random[0] * nodes + random[1])[random[0] < random[1]]
    all_codes = np.unique(np.concatenate([*codes, random]))
    types = np.stack([np.isin(all_codes, code) for code in codes], 1).astype(float)
    return Typed(nodes, np.stack(np.divmod(all_codes, nodes)), types)


def activity(draws: Draws, members: Array, pairs: int, hubs: float = 1.2) -> Array:
    """Pairs of members, drawn by activities with a heavy tail: a carrier."""
    weight = draws.pareto(hubs, len(members)) + 0.1
    ends = draws.choice(members, (2, 4 * pairs), p=weight / weight.sum())
    ends = np.unique(np.sort(ends, axis=0)[:, ends[0] != ends[1]], axis=1)
    return ends[:, draws.permutation(ends.shape[1])[:pairs]]


def between(draws: Draws, left: Array, right: Array, pairs: int, tail: float = 1.5) -> Array:
    """Pairs of one node on each side: who buys what."""
    sides = []
    for side in (left, right):
        weight = draws.pareto(tail, len(side)) + 0.2
        sides.append(draws.choice(side, pairs, p=weight / weight.sum()))
    return np.stack(sides)


def groups(draws: Draws, nodes: int, per_node: int, people: int) -> Array:
    """Pairs of nodes with a common person: cliques, of which a node is in ``per_node``."""
    weight = draws.gamma(2, size=people)
    who = draws.choice(people, (nodes, per_node), p=weight / weight.sum())
    found = [
        pair
        for person in range(people)
        for pair in combinations(np.flatnonzero((who == person).any(1)).tolist(), 2)
    ]
    return np.array(found).T


def near(position: Array, neighbours: int) -> Array:
    """Pairs of each node with its nearest nodes."""
    found = cKDTree(position).query(position, neighbours + 1)[1]
    return np.stack([np.repeat(found[:, 0], neighbours), found[:, 1:].ravel()])


def carriers(draws: Draws) -> Typed:
    sizes = (900, 500, 250, 120, 80, 50)
    served = [draws.permutation(400)[: 30 + size // 6] for size in sizes]
    return joined(400, [activity(draws, s, n) for s, n in zip(served, sizes, strict=True)])


def dominant(draws: Draws) -> Typed:
    sizes = (2700, 200, 100)
    served = [draws.permutation(500)[:n] for n in (450, 60, 40)]
    return joined(500, [activity(draws, s, n) for s, n in zip(served, sizes, strict=True)])


def cliques(draws: Draws) -> Typed:
    return joined(1500, [groups(draws, 1500, 1, 300), groups(draws, 1500, 3, 900)])


def three_cliques(draws: Draws) -> Typed:
    kinds = [groups(draws, 1500, 1, 250), groups(draws, 1500, 2, 800), groups(draws, 1500, 5, 2500)]
    return joined(1500, kinds)


def activity_and_cliques(draws: Draws) -> Typed:
    flights = activity(draws, draws.permutation(1000)[:500], 2500)
    return joined(1000, [flights, groups(draws, 1000, 1, 200)])


def two_activities_and_cliques(draws: Draws) -> Typed:
    flights = [activity(draws, draws.permutation(800)[:300], n) for n in (1500, 800)]
    return joined(800, [*flights, groups(draws, 800, 2, 500)])


def places_and_friends(draws: Draws) -> Typed:
    """Roads between near places, and friends in communities that lie anywhere."""
    roads = near(draws.random((1000, 2)), 3)
    community = draws.integers(0, 20, 1000)
    ends = draws.integers(0, 1000, (2, 60000))
    friends = ends[:, (community[ends[0]] == community[ends[1]])][:, :2500]
    return joined(1000, [roads, friends])


def users_and_items(draws: Draws) -> Typed:
    """Who buys, who sells, who knows whom: two types join different sorts of nodes."""
    users, items, shops = np.split(np.arange(900), [500, 850])
    kinds = [
        between(draws, users, items, 2000),
        between(draws, shops, items, 500),
        activity(draws, users, 1200),
    ]
    return joined(900, kinds)


def roles(draws: Draws) -> Typed:
    """Manages, advises, is a colleague: the sort of the nodes decides, and is a label."""
    role = draws.choice(4, 600, p=[0.1, 0.2, 0.3, 0.4])
    sides = [np.flatnonzero(role == r) for r in range(4)]
    kinds = [
        between(draws, sides[0], sides[2], 500),
        between(draws, sides[1], sides[3], 900),
        between(draws, sides[0], sides[1], 250),
        activity(draws, sides[3], 800),
    ]
    graph = joined(600, kinds)
    graph.y = np.where(draws.random(600) < 0.5, role, -1)
    return graph


def regions(draws: Draws) -> Typed:
    """The type of a road is the region it lies in."""
    place = draws.random((1200, 2))
    ends = near(place, 4)
    middle = place[ends].mean(0)
    region = (middle[:, 0] * 3).astype(int) + 3 * (middle[:, 1] * 2).astype(int)
    return joined(1200, [ends[:, region == one] for one in range(6)])


def noisy(draws: Draws) -> Typed:
    served = [draws.permutation(400)[:n] for n in (150, 120, 80)]
    kinds = [activity(draws, s, n) for s, n in zip(served, (900, 700, 400), strict=True)]
    return joined(400, kinds, noise=700)


def two_reasons(draws: Draws) -> Typed:
    """The same hubs serve all, so many pairs have two types."""
    weight = draws.pareto(1.0, 200) + 0.2
    kinds = []
    for _ in range(3):
        served = draws.random(200) < 0.6
        share = weight * served / (weight * served).sum()
        kinds.append(draws.choice(200, (2, 2500), p=share))
    return joined(200, kinds)


def thirty(draws: Draws) -> Typed:
    kinds = []
    for _ in range(30):
        served = draws.permutation(800)[: draws.integers(25, 120)]
        kinds.append(activity(draws, served, int(1.8 * len(served))))
    return joined(800, kinds)


def sparse(draws: Draws) -> Typed:
    served = [draws.permutation(1500)[:n] for n in (700, 500, 300)]
    kinds = [activity(draws, s, n, 1.5) for s, n in zip(served, (700, 500, 300), strict=True)]
    return joined(2000, kinds)


def dense(draws: Draws) -> Typed:
    served = [draws.permutation(120)[:n] for n in (70, 60, 50)]
    inside = [np.array(list(combinations(s.tolist(), 2))).T for s in served]
    return joined(120, [pairs[:, draws.random(pairs.shape[1]) < 0.6] for pairs in inside])


def small(draws: Draws) -> Typed:
    served = [draws.permutation(50)[:n] for n in (25, 20)]
    return joined(50, [activity(draws, s, n) for s, n in zip(served, (90, 50), strict=True)])


def components(draws: Draws) -> Typed:
    """Forty components; stars and rings are types, and which is which only the shape tells."""
    stars, rings = [], []
    for part in range(40):
        nodes = np.arange(20 * part, 20 * part + 20)
        stars += [(int(nodes[0]), int(node)) for node in nodes[1:10]]
        ring = nodes[9:]
        rings += [(int(a), int(b)) for a, b in zip(ring, np.roll(ring, -1), strict=True)]
    return joined(900, [np.array(stars).T, np.array(rings).T])


def alike(draws: Draws) -> Typed:
    """Colleagues have like features, neighbours do not: only the features tell them apart."""
    x = draws.standard_normal((500, 8))
    candidates = draws.integers(0, 500, (2, 30000))
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    cosine = (unit[candidates[0]] * unit[candidates[1]]).sum(1)
    graph = joined(500, [candidates[:, cosine > 0.6][:, :1200], candidates[:, :1200]])
    graph.x = x
    return graph


def large(draws: Draws) -> Typed:
    served = [draws.permutation(20000)[:n] for n in (9000, 6000, 4000, 2000, 1000)]
    sizes = (20000, 14000, 9000, 5000, 2500)
    return joined(20000, [activity(draws, s, n, 1.5) for s, n in zip(served, sizes, strict=True)])


GRAPHS: dict[str, Callable[[Draws], Typed]] = {
    one.__name__: one
    for one in (
        carriers, dominant, cliques, three_cliques, activity_and_cliques,
        two_activities_and_cliques, places_and_friends, users_and_items, roles, regions, noisy,
        two_reasons, thirty, sparse, dense, small, components, alike, large,
    )
}  # fmt: skip
