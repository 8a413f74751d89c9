"""Disentangled node representations on graphs (LGD-GCN)."""

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lgdgcn import metrics
    from lgdgcn.estimator import LGDClassifier
    from lgdgcn.models import LGDGCN
    from lgdgcn.nn import LGDConv

__all__ = ["LGDGCN", "LGDClassifier", "LGDConv", "__version__", "metrics"]
__version__ = "0.1.0"

# Threads that wait shall sleep, not spin: where other programs share the cores, torch's parallel
# regions otherwise take up to ten times as long. Read when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

_HOMES = {"LGDClassifier": "estimator", "LGDGCN": "models", "LGDConv": "nn"}


def __dir__() -> list[str]:
    """The public names and no others."""
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Import the public names on first use, so that the command line starts at once."""
    from importlib import import_module

    if name == "metrics":
        return import_module("lgdgcn.metrics")
    if name not in _HOMES:
        raise AttributeError(f"module 'lgdgcn' has no attribute {name!r}")
    return getattr(import_module(f"lgdgcn.{_HOMES[name]}"), name)
