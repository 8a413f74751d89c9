"""How channels go together: a heat map, and its means by factor."""

from typing import Any

import numpy as np
import numpy.typing as npt

from lgdgcn.analysis.explorer.encoded import encoded
from lgdgcn.metrics.correlation import channel_correlation, factor_correlation

__all__ = ["correlations"]

MOST_LINES = 256  # of the heat map


def correlations(units: npt.NDArray[Any]) -> dict[str, Any]:
    """|Correlation| of all channels in bytes; where there are many, means of equal blocks.

    Args:
        units: Units. Shape ``[N, M, d]``.

    Returns:
        ``correlation``, the channels behind each of its lines as ``correlationStep``, and
        ``correlationMeans`` by factor, without constant channels and a channel with itself.
    """
    nodes, factors, channels = units.shape
    values = channel_correlation(units.reshape(nodes, -1).astype(np.float64))
    steps = [step for step in range(1, channels + 1) if channels % step == 0]
    wide = factors * channels
    step = next((step for step in steps if wide // step <= MOST_LINES), channels)
    side = wide // step
    blocks = values.reshape(side, step, side, step).mean((1, 3))
    return {
        "correlation": encoded(255 * blocks.clip(0, 1), "u8"),
        "correlationStep": step,
        "correlationMeans": encoded(factor_correlation(units), "f32"),
    }
