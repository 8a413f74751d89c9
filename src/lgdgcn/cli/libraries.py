"""Libraries that take seconds to be imported, for commands that are known to be right by then."""

import sys
from contextlib import suppress
from types import ModuleType

__all__ = ["load_libraries"]

_COMPILER = "torch._dynamo"


def load_libraries() -> None:
    """Import PyTorch and PyTorch Geometric without PyTorch's compiler, which no verb uses.

    PyTorch Geometric imports the compiler to look at compiled models, a second's work. An empty
    module stands in for it meanwhile; whoever asks for the compiler later gets the real one.
    """
    stand_in = ModuleType(_COMPILER)
    if "torch_geometric" in sys.modules or sys.modules.setdefault(_COMPILER, stand_in) != stand_in:
        return
    try:
        # a version that needs the compiler is imported again, with it
        with suppress(ImportError, AttributeError):
            import torch_geometric  # noqa: F401
    finally:
        del sys.modules[_COMPILER]
