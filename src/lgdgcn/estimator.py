"""LGD-GCN with scikit-learn's manners."""

import dataclasses
import difflib
import inspect
import warnings
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.config import Settings, auto_scaling, default_variant, preset, resolve
from lgdgcn.data.labels import is_labelled
from lgdgcn.data.validate import canonical, fingerprint
from lgdgcn.errors import InputError, LGDWarning
from lgdgcn.models import MODELS, NodeOutput
from lgdgcn.runtime import select_device
from lgdgcn.train.auto_factors import find_factors
from lgdgcn.train.checkpoint import refuse_foreign
from lgdgcn.train.seeds import train_seed
from lgdgcn.train.trained import TrainedModel

__all__ = ["LGDClassifier"]


# Settings that variants have values of their own for.
_VARIANTS_OWN = {
    name for kind in (False, True) for name in preset("", "lgdgcn", "sharp", multi_label=kind)
} - {"variant"} | {"scaling", "normalize_features"}
# The settings of LGD-GCN. Only a training that writes to a run folder has checkpoints.
_SETTINGS = [
    field
    for field in dataclasses.fields(Settings)
    if not field.metadata.get("models") and field.name != "checkpoint_every"
]
_DEFAULTS: dict[str, Any] = {
    **{f.name: None if f.name in _VARIANTS_OWN else f.default for f in _SETTINGS},
    "variant": default_variant("lgdgcn"),
    "random_state": 0,
    "device": "auto",
}


