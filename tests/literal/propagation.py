"""Random propagation and its average, node by node."""

import math


def normalized(edges, nodes, weight=None):
    """Dense matrix of Python numbers: (A + I) over the root of both degrees."""
    matrix = [[1.0 if i == j else 0.0 for j in range(nodes)] for i in range(nodes)]
    for e, (source, target) in enumerate(edges):
        matrix[target][source] += 1.0 if weight is None else weight[e]
    degree = [sum(row) for row in matrix]
    return [
        [matrix[i][j] / math.sqrt(degree[i] * degree[j]) for j in range(nodes)]
        for i in range(nodes)
    ]


def average(matrix, x, weights):
    """The weighted sum of x, A x, A A x, ... for rows of Python numbers."""
    nodes, size = len(x), len(x[0])
    hop = [list(row) for row in x]
    total = [[weights[0] * number for number in row] for row in hop]
    for weight in weights[1:]:
        hop = [
            [sum(matrix[i][j] * hop[j][c] for j in range(nodes)) for c in range(size)]
            for i in range(nodes)
        ]
        for i in range(nodes):
            for c in range(size):
                total[i][c] += weight * hop[i][c]
    return total
