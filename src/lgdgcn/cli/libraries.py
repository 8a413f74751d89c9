"""Libraries that take seconds to be imported, for commands that are known to be right by then."""

import sys
from contextlib import suppress
from types import ModuleType

__all__ = ["load_libraries"]

# What PyTorch Geometric imports and no verb uses: PyTorch's compiler and all its data sets.
_UNUSED = ("torch._dynamo", "torch_geometric.datasets")


def load_libraries() -> None:
    """Import PyTorch and PyTorch Geometric without parts that take half of the time.

    Empty modules stand in for these parts; whoever asks for one later gets the real one.
    """
    if "torch_geometric" in sys.modules:
        return
    stand_ins = {name: ModuleType(name) for name in _UNUSED if name not in sys.modules}
    sys.modules |= stand_ins
    try:
        # a version that needs one of them is imported again, with it
        with suppress(ImportError, AttributeError):
            import torch_geometric  # noqa: F401
    finally:
        for name in stand_ins:
            del sys.modules[name]
