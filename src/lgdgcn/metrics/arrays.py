"""What the measures share: their array type, and channels without what is only rounding."""

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "centred"]

Array = npt.NDArray[Any]

DEAD = 1e-9  # spread of a channel, as a share of its largest value, that is rounding


def centred(values: Array) -> Array:
    """Channels ``[N, *]`` less their means over the nodes; exactly 0 where they do not vary.

    Example:
        >>> centred(np.array([[0.1, 1.0], [0.1, 3.0]])).tolist()
        [[0.0, -1.0], [0.0, 1.0]]
    """
    alive = values.std(0) > DEAD * np.abs(values).max(0)
    found: Array = np.where(alive, values - values.mean(0), 0)
    return found
