"""The paper's correlation figure as numbers: do channels of one factor go together?"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lgdgcn.analysis.plots import channel_correlation

__all__ = ["Blocks", "block_correlation", "layer_units"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Blocks:
    """Mean |correlation| of two channels of the same factor, and of different factors."""

    inside: float
    between: float

    @property
    def ratio(self) -> float:
        """How block-wise the pattern is: 1 is not at all."""
        return self.inside / self.between if self.between else float("inf")


def block_correlation(units: Array) -> Blocks:
    """Average the correlations of the channels that vary, each with the others.

    Args:
        units: Units of a layer. Shape ``[N, M, d]``.
    """
    nodes, factors, channels = units.shape
    values = units.reshape(nodes, -1).astype(np.float64)
    alive = np.ptp(values, axis=0) > 0
    correlation = channel_correlation(values)[np.ix_(alive, alive)]
    factor = np.repeat(np.arange(factors), channels)[alive]
    same = factor[:, None] == factor
    other = ~np.eye(len(factor), dtype=bool)
    return Blocks(_mean(correlation[same & other]), _mean(correlation[~same]))


def layer_units(arrays: dict[str, Array] | None, layer: int) -> Array | None:
    """The units of a layer (0 is the last), where they are kept and finite."""
    layers = sorted(int(name[6:]) for name in arrays or () if name.startswith("units_"))
    wanted = layer or (layers[-1] if layers else 0)
    if arrays is None or wanted not in layers:
        return None
    units = arrays[f"units_{wanted}"]
    return units if np.isfinite(units).all() else None


def _mean(values: npt.NDArray[np.float64]) -> float:
    return float(values.mean()) if values.size else 0.0
