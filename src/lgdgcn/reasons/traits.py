"""What nodes have in words: their labels, features and the words of their texts."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch_geometric.data import Data

from lgdgcn.data.labels import is_labelled
from lgdgcn.data.names import is_missing
from lgdgcn.data.spectral import SPECTRAL_NAMES
from lgdgcn.reasons.edges import Array

__all__ = ["NodeTraits", "node_ids", "node_traits", "title_of", "traits_of"]


@dataclass(frozen=True)
class NodeTraits:
    """Which node has which trait.

    Attributes:
        has: A one where a node has a trait; sparse ``[N, T]``.
        kinds: "label", "feature" or "word" for each trait.
        names: Of the traits.
    """

    has: Any
    kinds: list[str]
    names: list[str]


def title_of(kind: str, name: str) -> str:
    """What a reader is given of a trait.

    Example:
        >>> title_of("feature", "city=Oslo"), title_of("word", "loan")
        ('city Oslo', 'word loan')
    """
    return " ".join(name.split("=", 1)) if kind == "feature" else f"{kind} {name}"


def node_ids(data: Data) -> list[str]:
    """The ids of a graph's nodes as they are written, or their numbers."""
    return [str(name) for name in data.get("node_ids", range(data.x.size(0)))]


def traits_of(data: Data) -> NodeTraits:
    """The traits of a canonical graph's nodes.

    Left out are features that only a machine reads: made from the structure, hashed words, and
    those that mark blanks or stand for all rare values.
    """
    names = data.get("feature_names")
    names = list(names) if names is not None else [str(i) for i in range(data.x.size(1))]
    encoding = data.get("encoding")
    columns = () if encoding is None else encoding.columns
    dates = {c.name for c in columns if c.role == "date"}
    unread = {f"{c.name} missing" for c in columns if c.marked}
    unread |= {f"{c.name} other" for c in columns if c.grouped}
    hashed = {name for c in columns if c.role == "words" for name in c.feature_names}
    kept = [i for i, name in enumerate(names) if name not in hashed | unread]
    if names == SPECTRAL_NAMES or data.x.size(1) == data.x.size(0):
        kept = []  # a row of the identity or of the adjacency matrix is the structure again
    x = data.x
    if x.layout == torch.sparse_csr:
        parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
        matrix = scipy.sparse.csr_matrix(parts, shape=tuple(x.shape))
    else:
        matrix = x.numpy()
    y = data.get("y")
    labels = None if y is None or not bool(is_labelled(y).any()) else y.numpy()
    return node_traits(
        data.x.size(0),
        y=labels,
        classes=[str(name) for name in data.get("classes", [])],
        x=matrix[:, kept],
        feature_names=[names[i] for i in kept],
        dates=dates,
        texts=data.get("node_text"),
    )


def node_traits(
    num_nodes: int,
    *,
    y: Any = None,
    classes: Sequence[str] | None = None,
    x: Any = None,
    feature_names: Sequence[str] | None = None,
    dates: Collection[str] = (),
    texts: Mapping[str, Sequence[str]] | None = None,
) -> NodeTraits:
    """Traits from arrays.

    A node has a label that it is given, a sparse feature or one of two values where it is the
    larger, any other feature where it is above the median, and a word that its texts hold.

    Args:
        num_nodes: N.
        y: Labels, -1 for none ``[N]``, or 0/1 for each label ``[N, C]``.
        classes: Names of the C labels.
        x: Features, dense or a scipy matrix ``[N, F]``.
        feature_names: Their names.
        dates: Names of those that are days since 1970.
        texts: Free texts of the nodes by column.

    Example:
        >>> traits = node_traits(2, y=[0, 1], classes=["a", "b"], texts={"t": ["x ray", "ray"]})
        >>> traits.names
        ['a', 'b', 'ray']
    """
    blocks: list[tuple[Any, str, Sequence[str]]] = []
    if y is not None:
        labels = np.asarray(y)
        if labels.ndim == 1:
            labels = labels[:, None] == np.arange(int(labels.max(initial=-1)) + 1)
        blocks.append((labels == 1, "label", classes or [str(i) for i in range(labels.shape[1])]))
    if x is not None and x.shape[1]:
        names = feature_names or [str(i) for i in range(x.shape[1])]
        blocks.append(_features(x, names, dates))
    if texts:
        blocks.append(_words(texts, num_nodes))
    matrices = [scipy.sparse.csc_matrix(has, dtype=np.float64) for has, _, _ in blocks]
    empty = scipy.sparse.csc_matrix((num_nodes, 0))
    return NodeTraits(
        scipy.sparse.hstack([empty, *matrices], format="csc"),
        [kind for has, kind, _ in blocks for _ in range(has.shape[1])],
        [str(name) for has, _, names in blocks for name in names[: has.shape[1]]],
    )


def _features(
    x: Any, names: Sequence[str], dates: Collection[str]
) -> tuple[Any, str, Sequence[str]]:
    if scipy.sparse.issparse(x):
        return x > 0, "feature", names
    x = np.asarray(x)
    low, high = x.min(0), x.max(0)
    two = ((x == low) | (x == high)).all(0) & (low < high)
    middle = np.median(x, axis=0)
    shown = [
        f"{name} after {_day(value)}"
        if name in dates
        else (name if is_two or value == 0 else f"{name} above {value:.4g}")
        for name, is_two, value in zip(names, two, middle, strict=True)
    ]
    return np.where(two, x == high, x > middle), "feature", shown


def _day(days: float) -> str:
    """The date of a number of days since 1970."""
    return str(np.datetime64(0, "D") + np.timedelta64(math.floor(days), "D"))


def _words(texts: Mapping[str, Sequence[str]], num_nodes: int) -> tuple[Any, str, Sequence[str]]:
    from sklearn.feature_extraction.text import CountVectorizer

    joined = [
        " ".join(text for text in row if not is_missing(text))
        for row in zip(*texts.values(), strict=True)
    ]
    counter = CountVectorizer(binary=True, stop_words="english")
    try:
        has = counter.fit_transform(joined)
    except ValueError:  # no text has a word
        return np.zeros((num_nodes, 0)), "word", []
    names: Array = counter.get_feature_names_out()
    often = np.flatnonzero(np.asarray(has.sum(0)).ravel() > 1)  # a word of one node says nothing
    return has[:, often], "word", names[often].tolist()
