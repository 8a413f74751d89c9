"""A trained model with everything needed to use it again: settings, task, class names."""

import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn import tensor_file
from lgdgcn.config import Settings, resolve
from lgdgcn.data.encoding import Encoding
from lgdgcn.data.features import select_columns
from lgdgcn.data.scaling import Scaling
from lgdgcn.errors import CheckpointError, InputError, LGDWarning
from lgdgcn.models import NodeModel, NodeOutput, build
from lgdgcn.storage import to_json
from lgdgcn.train.prepared import attach_edge_weights, prepared
from lgdgcn.train.scores import METRICS
from lgdgcn.train.task import Task

__all__ = ["MODEL", "TrainedModel", "check_finite", "feature_names"]

MODEL = "model"  # the kind of file
# What reading a made-up description may raise
_NO_MODEL = (LookupError, TypeError, AttributeError, ArithmeticError, ValueError, RuntimeError)


@dataclass
class TrainedModel:
    """A model that can predict.

    Attributes:
        name: Key of the model in :data:`lgdgcn.models.MODELS`.
        model: The network with its best weights.
        settings: Hyper-parameters it was trained with.
        classes: Original class or label names, by output.
        in_channels: Number of features it expects.
        feature_names: Their names, where the graph it was trained on has them.
        encoding: How the columns of a table became these features, where they did.
        scaling: How they are scaled; what the settings say, if it is not kept.
    """

    name: str
    model: NodeModel
    settings: Settings
    task: Task
    classes: list[Any]
    in_channels: int
    feature_names: list[str] | None = None
    encoding: Encoding | None = None
    scaling: Scaling | None = None

    @torch.no_grad()
    def __call__(self, data: Data) -> NodeOutput:
        """Run the network on a canonical graph; models without factors return no layers.

        Features are matched by name where both the model and the graph have names, else by
        position.

        Raises:
            InputError: The features are not the model's, or the scores are not finite.
        """
        columns = self.own_columns(feature_names(data), data.x.size(1))
        if columns is not None:
            data = copy(data)
            data.x = select_columns(data.x, columns)
        like = next(self.model.parameters())
        output = self.run(prepared(data, self.settings, like.device, like.dtype, self.scaling))
        check_finite(output.logits)
        return output

    def own_columns(self, found: list[str] | None, width: int) -> list[int] | None:
        """Which columns of a graph's features the model reads, by their names if they have some.

        Returns:
            Their numbers; ``None`` for all as they are.

        Raises:
            InputError: They are not those that the model was trained with.
        """
        columns = None
        if found is not None and self.feature_names is not None and found != self.feature_names:
            missing = [name for name in self.feature_names if name not in set(found)]
            new = [name for name in found if name not in set(self.feature_names)]
            if missing or new:
                raise InputError(
                    "the feature columns are not those the model was trained with: "
                    + "; ".join(_listed(missing, "missing") + _listed(new, "new"))
                    + "; rename, add or remove columns"
                )
            warnings.warn(
                "the feature columns are in another order than the model's: matched by name",
                LGDWarning,
                stacklevel=4,
            )
            columns = [found.index(name) for name in self.feature_names]
        if width != self.in_channels:
            raise InputError(
                f"the graph has {width} features, the model was trained with "
                f"{self.in_channels}; use the same feature columns"
            )
        return columns

    @torch.no_grad()
    def run(self, data: Data) -> NodeOutput:
        """Run the network on a graph that :func:`prepared` made."""
        attach_edge_weights(data)
        model = self.model.eval().adapted(data.x, data.edge_index)
        return model.disentangle(data.x, data.edge_index)

    def dominant_factors(self, output: NodeOutput) -> Tensor | None:
        """Factor that adds most to each node's highest score ``[N]``."""
        if not output.layers:
            return None
        shares = self.model.factor_shares(output.layers[-1].units, output.logits.argmax(-1))
        return None if shares is None else shares.argmax(-1)

    def save(self, path: Path) -> None:
        """Write the weights (safetensors) with the description of the model in the header."""
        tensor_file.save(path, self.model.state_dict(), self.describe(), MODEL)

    def describe(self) -> dict[str, Any]:
        """All but the weights, as JSON."""
        return {
            "model": self.name,
            "settings": self.settings.as_dict(),
            "task": asdict(self.task),
            "classes": to_json(self.classes),
            "in_channels": self.in_channels,
            "feature_names": self.feature_names,
            "encoding": None if self.encoding is None else self.encoding.as_dict(),
            "scaling": None if self.scaling is None else self.scaling.as_dict(),
        }

    @classmethod
    def load(cls, path: Path, device: torch.device | str = "cpu") -> "TrainedModel":
        """Read a model back; a damaged or foreign file raises :class:`CheckpointError`."""
        tensors, meta = tensor_file.load(path, MODEL)
        types = {tensor.dtype for tensor in tensors.values() if tensor.is_floating_point()}
        dtype = torch.float64 if types == {torch.float64} else torch.float32
        try:
            known = _read_description(meta)
            task: Task = known["task"]
            sizes = known["settings"].as_dict(), known["in_channels"], task.outputs
            make = partial(build, known["name"], *sizes, multi_label=task.multi_label)
            with torch.device("meta"):  # takes no memory, whatever sizes the file names
                like = make().to(dtype)
                like.resize(tensors)
        except _NO_MODEL as error:
            cause = " ".join(str(error).split())[:200]
            raise CheckpointError(f"{path}: not a model of this package ({cause})") from None
        tensor_file.check_like(tensors, like.state_dict(), f"{path}: weights")
        for name, tensor in tensors.items():
            if not bool(tensor.isfinite().all()):
                raise CheckpointError(f"{path}: {name} has values that are not finite; train again")
        model = make().to(dtype)
        model.resize(tensors)
        model.load_state_dict(tensors)
        return cls(model=model.to(device), **known)


