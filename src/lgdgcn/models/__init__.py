"""All models by name."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lgdgcn.errors import InputError
from lgdgcn.models.along_reasons import AlongReasons
from lgdgcn.models.base import NodeModel, NodeOutput
from lgdgcn.models.baselines import GAT, GCN, GCNII, MLP, APPNPNet, MoNet
from lgdgcn.models.grand import GRAND
from lgdgcn.models.lgd_gcn import LGDGCN
from lgdgcn.models.ours import ClassUnitGCN

__all__ = [
    "GRAND",
    "LGDGCN",
    "MODELS",
    "AlongReasons",
    "ClassUnitGCN",
    "ModelSpec",
    "NodeModel",
    "NodeOutput",
    "build",
    "settings_of",
]


@dataclass(frozen=True)
class ModelSpec:
    """A class and the arguments that make it this model.

    Attributes:
        title: How tables name it.
        cls: The class.
        fixed: Arguments that are not settings of this model.
        variants: Classes for some values of the setting ``variant``; others are an argument.
    """

    title: str
    cls: type[NodeModel]
    fixed: dict[str, Any] = field(default_factory=dict)
    variants: dict[str, type[NodeModel]] = field(default_factory=dict)


MODELS = {
    "lgdgcn": ModelSpec("LGD-GCN", LGDGCN, variants={"ours": ClassUnitGCN}),
    "disengcn": ModelSpec(
        "DisenGCN",
        LGDGCN,
        {"space": False, "diversity": False, "latent_graph": False},
        variants={"ours": ClassUnitGCN},
    ),
    "gcn": ModelSpec("GCN", GCN),
    "gat": ModelSpec("GAT", GAT),
    "monet": ModelSpec("MoNet", MoNet),
    "appnp": ModelSpec("APPNP", APPNPNet),
    "gcnii": ModelSpec("GCNII", GCNII),
    "grand": ModelSpec("GRAND", GRAND),
    "mlp": ModelSpec("MLP", MLP),
    "reasons": ModelSpec("Along reasons", AlongReasons),
}


def build(
    name: str,
    settings: Mapping[str, Any],
    in_channels: int,
    out_channels: int,
    *,
    multi_label: bool = True,
) -> NodeModel:
    """Make a model, handing it those of the settings that its constructor names.

    Args:
        name: A key of :data:`MODELS`.
        settings: Settings by name; those the model does not know are left out.
        in_channels: Number of features.
        out_channels: Number of classes or labels.
        multi_label: Whether a node has a set of labels, for models that ask for it.
    """
    if name not in MODELS:
        raise InputError(f"model is {name!r}; choose from {', '.join(MODELS)}")
    spec = MODELS[name]
    cls, options = spec.cls, {**settings, "multi_label": multi_label}
    if options.get("variant") in spec.variants:
        cls = spec.variants[options.pop("variant")]
    if isinstance(options.get("factors"), str):  # training finds it before it makes models
        raise InputError(f"factors is {options['factors']!r}; a model needs their number")
    known = _parameters(cls)
    arguments = {key: value for key, value in options.items() if key in known} | spec.fixed
    return cls(in_channels=in_channels, out_channels=out_channels, **arguments)


def settings_of(name: str) -> set[str]:
    """Return the names that the constructor of a model, or of one of its variants, knows."""
    spec = MODELS[name]
    classes = (spec.cls, *spec.variants.values())
    return {key for cls in classes for key in _parameters(cls)} - spec.fixed.keys()


def _parameters(cls: type[NodeModel]) -> set[str]:
    """Return the arguments of a class, including those it hands on to its bases."""
    bases = [base for base in cls.__mro__ if issubclass(base, NodeModel)]
    return {key for base in bases for key in inspect.signature(base.__init__).parameters}
