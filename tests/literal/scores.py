"""Eq. 7, its classification losses, the F1 scores and average precision as loops."""

import math

import numpy as np


def cross_entropy(logits, y, mask):
    losses = []
    for row, label, counts in zip(logits, y, mask, strict=True):
        if counts:
            total = sum(math.exp(value) for value in row)
            losses.append(-math.log(math.exp(row[int(label)]) / total))
    return sum(losses) / len(losses)


def sigmoid_loss(logits, y, mask):
    losses = []
    for row, labels, counts in zip(logits, y, mask, strict=True):
        if counts:
            chances = [1 / (1 + math.exp(-value)) for value in row]
            losses.append(
                -sum(
                    label * math.log(p) + (1 - label) * math.log(1 - p)
                    for p, label in zip(chances, labels, strict=True)
                )
            )
    return sum(losses) / len(losses)


def total_loss(classification, regularizers):
    """Eq. 7; ``regularizers`` holds pairs of a weight and one loss per layer."""
    total = classification
    for weight, losses in regularizers:
        for number, loss in enumerate(losses, start=1):
            total += weight * 10.0 ** (number - len(losses)) * loss
    return total


def f1(predicted, truth):
    """Micro and macro F1; a label without any truth or prediction scores 0."""
    pairs = [(a, b) for a, b in zip(np.ravel(predicted), np.ravel(truth), strict=True)]
    columns = zip(np.transpose(predicted), np.transpose(truth), strict=True)
    macro = [_f1(list(zip(*column, strict=True))) for column in columns]
    return _f1(pairs), sum(macro) / len(macro)


def _f1(pairs):
    true = sum(1 for predicted, truth in pairs if predicted and truth)
    wrong = sum(1 for predicted, truth in pairs if bool(predicted) != bool(truth))
    return 2 * true / (2 * true + wrong) if true + wrong else 0.0


def top(scores, count):
    """0/1 matrix of every row's ``count`` highest scores."""
    chosen = np.zeros(np.shape(scores), dtype=bool)
    for i, row in enumerate(scores):
        for j in sorted(range(len(row)), key=lambda j: -row[j])[:count]:
            chosen[i, j] = True
    return chosen


def average_precision(scores, truth):
    """Mean over the true entries of the precision among all that score as high or higher."""
    precisions = []
    for score, true in zip(scores, truth, strict=True):
        if true:
            above = [label for other, label in zip(scores, truth, strict=True) if other >= score]
            precisions.append(sum(above) / len(above))
    return sum(precisions) / len(precisions) if precisions else 0.0


def roc_auc(scores, truth):
    """Share of the pairs of a true and another entry in which the true one scores higher."""
    true = [score for score, label in zip(scores, truth, strict=True) if label]
    other = [score for score, label in zip(scores, truth, strict=True) if not label]
    won = [1.0 if a > b else 0.5 if a == b else 0.0 for a in true for b in other]
    return sum(won) / len(won)


def highest_micro_f1(logits, truth):
    """The highest Micro-F1 that any threshold on these scores has."""
    scores = np.ravel(logits)
    thresholds = [min(scores) - 1, *scores]
    return max(f1(np.greater(logits, threshold), truth)[0] for threshold in thresholds)


def top_own(scores, truth):
    """0/1 matrix of every row's highest scores, as many as the row has labels."""
    rows = [top([row], int(sum(own)))[0] for row, own in zip(scores, truth, strict=True)]
    return np.array(rows)
