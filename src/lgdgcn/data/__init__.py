"""Graphs in: benchmark sets, the paper's synthetic graphs, a user's own files."""

from typing import TYPE_CHECKING, Any

from lgdgcn.data.catalogue import DatasetInfo, available, info

if TYPE_CHECKING:
    from lgdgcn.data.in_memory import from_networkx, from_pandas, one_split
    from lgdgcn.data.registry import get, load
    from lgdgcn.data.synthetic import synthetic_graph

__all__ = [
    "DatasetInfo",
    "available",
    "from_networkx",
    "from_pandas",
    "get",
    "info",
    "load",
    "one_split",
    "synthetic_graph",
]

_HOMES = dict.fromkeys(("from_networkx", "from_pandas", "one_split"), "in_memory")
_HOMES |= {"get": "registry", "load": "registry", "synthetic_graph": "synthetic"}


def __getattr__(name: str) -> Any:
    """Import what reads graphs on first use: to list them takes no torch."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'lgdgcn.data' has no attribute {name!r}")
    return getattr(import_module(f"lgdgcn.data.{_HOMES[name]}"), name)
