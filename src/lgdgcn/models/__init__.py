"""All models by name."""

import inspect
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from lgdgcn.errors import InputError
from lgdgcn.models.baselines import GAT, GCN, GCNII, MLP, APPNPNet, MoNet
from lgdgcn.models.lgd_gcn import LGDGCN, LGDOutput

__all__ = ["LGDGCN", "MODELS", "LGDOutput", "ModelSpec", "build"]


@dataclass(frozen=True)
class ModelSpec:
    """A class and the arguments that make it this model."""

    title: str
    cls: type[nn.Module]
    fixed: dict[str, Any] = field(default_factory=dict)


MODELS = {
    "lgdgcn": ModelSpec("LGD-GCN", LGDGCN),
    "disengcn": ModelSpec(
        "DisenGCN", LGDGCN, {"space": False, "diversity": False, "latent_graph": False}
    ),
    "gcn": ModelSpec("GCN", GCN),
    "gat": ModelSpec("GAT", GAT),
    "monet": ModelSpec("MoNet", MoNet),
    "appnp": ModelSpec("APPNP", APPNPNet),
    "gcnii": ModelSpec("GCNII", GCNII),
    "mlp": ModelSpec("MLP", MLP),
}


def build(name: str, settings: dict[str, Any], in_channels: int, out_channels: int) -> nn.Module:
    """Make a model, handing it those of the settings that its constructor names.

    Args:
        name: A key of :data:`MODELS`.
        settings: Settings by name; those the model does not know are left out.
        in_channels: Number of features.
        out_channels: Number of classes or labels.
    """
    if name not in MODELS:
        raise InputError(f"model is {name!r}; choose from {', '.join(MODELS)}")
    spec = MODELS[name]
    known = inspect.signature(spec.cls).parameters
    arguments = {key: value for key, value in settings.items() if key in known} | spec.fixed
    return spec.cls(in_channels=in_channels, out_channels=out_channels, **arguments)
