"""The search for reasons: which columns drive them, and which edges walk along each other."""

from collections.abc import Sequence

import numpy as np

from lgdgcn.reasons.agreement_closeness import walk_closeness
from lgdgcn.reasons.agreement_columns import (
    BLANK,
    LEVELS,
    RARITY,
    NodeColumn,
    level_edges,
    levels_of,
)
from lgdgcn.reasons.agreement_mixture import Mixture, information, start_mixture
from lgdgcn.reasons.edges import Array, Edges

__all__ = ["AgreementSearch", "Compared"]

RANDOM = (20_000, 150_000)  # fewest and most random pairs; between, five for each edge
LEAST_GAIN = 0.01  # nats of an edge that a reason must explain
LEAST_SHARE = 0.02  # of the edges
ALONGSIDE = 0.2  # of what its first feature says must another one say to belong to a reason
STEPS = 8  # of EM between two looks at walks
ROUNDS = 3


class Compared:
    """Edges and random pairs of a graph, compared in every column that is not the same for all.

    Attributes:
        graph: The edges of the graph.
        ends: Edges first, then random pairs ``[2, E + B]``.
        columns: Those that say something.
        levels: Of agreement in them ``[C, E + B]``.
        limits: Agreement above which each level begins ``[C, LEVELS - 2]``.
    """

    def __init__(
        self, graph: Edges, columns: Sequence[NodeColumn], draws: np.random.Generator
    ) -> None:
        self.graph = graph
        random, without = _random_pairs(graph, draws)
        self.ends = np.concatenate([graph.ends, random], 1)
        self._without = np.concatenate([np.full((2, len(graph)), -1), without], 1)
        self.columns: list[NodeColumn] = []
        found, begins = [], []
        for column in columns:
            agreement = column.prepared(graph.degree).agreement(self.ends, graph.degree)
            limits = level_edges(agreement[len(graph) :])
            levels = levels_of(agreement, limits)
            if len(np.unique(levels[levels != BLANK])) > 1:
                self.columns.append(column)
                found.append(levels)
                begins.append(limits)
        self.levels = np.array(found, dtype=np.uint8).reshape(len(found), self.ends.shape[1])
        self.limits = np.array(begins).reshape(len(begins), len(RARITY))

    def walks(self, weight: Array) -> tuple[Array, Array]:
        """Levels of nearness along weighted edges ``[2, E + B]``, and where they begin."""
        near = walk_closeness(self.graph, weight, self.ends, self._without)
        limits = np.stack([level_edges(one[len(self.graph) :]) for one in near])
        return np.stack([levels_of(*pair) for pair in zip(near, limits, strict=True)]), limits


