"""Why each edge of a graph is there: one model, one container, one explanation.

Rows are undirected edges, see :class:`Edges`: E is their number, K that of reasons or types.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_HOMES = {
    "EdgeReasonModel": "model",
    "EdgeReasons": "edge_reasons",
    "Edges": "edges",
    "Explanation": "explanation",
    "ModelChoice": "number_of_reasons",
    "choose_model": "number_of_reasons",
    "fit_edges": "fit",
    "fit_graph": "of_graph",
}


def __getattr__(name: str) -> Any:
    """Import on first use: to learn types takes none of what opens runs and explains them."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'lgdgcn.reasons' has no attribute {name!r}")
    return getattr(import_module(f"lgdgcn.reasons.{_HOMES[name]}"), name)
