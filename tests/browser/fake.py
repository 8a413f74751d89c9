"""Made-up data of the page, in the form that a real run has."""

import base64
from typing import Any

import numpy as np

from lgdgcn.explorer.page import TYPES, encoded

__all__ = ["decoded", "fake_payload"]

Numbers = np.ndarray[Any, Any]


def decoded(array: dict[str, Any]) -> Numbers:
    """Numbers of an encoded array."""
    values = np.frombuffer(base64.b64decode(array["data"]), dtype=TYPES[array["type"]])
    return values.reshape(array["shape"])


def fake_payload(
    nodes: int = 300,
    edges: int = 900,
    /,
    *,
    factors: int = 4,
    classes: int = 6,
    multi_label: bool = False,
    labelled: bool = True,
    seed: int = 0,
    **instead: Any,
) -> dict[str, Any]:
    """Blobs of nodes with edges inside them, and random numbers everywhere else.

    Args:
        nodes: Number of nodes N.
        edges: Number of edges E.
        factors: Number of factors M.
        classes: Number of classes C; with several labels per node, label numbers by factor.
        multi_label: Whether nodes have one label per factor instead of one.
        labelled: Whether the truth is known.
        seed: Seed of all numbers.
        instead: Parts to replace, such as ``ids``.
    """
    random = np.random.default_rng(seed)
    truth = random.integers(0, classes, (nodes, 1))
    labels = classes
    if multi_label:
        truth = random.integers(0, classes, (nodes, factors)) + classes * np.arange(factors)
        labels = classes * factors
    ends = random_edges(random, truth[:, 0], edges)
    shares = random.dirichlet(np.full(factors, 0.4), edges)
    top, probability = likely_labels(random, truth, labels)
    predicted = np.sort(top[:, : truth.shape[1]], axis=1)
    payload = {
        "title": "LGD-GCN on made-up nodes",
        "dataset": "made-up",
        "model": "lgdgcn",
        "variant": "released",
        "factors": factors,
        "nodes": nodes,
        "multiLabel": multi_label,
        "channels": 8,
        "ids": [f"node {i}" for i in range(nodes)],
        "texts": [{"name": "title", "values": [f"the story of {i}!" for i in range(nodes)]}],
        "classes": [f"class {c}" for c in range(labels)],
        "truth": encoded(truth, "i32") if labelled else None,
        "part": encoded(random.integers(1, 4, nodes), "u8"),
        "predicted": encoded(predicted, "i32"),
        "top": encoded(top, "i32"),
        "topProbability": encoded(probability, "f32"),
        "confidence": encoded(probability[:, 0], "f32"),
        "dominant": encoded(random.integers(0, factors, nodes), "u8"),
        "factorClasses": None,
        "position": encoded(blobs(random, truth[:, 0], classes), "f32"),
        "maps": encoded(
            np.stack([blobs(random, truth[:, m % truth.shape[1]] % classes, classes)
                      for m in range(factors)]), "f32"),
        "edges": encoded(ends, "u32"),
        "edgeFactors": encoded(65535 * shares, "u16"),
        "unrouted": None,
        "noun": "factor",
        "fits": 1,
        "factorNames": [None] * factors,
        "about": [{"lines": ["more", "edges", "nodes"], "stability": "one seed", "stable": None}
                  for _ in range(factors)],
        "edgeRange": None,
        "traits": None,
        "without": without(random, predicted, factors),
        "latent": latent(random, nodes, factors),
        "curves": [curve(random, seed) for seed in range(2)],
        "correlation": encoded(correlation(random, factors, 8), "u8"),
        "correlationStep": 1,
        "correlationMeans": encoded(0.1 + 0.4 * np.eye(factors), "f32"),
        "confusion": confusion(truth, predicted, labels, multi_label),
        "measures": measures(),
        "scores": {"test micro_f1": 0.823, "validation accuracy": 0.81},
        "warnings": ["the kept epoch is the first of 60; lower lr (now 5)"],
    }  # fmt: skip
    return payload | instead


def random_edges(random: np.random.Generator, group: Numbers, edges: int) -> Numbers:
    """Four of five edges inside a group."""
    order = np.argsort(group, kind="stable")
    at = random.integers(0, len(order), edges)
    near = np.clip(at + random.integers(1, 12, edges), 0, len(order) - 1)
    other = np.where(random.random(edges) < 0.8, near, random.integers(0, len(order), edges))
    return np.stack([order[at], order[other]])


