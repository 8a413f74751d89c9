"""``lgdgcn data pack``: tables of any size become a packed graph, in bounded memory.

DuckDB reads the tables, joins ids to numbers and sorts the edges, and spills to the disk what does
not fit. Every cell is read as text first, so that no id or label is changed, and what a cell means
is decided by the same functions that read a small folder (:mod:`lgdgcn.data.user_graph`): both ways
give the same graph.
"""

from lgdgcn.data.packing.pack import pack

__all__ = ["pack"]
