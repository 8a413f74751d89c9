"""Packed graphs: a folder of arrays that are mapped into memory instead of read.

``graph.lgd/`` holds ``manifest.json`` (:mod:`~lgdgcn.data.packed.manifest`) and one raw
little-endian file per array. N nodes, E edges counted in both directions, F features, L labels, T
edge types:

=====================  =====================================================================
``row_ptr``            int64 ``[N + 1]``: the edges of node i are ``row_ptr[i]:row_ptr[i + 1]``
``column``             int32 (int64 above 2^31 nodes) ``[E]``: their other ends, ascending
``weight``             float32 ``[E]``, if edges have weights
``edge_type``          uint8 0/1 ``[E, T]``, if types of edges are known
``x``                  float32, float16 or float64 ``[N, F]``, if features are dense
``x_row_ptr`` …        ``x_column``, ``x_value``: the same in CSR form, if they are sparse
``y``                  int32 ``[N]``, -1 unknown; or uint8 0/1 ``[N, L]``, rows of 255 unknown
``split``              uint8 ``[N]``: 0 none, 1 train, 2 val, 3 test
``y_factor``           integers ``[N, factors]``: known classes in each factor
``ids.arrow``          the ids as text, unless they are the row numbers
``columns.arrow``      columns of text as they were written: free text, categories, dates
=====================  =====================================================================

Graphs are undirected (every edge is there in both directions), so one CSR serves both.
"""

from lgdgcn.data.packed.manifest import is_packed
from lgdgcn.data.packed.reader import PackedGraph
from lgdgcn.data.packed.writer import PackedWriter

__all__ = ["PackedGraph", "PackedWriter", "is_packed"]
