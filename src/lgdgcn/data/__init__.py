"""Graphs in: benchmark sets, the paper's synthetic graphs, a user's own files."""

from lgdgcn.data.in_memory import from_networkx, from_pandas
from lgdgcn.data.registry import DatasetInfo, available, get, info, load
from lgdgcn.data.synthetic import synthetic_graph

__all__ = [
    "DatasetInfo",
    "available",
    "from_networkx",
    "from_pandas",
    "get",
    "info",
    "load",
    "synthetic_graph",
]
