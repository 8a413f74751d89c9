"""How much memory a training takes, worked out before it takes any."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import torch
from torch_geometric.data import Data

from lgdgcn.config import Settings
from lgdgcn.errors import InputError
from lgdgcn.models import MODELS, build, settings_of
from lgdgcn.runtime import available_memory, require_memory
from lgdgcn.train.task import Task

__all__ = [
    "TooLargeError",
    "check_memory",
    "is_out_of_memory",
    "members_at_once",
    "out_of_memory",
    "passes_at_once",
]

_PASS = 2**30  # bytes of main memory that a pass of several trainings may take
COPIES = 5  # of every weight: itself, its gradient, Adam's two averages, the best so far
_LEAST: dict[str, Any] = dict.fromkeys(  # of what the memory depends on
    ("hidden_channels", "num_layers", "k", "heads", "kernel_size", "propagation", "views"), 1
)


class TooLargeError(InputError, torch.OutOfMemoryError):
    """A training needs more memory than there is; fewer members at once may fit."""


def check_memory(
    data: Data,
    settings: Sequence[Settings],
    model: str,
    device: torch.device,
    nodes: int | None = None,
) -> None:
    """Refuse trainings that cannot fit, naming the setting that does most about it.

    Args:
        data: A canonical graph.
        settings: Of every model to train at once; they differ in nothing that counts but ``k``.
        model: A key of :data:`lgdgcn.models.MODELS`.
        device: Where they are to be trained.
        nodes: Nodes that are looked at in a step; all by default.
    """
    if not settings:
        return
    share = 1.0 if nodes is None else min(1.0, nodes / max(1, int(data.x.size(0))))
    average = max(one.weight_average for one in settings)  # if any has one, all do
    most = replace(max(settings, key=lambda one: one.k), weight_average=average)
    features, outputs = int(data.x.size(1)), Task.of(data).outputs

    def size(one: Settings, features: int = features) -> float:
        return len(settings) * _bytes(data, one, model, outputs, features, share)

    def way_out() -> str:
        one = replace(most, factors=1)
        smaller = {name: size(replace(one, **{name: least})) for name, least in _LEAST.items()}
        name = min(smaller, key=lambda name: smaller[name])
        if size(most, 1) < smaller[name]:
            return f"use fewer features (now {features})"
        return f"lower {name} (now {getattr(most, name)})"

    count = f"{len(settings)} models at once of " if len(settings) > 1 else ""
    what = f"training {count}{MODELS[model].title} on {data.x.size(0):,} nodes"
    require_memory(size(most), what, way_out, device, TooLargeError)


def members_at_once(
    data: Data, settings: Settings, device: torch.device, model: str = "lgdgcn"
) -> int:
    """How many trainings to begin with at once: those of a quarter of a GPU's memory, or of 1 GiB.

    Where they are still too many, they are halved until they fit (:func:`lgdgcn.training.run`).
    """
    size = _bytes(data, settings, model, Task.of(data).outputs, int(data.x.size(1)))
    room = available_memory(device) / 4 if device.type == "cuda" else _PASS
    return max(1, min(64, int(room / size)))


def passes_at_once(data: Data, alone: Iterable[tuple[str, Settings]]) -> int:
    """How many passes, each begun with :func:`members_at_once`, half of main memory has room for.

    Args:
        data: A canonical graph.
        alone: Model and settings of one training of each pass.
    """
    outputs, features = Task.of(data).outputs, int(data.x.size(1))
    largest = max(_bytes(data, settings, model, outputs, features) for model, settings in alone)
    return max(1, int(available_memory() / 2 / max(_PASS, largest)))


def is_out_of_memory(error: BaseException) -> bool:
    """Whether this is what torch raises when memory, a GPU's or the main one, is used up."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and "allocate memory" in str(error)


def out_of_memory(device: torch.device) -> InputError:
    """The one line for a device whose memory is too small."""
    advice = "lower hidden_channels or num_layers"
    if device.type != "cuda":
        return InputError(f"{device} ran out of memory; {advice}")
    peak = torch.cuda.max_memory_allocated(device) / 2**30
    return InputError(
        f"{device} ran out of memory at a peak of {peak:.1f} GiB; use --device cpu, or {advice}"
    )


def _bytes(
    data: Data, settings: Settings, model: str, outputs: int, features: int, share: float = 1.0
) -> float:
    """Memory of one training, of which a step looks at a share of the nodes: the one estimate."""
    floats = _weights(model, settings, features, outputs)
    floats *= COPIES + (settings.weight_average > 0)
    floats += _activations(data, settings, model, outputs) * share
    return float(data.x.element_size()) * floats


def _weights(model: str, settings: Settings, features: int, outputs: int) -> float:
    """Number of weights, counted on a model that has no memory of its own."""
    if model == "monet":  # whose layers take memory even so
        hidden, kernels = settings.hidden_channels, settings.kernel_size
        sizes = pairwise([features, *[hidden] * (settings.num_layers - 1), outputs])
        return sum(kernels * (a * b + 4) + (a + 1) * b for a, b in sizes)
    try:
        with torch.device("meta"):
            network = build(model, settings.as_dict(), features, outputs)
        return sum(int(tensor.numel()) for tensor in network.state_dict().values())
    except (RuntimeError, OverflowError, TypeError):  # more than torch can count
        return 2.0**63


def _propagation(data: Data, settings: Settings, model: str) -> float:
    """Number of values that random propagation in front of a model keeps, in all views."""
    is_ours = "encoder_channels" in settings_of(model) and settings.variant == "ours"
    is_grand = model in ("grand", "reasons")
    width = settings.hidden_channels if is_grand else settings.encoder_channels * is_ours
    by_feature = settings.propagate == "features" and width > 0
    columns = 11 * settings.encoder_layers * width + (5 * int(data.x.size(1)) if by_feature else 0)
    return float(settings.views * int(data.x.size(0)) * columns)


def _activations(data: Data, settings: Settings, model: str, outputs: int) -> float:
    """Number of values that a step keeps of nodes and edges, as measured on a CPU, roughly."""
    nodes = int(data.x.size(0))
    # a mapped graph has rows instead of a list of edges
    edges = int(data.rows.num_edges if data.edge_index is None else data.edge_index.size(1))
    front = _propagation(data, settings, model)
    if model == "grand":
        return front + 5 * settings.views * nodes * outputs
    if model == "reasons":
        walks = settings.views * settings.propagation * 4 * nodes + 2 * settings.views * edges
        return front + walks * outputs + 20 * edges
    if "factors" in settings_of(model):
        latent = 8 * nodes * min(settings.k, nodes)
        layers = settings.hidden_channels * (16 * settings.num_layers * nodes + edges / 2)
        return front + (settings.views if front else 1) * (latent + layers)
    if model in ("mlp", "appnp"):
        steps = settings.propagation if model == "appnp" else 0
        return nodes * (5 * settings.num_layers * settings.hidden_channels + 2 * steps * outputs)
    width = settings.hidden_channels
    if model == "gat":
        width = max(width, settings.heads)
    if model == "monet":
        width *= settings.kernel_size
    return width * (5 * settings.num_layers * nodes + 1.5 * edges)
