"""The sharp variant as float64 loops, straight from its formulas."""

import math

import numpy as np

from literal.routing import softmax

SMALLEST = 1e-6  # agreement of ends that have no class in common
LEAST = 1e-5  # no label is less likely, or more likely than 1 minus this


def class_units(scores):
    """The root of every factor's distribution over its classes."""
    return np.array([[np.sqrt(softmax(list(own))) for own in node] for node in scores])


def vote(scores, edge_index, rounds, tau):
    scores = np.asarray(scores, dtype=np.float64)
    edges = [(int(j), int(i)) for j, i in np.asarray(edge_index).T]
    factors = scores.shape[1]
    units, p = class_units(scores), np.zeros((len(edges), factors))
    for _ in range(rounds):
        total = scores + units
        for e, (j, i) in enumerate(edges):
            p[e] = softmax([float(units[j, m] @ units[i, m]) / tau for m in range(factors)])
            for m in range(factors):
                total[i, m] += p[e, m] * units[j, m]
        units = class_units(total)
    return units, p


def agreement(one, other):
    """How much two nodes have in common, over all factors."""
    return sum(float((u**2) @ (v**2)) for u, v in zip(one, other, strict=True))


def edge_loss(units, edge_index):
    """Over all pairs, N x N as the formula says."""
    units = np.asarray(units, dtype=np.float64)
    edges = [(int(i), int(j)) for i, j in np.asarray(edge_index).T]
    pairs = [(i, j) for i in range(len(units)) for j in range(len(units)) if i != j]
    if not edges or not pairs:
        return 0.0
    chance = sum(agreement(units[i], units[j]) for i, j in pairs) / len(pairs)
    logs = [math.log(agreement(units[i], units[j]) + SMALLEST) for i, j in edges]
    return math.log(chance + SMALLEST) - sum(logs) / len(logs)


def label_scores(units, start, weight):
    """Log-odds of every label, from units of any length but 0."""
    nodes, labels = len(units), len(weight)
    scores = np.zeros((nodes, labels))
    for c in range(labels):
        share = softmax(list(start[c] + weight[c]))
        for i in range(nodes):
            classes = np.concatenate([u**2 / (u @ u) for u in units[i]])
            chance = sum(s * q for s, q in zip(share, classes, strict=True))
            chance = min(max(chance, LEAST), 1 - LEAST)
            scores[i, c] = math.log(chance / (1 - chance))
    return scores
