"""The counted floor: bytes and FLOPs that one training step cannot do without.

Counted is the released variant as the fast backends compute it: one sparse product and its weight
gradient, per layer one pass over the edges forward and one backward that repeats the forward
iterations, one exact brute-force search, averaging along the latent graph, the losses, Adam. Every
array is read or written once per part (neighbours come from cache); numbers and indices have four
bytes. A multiplication, an addition, a comparison and an exponential are one FLOP each. A part
takes at least the larger of bytes / copy bandwidth and FLOPs / matrix rate; the floor is the sum
of the parts.

A search that prunes does less than this count, so a share of the floor above 100 % is possible
on large graphs.

Of the sharp variant is counted one sparse product per view (each has its own dropout) and its
weight gradient, K hops of the hidden channels there and back, the class units, the consistency
and edge losses, Adam; no votes and no structure, which is found anew only every so many epochs.
"""

from dataclasses import asdict, dataclass
from typing import Any

__all__ = [
    "GraphShape",
    "SharpShape",
    "StepCost",
    "WorkloadShape",
    "count",
    "count_sharp",
    "floor",
]

WORD = 4  # bytes


@dataclass(frozen=True)
class GraphShape:
    """Sizes of a graph: N, E, F and stored features."""

    nodes: int
    edges: int
    features: int
    nonzeros: int


@dataclass(frozen=True)
class WorkloadShape(GraphShape):
    """Sizes of a workload: those of the graph, C, hidden = M * d, M, T, L and k."""

    classes: int
    hidden: int
    factors: int
    iterations: int
    layers: int
    k: int


@dataclass(frozen=True)
class SharpShape(GraphShape):
    """Sizes of the sharp variant's: those of the graph, classes M * d, hidden, K and S."""

    classes: int
    hidden: int
    hops: int
    views: int


@dataclass(frozen=True)
class StepCost:
    """What one part of the step moves and computes."""

    name: str
    bytes: int
    flops: int


def count(shape: WorkloadShape) -> list[StepCost]:
    """Count the parts of one training step."""
    return [
        _projection(shape),
        _routing(shape),
        _search(shape),
        _aggregation(shape),
        _losses(shape),
        _classifier(shape),
        _adam(shape),
    ]


def count_sharp(s: SharpShape) -> list[StepCost]:
    """Count the parts of one training step of the sharp variant."""
    hidden, classes = s.views * s.nodes * s.hidden, s.views * s.nodes * s.classes
    weight, stored = s.features * s.hidden, s.views * (2 * s.nonzeros + s.nodes)
    projection = 2 * (stored + weight + hidden)
    hops = s.hops * (s.edges + s.nodes + 3 * hidden)  # of a hop in; of a hop and the mean out
    sums = s.hops * (2 * (s.edges + s.nodes) * s.views * s.hidden + hidden)
    head = 3 * (2 * hidden * s.classes)  # product, gradients of both
    losses = 8 * classes + 2 * s.views * s.edges  # softmax, mean of views, agreement; and back
    ends = 2 * (2 * s.views * s.edges * s.classes)
    parameters = (s.features + s.classes + 1) * s.hidden + s.classes
    return [
        StepCost("projection", WORD * projection, 2 * (2 * s.views * s.nonzeros * s.hidden)),
        StepCost("propagation", WORD * 2 * hops, 2 * sums),
        StepCost("class units", WORD * (4 * hidden + 2 * classes), head + 6 * classes),
        StepCost("losses", WORD * losses, 20 * classes + ends),
        StepCost("Adam", WORD * 7 * parameters, 14 * parameters),
    ]


