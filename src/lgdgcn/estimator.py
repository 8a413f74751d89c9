"""LGD-GCN with scikit-learn's manners."""

import dataclasses
import difflib
import inspect
import json
import math
import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, f1_score
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.config import (
    AUTO,
    Settings,
    belongs,
    check_belongs,
    check_used,
    check_value,
    default_variant,
    preset,
    resolve,
    with_fitting_width,
)
from lgdgcn.data.in_memory import (
    from_networkx,
    from_pandas,
    graph_to_fit,
    node_numbers,
    one_split,
    without,
)
from lgdgcn.data.labels import IDENTIFIER, is_labelled
from lgdgcn.data.validate import canonical
from lgdgcn.errors import InputError, LGDWarning
from lgdgcn.metrics.routing import routing_warning
from lgdgcn.models import MODELS
from lgdgcn.runs.fit import fit
from lgdgcn.runtime import select_device
from lgdgcn.search.candidates import candidates, seconds_of
from lgdgcn.search.factors import FOUND, find_factors
from lgdgcn.search.portfolio import Candidate, choose_settings
from lgdgcn.storage import check_target, write_text
from lgdgcn.tensor_file import refuse_foreign
from lgdgcn.train.checks import usage_warning
from lgdgcn.train.scoring import renumbered, unseen_nodes
from lgdgcn.train.trained import TrainedModel
from lgdgcn.training import Epoch

if TYPE_CHECKING:
    from lgdgcn.edges import EdgeReasons
    from lgdgcn.metrics.controls import Row

__all__ = ["LGDClassifier"]


# The settings of LGD-GCN. Only a training that writes to a run folder has checkpoints.
_SETTINGS = [
    field.name
    for field in dataclasses.fields(Settings)
    if belongs(field.name, "lgdgcn") and field.name != "checkpoint_every"
]
_OWN = {
    "split": 0,
    "random_state": 0,
    "device": "auto",
    "verbose": 0,
    "callbacks": (),
    "budget": None,
}
_DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(_SETTINGS),
    "variant": default_variant("lgdgcn"),
    **_OWN,
}
_ALL = slice(None)  # all nodes