def blobs(random: np.random.Generator, group: Numbers, groups: int) -> Numbers:
    angle = 2 * np.pi * np.arange(groups) / groups
    centres = 0.62 * np.stack([np.cos(angle), np.sin(angle)], 1)
    places = centres[group] + random.normal(0, 0.13, (len(group), 2))
    return np.clip(places, -1, 1)


def likely_labels(
    random: np.random.Generator, truth: Numbers, labels: int
) -> tuple[Numbers, Numbers]:
    """The true labels first, mostly."""
    score = random.random((len(truth), labels))
    hit = random.random(truth.shape) < 0.85
    np.put_along_axis(score, truth, np.where(hit, 1 + random.random(truth.shape), 0.2), axis=1)
    top = np.argsort(-score, axis=1)[:, : min(max(5, truth.shape[1]), 16, labels)]
    best = np.take_along_axis(score, top, 1)
    share = np.exp(3 * best) / np.exp(3 * best).sum(1, keepdims=True)
    return top, share


def without(random: np.random.Generator, predicted: Numbers, factors: int) -> dict[str, Any]:
    """As if no prediction changed."""
    one = predicted.shape[1] == 1
    size = len(predicted), factors
    return {
        "predicted": encoded(np.repeat(predicted, factors, 1), "i32") if one else None,
        "kept": encoded(np.full(size, predicted.shape[1]), "u8"),
        "probability": encoded(65535 * random.random(size), "u16"),
        "low": None,
        "high": None,
    }


def latent(random: np.random.Generator, nodes: int, factors: int) -> dict[str, Any]:
    width = 8
    neighbours = random.integers(0, nodes, (nodes, factors, width))
    neighbours[:, :, width - 1] = -1  # not everyone has that many
    return {
        "neighbours": encoded(neighbours, "i32"),
        "distance": encoded(np.sort(random.random((nodes, factors, width)), 2), "f32"),
    }


def curve(random: np.random.Generator, seed: int) -> dict[str, Any]:
    epochs = np.arange(1, 121)
    fall = np.exp(-epochs / 30) + 0.02 * random.random(120)
    validation = [None if epoch % 2 else float(1 - 0.8 * fall[epoch - 1]) for epoch in epochs]
    terms = {
        "classification": (40 * fall).tolist(),
        "space": (1.2 + 0.1 * random.random(120)).tolist(),
        "diversity": (50 * fall**2 + 1).tolist(),
        "val_accuracy": validation,
    }
    return {"seed": seed, "epochs": epochs.tolist(), "terms": terms}


def correlation(random: np.random.Generator, factors: int, channels: int) -> Numbers:
    side = factors * channels
    block = np.kron(np.eye(factors), np.ones((channels, channels)))
    values = np.abs(0.08 * random.normal(size=(side, side)) + 0.45 * block)
    np.fill_diagonal(values, 1)
    return 255 * np.clip((values + values.T) / 2, 0, 1)


def confusion(truth: Numbers, predicted: Numbers, labels: int, multi_label: bool) -> dict[str, Any]:
    """Of all nodes, so that the numbers can be counted again in the page."""
    if not multi_label:
        matrix = np.zeros((labels, labels), dtype=np.int64)
        np.add.at(matrix, (truth[:, 0], predicted[:, 0]), 1)
        return {"parts": "all", "matrix": encoded(matrix, "u32")}
    true, said = (np.zeros((len(truth), labels), dtype=bool) for _ in range(2))
    np.put_along_axis(true, truth, True, 1)
    np.put_along_axis(said, predicted, True, 1)
    counts = np.stack([(true & said).sum(0), (~true & said).sum(0), (true & ~said).sum(0)], 1)
    return {"parts": "all", "labels": encoded(counts, "u32")}


def measures() -> list[dict[str, Any]]:
    names = ["name", "title", "value", "low", "high", "untrained", "permuted", "better", "about"]
    rows = [
        ("attribution", "edge attribution", 0.61, 0.58, 0.64, 0.26, 0.61, "higher",
         "Share of edges given to the factor that made them, after the best matching."),
        ("entropy", "routing entropy", 0.72, 0.71, 0.73, 0.999, None, "lower",
         "How evenly an edge is spread over the factors; 1 is no routing at all."),
        ("mig", "mutual information gap", None, None, None, None, None, "none", "Not defined."),
    ]  # fmt: skip
    return [dict(zip(names, row, strict=True)) for row in rows]