def floor(
    shape: WorkloadShape | SharpShape, copy_rate: float, matrix_rate: float
) -> dict[str, Any]:
    """Turn the counts into time on a machine.

    Args:
        shape: Sizes of the workload.
        copy_rate: Measured bytes per second, read plus written.
        matrix_rate: Measured float32 FLOPs per second of a matrix product.
    """
    parts = []
    counted = count(shape) if isinstance(shape, WorkloadShape) else count_sharp(shape)
    for part in counted:
        moving, computing = part.bytes / copy_rate, part.flops / matrix_rate
        bound = "bytes" if moving > computing else "flops"
        parts.append({**asdict(part), "ms": 1e3 * max(moving, computing), "bound": bound})
    return {"ms": sum(part["ms"] for part in parts), "parts": parts}


def _projection(s: WorkloadShape) -> StepCost:
    units, weight = s.nodes * s.hidden, s.features * s.hidden
    stored = 2 * s.nonzeros + s.nodes  # values, columns, row boundaries
    forward = stored + weight + units
    backward = stored + units + weight  # gradient of the units in, of the weight out
    flops = 2 * (2 * s.nonzeros * s.hidden)  # one multiply-add per stored feature, twice
    flops += (5 + 5) * units  # bias, ReLU, unit length; and back
    return StepCost("projection", WORD * (forward + backward), flops)


def _routing(s: WorkloadShape) -> StepCost:
    units, structure = s.nodes * s.hidden, s.edges + s.nodes
    forward = structure + 2 * units
    backward = 2 * structure + 4 * units  # both directions; units, gradient in, two shares out
    score = 2 * s.edges * s.hidden + 4 * s.edges * s.factors  # products; exp, sum, divide, max
    spread = 2 * s.edges * s.hidden
    once = s.iterations * spread + (s.iterations - 1) * (score + 4 * units)  # uniform start
    # back: of spread, towards probability and neighbour; of score, towards unit and neighbour
    back = s.iterations * 2 * spread + (s.iterations - 1) * (2 * score + 4 * units)
    between = (s.layers - 1) * (4 + 5) * units  # unit length of a layer's output; and back
    moved = s.layers * WORD * (forward + backward)
    return StepCost("routing", moved, s.layers * (2 * once + back) + between)


def _search(s: WorkloadShape) -> StepCost:
    d = s.hidden // s.factors
    moved = s.nodes * s.hidden + 2 * s.factors * s.nodes * s.k  # points in; lists out
    pairs = s.factors * s.nodes * (s.nodes - 1) // 2
    flops = pairs * (2 * d + 2)  # one product serves both ends; a comparison for each
    return StepCost("nearest neighbours", WORD * moved, flops)


def _aggregation(s: WorkloadShape) -> StepCost:
    entries = s.factors * s.nodes * s.k  # at least: every edge listed by both ends
    units = s.nodes * s.hidden
    build = 3 * entries  # lists in; sources and weights out
    average = 2 * entries + 2 * units
    flops = 2 * (2 * s.k * units + 2 * units)
    return StepCost("latent graph", WORD * (build + 2 * average), flops)


def _losses(s: WorkloadShape) -> StepCost:
    d, units = s.hidden // s.factors, s.nodes * s.hidden
    statistics = 2 * units + 2 * units * d  # mean, centring, covariance
    space = units + 2 * units * d + 2 * units + 2 * units * d  # distance; and back
    quadratic = s.factors * units * (2 * d + 5)  # every unit under every component; and back
    volume = 5 * s.nodes * s.factors**3  # products, elimination, inverse
    moved = 3 * units  # units twice (the statistics come first), their gradient once
    return StepCost("losses", WORD * moved, statistics + space + quadratic + volume)


def _classifier(s: WorkloadShape) -> StepCost:
    units, scores, weight = s.nodes * s.hidden, s.nodes * s.classes, s.hidden * s.classes
    moved = 3 * units + 2 * scores + 2 * weight
    return StepCost("classifier", WORD * moved, 3 * (2 * units * s.classes) + 6 * scores)


def _adam(s: WorkloadShape) -> StepCost:
    parameters = (s.features + 1) * s.hidden + (s.hidden + 1) * s.classes
    return StepCost("Adam", WORD * 7 * parameters, 14 * parameters)  # four arrays in, three out
