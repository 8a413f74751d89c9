"""Which kind of link is this edge: a model of edges, and what it is compared with.

A *pair* is an edge counted once. Pairs are in the order of the edges ``(i, j)`` with ``i < j`` of a
canonical graph; P is their number, K the number of types and M that of reasons.
"""

from lgdgcn.reasons.fit import EdgeReasons, fit_edges
from lgdgcn.reasons.number_of_reasons import ModelChoice, choose_model
from lgdgcn.reasons.of_graph import fit_graph

__all__ = ["EdgeReasons", "ModelChoice", "choose_model", "fit_edges", "fit_graph"]
