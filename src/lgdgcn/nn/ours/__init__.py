"""Ours, our variant: units are class distributions, edges evidence, labels own factors."""

from lgdgcn.nn.ours.class_unit_conv import ClassUnitConv
from lgdgcn.nn.ours.class_units import class_units, vote
from lgdgcn.nn.ours.edge_mixture import edge_loss, factor_posterior, factor_weights
from lgdgcn.nn.ours.label_groups import label_groups, number_of_groups
from lgdgcn.nn.ours.label_head import LabelHead
from lgdgcn.nn.ours.past_weights import PastWeights
from lgdgcn.nn.ours.structure import PropagationGraph, structured_adjacency
from lgdgcn.nn.ours.unit_conv import UnitConv

__all__ = [
    "ClassUnitConv",
    "LabelHead",
    "PastWeights",
    "PropagationGraph",
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