def check_finite(logits: Tensor) -> None:
    """Refuse scores of which the argmax would look like a class."""
    if bad := int((~logits.isfinite()).any(-1).sum()):
        raise InputError(
            f"the model's scores of {bad} of {len(logits)} nodes are not finite; "
            "the features may be too large, or the model damaged"
        )


def feature_names(data: Data) -> list[str] | None:
    """The names of a graph's feature columns, ``None`` where it has none."""
    given = data.get("feature_names")
    if given is None:
        return None
    names = list(given)
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise InputError("feature_names must be different words, one for each column of x")
    if len(names) != data.x.size(1):
        raise InputError(f"feature_names has {len(names)} names for {data.x.size(1)} columns of x")
    return names


def _listed(names: Sequence[str], what: str) -> list[str]:
    """Name the first few columns, if there are any."""
    shown = ", ".join(repr(name[:40]) for name in names[:5])
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return [f"{what} {shown}{more}"] if names else []


def _read_description(meta: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a model but for the network, as :meth:`TrainedModel.describe` gives them.

    Raises:
        ValueError: A value with which a network could be built, but not used.
    """
    thresholds = meta["task"]["label_thresholds"]  # JSON has lists for tuples
    as_tuple = None if thresholds is None else tuple(thresholds)
    task = Task(**{**meta["task"], "label_thresholds": as_tuple})
    classes, in_channels, names = meta["classes"], meta["in_channels"], meta["feature_names"]
    size = task.labels_per_node
    sound = {
        "outputs": type(task.outputs) is int and task.outputs >= 1,
        "multi_label": type(task.multi_label) is bool,
        "labels_per_node": size is None or (type(size) is int and 1 <= size <= task.outputs),
        "threshold": _is_threshold(task.threshold),
        "label_thresholds": as_tuple is None
        or (len(as_tuple) == task.outputs and all(map(_is_threshold, as_tuple))),
        "metric": task.metric in METRICS,
        "classes": isinstance(classes, list)
        and all(isinstance(name, str | int | float) for name in classes)
        and len(classes) == task.outputs,
        "in_channels": type(in_channels) is int and in_channels >= 1,
        "feature_names": names is None
        or (
            isinstance(names, list)
            and all(isinstance(name, str) for name in names)
            and len(names) == len(set(names)) == in_channels
        ),
    }
    encoding = None if meta["encoding"] is None else Encoding.from_dict(meta["encoding"])
    sound["encoding"] = encoding is None or encoding.feature_names == names
    if wrong := [field for field, holds in sound.items() if not holds]:
        raise ValueError(f"{', '.join(wrong)} cannot be right")
    scaling = meta["scaling"]
    return {
        "name": meta["model"],
        "settings": resolve(meta["settings"]),
        "task": task,
        "classes": classes,
        "in_channels": in_channels,
        "feature_names": names,
        "encoding": encoding,
        "scaling": None if scaling is None else Scaling.from_dict(scaling, in_channels),
    }


def _is_threshold(value: Any) -> bool:
    return type(value) is float and 0 < value < 1
