"""Where nodes are drawn: the graph by its edges, the maps by nearness of a factor's units."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from lgdgcn.explorer.descent import gradient_descent, walk_weights

__all__ = [
    "diffused",
    "drawn_in",
    "graph_layout",
    "pack",
    "principal",
    "unit_layout",
    "unit_square",
]

Array = npt.NDArray[Any]

NEAR = 15  # nodes that walks join a node with
LINK = 0.3  # least weight of an edge
PUSHES = 8  # more than maps need: edges should be seen


def graph_layout(pairs: Array, nodes: int, seed: int = 0) -> Array:
    """Draw a graph: what is linked lies together, each connected part on its own.

    Args:
        pairs: Edges, each once, no self loops. Shape ``[2, E]``.
        nodes: Number of nodes, at least 1.
        seed: Seed of the draws.

    Returns:
        Positions ``[N, 2]`` in [-1, 1]: the largest part in the middle, smaller ones in rings
        around it, isolated nodes last.
    """
    adjacency = scipy.sparse.coo_matrix((np.ones(pairs.shape[1]), tuple(pairs)), (nodes, nodes))
    adjacency = (adjacency + adjacency.T).tocsr()
    _, part = connected_components(adjacency, directed=False)
    size = np.bincount(part)[part]
    order = np.lexsort((np.arange(nodes), part, -size))  # larger parts first, nodes by number
    starts = np.append(np.flatnonzero(np.diff(part[order], prepend=-1)), nodes)
    turn = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    group = np.stack([starts[turn], starts[turn + 1]], 1)

    ordered = adjacency[order][:, order]
    start = diffused(ordered, turn, seed)
    joined = scipy.sparse.triu(walk_weights(ordered, NEAR, LINK), format="coo")
    joined_pairs = np.stack([joined.row, joined.col], 1)
    position = gradient_descent(
        start, joined_pairs, joined.data, group, epochs=_epochs(nodes), pushes=PUSHES, seed=seed
    )
    position[: starts[1]] = drawn_in(position[: starts[1]])
    result = np.empty((nodes, 2), dtype=np.float32)
    result[order] = unit_square(pack(position.astype(np.float64), starts))
    return result


def unit_layout(units: Array, nearest: Array, distance: Array, seed: int = 0) -> Array:
    """Draw a map of one factor: nodes with similar units lie together.

    Args:
        units: The factor's units. Shape ``[N, d]``.
        nearest: Nearest other nodes by unit. Shape ``[N, k]``.
        distance: How far they are. Shape ``[N, k]``.
        seed: Seed of the draws.

    Returns:
        Positions ``[N, 2]`` in [-1, 1].
    """
    nodes = len(units)
    start = principal(units, seed)
    upper = scipy.sparse.triu(_memberships(nearest, distance), format="coo")
    pairs = np.stack([upper.row, upper.col], 1)
    everyone = np.tile([0, nodes], (nodes, 1))
    epochs = _epochs(nodes)
    position = gradient_descent(start, pairs, upper.data, everyone, epochs=epochs, seed=seed)
    return unit_square(drawn_in(position))


def _epochs(nodes: int) -> int:
    """Small graphs are cheap and gain from more."""
    return 500 if nodes <= 5000 else 300


def _memberships(nearest: Array, distance: Array) -> Any:
    """UMAP's fuzzy union: each node's neighbours weigh log2(k) together, the nearest 1."""
    nodes, count = nearest.shape
    beyond = np.maximum(distance - distance[:, :1], 0).astype(np.float64)
    low, high = np.zeros((nodes, 1)), np.full((nodes, 1), max(float(beyond.max()), 1e-12) * 10)
    for _ in range(40):
        width = (low + high) / 2
        heavy = np.exp(-beyond / width).sum(1, keepdims=True) > np.log2(max(count, 2))
        low, high = np.where(heavy, low, width), np.where(heavy, width, high)
    weight = np.exp(-beyond / np.maximum((low + high) / 2, 1e-12))
    rows = np.repeat(np.arange(nodes), count)
    directed = scipy.sparse.csr_matrix(
        (np.maximum(weight, 1e-3).ravel(), (rows, nearest.ravel())), (nodes, nodes)
    )
    return directed + directed.T - directed.multiply(directed.T)


# Where layouts start

WIDTH = 10.0  # from the middle to the rim, in widths of the similarity
GRAIN = 1e-3  # parts equal points
PATTERNS = 16  # of diffusion, whose main plane is the start of a graph
SMOOTHING = 30  # steps of it


def principal(points: Array, seed: int) -> Array:
    """The plane in which points differ most, ``[N, d] -> [N, 2]``, with a little grain."""
    centred = points.astype(np.float64) - points.mean(0, dtype=np.float64)
    _, axes = np.linalg.eigh(centred.T @ centred)
    axes = axes[:, ::-1][:, :2]
    axes = axes * np.where(axes[np.abs(axes).argmax(0), np.arange(axes.shape[1])] < 0, -1, 1)
    plane = np.zeros((len(points), 2))
    plane[:, : axes.shape[1]] = centred @ axes
    return _scaled(plane, seed)


def diffused(adjacency: Any, part: Array, seed: int) -> Array:
    """A smooth start: slowly fading patterns of a random walk, centred within each part."""
    nodes = adjacency.shape[0]
    degree = np.maximum(np.asarray(adjacency.sum(1)).ravel(), 1)
    share = scipy.sparse.csr_matrix((degree, (part, np.arange(nodes))))  # [parts, N]
    share = scipy.sparse.diags(1 / np.asarray(share.sum(1)).ravel()) @ share
    pattern = np.random.default_rng(seed).standard_normal((nodes, PATTERNS))
    for step in range(1, SMOOTHING + 1):
        pattern = (pattern + (adjacency @ pattern) / degree[:, None]) / 2
        pattern -= (share @ pattern)[part]
        if step % 10 == 0:
            pattern, _ = np.linalg.qr(pattern)
    length = np.sqrt((pattern**2).sum(1, keepdims=True))
    return principal(pattern / np.where(length > 0, length, 1), seed)


def _scaled(plane: Array, seed: int) -> Array:
    spread = np.abs(plane).max()
    grain = np.random.default_rng(seed).standard_normal(plane.shape) * GRAIN
    return plane * (WIDTH / spread if spread > 0 else 0) + grain


# Connected parts side by side: the largest in the middle, the others in rings

FILLED = 0.8  # of a ring's disc by the part in it, as a share of the radius
SPREAD = 0.6  # a ring this full is spread over the whole turn
WITHIN = 0.95  # share of nodes that is never drawn in
MARGIN = 0.2  # how far beyond these the others may lie


def pack(position: Array, starts: Array) -> Array:
    """Move parts of a drawing next to each other without overlap.

    Args:
        position: Nodes, part by part, larger parts first. Shape ``[N, 2]``.
        starts: First node of every part, and N.

    Returns:
        New positions ``[N, 2]``: a part of n nodes fills a disc with an area of n.
    """
    result = np.zeros_like(position)
    centres = _centres(np.sqrt(np.diff(starts)))
    for centre, (low, high) in zip(centres, pairwise(starts), strict=True):
        part = position[low:high] - (position[low:high].max(0) + position[low:high].min(0)) / 2
        reach = np.sqrt((part**2).sum(1).max())
        room = math.sqrt(high - low) * (FILLED if low else 1)
        result[low:high] = centre + part * (room / reach if reach > 0 else 0)
    return result


def _centres(radii: Array) -> Array:
    """Centres of discs that fall in size: the first at the origin, the others in rings."""
    centres = np.zeros((len(radii), 2))
    inner, first = radii[0], 1
    while first < len(radii):
        ring = inner + radii[first]
        angles = _filled(radii[first:], ring)
        full = angles[-1] + _angle(2 * radii[first], ring)
        if full > SPREAD * 2 * math.pi:
            angles = angles * (2 * math.pi / full)
        turn = angles - angles[-1] / 2  # 0 is below
        last = first + len(angles)
        centres[first:last] = ring * np.stack([np.sin(turn), -np.cos(turn)], 1)
        inner, first = ring + radii[first], last
    return centres


def _filled(radii: Array, ring: float) -> Array:
    """Angles of as many discs as one ring holds, the first at 0."""
    angles = [0.0]
    for before, radius in pairwise(radii):
        angle = angles[-1] + _angle(before + radius, ring)
        if angle + _angle(radius + radii[0], ring) > 2 * math.pi:
            break
        angles.append(angle)
    return np.array(angles)


def _angle(gap: float, ring: float) -> float:
    """The angle at which two points of a ring are this far apart."""
    return 2 * math.asin(min(1.0, gap / (2 * ring)))


def drawn_in(position: Array) -> Array:
    """Bring what lies far outside nearer to the rest; most of the picture stays as it is."""
    centre = np.median(position, axis=0)
    offset = position - centre
    radius = np.sqrt((offset**2).sum(1, keepdims=True))
    rim = max(float(np.quantile(radius, WITHIN)), 1e-12)
    outside = np.maximum(radius / rim - 1, 0)
    limited = rim * (1 + MARGIN * np.tanh(outside / MARGIN))
    nearer: Array = centre + offset * limited / np.maximum(radius, rim)
    return np.where(radius > rim, nearer, position)


def unit_square(position: Array) -> Array:
    """Fill [-1, 1] x [-1, 1], keeping the shape; a single point comes to rest in the middle."""
    low, high = position.min(0), position.max(0)
    reach = float((high - low).max()) / 2
    centred: Array = (position - (low + high) / 2) / (reach if reach > 0 else 1.0)
    return centred.clip(-1, 1).astype(np.float32)