class AgreementSearch:
    """Reasons while they are found, one after the other, and refined together.

    A reason is driven by a column, or by walks alone. Where its column is known and does not agree,
    walks do not count for it: else a household would take in whoever has common neighbours. Where
    the column is blank, walks say who belongs to it. Whether such edges also teach how near walks
    must be, held-out edges decide: they help where a column has many blanks, and harm where there
    are groups of their own as well.

    Attributes:
        probability: Of chance and of each reason ``[E, 1 + R]``.
        used: The features that a reason uses, two kinds of walks last ``[R, C + 2]``.
        driver: The first feature of each reason ``[R]``.
        agreeing: Levels of the driver at which walks count ``[R, LEVELS]``.
        ratio: Log likelihood ratio of each edge to chance ``[E]``.
        mixture: What was learnt.
    """

    def __init__(self, compared: Compared, blanks_teach: bool) -> None:
        self._compared, self._blanks_teach = compared, blanks_teach
        self._edges, self._columns = len(compared.graph), len(compared.levels)
        features = self._columns + 2
        self.probability = np.ones((self._edges, 1))
        self.used = np.zeros((0, features), dtype=bool)
        self.driver = np.zeros(0, dtype=int)
        self.agreeing = np.zeros((0, LEVELS), dtype=bool)
        self.ratio = np.zeros(self._edges)
        self.mixture = Mixture(np.ones(1), np.zeros((0, features, LEVELS)), np.zeros(0))

    def find(self, most: int) -> None:
        """Find up to ``most`` reasons."""
        left = np.ones(self._columns + 2, dtype=bool)
        while len(self.driver) < most:
            by_chance = self.probability[:, 0]
            walks = self._compared.walks(by_chance)[0]
            levels = np.concatenate([self._compared.levels, walks])
            gain, excess = information(levels, self._edges, by_chance)
            gain = np.where(left, gain, -1) / self._edges
            columns = gain[: self._columns]
            by_walks = not (columns >= LEAST_GAIN).any()
            best = int(gain.argmax() if by_walks else columns.argmax())
            if gain[best] < LEAST_GAIN:
                break
            new = by_chance * excess[best][levels[best, : self._edges]]
            left[best] = False
            if new.mean() < LEAST_SHARE:
                continue
            self._add(best, new, excess[best] > 0)
            self._fit(1)
            self._widen()
            self._fit(2)
            left[:] = True
        for _ in range(ROUNDS if len(self.driver) else 0):
            self._widen()
            self._fit(1)
        if len(self.driver):
            self._fit(ROUNDS)

    def _add(self, feature: int, new: Array, agreeing: Array) -> None:
        self.probability = np.column_stack([self.probability, new])
        self.probability[:, 0] -= new
        used = np.arange(self._columns + 2) == feature
        if feature >= self._columns:
            used[self._columns :] = True
        self.used = np.vstack([self.used, used])
        self.driver = np.append(self.driver, feature)
        self.agreeing = np.vstack([self.agreeing, agreeing | (np.arange(LEVELS) == BLANK)])

    def _levels(self, learning: bool) -> Array:
        """Levels in all columns and along each reason's edges ``[R, C + 2, E + B]``."""
        found = []
        for r, weight in enumerate(self.probability.T[1:]):
            walks = self._compared.walks(weight)[0]
            if self.driver[r] < self._columns:
                driver = self._compared.levels[self.driver[r]]
                walks[:, ~self.agreeing[r, driver]] = BLANK
                if learning and not self._blanks_teach:
                    walks[:, driver == BLANK] = BLANK
            found.append(np.concatenate([self._compared.levels, walks]))
        return np.stack(found)

    def _widen(self) -> None:
        """Let reasons use further features in which their edges agree much, too."""
        for r, levels in enumerate(self._levels(learning=True)):
            gain, _ = information(levels, self._edges, self.probability[:, r + 1])
            self.used[r] |= gain > ALONGSIDE * gain[self.used[r]].max()

    def _fit(self, rounds: int) -> None:
        """EM from the present probabilities, walks computed anew in every round."""
        mixture = None
        for _ in range(rounds):
            levels, learning = self._levels(learning=False), self._levels(learning=True)
            if mixture is None:
                mixture = start_mixture(levels, learning, self.probability, self.used)
            for _ in range(STEPS):
                self.probability = mixture.step(levels, learning, self._edges, self.used)
        assert mixture is not None
        levels = self._levels(learning=False)[:, :, : self._edges]
        self.probability, self.ratio = mixture.expect(levels)
        self.mixture = mixture


def _random_pairs(graph: Edges, draws: np.random.Generator) -> tuple[Array, Array]:
    """Pairs of nodes drawn by their degrees, linked or not, and the edges they take the place of.

    Two edges are drawn and an end of each; the other ends are returned, too ``[2, B]``, twice.
    """
    count = int(np.clip(5 * len(graph), *RANDOM))
    ends = np.concatenate([graph.ends, graph.ends[::-1]], 1)
    drawn = draws.integers(0, ends.shape[1], (2, count))
    random, without = ends[0][drawn], ends[1][drawn]
    fit = random[0] != random[1]
    return random[:, fit], without[:, fit]
