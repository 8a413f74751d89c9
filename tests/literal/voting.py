"""Our variant as float64 loops, straight from its formulas."""

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
    units = class_units(scores)
    for _ in range(rounds):
        total = scores + units
        for j, i in edges:
            p = softmax([float(units[j, m] @ units[i, m]) / tau for m in range(factors)])
            for m in range(factors):
                total[i, m] += p[m] * units[j, m]
        units = class_units(total)
    return units


def agreement(units, i, j, m):
    """How much two nodes have in common in one factor."""
    return float((units[i, m] ** 2) @ (units[j, m] ** 2))


def by_chance(units, m):
    """The same of any two nodes, over all pairs, N x N as the formula says."""
    pairs = [(i, j) for i in range(len(units)) for j in range(len(units)) if i != j]
    return sum(agreement(units, i, j, m) for i, j in pairs) / max(1, len(pairs)) + SMALLEST


def factor_weights(owned):
    """What each factor is expected to draw: labels' factors most of it."""
    owned = [bool(own) for own in owned]
    if not any(owned):
        owned = [True] * len(owned)
    free = 0.1 if not all(owned) else 0.0
    return [
        (0.95 - free) / owned.count(True) if own else free / owned.count(False) for own in owned
    ]


def edge_loss(units, edge_index, weights):
    units = np.asarray(units, dtype=np.float64)
    edges = [(int(i), int(j)) for i, j in np.asarray(edge_index).T]
    if not edges or len(units) < 2:
        return 0.0
    chance = [by_chance(units, m) for m in range(len(weights))]
    logs = []
    for i, j in edges:
        lift = [w * agreement(units, i, j, m) / chance[m] for m, w in enumerate(weights)]
        logs.append(math.log(1 - sum(weights) + sum(lift)))
    return -sum(logs) / len(logs)


def factor_posterior(units, edge_index, weights):
    units = np.asarray(units, dtype=np.float64)
    chance = [by_chance(units, m) for m in range(len(weights))]
    rows = []
    for i, j in np.asarray(edge_index).T:
        own = [
            w * (agreement(units, i, j, m) + SMALLEST) / chance[m] for m, w in enumerate(weights)
        ]
        rows.append([value / sum(own) for value in own])
    return np.array(rows).reshape(-1, len(weights))


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