class LGDClassifier(ClassifierMixin, BaseEstimator):
    """Node classifier that splits what it knows of each node into factors.

    It is fitted on a graph, ``fit(data)``: a ``torch_geometric.data.Data`` with ``x``,
    ``edge_index``, ``y`` and optionally ``train_mask``, ``val_mask``, ``test_mask``; or on arrays,
    ``fit(x, y, edge_index=edge_index)``. Methods that take a graph use the fitted one by default.

    Bound to a graph, ``LGDClassifier(graph=data)``, it can be fitted on some of its nodes,
    ``fit(nodes, y)``, and asked about others, ``predict(nodes)``: so scikit-learn's model selection
    works on node numbers. All edges and features are seen, labels only of the nodes to fit, of
    which a fifth chooses the epoch to keep.

    Nodes that were not there in training are predicted in the same way as all others: with a graph
    that has them, ``predict(grown)``, or one of quite other nodes. It needs the feature columns of
    training; nothing is trained again.

    Parameters that are ``None`` have the variant's own value: for ``"ours"``, the default, that
    of its shipped preset for one label per node or for sets of labels, whichever ``y`` holds; for
    ``"paper"`` and ``"released"`` the default of the setting, but for ``lambda_space`` of
    ``"paper"``, which is small. What is given must have an effect: a setting of another variant, or
    of a part that is switched off, is refused by :meth:`fit`.

    Args:
        **params: Settings of LGD-GCN, such as ``factors``, ``hidden_channels``, ``variant`` or
            ``lr``; ``lgdgcn settings`` lists them with their meaning. Besides:

            * ``graph``: The graph to fit, where :meth:`fit` is not given one. (A word, ``"knn"`` or
              ``"cknn"``, is the setting of that name.)
            * ``split``: Which split to use where masks have shape ``[N, splits]``.
            * ``random_state``: The seed of weights, dropout and held-back nodes.
            * ``device``: ``"auto"``, ``"cpu"`` or ``"cuda"``.
            * ``verbose``: A line is printed every so many epochs; 0 for none.
            * ``budget``: Most time to choose from a portfolio of settings on validation, such as
              ``"30s"`` or ``"5m"``, by default ``"1m"``; ``"none"`` takes the first. What is given
              here is kept by all, and only ``"ours"`` has a portfolio.
            * ``callbacks``: Functions that are called after every epoch with an
              :class:`~lgdgcn.train.population.EpochReport`.

    Attributes:
        classes_: Original class or label names.
        edge_types_: Names of the columns of :meth:`predict_edges`.
        factors_: Number of factors, which ``factors="auto"`` finds.
        history_: Losses and validation scores of every epoch.
        n_features_in_: Number of features.
        result_: Scores of the fit, a :class:`~lgdgcn.runs.fit.SeedResult`.

    Example:
        >>> from lgdgcn.data import synthetic_graph
        >>> graph = synthetic_graph(factors=2, nodes=60, classes=3, average_degree=10)
        >>> model = LGDClassifier(factors=2, hidden_channels=8, epochs=5).fit(graph)
        >>> model.transform().shape
        (60, 2, 4)
        >>> model.predict([3, 5]).shape  # the label sets of two nodes
        (2, 6)
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

    def __sklearn_clone__(self) -> Self:
        """Copy the parameters, but not the graph, which no method changes."""
        return type(self)(**self.get_params())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags

    @classmethod
    def from_networkx(
        cls, graph: Any, label: str = "label", *, words: Sequence[str] = (), **params: Any
    ) -> Self:
        """Bind to a ``networkx`` graph; see :func:`~lgdgcn.data.in_memory.from_networkx`."""
        return cls(graph=from_networkx(graph, label, words=words), **params)

    @classmethod
    def from_pandas(
        cls,
        nodes: Any,
        edges: Any,
        label: str = "label",
        *,
        id: str | None = None,
        ignore: Sequence[str] = (),
        words: Sequence[str] = (),
        **params: Any,
    ) -> Self:
        """Bind to two tables; see :func:`~lgdgcn.data.in_memory.from_pandas`."""
        graph = from_pandas(nodes, edges, label, id=id, ignore=ignore, words=words)
        return cls(graph=graph, **params)

    def fit(self, X: Any = None, y: Any = None, *, edge_index: Any = None) -> Self:
        """Train.

        Args:
            X: A graph; by default ``graph``, or numbers of those of its nodes to train on. Or
                features ``[N, d]`` together with ``edge_index``.
            y: Labels of what ``X`` names; the graph's own by default.
            edge_index: The edges ``[2, E]`` between the nodes whose features are ``X``.
        """
        given = {  # a grid search hands over numpy's numbers
            key: value.item() if isinstance(value, np.generic) else value
            for key, value in self.get_params().items()
        }
        own = {name: given.pop(name) for name in _OWN}
        bound = None if isinstance(given["graph"], str) else given.pop("graph")
        given = {key: value for key, value in given.items() if value is not None}
        variant = given.setdefault("variant", default_variant("lgdgcn"))
        for name, value in given.items():
            check_value(name, value)
        check_belongs(given, "lgdgcn", variant)
        seed, device = own["random_state"], select_device(own["device"])
        if type(seed) is not int:
            raise InputError(f"random_state is {seed!r}; it must be a whole number")
        data = graph_to_fit(X, y, edge_index, bound, own["split"], seed)
        graph = canonical(data, require_labels=True)
        multi_label = graph.y.dim() == 2
        shipped = preset("", "lgdgcn", variant, multi_label=multi_label)
        given = with_fitting_width(shipped, given)
        tried = candidates("", "lgdgcn", given, variant=variant, multi_label=multi_label)
        limit = seconds_of(own["budget"])
        if limit is None:
            tried = tried[:1]
        elif own["budget"] is not None and len(tried) == 1:
            raise InputError(
                f"budget is {own['budget']!r}, but there is one set of settings for variant = "
                f"{variant}, and nothing to choose; leave it out"
            )
        check_used(given, [one.settings for one in tried], "lgdgcn", multi_label=multi_label)
        settings, _ = find_factors(tried[0].settings, graph, "lgdgcn", seed, device)
        is_found = tried[0].settings.factors == AUTO
        sizes = {k: v for k, v in settings.as_dict().items() if k in FOUND and is_found}
        self.history_: list[dict[str, float | None]] = []
        begun = None
        if limit is not None and len(tried) > 1:
            tried = [Candidate("lgdgcn", resolve(one.settings.as_dict(), sizes)) for one in tried]
            choice = choose_settings(tried, graph, device, seed=seed, seconds=limit)
            settings, begun = choice.best.settings, choice.state
            self.history_ = [*choice.log]
        follow: dict[str, Any] = {"on_epoch": self._on_epoch, "begun": begun}
        results, self.trained_ = fit(lambda _: graph, settings, "lgdgcn", [seed], device, **follow)
        self.result_ = results[0]
        self._warnings = [*self.result_.warnings, *_factor_warnings(self.trained_, graph)]
        for warning in self._warnings:
            if not warning.startswith(IDENTIFIER):  # it was said when the graph was read
                warnings.warn(warning, LGDWarning, stacklevel=2)
        self._set_learned()
        self._graph, self._given_edges = graph, data.edge_index
        self._reasons: EdgeReasons | None = None
        return self

    def _on_epoch(self, report: Epoch) -> None:
        epoch = report.state.epoch
        self.history_[epoch - 1 :] = [report.metrics]  # after a lack of memory it starts again
        if self.verbose and (report.finished or epoch % int(self.verbose) == 0):
            line = f"epoch {epoch}: loss {report.metrics['total']:.4f}"
            if math.isfinite(report.state.best_score):
                line += f", best validation {report.state.best_score:.4f}"
            print(line)  # noqa: T201
        for callback in self.callbacks:
            callback(report)

    def _set_learned(self) -> None:
        self.classes_ = np.asarray(self.trained_.classes)
        self.factors_ = self.trained_.settings.num_factors
        self.n_features_in_ = self.trained_.in_channels

    def predict(self, X: Any = None, *, edge_index: Any = None) -> npt.NDArray[Any]:
        """Return the class of every node, or a 0/1 label matrix ``[N, L]``.

        Args:
            X: A graph, whose nodes may be new; by default the fitted one, or numbers of some of
                its nodes. Or features ``[N, d]`` together with ``edge_index``.
            edge_index: The edges ``[2, E]`` between the nodes whose features are ``X``.
        """
        predicted = self._trained.task.predict(self._logits(X, edge_index)).cpu().numpy()
        if self._trained.task.multi_label:
            return predicted.astype(np.int64)
        return np.asarray(self.classes_[predicted])

    def predict_proba(
        self, X: Any = None, *, edge_index: Any = None
    ) -> npt.NDArray[np.floating[Any]]:
        """Return the probability of every class or label, ``[N, C]``; see :meth:`predict`."""
        logits = self._logits(X, edge_index)
        return self._trained.task.probabilities(logits).cpu().numpy()

    def transform(self, X: Any = None, *, edge_index: Any = None) -> npt.NDArray[np.floating[Any]]:
        """Return the units of the last layer, ``[N, M, d]``; see :meth:`predict`."""
        graph, nodes = self._read(X, edge_index)
        return self._trained(graph).layers[-1].units.cpu()[nodes].numpy()

    def edge_factors(self, data: Data | None = None) -> npt.NDArray[np.floating[Any]]:
        """Return the probability that each factor explains each edge, ``[E, M]``.

        Rows follow the graph's own ``edge_index`` as it was given; self loops, which are not
        routed, are NaN.
        """
        graph, _ = self._read(data if data is None else without(data), None)
        wanted = self._given_edges if data is None else data.edge_index
        factors = self._trained(graph).layers[-1].edge_factors.cpu()
        return _rows_of(graph.edge_index, factors, wanted, graph.x.size(0)).numpy()

    @property
    def edge_types_(self) -> list[str]:
        """Names of the types of edges or, where none is known, "reason 1" and so on."""
        return self._edge_reasons.names

    def predict_edges(self) -> npt.NDArray[np.floating[Any]]:
        """Return the probability of every type for each edge of the fitted graph, ``[E, T]``.

        Types are those that ``edge_type`` of the graph shows at some edges: 0/1 ``[E, T]`` with
        rows of zeros, or numbers ``[E]`` with -1, where a type is not known; ``edge_type_names``
        are their names. A graph without them has reasons instead, as many as its edges tell of.
        The model of edges is another one than that of nodes; it is fitted when it is first used.

        Rows follow the graph's own ``edge_index`` as it was given; self loops are NaN.
        """
        reasons = self._edge_reasons
        graph, wanted = self._graph, self._given_edges
        rows = _rows_of(graph.edge_index, reasons.probability, wanted, graph.x.size(0))
        return rows.numpy()

    @property
    def _edge_reasons(self) -> "EdgeReasons":
        _ = self._trained  # unfitted models say so before anything else
        if not hasattr(self, "_graph"):
            raise InputError("a loaded model keeps no graph, nor the types of its edges; call fit")
        graph, _ = self._read(None, None)
        if self._reasons is None:
            from lgdgcn.edges import fit_graph
            from lgdgcn.edges.of_graph import known_types

            reasons = fit_graph(_without_test_labels(graph), seed=int(self.random_state))
            types = known_types(graph)
            self._reasons = reasons if types is None else reasons.with_known(types)
        return self._reasons

    def measure(self, data: Data | None = None) -> "list[Row]":
        """Measure how well factors are told apart, as ``lgdgcn measure`` does: a row each."""
        from lgdgcn.metrics.controls import measure

        return measure(self._trained, self._labelled(data))

    def explore(self, path: str | Path, data: Data | None = None) -> None:
        """Write one HTML page to walk through the graph and its factors.

        Args:
            path: The file, such as ``page.html``.
            data: A graph; the fitted one by default.
        """
        from lgdgcn.explorer.page import to_page
        from lgdgcn.explorer.payload import check_size, payload

        target, graph = check_target(Path(path)), self._labelled(data)
        check_size(self._trained, graph)
        result = getattr(self, "result_", None)
        content = payload(
            self._trained,
            graph,
            dataset=str(graph.get("name") or "graph"),
            log=[json.dumps({"seed": 0, **row}) for row in getattr(self, "history_", [])],
            scores={"validation": result.val, "test": result.test} if result else {},
            measures=[dict(row) for row in self.measure(data)],
            warnings=getattr(self, "_warnings", ()),
        )
        write_text(target, to_page(content))

    def score(self, X: Any = None, y: Any = None, *, edge_index: Any = None) -> float:
        """The score ``metric`` on the test nodes, or the usual one on the nodes that are named.

        Where the graph names no test nodes, on those labelled nodes that :meth:`fit` has used
        neither for training nor for the choice of the epoch; where none are left this is an error.
        A loaded model does not know its graph: it leaves out the nodes that ``train_mask`` and
        ``val_mask`` name, and warns where there are none.

        Args:
            X: A graph, node numbers or features, as for :meth:`predict`.
            y: Labels instead of the graph's own.
            edge_index: The edges ``[2, E]`` between the nodes whose features are ``X``.
        """
        trained = self._trained
        if edge_index is not None:
            X = Data(x=X, edge_index=edge_index)
        graph, nodes = self._read(X, None)
        if nodes is not _ALL:
            return self._score_nodes(graph, nodes, y)
        given = graph if X is None else X
        if y is not None:
            given = without(given, "y", "classes")
            given.y = y
        elif X is not None and X.y is None:
            raise InputError("the graph has no labels to score; give y")
        labelled = canonical(one_split(given, self.split), require_labels=False)
        truth = renumbered(labelled.y, labelled.classes, trained)
        if not is_labelled(truth).any():
            raise InputError("the graph has no labelled nodes to score")
        mask = unseen_nodes(labelled, truth, getattr(self, "_graph", None))
        value = next(iter(trained.task.scores(trained(graph).logits.cpu(), truth, mask).values()))
        assert value is not None
        return value

    def _score_nodes(self, graph: Data, nodes: Tensor, y: Any) -> float:
        """Compare predictions with labels as scikit-learn does: an unknown class is an error."""
        predicted = self.predict(nodes)
        if y is None:
            y = graph.y[nodes].numpy()
            y = y if self._trained.task.multi_label else self.classes_[y]
        if self._trained.task.multi_label:
            return float(f1_score(y, predicted, average="micro", zero_division=0))
        return float(accuracy_score(y, predicted))

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
        # DisenGCN is LGD-GCN with some parts switched off
        settings = replace(trained.settings, **MODELS[trained.name].fixed)
        used = {k: v for k, v in settings.as_dict().items() if k in _SETTINGS}
        own = {k: v for k, v in used.items() if belongs(k, "lgdgcn", settings.variant)}
        model = cls(**own, device=device)
        model.trained_ = trained
        model._set_learned()
        return model

    @property
    def _trained(self) -> TrainedModel:
        if not hasattr(self, "trained_"):
            raise NotFittedError("this LGDClassifier is not fitted; call fit(data) first")
        return self.trained_

    def _read(self, X: Any, edge_index: Any) -> tuple[Data, Any]:
        """The canonical graph to work on, and which of its nodes are asked for."""
        _ = self._trained  # unfitted models say so before anything else
        if edge_index is not None:
            X = Data(x=X, edge_index=edge_index)
        if isinstance(X, Data):  # labels, known or not to the model, have no part in what it says
            data = without(one_split(X, self.split), "y", "classes")
            return canonical(data, require_labels=False), _ALL
        if not hasattr(self, "_graph"):
            raise InputError("a loaded model keeps no graph; give one to this method, or fit it")
        return self._graph, _ALL if X is None else node_numbers(X, len(self._graph.x))

    def _logits(self, X: Any, edge_index: Any) -> Tensor:
        graph, nodes = self._read(X, edge_index)
        return self._trained(graph).logits.cpu()[nodes]

    def _labelled(self, data: Data | None) -> Data:
        """A canonical graph whose labels, where it has any, are numbered as the model's are."""
        if data is None:
            return self._read(None, None)[0]
        graph = canonical(one_split(without(data), self.split), require_labels=False)
        graph.y = renumbered(graph.y, graph.classes, self._trained)
        graph.classes = self._trained.classes
        return graph


def _without_test_labels(graph: Data) -> Data:
    """The graph as it was fitted: with the labels of training and validation nodes alone."""
    known = copy(graph)
    if graph.y.dim() == 1:  # sets of labels have no part in the reasons of edges
        known.y = graph.y.where(graph.train_mask | graph.val_mask, -1)
    return known


def _factor_warnings(trained: TrainedModel, graph: Data) -> list[str]:
    """What a reader of a model's factors should know, as ``lgdgcn train`` says it."""
    output = trained(graph)
    routing = routing_warning(output.layers[-1].edge_factors, trained.settings)
    both = (routing, usage_warning(trained, output))
    return [warning for warning in both if warning]


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