class LGDClassifier(ClassifierMixin, BaseEstimator):
    """Node classifier that splits what it knows of each node into factors.

    It is fitted on a ``torch_geometric.data.Data`` with ``x``, ``edge_index``, ``y`` and
    optionally ``train_mask``, ``val_mask``, ``test_mask``. Methods that take a graph use the
    fitted one by default. Parameters that are ``None`` have the variant's own value: for
    ``"sharp"``, the default, that of its shipped preset for one label per node or for sets of
    labels, whichever ``y`` holds; for ``"paper"`` and ``"released"`` the default of the setting.

    Args:
        **params: Settings of LGD-GCN, such as ``factors``, ``hidden_channels``, ``variant`` or
            ``lr``; ``lgdgcn settings`` lists them with their meaning. Besides,
            ``random_state``, the seed of weights and dropout, and ``device``: ``"auto"``,
            ``"cpu"`` or ``"cuda"``.

    Attributes:
        classes_: Original class or label names.
        factors_: Number of factors, which ``factors="auto"`` finds.
        result_: Scores of the fit, a :class:`~lgdgcn.train.seeds.SeedResult`.

    Example:
        >>> from lgdgcn.data import synthetic_graph
        >>> graph = synthetic_graph(factors=2, nodes=60, classes=3, average_degree=10)
        >>> model = LGDClassifier(factors=2, hidden_channels=8, epochs=5).fit(graph)
        >>> model.transform().shape
        (60, 2, 4)
    """

    def __init__(self, **params: Any) -> None:
        for name in params.keys() - _DEFAULTS.keys():
            close = difflib.get_close_matches(name, _DEFAULTS, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise TypeError(f"LGDClassifier() has no parameter {name!r}{hint}")
        for name, default in _DEFAULTS.items():
            setattr(self, name, params.get(name, default))

    # scikit-learn, editors and help() read the parameters and their defaults off this.
    __init__.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)]
        + [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
            for name, default in _DEFAULTS.items()
        ]
    )

    def fit(self, data: Data, y: Any = None) -> Self:
        """Train on a graph; ``y`` replaces ``data.y`` where it is given."""
        if y is not None:
            data = _without(data, "y", "classes")
            data.y = y
        given = {  # a grid search hands over numpy's numbers
            key: value.item() if isinstance(value, np.generic) else value
            for key, value in self.get_params().items()
            if value is not None or key not in _VARIANTS_OWN
        }
        seed, device = given.pop("random_state"), select_device(given.pop("device"))
        if type(seed) is not int:
            raise InputError(f"random_state is {seed!r}; it must be a whole number")
        graph = canonical(data, require_labels=True)
        own = preset("", "lgdgcn", given["variant"], multi_label=graph.y.dim() == 2)
        settings = resolve(own, auto_scaling(""), given)
        settings, _ = find_factors(settings, graph, "lgdgcn", seed, device)
        self.result_, self.trained_ = train_seed(graph, settings, "lgdgcn", seed, device)
        for warning in self.result_.warnings:
            warnings.warn(warning, LGDWarning, stacklevel=2)
        self.classes_ = np.asarray(self.trained_.classes)
        self.factors_ = self.trained_.settings.num_factors
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
        trained = self._trained
        graph = self._canonical(data)
        wanted = self._given_edges if data is None else data.edge_index
        factors = trained(graph).layers[-1].edge_factors.cpu()
        return _rows_of(graph.edge_index, factors, wanted, graph.x.size(0)).numpy()

    def score(self, data: Data | None = None, y: Any = None) -> float:
        """Accuracy (or Micro-F1) on the test nodes.

        Where the graph names no test nodes, on those labelled nodes that :meth:`fit` has used
        neither for training nor for the choice of the epoch; where none are left this is an error.
        A loaded model does not know its graph: it leaves out the nodes that ``train_mask`` and
        ``val_mask`` name, and warns where there are none.

        Args:
            data: A graph; the fitted one by default.
            y: Labels instead of the graph's own.
        """
        trained = self._trained
        graph = self._canonical(data)
        given = graph if data is None else data
        if y is not None:
            given = _without(given, "y", "classes")
            given.y = y
        elif data is not None and data.y is None:
            raise InputError("the graph has no labels to score; give y")
        labelled = canonical(given, require_labels=False)
        truth = _renumbered(labelled.y, labelled.classes, trained)
        if not is_labelled(truth).any():
            raise InputError("the graph has no labelled nodes to score")
        mask = self._unseen(labelled, truth)
        value = next(iter(trained.task.scores(trained(graph).logits.cpu(), truth, mask).values()))
        assert value is not None
        return value

    def _unseen(self, graph: Data, truth: Tensor) -> Tensor:
        """The nodes to score: test nodes, or else those the fit has not used."""
        fitted = getattr(self, "_graph", None)
        named = graph.train_mask | graph.val_mask
        if fitted is not None:
            used = fitted.train_mask | fitted.val_mask
            named = used if _same_nodes(graph, fitted) else named & False
        if graph.test_mask.any():
            if fitted is not None and (shared := int((graph.test_mask & named).sum())):
                warnings.warn(
                    f"{shared} of the {int(graph.test_mask.sum())} test nodes were used by fit: "
                    "the score says little of unseen nodes",
                    LGDWarning,
                    stacklevel=3,
                )
            return torch.as_tensor(graph.test_mask)
        if fitted is None and not named.any():
            warnings.warn(
                "no test nodes are named: all labelled nodes are scored, with those the model was "
                "trained on where they are among them; set test_mask",
                LGDWarning,
                stacklevel=3,
            )
        mask = torch.as_tensor(is_labelled(truth) & ~named)
        if not mask.any():
            raise InputError(
                "there are no test nodes: fit has used every labelled node; "
                "set test_mask, or give y with labels of other nodes"
            )
        return mask

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one safetensors file (and its checksum).

        An earlier model of that name is replaced, any other file is not.
        """
        trained = self._trained
        refuse_foreign(Path(path))
        trained.save(Path(path))

    @classmethod
    def load(cls, path: str | Path, device: str = "auto") -> Self:
        """Read a model that :meth:`save` or ``lgdgcn train`` wrote; give graphs to its methods."""
        trained = TrainedModel.load(Path(path), select_device(device))
        if not trained.model.num_factors:
            raise InputError(f"{path} holds a {trained.name} model; only lgdgcn has factors")
        known = inspect.signature(cls).parameters
        used = trained.settings.as_dict() | MODELS[trained.name].fixed
        settings = {key: value for key, value in used.items() if key in known}
        model = cls(**settings, device=device)
        model.trained_, model.classes_ = trained, np.asarray(trained.classes)
        model.factors_ = trained.settings.num_factors
        return model

    @property
    def _trained(self) -> TrainedModel:
        if not hasattr(self, "trained_"):
            raise NotFittedError("this LGDClassifier is not fitted; call fit(data) first")
        return self.trained_

    def _canonical(self, data: Data | None) -> Data:
        if data is not None:  # labels, known or not to the model, have no part in what it says
            return canonical(_without(data, "y", "classes"), require_labels=False)
        if not hasattr(self, "_graph"):
            raise InputError("a loaded model keeps no graph; give one to this method")
        return self._graph

    def _output(self, data: Data | None) -> NodeOutput:
        trained = self._trained  # unfitted models say so before anything else
        return trained(self._canonical(data))


def _without(data: Data, *keys: str) -> Data:
    """Copy a graph, but not its tensors, leaving some attributes out."""
    if not isinstance(data, Data):
        raise InputError(f"expected a torch_geometric.data.Data, found {type(data).__name__}")
    return Data(**{key: value for key, value in data.to_dict().items() if key not in keys})


def _same_nodes(first: Data, second: Data) -> bool:
    """Whether two canonical graphs have the same nodes, by their edges or else their features."""
    if first.edge_index.numel():
        same = first.x.size(0) == second.x.size(0)
        return same and torch.equal(first.edge_index, second.edge_index)
    features = [fingerprint(Data(x=data.x, edge_index=data.edge_index)) for data in (first, second)]
    return features[0] == features[1]


def _renumbered(y: Tensor, classes: list[Any], trained: TrainedModel) -> Tensor:
    """Number canonical labels of any graph as the model's outputs are."""
    if trained.task.multi_label:
        if y.dim() == 1 or y.size(1) != trained.task.outputs:
            columns = trained.task.outputs
            raise InputError(f"y has shape {list(y.shape)}; the model knows {columns} labels")
        numbered = list(range(trained.task.outputs))
        if numbered in (classes, trained.classes):  # columns without names
            return y
        if sorted(map(str, classes)) != sorted(map(str, trained.classes)):
            raise InputError(
                f"the labels are {classes[:5]} and so on, those of the model {trained.classes[:5]}"
            )
        names = [str(name) for name in classes]
        return y[:, [names.index(str(name)) for name in trained.classes]]
    if y.dim() == 2:
        raise InputError(f"y has shape {list(y.shape)}; the model knows one class per node")
    number = {str(name): index for index, name in enumerate(trained.classes)}
    for name in classes:
        if str(name) not in number:
            raise InputError(f"y holds {name!r}, which is not one of the model's classes")
    index = torch.tensor([*(number[str(name)] for name in classes), -1])  # -1 stays -1
    return index[y]


def _rows_of(edge_index: Tensor, values: Tensor, wanted: Tensor, nodes: int) -> Tensor:
    """Look up the rows of ``wanted`` edges among sorted ``edge_index``; NaN where absent."""
    keys = edge_index[0] * nodes + edge_index[1]
    wanted = torch.as_tensor(wanted).cpu().long().reshape(2, -1)
    asked = wanted[0] * nodes + wanted[1]
    index = torch.searchsorted(keys, asked).clamp(max=max(keys.numel() - 1, 0))
    found = keys[index] == asked if keys.numel() else torch.zeros_like(asked, dtype=torch.bool)
    rows = torch.full((asked.numel(), values.size(1)), torch.nan, dtype=values.dtype)
    rows[found] = values[index[found]]
    return rows
