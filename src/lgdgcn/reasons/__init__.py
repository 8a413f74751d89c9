"""Why each edge of a graph is there: one model, one container, one explanation.

Rows are undirected edges, see :class:`Edges`: E is their number, K that of reasons or types.
"""

from lgdgcn.reasons.edge_reasons import EdgeReasons
from lgdgcn.reasons.edges import Edges
from lgdgcn.reasons.explanation import Explanation
from lgdgcn.reasons.fit import fit_edges
from lgdgcn.reasons.model import EdgeReasonModel
from lgdgcn.reasons.number_of_reasons import ModelChoice, choose_model
from lgdgcn.reasons.of_graph import fit_graph

__all__ = [
    "EdgeReasonModel",
    "EdgeReasons",
    "Edges",
    "Explanation",
    "ModelChoice",
    "choose_model",
    "fit_edges",
    "fit_graph",
]
