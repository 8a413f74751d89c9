"""LGD-GCN with scikit-learn's manners."""

import inspect
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.config import resolve
from lgdgcn.data.labels import is_labelled
from lgdgcn.data.validate import canonical
from lgdgcn.errors import InputError
from lgdgcn.models import LGDOutput
from lgdgcn.runtime import select_device
from lgdgcn.train.session import train_seed
from lgdgcn.train.trained import TrainedModel

__all__ = ["LGDClassifier"]


class LGDClassifier(ClassifierMixin, BaseEstimator):
    """Node classifier that splits what it knows of each node into factors.

    It is fitted on a ``torch_geometric.data.Data`` with ``x``, ``edge_index``, ``y`` and
    optionally ``train_mask``, ``val_mask``, ``test_mask``. Methods that take a graph use the
    fitted one by default.

    Args:
        factors: Latent factors M.
        hidden_channels: Size of a layer's output, a multiple of ``factors``.
        num_layers: Layers L.
        variant: ``"paper"`` or ``"released"``.
        iterations: Routing iterations T.
        tau: Routing temperature.
        graph: Latent graph, ``"knn"`` or ``"cknn"``.
        k: Neighbours in the latent graph.
        dropout: Dropout after every layer.
        space: Use the space loss.
        diversity: Use the diversity loss.
        latent_graph: Aggregate along the latent graphs.
        lambda_space: Weight of the space loss.
        lambda_div: Weight of the diversity loss.
        update_rate: Share of new statistics per epoch.
        precision: What stands for the inverse covariance.
        normalize_features: Scale every node's features to sum 1.
        lr: Learning rate.
        weight_decay: L2 penalty.
        epochs: Most epochs.
        patience: Epochs without a better validation score.
        random_state: Seed of weights and dropout.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.

    Attributes:
        classes_: Original class or label names.
        result_: Scores of the fit, a :class:`~lgdgcn.train.session.SeedResult`.

    Example:
        >>> from lgdgcn.data import synthetic_graph
        >>> graph = synthetic_graph(factors=2, nodes=60, classes=3, average_degree=10)
        >>> model = LGDClassifier(factors=2, hidden_channels=8, epochs=5).fit(graph)
        >>> model.transform().shape
        (60, 2, 4)
    """

    def __init__(
        self,
        factors: int = 4,
        hidden_channels: int = 64,
        num_layers: int = 1,
        variant: str = "paper",
        iterations: int = 7,
        tau: float = 1.0,
        graph: str = "cknn",
        k: int = 4,
        dropout: float = 0.5,
        space: bool = True,
        diversity: bool = True,
        latent_graph: bool = True,
        lambda_space: float = 0.5,
        lambda_div: float = 0.01,
        update_rate: float = 0.5,
        precision: str = "variant",
        normalize_features: bool = False,
        lr: float = 0.01,
        weight_decay: float = 5e-3,
        epochs: int = 1000,
        patience: int = 100,
        random_state: int = 0,
        device: str = "auto",
    ) -> None:
        self.factors = factors
        self.hidden_channels = hidden_channels
        self.num_layers = num_layers
        self.variant = variant
        self.iterations = iterations
        self.tau = tau
        self.graph = graph
        self.k = k
        self.dropout = dropout
        self.space = space
        self.diversity = diversity
        self.latent_graph = latent_graph
        self.lambda_space = lambda_space
        self.lambda_div = lambda_div
        self.update_rate = update_rate
        self.precision = precision
        self.normalize_features = normalize_features
        self.lr = lr
        self.weight_decay = weight_decay
        self.epochs = epochs
        self.patience = patience
        self.random_state = random_state
        self.device = device

    def fit(self, data: Data, y: Any = None) -> Self:
        """Train on a graph; ``y`` replaces ``data.y`` where it is given."""
        if y is not None:
            data = data.clone()
            data.y = y
        given = self.get_params()
        seed, device = given.pop("random_state"), select_device(given.pop("device"))
        graph = canonical(data, require_labels=True)
        self.result_, self.trained_ = train_seed(graph, resolve(given), "lgdgcn", seed, device)
        self.classes_ = np.asarray(self.trained_.classes)
        self._graph, self._given_edges = graph, data.edge_index
        return self

    def predict(self, data: Data | None = None) -> npt.NDArray[Any]:
        """Return the class of every node, or a 0/1 label matrix ``[N, L]``."""
        predicted = self._trained.task.predict(self._output(data).logits).cpu().numpy()
        if self._trained.task.multi_label:
            return predicted.astype(np.int64)
        return np.asarray(self.classes_[predicted])

    def predict_proba(self, data: Data | None = None) -> npt.NDArray[np.floating[Any]]:
        """Return the probability of every class or label, ``[N, C]``."""
        proba = self._trained.task.probabilities(self._output(data).logits)
        return proba.cpu().numpy()

    def transform(self, data: Data | None = None) -> npt.NDArray[np.floating[Any]]:
        """Return the units of the last layer, ``[N, M, d]``."""
        return self._output(data).layers[-1].units.cpu().numpy()

    def edge_factors(self, data: Data | None = None) -> npt.NDArray[np.floating[Any]]:
        """Return the probability that each factor explains each edge, ``[E, M]``.

        Rows follow the graph's own ``edge_index`` as it was given; self loops, which are not
        routed, are NaN.
        """
        graph = self._canonical(data)
        wanted = self._given_edges if data is None else data.edge_index
        factors = self._run(graph).layers[-1].edge_factors.cpu()
        return _rows_of(graph.edge_index, factors, wanted, graph.x.size(0)).numpy()

    def score(self, data: Data | None = None, y: Any = None) -> float:
        """Accuracy (or Micro-F1) on the test nodes; on all labelled nodes where none are named."""
        graph = self._canonical(data)
        if y is not None:
            graph.y = canonical(_with_labels(graph, y, self._trained.classes), False).y
        mask = graph.test_mask if graph.test_mask.any() else is_labelled(graph.y)
        value = next(
            iter(self._trained.task.scores(self._run(graph).logits.cpu(), graph.y, mask).values())
        )
        if value is None:
            raise InputError("the graph has no labelled nodes to score")
        return value

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one safetensors file (and its checksum)."""
        self._trained.save(Path(path))

    @classmethod
    def load(cls, path: str | Path, device: str = "auto") -> Self:
        """Read a model that :meth:`save` or ``lgdgcn train`` wrote; give graphs to its methods."""
        trained = TrainedModel.load(Path(path), select_device(device))
        known = inspect.signature(cls).parameters
        settings = {key: v for key, v in trained.settings.as_dict().items() if key in known}
        model = cls(**settings, device=device)
        model.trained_, model.classes_ = trained, np.asarray(trained.classes)
        return model

    @property
    def _trained(self) -> TrainedModel:
        if not hasattr(self, "trained_"):
            raise NotFittedError("this LGDClassifier is not fitted; call fit(data) first")
        return self.trained_

    def _canonical(self, data: Data | None) -> Data:
        if data is not None:
            return canonical(_with_labels(data, data.y, self._trained.classes), False)
        if not hasattr(self, "_graph"):
            raise InputError("a loaded model keeps no graph; give one to this method")
        return self._graph

    def _run(self, graph: Data) -> LGDOutput:
        return self._trained(graph)

    def _output(self, data: Data | None) -> LGDOutput:
        self._trained  # noqa: B018 - unfitted models say so before anything else
        return self._run(self._canonical(data))


def _with_labels(data: Data, y: Any, classes: list[Any]) -> Data:
    """Copy a graph so that its labels are numbered as the model's outputs."""
    copy = data.clone()
    copy.y = y
    if y is not None and "classes" not in copy:
        copy.classes = classes
    return copy


def _rows_of(edge_index: Tensor, values: Tensor, wanted: Tensor, nodes: int) -> Tensor:
    """Look up the rows of ``wanted`` edges among sorted ``edge_index``; NaN where absent."""
    keys = edge_index[0] * nodes + edge_index[1]
    wanted = torch.as_tensor(wanted).cpu().long()
    asked = wanted[0] * nodes + wanted[1]
    place = torch.searchsorted(keys, asked).clamp(max=max(keys.numel() - 1, 0))
    found = keys[place] == asked if keys.numel() else torch.zeros_like(asked, dtype=torch.bool)
    rows = torch.full((asked.numel(), values.size(1)), torch.nan, dtype=values.dtype)
    rows[found] = values[place[found]]
    return rows
