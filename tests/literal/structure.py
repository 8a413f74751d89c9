"""Edges by agreement and latent neighbours, pair by pair."""

from literal.propagation import normalized


def structured(edges, agreement, neighbours, gamma):
    """Dense matrix of Python numbers."""
    nodes = len(neighbours)
    weighed = [(source, target, agreement[e]) for e, (source, target) in enumerate(edges)]
    for i in range(nodes):
        for j in range(nodes):
            if i != j:
                listed = (j in neighbours[i]) + (i in neighbours[j])
                weighed.append((j, i, gamma / 2 * listed))
    return normalized([pair[:2] for pair in weighed], nodes, [pair[2] for pair in weighed])


def nearest(points, k):
    """The k nearest of each point, the lower number first where distances tie."""

    def distance(i, j):
        return sum((a - b) ** 2 for a, b in zip(points[i], points[j], strict=True))

    everyone = range(len(points))
    return [sorted((j for j in everyone if j != i), key=lambda j: distance(i, j))[:k]
            for i in everyone]  # fmt: skip
