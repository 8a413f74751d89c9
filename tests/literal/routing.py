"""Routing and aggregation as float64 loops, straight from the definitions."""

import math

import numpy as np


def normalise(v):
    length = math.sqrt(sum(float(x) ** 2 for x in v))
    return v / length if length > 0 else np.zeros_like(v)


def softmax(scores):
    weights = [math.exp(s - max(scores)) for s in scores]
    return [w / sum(weights) for w in weights]


def route(z, edge_index, iterations, tau, uniform_start=False, normalize_last=True):
    z = np.asarray(z, dtype=np.float64)
    edges = [(int(s), int(t)) for s, t in np.asarray(edge_index).T]
    nodes, channels, _ = z.shape
    c = z.copy()
    p = np.zeros((len(edges), channels))
    for step in range(iterations):
        total = z.copy()
        for e, (s, t) in enumerate(edges):
            if uniform_start and step == 0:
                p[e] = 1.0 / channels
            else:
                p[e] = softmax([float(z[s, m] @ c[t, m]) / tau for m in range(channels)])
            for m in range(channels):
                total[t, m] += p[e, m] * z[s, m]
        c = total
        if step < iterations - 1 or normalize_last:
            c = np.array([[normalise(total[i, m]) for m in range(channels)] for i in range(nodes)])
            c = c.reshape(z.shape)
    return c, p


def aggregate(x, row_ptr, source, weight, left, right):
    x, weight, left, right = (np.asarray(a, dtype=np.float64) for a in (x, weight, left, right))
    out = np.zeros_like(x)
    for i in range(len(x)):
        total = right[i] * x[i]
        for e in range(int(row_ptr[i]), int(row_ptr[i + 1])):
            s = int(source[e])
            total = total + weight[e] * right[s] * x[s]
        out[i] = left[i] * total
    return out
