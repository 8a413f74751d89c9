"""Which of the units that a cell keeps are looked at."""

import numpy as np

from lgdgcn.metrics.arrays import Array

__all__ = ["layer_units"]


def layer_units(arrays: dict[str, Array] | None, layer: int) -> Array | None:
    """The units of a layer (0 is the last), where they are kept and finite."""
    layers = sorted(int(name[6:]) for name in arrays or () if name.startswith("units_"))
    wanted = layer or (layers[-1] if layers else 0)
    if arrays is None or wanted not in layers:
        return None
    units = arrays[f"units_{wanted}"]
    return units if np.isfinite(units).all() else None
