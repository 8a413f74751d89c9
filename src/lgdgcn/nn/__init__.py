"""The paper's mathematics, one section per file; ``ours/`` is ours."""

from lgdgcn.nn.consistency import consistency_loss
from lgdgcn.nn.dropout import RandomStreams, dropout, dropout_everywhere
from lgdgcn.nn.encoder import PropagationEncoder
from lgdgcn.nn.latent_graph import LatentGraph, cknn_graph, knn_graph, latent_graph
from lgdgcn.nn.latent_space import LatentSpace, diversity, diversity_loss, space_loss
from lgdgcn.nn.lgd_conv import Disentangled, LGDConv, Moment
from lgdgcn.nn.ours import (
    ClassUnitConv,
    LabelHead,
    PropagationGraph,
    UnitConv,
    class_units,
    edge_loss,
    factor_posterior,
    factor_weights,
    label_groups,
    number_of_groups,
    vote,
)
from lgdgcn.nn.projection import FactorProjection
from lgdgcn.nn.propagation import normalized_adjacency, propagate
from lgdgcn.nn.routing import route
from lgdgcn.nn.variant import VARIANTS, Variant

__all__ = [
    "VARIANTS",
    "ClassUnitConv",
    "Disentangled",
    "FactorProjection",
    "LGDConv",
    "LabelHead",
    "LatentGraph",
    "LatentSpace",
    "Moment",
    "PropagationEncoder",
    "PropagationGraph",
    "RandomStreams",
    "UnitConv",
    "Variant",
    "cknn_graph",
    "class_units",
    "consistency_loss",
    "diversity",
    "diversity_loss",
    "dropout",
    "dropout_everywhere",
    "edge_loss",
    "factor_posterior",
    "factor_weights",
    "knn_graph",
    "label_groups",
    "latent_graph",
    "normalized_adjacency",
    "number_of_groups",
    "propagate",
    "route",
    "space_loss",
    "vote",
]
