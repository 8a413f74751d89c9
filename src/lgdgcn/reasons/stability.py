"""Whether reasons are found again: agreement of several fits of one graph."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lgdgcn.errors import InputError
from lgdgcn.reasons.edges import Array

__all__ = ["STABLE", "Stability", "over_fits", "stability"]

STABLE = 0.5  # halfway from what chance gives to the same edges in every fit


@dataclass(frozen=True)
class Stability:
    """How well the reasons of a first fit are found again by others.

    Attributes:
        agreement: Of each other fit with each reason of the first: 1 where it has the same edges,
            0 where it shares no more of them than chance would ``[S - 1, M]``.
        matched: The reason of the other fit that each is compared with, -1 for none
            ``[S - 1, M]``.
    """

    agreement: Array
    matched: Array

    @property
    def mean(self) -> Array:
        """Mean agreement of each reason over the other fits ``[M]``."""
        result: Array = self.agreement.mean(0)
        return result

    @property
    def is_stable(self) -> Array:
        """Whether each reason is found again ``[M]``."""
        return np.asarray(self.mean >= STABLE)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The agreement of every reason, ready for JSON."""
        return [
            {
                "fits": len(self.agreement) + 1,
                "agreement": float(own.mean()),
                "low": float(own.min()),
                "high": float(own.max()),
                "stable": bool(stable),
            }
            for own, stable in zip(self.agreement.T, self.is_stable, strict=True)
        ]

    @property
    def notes(self) -> list[str]:
        """A line for every reason, to be printed beside what is said of it."""
        fits, low, high = len(self.agreement) + 1, self.agreement.min(0), self.agreement.max(0)
        return [
            f"agreement of {fits} fits {mean:.2f} ({least:.2f} to {most:.2f})"
            + ("" if stable else ": is not stable")
            for mean, least, most, stable in zip(self.mean, low, high, self.is_stable, strict=True)
        ]


def over_fits(fits: Sequence[Any], matched: Array) -> tuple[Array, Array]:
    """Lowest and highest probability of each edge and reason of the first fit, over all fits.

    Args:
        fits: As for :func:`stability`.
        matched: Of :class:`Stability`; a fit without a match for a reason says nothing of it.

    Returns:
        Two arrays ``[E, M]``.

    Example:
        >>> low, high = over_fits([np.array([[0.9, 0.1]]), np.array([[0.3, 0.7]])],
        ...                        np.array([[1, 0]]))
        >>> low.tolist(), high.tolist()
        ([[0.7, 0.1]], [[0.9, 0.3]])
    """
    low = np.array(fits[0], dtype=float)
    high = low.copy()
    for other, reason in zip(fits[1:], matched, strict=True):
        found = np.flatnonzero(reason >= 0)
        values = np.asarray(other, dtype=float)[:, reason[found]]
        low[:, found] = np.minimum(low[:, found], values)
        high[:, found] = np.maximum(high[:, found], values)
    return low, high


def stability(fits: Sequence[Any], *, named: bool = False) -> Stability:
    r"""Match the reasons of several fits to those of the first, one to one, and compare them.

    An edge belongs to its likeliest reason. The edges of two reasons agree by their Jaccard index
    J, corrected for what reasons of the same sizes share by chance, :math:`(J - J_0)/(1 - J_0)`:
    two reasons with most of the edges overlap whatever they are.

    Args:
        fits: Probabilities of the same edges, one array for each seed ``[E, M]``; M may differ.
        named: Whether reasons are compared with those of the same number, as types are, rather
            than matched.

    Example:
        >>> first = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.1, 0.9]])
        >>> stability([first, first[:, ::-1]]).notes[0]
        'agreement of 2 fits 1.00 (1.00 to 1.00)'
    """
    arrays = [np.asarray(fit, dtype=float) for fit in fits]
    if len(arrays) < 2:
        raise InputError(f"stability needs at least 2 fits: {len(arrays)} given")
    shapes = [list(array.shape) for array in arrays]
    if any(len(shape) != 2 or shape[0] != shapes[0][0] for shape in shapes):
        raise InputError(f"the fits have shapes {shapes[:5]}: give probabilities of the same edges")
    first = _members(arrays[0])
    found = [_matched(first, _members(other), named) for other in arrays[1:]]
    agreement, matched = (np.stack(parts) for parts in zip(*found, strict=True))
    return Stability(agreement, matched)


def _members(probability: Array) -> Array:
    """A one where an edge belongs to a reason ``[E, M]``."""
    winner = probability.argmax(1)
    return np.asarray(winner[:, None] == np.arange(probability.shape[1]), dtype=float)


def _matched(first: Array, other: Array, named: bool) -> tuple[Array, Array]:
    """Agreement of each reason with the one matched to it, and which that is; 0 and -1 if none."""
    from scipy.optimize import linear_sum_assignment

    edges = max(len(first), 1)
    both = first.T @ other  # [M, M']
    a, b = first.sum(0)[:, None], other.sum(0)[None, :]
    jaccard = both / np.maximum(a + b - both, 1)
    by_chance = a * b / edges / np.maximum(a + b - a * b / edges, 1e-12)
    # a reason that has every edge in both fits is the same reason
    room = np.maximum(1 - by_chance, 1e-12)
    agreement = np.where(jaccard >= 1, 1, np.clip((jaccard - by_chance) / room, 0, 1))
    if named:
        rows = columns = np.arange(min(agreement.shape))
    else:
        rows, columns = linear_sum_assignment(agreement, maximize=True)
    result, matched = np.zeros(first.shape[1]), np.full(first.shape[1], -1)
    result[rows], matched[rows] = agreement[rows, columns], columns
    return result, matched
