"""How much two nodes agree in each column of their table, and how rare that is by chance.

An agreement is a number that is larger where two nodes have more in common: a value they share
counts by how rare it is, numbers and dates by how near their ranks are, texts by the rare words
that both have. Chance alone says what it means: its *level* says how few of the pairs drawn
at random, nodes by their degrees, agree as much.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
import torch
from scipy.special import ndtri
from torch_geometric.data import Data

from lgdgcn.data.names import is_missing
from lgdgcn.data.spectral import SPECTRAL_NAMES
from lgdgcn.reasons.edges import Array

__all__ = [
    "BLANK",
    "LEVELS",
    "RARITY",
    "NodeColumn",
    "level_edges",
    "levels_of",
    "node_columns",
]

# Share of random pairs that agree at least as much: the edges of the levels.
RARITY = (0.9, 0.6, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
BLANK = len(RARITY) + 1  # the level of a pair of which one end says nothing
LEVELS = BLANK + 1
FEW_NUMBERS = 16  # columns of features without a table that are compared one by one


@dataclass(frozen=True)
class NodeColumn:
    """One column of the nodes, ready to be compared.

    Attributes:
        name: Of the column.
        kind: "category", "number", "date", "words" or "vector".
        values: Codes, -1 for a blank ``[N]``; numbers, NaN for a blank ``[N]``; or rows that are
            compared by their cosine, sparse or dense ``[N, F]``.
    """

    name: str
    kind: str
    values: Any

    def prepared(self, degree: Array) -> "NodeColumn":
        """The same with values replaced by what is compared: rarity of a value, rank, unit rows.

        Args:
            degree: Weight of each node in the distribution that rarity and ranks refer to ``[N]``.
        """
        if self.kind in ("number", "date"):
            return NodeColumn(self.name, self.kind, _ranks(np.asarray(self.values), degree))
        if self.kind == "numbers":
            ranks = np.stack([_ranks(column, degree) for column in self.values.T], 1)
            return NodeColumn(self.name, self.kind, ndtri(ranks))
        if self.kind == "category":
            return self
        rows = scipy.sparse.csr_matrix(self.values, dtype=float)
        if self.kind == "words":
            share = (degree @ (rows > 0) + 1) / (degree.sum() + 2)
            rows = (rows > 0) @ scipy.sparse.diags(-np.log(share))
        length = np.sqrt(np.asarray(rows.multiply(rows).sum(1)).ravel())
        unit = scipy.sparse.diags(1 / np.maximum(length, 1e-12)) @ rows
        return NodeColumn(self.name, self.kind, unit.tocsr())

    def agreement(self, ends: Array, degree: Array) -> Array:
        """How much the ends of pairs agree in a prepared column, NaN where one is blank ``[P]``."""
        first, second = ends
        if self.kind in ("number", "date"):
            result: Array = -np.abs(self.values[first] - self.values[second])
            return result
        if self.kind == "numbers":
            apart = (self.values[first] - self.values[second]) ** 2
            known = ~np.isnan(apart)
            enough = known.sum(1) >= max(2, apart.shape[1] / 2)
            mean = np.where(known, apart, 0).sum(1) / np.maximum(known.sum(1), 1)
            return np.where(enough, -mean, np.nan)
        if self.kind == "category":
            codes = self.values
            weight = np.bincount(codes + 1, degree, minlength=codes.max(initial=0) + 2)[1:]
            rare = -np.log(np.maximum(weight, 1e-12) / max(weight.sum(), 1e-12))
            same = np.where(codes[first] == codes[second], rare[codes[first].clip(0)] + 1, 0.0)
            return np.where((codes[first] < 0) | (codes[second] < 0), np.nan, same)
        blank = np.diff(self.values.indptr) == 0
        cosine = np.empty(len(first))
        for rows in np.array_split(np.arange(len(first)), max(1, len(first) // 50_000)):
            both = self.values[first[rows]].multiply(self.values[second[rows]])
            cosine[rows] = np.asarray(both.sum(1)).ravel()
        cosine[blank[first] | blank[second]] = np.nan
        return cosine


def level_edges(chance: Array) -> Array:
    """The agreement above which each level begins, from that of random pairs ``[LEVELS - 2]``."""
    known = np.sort(chance[~np.isnan(chance)])
    if not len(known):
        return np.full(len(RARITY), np.inf)
    values, first = np.unique(known, return_index=True)
    tail = 1 - first / len(known)  # share of random pairs that agree at least as much
    last = np.searchsorted(-tail, -np.array(RARITY), side="left") - 1  # tail is still larger
    return np.where(last < 0, -np.inf, values[np.maximum(last, 0)])


def levels_of(agreement: Array, edges: Array) -> Array:
    """Level of each agreement: how many of the edges of levels it is above ``[P]``."""
    level = np.searchsorted(edges, agreement, side="left")
    return np.where(np.isnan(agreement), BLANK, level).astype(np.uint8)


def node_columns(data: Data, labels: Array | None = None) -> list[NodeColumn]:
    """The columns of a canonical graph's nodes that may say why nodes are linked.

    Args:
        data: A graph from :func:`~lgdgcn.data.validate.canonical`.
        labels: Labels that may be seen, -1 for all others ``[N]``: one more column.
    """
    found = _table_columns(data) if data.get("encoding") is not None else _feature_columns(data)
    for name, cells in (data.get("node_text") or {}).items():
        words = _words(cells)
        found += [] if words is None else [NodeColumn(name, "words", words)]
    found += _together(found)
    if labels is not None:
        found.append(NodeColumn("label", "category", np.asarray(labels)))
    return found


def _together(columns: list[NodeColumn]) -> list[NodeColumn]:
    """Numbers that may only say something together, as the entries of a vector do."""
    numbers = [column for column in columns if column.kind == "number"]
    stems: dict[str, list[NodeColumn]] = {"numbers": numbers}
    for column in numbers:
        stems.setdefault(column.name.rstrip("0123456789").rstrip("_- ."), []).append(column)
    groups = {stem: group for stem, group in stems.items() if len(group) >= 3}
    if len(groups) == 2 and len({len(group) for group in groups.values()}) == 1:
        del groups["numbers"]
    return [
        NodeColumn(stem, "numbers", np.stack([column.values for column in group], 1))
        for stem, group in groups.items()
    ]


def _table_columns(data: Data) -> list[NodeColumn]:
    """Columns of a table, put together again from their features."""
    x, found, start = _matrix(data.x), [], 0
    codes = data.get("node_codes") or {}
    for column in data.encoding.columns:
        width = len(column.feature_names)
        block = x[:, start : start + width]
        start += width
        if column.role == "words":
            found.append(NodeColumn(column.name, "words", scipy.sparse.csr_matrix(block)))
            continue
        block = block.toarray() if scipy.sparse.issparse(block) else np.asarray(block)
        blank = block[:, -1] > 0 if column.marked else np.zeros(len(block), dtype=bool)
        if column.name in codes:
            values = np.asarray(codes[column.name])
        elif column.role == "category":
            known = block[:, : len(column.values)]
            values = np.where(known.any(1), known.argmax(1), -1)
        else:
            values = np.where(blank, np.nan, block[:, 0].astype(float))
        if column.role == "boolean":
            values = np.where(blank, -1, block[:, 0] > 0).astype(int)
        kind = "category" if column.role in ("category", "boolean") else column.role
        found.append(NodeColumn(column.name, kind, values))
    return found


def _feature_columns(data: Data) -> list[NodeColumn]:
    """Features that come from no table: all together, and one by one if they are few."""
    names = data.get("feature_names")
    x = _matrix(data.x)
    if names == SPECTRAL_NAMES or x.shape[0] == x.shape[1] or not x.shape[1]:
        return []  # the structure again
    if scipy.sparse.issparse(x) or ((x >= 0).all() and (x == 0).mean() > 0.5):
        return [NodeColumn("features", "words" if _is_binary(x) else "vector", x)]
    spread = np.maximum(x.std(0), 1e-12)
    found = [NodeColumn("features", "vector", (x - x.mean(0)) / spread)]
    if x.shape[1] <= FEW_NUMBERS:
        names = names or [f"feature {i}" for i in range(x.shape[1])]
        found += [NodeColumn(n, "number", x[:, i]) for i, n in enumerate(names)]
    return found


def _is_binary(x: Any) -> bool:
    values = x.data if scipy.sparse.issparse(x) else x
    return bool(np.isin(values, (0, 1)).all())


def _matrix(x: torch.Tensor) -> Any:
    if x.layout != torch.sparse_csr:
        return x.numpy().astype(float)
    parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    return scipy.sparse.csr_matrix(parts, tuple(x.shape)).astype(float)


def _words(cells: Sequence[str]) -> Any:
    """Which words each text has; None if no word comes twice."""
    from sklearn.feature_extraction.text import CountVectorizer

    texts = ["" if is_missing(cell) else cell for cell in cells]
    try:
        return CountVectorizer(binary=True, min_df=2).fit_transform(texts)
    except ValueError:
        return None


def _ranks(values: Array, degree: Array) -> Array:
    """Middle rank of each value, 0 to 1, among the nodes weighted by degree; NaN stays ``[N]``."""
    ranks, known = np.full(len(values), np.nan), ~np.isnan(values)
    if known.any():
        _, place = np.unique(values[known], return_inverse=True)
        weight = np.bincount(place, np.maximum(degree[known], 1e-9))
        upper = weight.cumsum() / weight.sum()
        ranks[known] = (upper - weight / weight.sum() / 2)[place]
    return ranks
