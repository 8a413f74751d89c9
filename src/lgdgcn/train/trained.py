"""A trained model with everything needed to use it again: settings, task, class names."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.config import Settings, resolve
from lgdgcn.data.features import row_normalized
from lgdgcn.errors import CheckpointError, InputError
from lgdgcn.models import NodeModel, NodeOutput, build
from lgdgcn.storage import to_json
from lgdgcn.train.checkpoint import load_weights, save_weights
from lgdgcn.train.states import check_like
from lgdgcn.train.task import Task

__all__ = ["TrainedModel", "prepared", "prepared_alike"]


@dataclass
class TrainedModel:
    """A model that can predict.

    Attributes:
        name: Key of the model in :data:`lgdgcn.models.MODELS`.
        model: The network with its best weights.
        settings: Hyper-parameters it was trained with.
        task: What it predicts.
        classes: Original class or label names, by output.
        in_channels: Number of features it expects.
    """

    name: str
    model: NodeModel
    settings: Settings
    task: Task
    classes: list[Any]
    in_channels: int

    @torch.no_grad()
    def __call__(self, data: Data) -> NodeOutput:
        """Run the network on a canonical graph; models without factors return no layers."""
        if data.x.size(1) != self.in_channels:
            raise InputError(
                f"the graph has {data.x.size(1)} features, the model was trained with "
                f"{self.in_channels}; use the same feature columns"
            )
        first = next(self.model.parameters())
        return self.run(prepared(data, self.settings, first.device, first.dtype))

    @torch.no_grad()
    def run(self, data: Data) -> NodeOutput:
        """Run the network on a graph that :func:`prepared` made."""
        self.model.eval()
        return self.model.disentangle(data.x, data.edge_index)

    def dominant_factors(self, output: NodeOutput) -> Tensor | None:
        """Factor that adds most to each node's highest score ``[N]``."""
        if not output.layers:
            return None
        shares = self.model.factor_shares(output.layers[-1].units, output.logits.argmax(-1))
        return None if shares is None else shares.argmax(-1)

    def save(self, path: Path) -> None:
        """Write the weights (safetensors) with the description of the model in the header."""
        save_weights(path, self.model.state_dict(), self.describe())

    def describe(self) -> dict[str, Any]:
        """All but the weights, as JSON."""
        return {
            "model": self.name,
            "settings": self.settings.as_dict(),
            "task": asdict(self.task),
            "classes": to_json(self.classes),
            "in_channels": self.in_channels,
        }

    @classmethod
    def load(cls, path: Path, device: torch.device | str = "cpu") -> "TrainedModel":
        """Read a model back; a damaged or foreign file raises :class:`CheckpointError`."""
        tensors, meta = load_weights(path)
        try:
            settings = resolve(meta["settings"])
            task = Task(**meta["task"])
            model = build(meta["model"], settings.as_dict(), meta["in_channels"], task.outputs)
            trained = cls(
                meta["model"], model, settings, task, meta["classes"], meta["in_channels"]
            )
            if len(trained.classes) != task.outputs:
                raise ValueError(f"{len(trained.classes)} classes for {task.outputs} outputs")
        except (KeyError, TypeError, AttributeError, ValueError, RuntimeError) as error:
            raise CheckpointError(f"{path}: not a model of this package ({error})") from None
        floats = (tensors[name] for name in sorted(tensors) if tensors[name].is_floating_point())
        dtype = next((tensor.dtype for tensor in floats), torch.float32)  # files have no order
        model.to(dtype)
        check_like(tensors, model.state_dict(), f"{path}: weights")
        model.load_state_dict(tensors)
        model.to(device)
        return trained


def prepared(
    data: Data, settings: Settings, device: torch.device, dtype: torch.dtype | None = None
) -> Data:
    """Bring a canonical graph to the device, with its features scaled as the settings say."""
    x = row_normalized(data.x) if settings.normalize_features else data.x
    result = data.clone()
    result.x = x if dtype is None else x.to(dtype)
    return result.to(device)


def prepared_alike(graphs: Sequence[Data], settings: Settings, device: torch.device) -> list[Data]:
    """The same for several splits of one graph, whose features and edges are held once."""
    distinct = {id(graph): graph for graph in graphs}
    ready = {key: prepared(graph, settings, device) for key, graph in distinct.items()}
    first = next(iter(ready.values()))
    for graph in ready.values():
        if not torch.equal(graph.edge_index, first.edge_index):
            raise InputError("the seeds' graphs differ; only their splits may")
        graph.x, graph.edge_index = first.x, first.edge_index
    return [ready[id(graph)] for graph in graphs]
