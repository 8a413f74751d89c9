"""LGD-GCN with scikit-learn's manners."""

import difflib
import functools
import inspect
import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, f1_score
from torch import Tensor, from_numpy
from torch_geometric.data import Data

from lgdgcn import tensor_file
from lgdgcn.config import (
    AUTO,
    Settings,
    belongs,
    check_belongs,
    check_used,
    check_value,
    model_and_variant,
    model_name,
)
from lgdgcn.data.in_memory import (
    MASKS,
    edge_rows,
    graph_to_fit,
    node_numbers,
    without,
)
from lgdgcn.data.labels import IDENTIFIER, is_labelled
from lgdgcn.data.validate import canonical
from lgdgcn.errors import CheckpointError, InputError, LGDNote, LGDWarning
from lgdgcn.messages import said_to_caller
from lgdgcn.metrics.routing import factor_warnings
from lgdgcn.models import MODELS
from lgdgcn.nn import Disentangled
from lgdgcn.runs.fit import SeedResult, fit
from lgdgcn.runtime import select_device
from lgdgcn.search.choose import choose
from lgdgcn.search.families import Candidate, candidates, limit_of
from lgdgcn.storage import check_target, write_text
from lgdgcn.train.scoring import renumbered, unseen_nodes
from lgdgcn.train.trained import MODEL, TrainedModel
from lgdgcn.training import Epoch

if TYPE_CHECKING:
    from lgdgcn.metrics.controls import Row
    from lgdgcn.reasons import EdgeReasons

__all__ = ["LGDClassifier"]

_ALL = slice(None)  # all nodes
_NAMED = (  # parameters that are settings of the same name
    *("factors", "hidden_channels", "num_layers", "dropout"),
    *("lr", "weight_decay", "epochs", "patience"),
)
_SETTINGS = {field.name for field in fields(Settings)}
_NOT_SAVED = ("graph", "callbacks", "device")
_KNOWN_AS = {  # words of other libraries
    "learning_rate": "lr",
    "max_iter": "epochs",
    "n_epochs": "epochs",
    "hidden_dim": "hidden_channels",
    "hidden_size": "hidden_channels",
    "n_factors": "factors",
    "seed": "random_state",
    "variant": "model",
    "class_weights": "class_weight",
}


_P = ParamSpec("_P")


def _names_what_is_meant(init: Callable[_P, None]) -> Callable[_P, None]:
    """Let a parameter that is not there name the one that is."""
    known = [*inspect.signature(init).parameters][1:]

    @functools.wraps(init)
    def checked(*args: _P.args, **params: _P.kwargs) -> None:
        for name in params:
            if name not in known:
                raise TypeError(f"LGDClassifier has no parameter {name!r}; {_hint(name, known)}")
        init(*args, **params)

    return checked


def _hint(name: str, known: Sequence[str]) -> str:
    if name in _SETTINGS and name not in _KNOWN_AS:
        return f"it is one of the settings: LGDClassifier(settings={{{name!r}: ...}})"
    close = difflib.get_close_matches(name, [*known, *_SETTINGS, *_KNOWN_AS], n=1)
    meant = _KNOWN_AS.get(name) or (_KNOWN_AS.get(close[0], close[0]) if close else None)
    if meant in _SETTINGS and meant not in known:
        return f"did you mean settings={{{meant!r}: ...}}?"
    return f"did you mean {meant}?" if meant else f"it has {', '.join(known)}"


