"""How features are scaled before a model sees them: decided from the data, kept with the model."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from lgdgcn.data.features import csr_tensor, row_normalized, select_columns, sparse_features
from lgdgcn.errors import InputError

__all__ = ["Scaling", "fit_scaling", "suited_scaling"]

SPARSE = 0.2  # share of entries that are not 0, below which a matrix counts words or the like
FILLED = 0.5  # share of a column's entries that are not 0, above which it does not count words
ROUNDING = 1e-7  # of float32, in proportion to a number


@dataclass(frozen=True)
class Scaling:
    """A way to scale features.

    Attributes:
        kind: ``"rows"``: every node's features are divided by their sum; ``"standard"``: from
            every column its mean is taken and the rest is divided by its deviation, both those of
            the training nodes; ``"none"``.
        mean: One for each column, if the kind is ``"standard"``; 0 for columns that are mostly 0
            in a sparse matrix, which are only divided, and so stay sparse.
        deviation: The same.
    """

    kind: str
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()

    def __call__(self, x: Tensor) -> Tensor:
        """Scale features ``[N, F]``, dense or sparse."""
        if self.kind == "rows":
            return row_normalized(x)
        if self.kind == "none":
            return x
        mean = torch.tensor(self.mean, dtype=torch.float64)
        deviation = torch.tensor(self.deviation, dtype=torch.float64)
        if x.layout == torch.sparse_csr:
            return _standardised(x, mean, deviation)
        return ((x.double() - mean) / deviation).to(x.dtype)

    def __str__(self) -> str:
        what = {
            "rows": "mostly 0 and none negative: every node's are divided by their sum",
            "standard": "numbers of any size: standardised by the training nodes",
            "none": "0 and 1: taken as they are",
        }
        return f"features are {what[self.kind]} (scaling = {self.kind})"

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a file."""
        return {"kind": self.kind, "mean": [*self.mean], "deviation": [*self.deviation]}

    @classmethod
    def from_dict(cls, saved: Any, columns: int) -> "Scaling":
        """The inverse of :meth:`as_dict`; what cannot be right raises ``ValueError``."""
        kind, mean, deviation = saved["kind"], saved["mean"], saved["deviation"]
        wanted = columns if kind == "standard" else 0
        numbers = [*mean, *deviation]
        if kind not in ("rows", "standard", "none") or not len(mean) == len(deviation) == wanted:
            raise ValueError("scaling cannot be right")
        if any(type(number) is not float for number in numbers) or not all(
            d > 0 for d in deviation
        ):
            raise ValueError("numbers of scaling cannot be right")
        return cls(kind, (*mean,), (*deviation,))


def suited_scaling(x: Tensor) -> str:
    """Which kind suits features ``[N, F]``, dense or sparse.

    Counts, of words for example, are mostly 0: of them the shares in a row tell most. Of 0 and 1
    nothing need be scaled, and other numbers only compare within their column: one column of
    these among counts, such as a price beside many categories, would be most of every row's sum.

    Example:
        >>> suited_scaling(torch.tensor([[1.0, 170.0], [0.0, 182.0]]))
        'standard'
    """
    values = x.values() if x.layout == torch.sparse_csr else x
    if bool((values < 0).any()):
        return "standard"
    if int((values != 0).sum()) < SPARSE * x.size(0) * x.size(1):
        return "standard" if _is_mostly_measures(x) else "rows"
    return "none" if bool(((values == 0) | (values == 1)).all()) else "standard"


def fit_scaling(kind: str, x: Tensor, train_mask: Tensor) -> Scaling:
    """Learn how to scale.

    Args:
        kind: ``"rows"``, ``"standard"``, ``"none"``, or ``"auto"`` for :func:`suited_scaling`.
        x: Features, dense or sparse. Shape ``[N, F]``.
        train_mask: Whose mean and deviation count; all nodes' if it is empty. Shape ``[N]``.
    """
    kind = suited_scaling(x) if kind == "auto" else kind
    if kind != "standard":
        return Scaling(kind)
    everywhere = torch.ones(x.size(0), dtype=torch.bool)
    mean, deviation = _moments(x, train_mask if bool(train_mask.any()) else everywhere)
    # a column may be the same for the few training nodes and yet tell others apart
    deviation = torch.where(deviation > 0, deviation, _moments(x, everywhere)[1])
    deviation = torch.where(deviation > 0, deviation, (ROUNDING * mean.abs()).clamp(min=1))
    if not bool(deviation.isfinite().all()):
        raise InputError("the features are too large to be standardised; use scaling = none")
    if x.layout == torch.sparse_csr:
        mean = torch.where(_filled(x), mean, 0.0)
    return Scaling(kind, tuple(mean.tolist()), tuple(deviation.tolist()))


def _standardised(x: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    """Standardise a sparse matrix, which stays sparse in columns of mean 0."""
    values = (x.values().double() / deviation[x.col_indices()]).to(x.dtype)
    scaled = csr_tensor(x.crow_indices(), x.col_indices(), values, (x.size(0), x.size(1)))
    centred = mean.nonzero().flatten().tolist()
    if not centred:
        return scaled
    block = select_columns(x, centred).to_dense().double()
    block = ((block - mean[centred]) / deviation[centred]).to(x.dtype)
    others = (mean == 0).nonzero().flatten().tolist()
    parts = [select_columns(scaled, others), block.to_sparse_csr()]
    matrices = [
        scipy.sparse.csr_matrix(
            (part.values().numpy(), part.col_indices().numpy(), part.crow_indices().numpy()),
            shape=part.shape,
        )
        for part in parts
    ]
    order = np.argsort(np.array([*others, *centred]))
    return sparse_features(scipy.sparse.hstack(matrices, format="csr")[:, order])


def _filled(x: Tensor) -> Tensor:
    """Which columns of features ``[N, F]`` are mostly not 0."""
    if x.layout == torch.sparse_csr:
        count = torch.bincount(x.col_indices()[x.values() != 0], minlength=x.size(1))
    else:
        count = (x != 0).sum(0)
    return count > FILLED * x.size(0)


def _is_mostly_measures(x: Tensor) -> bool:
    """Whether columns that are mostly neither 0 nor 1 are over half of the sum of all."""
    if x.layout == torch.sparse_csr:
        zeros = torch.zeros(x.size(1), dtype=torch.float64)
        total = zeros.index_add(0, x.col_indices(), x.values().double())
        others = (x.values() != 0) & (x.values() != 1)
        count = torch.bincount(x.col_indices()[others], minlength=x.size(1))
    else:
        total, count = x.double().sum(0), ((x != 0) & (x != 1)).sum(0)
    measures = count > FILLED * x.size(0)
    return bool(total[measures].sum() > 0.5 * total.sum())


def _moments(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and deviation of every column over some nodes, in float64; rounding counts as 0."""
    mask = mask.cpu()
    if x.layout == torch.sparse_csr:
        kept = torch.repeat_interleave(x.crow_indices().diff())
        chosen = mask[kept]
        column, values = x.col_indices()[chosen], x.values()[chosen].double()
        count = int(mask.sum())
        zeros = torch.zeros(x.size(1), dtype=torch.float64)
        mean = zeros.index_add(0, column, values) / count
        square = zeros.index_add(0, column, (values - mean[column]) ** 2)
        square += (count - torch.bincount(column, minlength=x.size(1))) * mean**2  # of the zeros
        deviation = (square / count).sqrt()
    else:
        some = x[mask].double()
        mean, deviation = some.mean(0), some.std(0, correction=0)
    return mean, torch.where(deviation > ROUNDING * mean.abs(), deviation, 0.0)
