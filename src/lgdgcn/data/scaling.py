"""How features are scaled before a model sees them: decided from the data, kept with the model."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lgdgcn.data.features import csr_tensor, row_normalized
from lgdgcn.errors import InputError

__all__ = ["Scaling", "fit_scaling", "suited_scaling"]

SPARSE = 0.2  # share of entries that are not 0, below which a matrix counts words or the like


@dataclass(frozen=True)
class Scaling:
    """A way to scale features.

    Attributes:
        kind: ``"rows"``: every node's features are divided by their sum; ``"standard"``: from
            every column its mean is taken and the rest is divided by its deviation, both those of
            the training nodes (sparse columns are only divided: they stay sparse); ``"none"``.
        mean: One for each column, if the kind is ``"standard"``.
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
        deviation = torch.tensor(self.deviation, dtype=torch.float64)
        if x.layout == torch.sparse_csr:
            values = (x.values().double() / deviation[x.col_indices()]).to(x.dtype)
            return csr_tensor(x.crow_indices(), x.col_indices(), values, (x.size(0), x.size(1)))
        mean = torch.tensor(self.mean, dtype=torch.float64)
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
    nothing need be scaled, and other numbers only compare within their column.

    Example:
        >>> suited_scaling(torch.tensor([[1.0, 170.0], [0.0, 182.0]]))
        'standard'
    """
    values = x.values() if x.layout == torch.sparse_csr else x
    if bool((values < 0).any()):
        return "standard"
    if int((values != 0).sum()) < SPARSE * x.size(0) * x.size(1):
        return "rows"
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
    deviation = torch.where(deviation > 0, deviation, 1.0)
    if not bool(deviation.isfinite().all()):
        raise InputError("the features are too large to be standardised; use scaling = none")
    return Scaling(kind, tuple(mean.tolist()), tuple(deviation.tolist()))


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
        square = zeros.index_add(0, column, values**2) / count
        deviation = (square - mean**2).clamp(min=0).sqrt()
    else:
        some = x[mask].double()
        mean, deviation = some.mean(0), some.std(0, correction=0)
    return mean, torch.where(deviation > 1e-7 * mean.abs(), deviation, 0.0)