class LGDClassifier(ClassifierMixin, BaseEstimator):
    """Node classifier that splits what it knows of each node into factors.

    It is fitted on a graph, ``fit(data)``: a ``torch_geometric.data.Data`` with ``x``,
    ``edge_index``, ``y`` and optionally ``train_mask``, ``val_mask``, ``test_mask``; or on arrays,
    ``fit(x, y, edge_index=edge_index)``. Methods that take a graph use the fitted one by default.

    Bound to a graph, ``LGDClassifier(graph=data)``, it can be fitted on some of its nodes,
    ``fit(nodes, y)``, and asked about others, ``predict(nodes)``, by number or, where the graph has
    ``node_ids``, by id: so scikit-learn's model selection works. All edges and features are seen,
    labels only of the nodes to fit, of which a fifth chooses the epoch to keep. Graphs of networkx
    and tables of pandas are read by :func:`lgdgcn.data.from_networkx` and ``from_pandas``.

    Nodes that were not there in training are predicted in the same way as all others: with a graph
    that has them, ``predict(grown)``, or one of quite other nodes. It needs the feature columns of
    training; nothing is trained again.

    Args:
        model: ``"lgdgcn"``, ``"lgdgcn-paper"``, ``"gcn"`` and others, as ``lgdgcn train --model``
            has them. ``"auto"`` races all of them on validation and keeps the best; what needs
            factors then works if the winner has some.
        factors: Number of factors, or ``"auto"`` to find it. ``None``, here and for others below,
            is what the model's shipped settings say, or what the race finds.
        hidden_channels: Size of a layer's output, all factors together.
        num_layers: Number of layers.
        dropout: Dropout after every layer.
        lr: Learning rate of Adam.
        weight_decay: Weight decay.
        epochs: Most epochs.
        patience: Epochs without a better validation score after which training ends.
        batch_size: Nodes of a step, 0 for all.
        metric: The score that chooses the epoch and that :meth:`score` returns.
        budget: How many sets of settings are tried on validation: a number, ``"none"`` to take
            the first; ``None`` for all of the portfolio, beyond which Optuna searches on.
        time_limit: Most time to try them, such as ``"5m"``; it ends them with a warning, as the
            choice then depends on the machine.
        class_weight: ``"balanced"`` lets rare classes count more.
        settings: Further settings by name, such as ``{"tau": 0.5}``; ``lgdgcn settings`` lists
            them. Also set by ``set_params(settings__tau=0.5)``.
        graph: The graph to fit, where :meth:`fit` is not given one.
        random_state: The seed of weights, dropout and held-back nodes.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        verbose: A line is printed every so many epochs; 0 for none.
        callbacks: Functions that are called after every epoch with an
            :class:`~lgdgcn.training.Epoch`.

    Attributes:
        classes_: Original class or label names.
        choice_: What the race found, with its ``ranking``.
        edge_types_: Names of the columns of :meth:`predict_edges`.
        factors_: Number of factors.
        feature_names_in_: Names of the features, where the graph has them.
        history_: Losses and validation scores of every epoch.
        n_features_in_: Number of features.
        n_iter_: Number of epochs.
        result_: Scores of the fit, a :class:`~lgdgcn.runs.fit.SeedResult`.

    Example:
        >>> from lgdgcn.data import synthetic_graph
        >>> graph = synthetic_graph(factors=2, nodes=60, classes=3, average_degree=10)
        >>> model = LGDClassifier(factors=2, hidden_channels=8, epochs=5, budget=1).fit(graph)
        >>> model.transform().shape
        (60, 2, 4)
        >>> model.predict([3, 5]).shape  # the label sets of two nodes
        (2, 6)
    """

    @_names_what_is_meant
    def __init__(
        self,
        model: str = "lgdgcn",
        *,
        factors: int | str | None = None,
        hidden_channels: int | None = None,
        num_layers: int | None = None,
        dropout: float | None = None,
        lr: float | None = None,
        weight_decay: float | None = None,
        epochs: int | None = None,
        patience: int | None = None,
        batch_size: int = 0,
        metric: str = AUTO,
        budget: int | str | None = None,
        time_limit: str | None = None,
        class_weight: str | None = None,
        settings: Mapping[str, Any] | None = None,
        graph: Data | None = None,
        random_state: int = 0,
        device: str = "auto",
        verbose: int = 0,
        callbacks: Sequence[Callable[[Epoch], object]] = (),
    ) -> None:
        self.model = model
        self.factors = factors
        self.hidden_channels = hidden_channels
        self.num_layers = num_layers
        self.dropout = dropout
        self.lr = lr
        self.weight_decay = weight_decay
        self.epochs = epochs
        self.patience = patience
        self.batch_size = batch_size
        self.metric = metric
        self.budget = budget
        self.time_limit = time_limit
        self.class_weight = class_weight
        self.settings = settings
        self.graph = graph
        self.random_state = random_state
        self.device = device
        self.verbose = verbose
        self.callbacks = callbacks

    # scikit-learn's manners

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all parameters; ``deep`` also each of ``settings``, as ``settings__tau``."""
        params: dict[str, Any] = super().get_params(deep=False)
        if deep and isinstance(self.settings, Mapping):
            params |= {f"settings__{name}": value for name, value in self.settings.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of ``settings`` as ``settings__tau``."""
        start = "settings__"
        further = {k.removeprefix(start): v for k, v in params.items() if k.startswith(start)}
        super().set_params(**{k: v for k, v in params.items() if not k.startswith(start)})
        if further:
            self.settings = {**(self.settings or {}), **further}
        return self

    def __repr__(self, N_CHAR_MAX: int = 100) -> str:
        usual = inspect.signature(type(self)).parameters
        shown = [
            f"{k}=<{v.num_nodes} nodes>" if isinstance(v, Data) else f"{k}={v!r}"
            for k, v in self.get_params(deep=False).items()
            if v is not usual[k].default and repr(v) != repr(usual[k].default)
        ]
        text = f"{type(self).__name__}({', '.join(shown)})"
        return text if len(text) <= N_CHAR_MAX else f"{text[: N_CHAR_MAX - 4]}...)"

    def __sklearn_clone__(self) -> Self:
        """Copy the parameters, but not the graph, which no method changes."""
        return type(self)(**self.get_params(deep=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle keeps: as :meth:`save` all but the graph that was fitted."""
        state: dict[str, Any] = super().__getstate__()
        of_graph = ("_graph", "_given_edges", "_reasons", "choice_")
        return {name: value for name, value in state.items() if name not in of_graph}

    # Fitting

    def fit(self, X: Any = None, y: Any = None, *, edge_index: Any = None) -> Self:
        """Train.

        Args:
            X: A graph; by default ``graph``, or numbers or ids of those of its nodes to train on.
                Or features ``[N, d]`` together with ``edge_index``.
            y: Labels of what ``X`` names; the graph's own by default. -1, NaN and ``None`` are
                nodes without a label.
            edge_index: The edges ``[2, E]`` between the nodes whose features are ``X``.
        """
        with said_to_caller():
            seed, device = _plain(self.random_state), select_device(self.device)
            if type(seed) is not int:
                raise InputError(f"random_state is {seed!r}; it must be a whole number")
            given = self._given()
            data = graph_to_fit(X, y, edge_index, self.graph, seed)
            graph = canonical(data, require_labels=True)
            tried = self._tried(given, multi_label=graph.y.dim() == 2)
            self.choice_ = choose(
                tried,
                graph,
                device,
                seed=seed,
                seconds=limit_of(self.time_limit, "time_limit"),
                budget=None if self.budget in (None, "none") else int(self.budget),
                fixed=given,
            )
            if len(tried) > 1:
                kind = LGDWarning if self.choice_.early else LGDNote
                warnings.warn(str(self.choice_), kind, stacklevel=2)
            best, self.history_ = self.choice_.best, [*self.choice_.log]
            (self.result_,), self.trained_ = fit(
                lambda _: graph,
                best.settings,
                best.model,
                [seed],
                device,
                on_epoch=self._on_epoch,
                begun=self.choice_.state,
            )
            self._graph, self._given_edges = graph, data.edge_index
            self._reasons: EdgeReasons | None = None
            self._set_learned()
            self._warnings = [
                *self.result_.warnings,
                *factor_warnings(self.trained_, self.trained_(graph)),
            ]
            for warning in self._warnings:
                if not warning.startswith(IDENTIFIER):  # it was said when the graph was read
                    warnings.warn(warning, LGDWarning, stacklevel=2)
        return self

    def _given(self) -> dict[str, Any]:
        """The settings that are given, checked one by one."""
        if self.class_weight not in (None, "balanced"):
            raise InputError(f"class_weight is {self.class_weight!r}; use 'balanced' or None")
        given = {name: getattr(self, name) for name in _NAMED}
        given |= {"batch_size": self.batch_size or None, "class_weights": self.class_weight}
        given |= {"metric": None if self.metric == AUTO else self.metric}
        given = {name: _plain(value) for name, value in given.items() if value is not None}
        for name, value in (self.settings or {}).items():
            if name in given or name in ("variant", "checkpoint_every"):
                why = "is given as a parameter, too" if name in given else "has no effect here"
                why = "is a part of model, such as 'lgdgcn-paper'" if name == "variant" else why
                raise InputError(f"settings: {name} {why}; leave it out of settings")
            given[name] = _plain(value)
        for name, value in given.items():
            check_value(name, value)
        return given

    def _tried(self, given: dict[str, Any], *, multi_label: bool) -> list[Candidate]:
        """What takes part in the race; a single one is trained as it is."""
        name = None if self.model == AUTO else self.model
        if name is not None:
            check_belongs(given, *model_and_variant(name))
        tried = candidates("", name, given, multi_label=multi_label)
        budget = _plain(self.budget)
        most = 1 if budget == "none" else len(tried) if budget is None else budget
        if type(most) is not int or most < 1 or (most > 1 == len(tried)):
            raise InputError(
                f"budget is {budget!r}; give a number of settings to try, of which the portfolio "
                f"of {self.model} has {len(tried)}, 'none' for the first of them, or None for all "
                "(a time is time_limit='5m')"
            )
        tried = tried[:most]
        if self.time_limit is not None and len(tried) == 1:
            raise InputError("time_limit ends a search, and one set of settings needs none")
        if name is not None:
            every = [one.settings for one in tried]
            check_used(given, every, tried[0].model, multi_label=multi_label)
        return tried

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
        trained = self.trained_
        self.classes_ = np.asarray(trained.classes)
        self.n_features_in_ = trained.in_channels
        self.factors_ = trained.settings.num_factors if trained.model.num_factors else 0
        self.__dict__.pop("feature_names_in_", None)  # of another fit
        if trained.feature_names is not None:
            self.feature_names_in_ = np.asarray(trained.feature_names, dtype=object)
        if hasattr(self, "result_"):
            self.n_iter_ = self.result_.epochs

    # What a fitted model says

    def predict(self, X: Any = None, *, edge_index: Any = None) -> npt.NDArray[Any]:
        """Return the class of every node, or a 0/1 label matrix ``[N, L]``.

        Args:
            X: A graph, whose nodes may be new; by default the fitted one, or numbers or ids of some
                of its nodes. Or features ``[N, d]`` together with ``edge_index``.
            edge_index: The edges ``[2, E]`` between the nodes whose features are ``X``.
        """
        predicted = self._trained.task.predict(self._logits(X, edge_index)).numpy()
        if self._trained.task.multi_label:
            return predicted.astype(np.int64)
        return np.asarray(self.classes_[predicted])

    def predict_proba(
        self, X: Any = None, *, edge_index: Any = None
    ) -> npt.NDArray[np.floating[Any]]:
        """Return the probability of every class or label, ``[N, C]``; see :meth:`predict`."""
        return self._trained.task.probabilities(self._logits(X, edge_index)).numpy()

    def transform(self, X: Any = None, *, edge_index: Any = None) -> npt.NDArray[np.floating[Any]]:
        """Return the units of the last layer, ``[N, M, d]``; see :meth:`predict`."""
        with said_to_caller():
            graph, nodes = self._read(X, edge_index)
            return self._last_layer(graph).units.cpu()[nodes].numpy()

    def edge_factors(self, data: Data | None = None) -> npt.NDArray[np.floating[Any]]:
        """Return the probability that each factor explains each edge, ``[E, M]``.

        Rows follow the graph's own ``edge_index`` as it was given; self loops, which are not
        routed, are NaN.
        """
        with said_to_caller():
            graph, _ = self._read(data if data is None else without(data), None)
            factors = self._last_layer(graph).edge_factors.cpu()
        wanted = self._given_edges if data is None else data.edge_index
        return edge_rows(graph, factors, wanted).numpy()

    def _logits(self, X: Any, edge_index: Any) -> Tensor:
        with said_to_caller():
            graph, nodes = self._read(X, edge_index)
            return self._trained(graph).logits.cpu()[nodes]

    def _last_layer(self, graph: Data) -> Disentangled:
        output = self._trained(graph)
        if not output.layers:
            title = MODELS[self._trained.name].title
            raise InputError(f"the model is {title}, which has no factors; fit model='lgdgcn'")
        return output.layers[-1]

    @property
    def edge_types_(self) -> list[str]:
        """Names of the types of edges or, where none is known, of the reasons that were found."""
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
        probability = reasons.edges.both(reasons.probability)
        return edge_rows(self._graph, from_numpy(probability), self._given_edges).numpy()

    @property
    def _edge_reasons(self) -> "EdgeReasons":
        graph, _ = self._read(None, None)
        if self._reasons is None:
            from lgdgcn.reasons import EdgeReasonModel

            model = EdgeReasonModel(time_limit=0, random_state=int(self.random_state))
            self._reasons = model.fit(graph).reasons_
        return self._reasons

    def measure(self, data: Data | None = None) -> "list[Row]":
        """Measure how well factors are separated, as ``lgdgcn measure`` does: a row each."""
        from lgdgcn.metrics.controls import measure

        with said_to_caller():
            return measure(self._trained, self._labelled(data))

    def explore(self, path: str | Path, data: Data | None = None) -> None:
        """Write one HTML page to walk through the graph, the fitted one or another."""
        from lgdgcn.explorer.page import to_page
        from lgdgcn.explorer.payload import check_size, payload
        from lgdgcn.reasons import Explanation

        with said_to_caller():
            target, graph = check_target(Path(path)), self._labelled(data)
            check_size(graph)
            result = getattr(self, "result_", None)
            if self._trained.model.num_factors:
                explanation = Explanation.of_factors(self._trained, graph)
                measures = [dict(row) for row in self.measure(data)]
            elif data is None:
                explanation, measures = Explanation(graph, self._edge_reasons, self._trained), []
            else:
                title = MODELS[self._trained.name].title
                raise InputError(f"{title} has no factors of another graph's edges; leave it out")
            content = payload(
                explanation,
                dataset=str(graph.get("name") or "graph"),
                log=[json.dumps({"seed": 0, **row}) for row in getattr(self, "history_", [])],
                scores={"validation": result.val, "test": result.test} if result else {},
                measures=measures,
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
            X: A graph, nodes or features, as for :meth:`predict`.
            y: Labels instead of the graph's own.
            edge_index: The edges ``[2, E]`` between the nodes whose features are ``X``.
        """
        with said_to_caller():
            trained = self._trained
            if edge_index is not None:
                X = Data(x=X, edge_index=edge_index)
            graph, nodes = self._read(X, None)
            if nodes is not _ALL:
                return self._score_nodes(graph, nodes, X, y)
            given = graph if X is None else X
            if y is not None:
                given = without(given, "y", "classes")
                given.y = y
            elif X is not None and X.y is None:
                raise InputError("the graph has no labels to score; give y")
            labelled = canonical(given, require_labels=False)
            truth = renumbered(labelled.y, labelled.classes, trained)
            if not is_labelled(truth).any():
                raise InputError("the graph has no labelled nodes to score")
            mask = unseen_nodes(labelled, truth, getattr(self, "_graph", None))
            scores = trained.task.scores(trained(graph).logits.cpu(), truth, mask)
        value = next(iter(scores.values()))
        assert value is not None
        return value

    def _score_nodes(self, graph: Data, nodes: Tensor, X: Any, y: Any) -> float:
        """Compare predictions with labels as scikit-learn does: an unknown class is an error."""
        predicted = self.predict(X)
        if y is None:
            if not is_labelled(graph.y[nodes]).all():
                raise InputError("some of the nodes have no labels to score; give y")
            y = graph.y[nodes].numpy()
            y = y if self._trained.task.multi_label else self.classes_[y]
        if self._trained.task.multi_label:
            return float(f1_score(y, predicted, average="micro", zero_division=0))
        return float(accuracy_score(y, predicted))

    # Files

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one safetensors file, all but its graph.

        An earlier model of that name is replaced, any other file is not.
        """
        trained = self._trained
        tensor_file.refuse_foreign(Path(path))
        params = {k: v for k, v in self.get_params(deep=False).items() if k not in _NOT_SAVED}
        params["settings"] = {k: _plain(v) for k, v in (self.settings or {}).items()} or None
        about: dict[str, Any] = {"params": {k: _plain(v) for k, v in params.items()}}
        if hasattr(self, "result_"):
            about |= {"history": self.history_, "result": asdict(self.result_)}
            about |= {"warnings": self._warnings}
        meta = {**trained.describe(), "estimator": about}
        tensor_file.save(Path(path), trained.model.state_dict(), meta, MODEL)

    @classmethod
    def load(cls, path: str | Path, device: str = "auto") -> Self:
        """Read a model that :meth:`save` or ``lgdgcn train`` wrote; give graphs to its methods."""
        trained = TrainedModel.load(Path(path), select_device(device))
        about = tensor_file.load(Path(path), MODEL)[1].get("estimator")
        try:
            if about is None:  # of a run
                return cls(**_params_of(trained), device=device)._with(trained)
            model = cls(**about["params"], device=device)
            if "result" in about:
                model.history_, model._warnings = about["history"], about["warnings"]
                model.result_ = SeedResult(**about["result"])
        except (KeyError, TypeError, AttributeError):
            raise CheckpointError(f"{path}: its parameters cannot be read; fit again") from None
        return model._with(trained)

    def _with(self, trained: TrainedModel) -> Self:
        self.trained_ = trained
        self._set_learned()
        return self

    # Graphs

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
            return canonical(without(X, "y", "classes", *MASKS), require_labels=False), _ALL
        if not hasattr(self, "_graph"):
            if self.graph is None:
                raise InputError(
                    "a loaded model keeps no graph; give one to this method, or fit it"
                )
            self._graph, _ = self._read(self.graph, None)
            self._given_edges, self._reasons = self.graph.edge_index, None
        graph = self._graph
        return graph, _ALL if X is None else node_numbers(X, len(graph.x), graph.get("node_ids"))

    def _labelled(self, data: Data | None) -> Data:
        """A canonical graph whose labels, where it has any, are numbered as the model's are."""
        if data is None:
            return self._read(None, None)[0]
        graph = canonical(without(data), require_labels=False)
        graph.y = renumbered(graph.y, graph.classes, self._trained)
        graph.classes = self._trained.classes
        return graph


def _params_of(trained: TrainedModel) -> dict[str, Any]:
    """The parameters that a run's model was trained with."""
    name, variant = trained.name, trained.settings.variant
    settings = {**trained.settings.as_dict(), **MODELS[name].fixed}
    settings = {k: v for k, v in settings.items() if belongs(k, name, variant)}
    named = {k: v for k, v in settings.items() if k in _NAMED}
    further = settings.keys() - {*_NAMED, "variant", "checkpoint_every"}
    return {
        "model": model_name(name, variant),
        **named,
        "settings": {k: settings[k] for k in sorted(further)},
    }


def _plain(value: Any) -> Any:
    """A grid search hands over numpy's numbers."""
    return value.item() if isinstance(value, np.generic) else value
