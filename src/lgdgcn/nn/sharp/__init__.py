"""Ours, the sharp variant: units are class distributions, edges evidence, labels own factors."""

from lgdgcn.nn.sharp.class_units import class_units, vote
from lgdgcn.nn.sharp.edge_mixture import edge_loss, factor_posterior, factor_weights
from lgdgcn.nn.sharp.label_groups import label_groups, number_of_groups
from lgdgcn.nn.sharp.label_head import LabelHead
from lgdgcn.nn.sharp.past_weights import PastWeights
from lgdgcn.nn.sharp.sharp_conv import SharpConv
from lgdgcn.nn.sharp.structure import PropagationGraph, structured_adjacency
from lgdgcn.nn.sharp.unit_conv import UnitConv

__all__ = [
    "LabelHead",
    "PastWeights",
    "PropagationGraph",
    "SharpConv",
    "UnitConv",
    "class_units",
    "edge_loss",
    "factor_posterior",
    "factor_weights",
    "label_groups",
    "number_of_groups",
    "structured_adjacency",
    "vote",
]
