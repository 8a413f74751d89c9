"""What a linear probe of some channels tells of a label, on nodes it has not seen."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from lgdgcn.metrics.arrays import Array, centred

__all__ = ["Probes"]

FOLDS = 5
SURE = 0.999  # of probes that know nothing, one in a thousand counts as knowing something


@dataclass(frozen=True)
class _Fold:
    """What the discriminants of one fold need: sums over the other folds."""

    test: Array  # [t] nodes that are predicted
    mean: Array  # [C] of the training nodes
    covariance: Array  # [C, C]
    shares: list[Array]  # per label: share of each class [K]
    centres: list[Array]  # per label: means of the classes, centred [K, C]
    count: int  # training nodes


class Probes:
    """Linear discriminants of several labels from any choice of channels, cross-validated.

    Every node is predicted once, by a discriminant of the other folds. Classes are Gaussians of one
    covariance, to which as many pseudo-observations of uncorrelated channels are added as there are
    channels: it can always be inverted, and few nodes are not over-fitted. All discriminants of a
    fold share its sums, so a further choice of channels costs next to nothing.

    Args:
        values: Channels. Shape ``[N, C]``, N at least 2.
        labels: Classes of every node, counted from 0. Shape ``[N, F]``.
        seed: Seed of the folds.

    Example:
        >>> labels = np.arange(60)[:, None] % 3
        >>> probes = Probes(np.eye(3)[labels[:, 0]], labels)
        >>> float((probes.predict(np.arange(3), 0) == labels[:, 0]).mean())
        1.0
    """

    def __init__(self, values: Array, labels: Array, seed: int = 0) -> None:
        from sklearn.model_selection import KFold

        self.values = centred(values)
        spread = self.values.std(0)
        self.values /= np.where(spread > 0, spread, 1)
        self.labels = labels
        split = KFold(min(FOLDS, len(values)), shuffle=True, random_state=seed)
        self._folds = [self._fold(train, test) for train, test in split.split(self.values)]

    def _fold(self, train: Array, test: Array) -> _Fold:
        mean = self.values[train].mean(0)
        values, labels = self.values[train] - mean, self.labels[train]
        one_hot = [np.eye(count)[labels[:, f]] for f, count in enumerate(self.labels.max(0) + 1)]
        sizes = [each.sum(0) for each in one_hot]
        return _Fold(
            test=test,
            mean=mean,
            covariance=values.T @ values / len(train),
            shares=[size / len(train) for size in sizes],
            centres=[
                each.T @ values / np.maximum(size, 1)[:, None]
                for each, size in zip(one_hot, sizes, strict=True)
            ],
            count=len(train),
        )

    def predict(self, channels: Array, label: int) -> Array:
        """Held-out predictions of a label from some channels, ``[N]``.

        Args:
            channels: Numbers of the channels.
            label: Column of the labels.
        """
        predicted = np.zeros(len(self.values), dtype=np.int64)
        size = len(channels)
        for fold in self._folds:
            share, centres = fold.shares[label], fold.centres[label][:, channels]
            within = fold.covariance[np.ix_(channels, channels)] - (centres.T * share) @ centres
            pooled = (fold.count * within + size * np.eye(size)) / (fold.count + size)
            weight = cho_solve(cho_factor(pooled), centres.T)  # [c, K]
            with np.errstate(divide="ignore"):  # a class no training node has is never predicted
                bias = np.log(share) - 0.5 * (centres.T * weight).sum(0)
            seen = self.values[np.ix_(fold.test, channels)] - fold.mean[channels]
            predicted[fold.test] = (seen @ weight + bias).argmax(1)
        return predicted

    def majority(self, label: int) -> float:
        """Share of the commonest class: what a probe reaches that knows nothing."""
        return float(np.bincount(self.labels[:, label]).max() / len(self.labels))

    def noise(self, label: int) -> float:
        """Accuracy that a probe must exceed to know anything."""
        from scipy.stats import binom

        nodes = len(self.labels)
        return float(binom.ppf(SURE, nodes, self.majority(label)) / nodes)
