"""Disentanglement in numbers, for units and edge factors of any origin."""

from lgdgcn.metrics.attribution import edge_attribution, factor_usage, routing_entropy
from lgdgcn.metrics.catalogue import MEASURES
from lgdgcn.metrics.correlation import block_correlation
from lgdgcn.metrics.suite import disentanglement, headline

__all__ = [
    "MEASURES",
    "block_correlation",
    "disentanglement",
    "edge_attribution",
    "factor_usage",
    "headline",
    "routing_entropy",
]
