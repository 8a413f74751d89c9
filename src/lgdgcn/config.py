"""Every setting of a run: its type, range, default and meaning, in one place.

Plain dataclasses: the training path must import where only torch and the numerical libraries
are installed.
"""

import dataclasses
import difflib
import json
import math
import re
import tomllib
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from lgdgcn.errors import InputError, LGDWarning

__all__ = [
    "AUTO",
    "LOSS_WEIGHTS",
    "MODEL_NAMES",
    "PER_MEMBER_SETTINGS",
    "Settings",
    "auto_scaling",
    "belongs",
    "check_belongs",
    "check_used",
    "check_value",
    "check_width",
    "default_variant",
    "from_toml",
    "has_own_preset",
    "merge",
    "model_and_variant",
    "model_name",
    "nearest_width",
    "parse_assignments",
    "portfolio",
    "preset",
    "preset_names",
    "preset_note",
    "resolve",
    "to_toml",
    "with_fitting_width",
]

AUTO = "auto"
"""The value of a setting whose number training finds."""

MODEL_NAMES = (
    "lgdgcn", "lgdgcn-paper", "lgdgcn-released", "disengcn", "disengcn-released",
    "gcn", "gat", "monet", "appnp", "gcnii", "grand", "mlp", "reasons",
)  # fmt: skip
"""What ``--model`` takes."""

DEFAULTS = "defaults"  # the presets of a graph without its own


_LARGEST = 2**31 - 1  # of what sizes are computed from
_TABLES = (
    "settings",
    "run",
    "preset",
    "auto_factors",
    "search",
)  # in files that this package writes


def _number(
    default: float,
    help: str,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    above: float = -math.inf,
    below: float = math.inf,
    per_member: bool = False,
    weighs: str | None = None,
    auto: bool = False,
    **whose: Any,
) -> Any:
    """A setting that is a number.

    Args:
        default: Its default, which also tells its type.
        help: What it is, in a few words.
        low: Least value.
        high: Largest value.
        above: All values are above this one.
        below: All values are below this one.
        per_member: Whether models trained in one pass may differ in it.
        weighs: Name of the loss that it is the weight of (see ``NodeModel.losses``).
        auto: Whether it may be :data:`AUTO`, a number that training finds.
        **whose: See :func:`_setting`.
    """
    limits = {"low": low, "high": high, "above": above, "below": below}
    meaning: dict[str, Any] = {
        "per_member": per_member or weighs is not None,
        "weighs": weighs,
        "auto": auto,
    }
    return _setting(default, help, limits=limits, **meaning, **whose)


def _choice(default: str, help: str, options: tuple[str, ...], **whose: Any) -> Any:
    return _setting(default, help, options=options, **whose)


def _flag(default: bool, help: str, **whose: Any) -> Any:
    return _setting(default, help, **whose)


def _setting(
    default: Any,
    help: str,
    *,
    models: tuple[str, ...] = (),
    needs: tuple[str, ...] = (),
    needed_by: tuple[str, ...] = (),
    **metadata: Any,
) -> Any:
    """A setting, and where it has an effect: nowhere else is it accepted.

    Args:
        default: Its default, which also tells its type.
        help: What it is, in a few words.
        models: The models that have it, a variant of theirs as in ``lgdgcn-ours``; all if none
            is named.
        needs: What else must hold, such as ``"views > 1"``: a setting, ``>``, ``=`` or ``not``,
            and a value. Several of these may stand in one text with ``or`` between them.
        needed_by: The models in which it needs that; all by default.
        **metadata: What else is known of it.
    """
    where = {"models": models, "needs": needs, "needed_by": needed_by}
    return dataclasses.field(default=default, metadata={"help": help, **where, **metadata})


# Models that settings belong to
_FACTORS = ("lgdgcn", "disengcn")
_GLOBAL = ("lgdgcn",)  # with latent spaces and latent graphs
_OURS = ("lgdgcn-ours", "disengcn-ours")
_RANDOM = (*_OURS, "grand", "reasons")  # with random propagation
_LAYERS = (*_FACTORS, "gcn", "gat", "monet", "appnp", "gcnii", "mlp")
_ONE_LAYER = ("gcn", "gat", "monet", "appnp", "mlp")  # whose only layer may lead to the classes
# What several settings need
_ENCODER = "encoder_channels > 0"
_HOPS = "hops > 0"
_VIEWS = "views > 1"
_PULL = "lambda_consistency > 0"
_CLASSES = "unit_length = false"
_BATCHES = "batch_size > 0"


@dataclass(frozen=True)
class Settings:
    """The hyper-parameters of a model and its training; each value is checked on creation.

    Example:
        >>> Settings(lr=0.05).lr
        0.05
        >>> Settings(factors=0)
        Traceback (most recent call last):
        lgdgcn.errors.InputError: factors is 0; it must be at least 1
    """

    # The network
    variant: str = _choice(
        "paper",
        "the paper's text, the authors' code, or units that are classes",
        ("paper", "released", "ours"),
        models=_FACTORS,
    )
    factors: int | str = _number(
        4,
        "latent factors M, or for ours auto to find their number",
        low=1,
        high=_LARGEST,
        auto=True,
        models=_FACTORS,
    )
    hidden_channels: int = _number(
        64,
        "size of a layer's output, all factors together",
        low=1,
        high=_LARGEST,
        needs=("num_layers > 1",),
        needed_by=_ONE_LAYER,
    )
    num_layers: int = _number(1, "layers L", low=1, high=64, models=_LAYERS)
    iterations: int = _number(
        7, "routing iterations T; for ours 0 for none", low=0, high=100, models=_FACTORS
    )
    tau: float = _number(
        1.0,
        "routing temperature",
        above=0,
        per_member=True,
        models=_FACTORS,
        needs=("iterations > 0 or unit_length = true",),
    )
    graph: str = _choice(
        "cknn",
        "kind of latent graph",
        ("knn", "cknn"),
        models=_GLOBAL,
        needs=("latent_graph = true",),
    )
    k: int = _number(
        4,
        "neighbours in the latent graph",
        low=1,
        per_member=True,
        models=_GLOBAL,
        needs=("latent_graph = true",),
    )
    dropout: float = _number(0.5, "dropout after every layer", low=0, below=1, per_member=True)
    space: bool = _flag(True, "use the space loss", models=_GLOBAL)
    diversity: bool = _flag(True, "use the diversity loss", models=_GLOBAL)
    latent_graph: bool = _flag(True, "aggregate along the latent graphs", models=_GLOBAL)
    lambda_space: float = _number(
        0.5,
        "weight of the space loss; 1e-5 or so for paper",
        low=0,
        high=1e30,
        weighs="space",
        models=_GLOBAL,
        needs=("space = true",),
    )
    lambda_div: float = _number(
        0.01,
        "weight of the diversity loss",
        low=0,
        high=1e30,
        weighs="diversity",
        models=_GLOBAL,
        needs=("diversity = true",),
    )
    lambda_edge: float = _number(
        1.0,
        "weight of the edge loss",
        low=0,
        high=1e30,
        weighs="edge",
        models=_OURS,
        needs=(_CLASSES,),
    )
    free_share: float = _number(
        0.1,
        "share of the edges that factors without labels begin with",
        above=0,
        high=0.9,
        per_member=True,
        models=_OURS,
        needs=(_CLASSES, "factors > 1"),
    )
    label_groups: bool = _flag(
        True,
        "give labels that exclude each other one factor",
        models=_OURS,
        needs=(_CLASSES, "labels = sets or encoder_channels = 0"),
    )
    update_rate: float = _number(
        0.5,
        "share U_r of new statistics per epoch",
        low=0,
        high=1,
        per_member=True,
        models=_GLOBAL,
        needs=("space = true or diversity = true",),
    )
    precision: str = _choice(
        "variant",
        "what stands for the inverse covariance",
        ("variant", "scaled", "exact", "released"),
        models=_GLOBAL,
        needs=("space = true or diversity = true",),
    )
    # Random propagation
    encoder_channels: int = _number(
        0,
        "hidden channels in front of the factors, 0 for none",
        low=0,
        high=_LARGEST,
        models=_OURS,
    )
    encoder_layers: int = _number(
        1, "hidden layers in front of the factors", low=1, high=64, models=_OURS, needs=(_ENCODER,)
    )
    hops: int = _number(
        0, "hops K of the propagation", low=0, high=1000, models=_RANDOM, needs=(_ENCODER,)
    )
    propagate: str = _choice(
        "hidden",
        "propagate hidden channels or features",
        ("hidden", "features"),
        models=_RANDOM,
        needs=(_ENCODER,),
    )
    hop_weights: str = _choice(
        "mean",
        "the hops' mean, learned shares, signed numbers, or a separate matrix each",
        ("mean", "learned", "signed", "separate"),
        models=_RANDOM,
        needs=(_ENCODER, f"{_HOPS} or hop_weights = signed"),
    )
    drop_nodes: float = _number(
        0.5,
        "nodes dropped before propagation",
        low=0,
        below=1,
        per_member=True,
        models=_RANDOM,
        needs=(_ENCODER,),
    )
    input_dropout: float = _number(
        0.0,
        "dropout of single features",
        low=0,
        below=1,
        per_member=True,
        models=_RANDOM,
        needs=(_ENCODER,),
    )
    batch_norm: bool = _flag(
        False, "normalise the input of both layers", models=_RANDOM, needs=(_ENCODER,)
    )
    views: int = _number(
        1,
        "random views S of the graph in every step",
        low=1,
        high=64,
        models=_RANDOM,
        needs=(_ENCODER,),
    )
    lambda_consistency: float = _number(
        1.0,
        "weight of agreement between views",
        low=0,
        high=1e30,
        weighs="consistency",
        models=_RANDOM,
        needs=(_VIEWS,),
    )
    sharpening: float = _number(
        0.5,
        "temperature of what views agree on",
        above=0,
        high=1,
        per_member=True,
        models=_RANDOM,
        needs=(_VIEWS, _PULL),
    )
    consistency_warmup: int = _number(
        0,
        "epochs in which that weight grows from 0, 0 for none",
        low=0,
        per_member=True,
        models=_RANDOM,
        needs=(_VIEWS, _PULL),
    )
    confidence: float = _number(
        0.0,
        "views agree only on nodes whose likeliest class is above it",
        low=0,
        below=1,
        per_member=True,
        models=_RANDOM,
        needs=(_VIEWS, _PULL),
    )
    weight_average: float = _number(
        0.0,
        "evaluate a moving average of the weights with this decay, 0 for none",
        low=0,
        below=1,
        per_member=True,
    )
    structure: str = _choice(
        "none",
        "propagate along edges weighed by agreement (local), latent neighbours (global), or both",
        ("none", "local", "global", "both"),
        models=_OURS,
        needs=(_ENCODER, f"{_HOPS} or encoder_layers > 1"),
    )
    structure_neighbours: int = _number(
        10,
        "latent neighbours to propagate along",
        low=1,
        high=1000,
        models=_OURS,
        needs=("structure = global or structure = both",),
    )
    structure_weight: float = _number(
        0.3,
        "weight of latent neighbours",
        low=0,
        high=1e6,
        per_member=True,
        models=_OURS,
        needs=("structure = global or structure = both",),
    )
    refresh_every: int = _number(
        50,
        "epochs between two looks at the structure",
        low=1,
        models=_OURS,
        needs=("structure not none",),
    )
    unit_length: bool = _flag(
        False,
        "units of length 1 instead of class distributions, for comparison",
        models=_OURS,
    )
    # Baselines
    heads: int = _number(
        8, "attention heads", low=1, high=_LARGEST, models=("gat",), needs=("num_layers > 1",)
    )
    kernel_size: int = _number(3, "Gaussian kernels", low=1, high=_LARGEST, models=("monet",))
    propagation: int = _number(
        10, "propagation steps", low=1, high=1000, models=("appnp", "reasons")
    )
    alpha: float = _number(
        0.1, "teleport share, or initial residual", low=0, high=1, models=("appnp", "gcnii")
    )
    theta: float = _number(0.5, "strength of the identity mapping", above=0, models=("gcnii",))
    # Training
    normalize_features: bool = _flag(False, "the same as scaling = rows")
    scaling: str = _choice(
        "none",
        "how features are scaled, auto by what they are",
        ("auto", "rows", "standard", "none"),
    )
    lr: float = _number(
        0.01, "learning rate", above=0, high=1e30, per_member=True
    )  # float32 holds its steps
    weight_decay: float = _number(5e-3, "L2 penalty of Adam", low=0, high=1e30, per_member=True)
    epochs: int = _number(1000, "most epochs", low=1, per_member=True)
    patience: int = _number(100, "epochs without a better validation score", low=1, per_member=True)
    batch_size: int = _number(
        0, "nodes of a step, 0 for all", low=0, high=_LARGEST, models=("lgdgcn-ours",)
    )
    batch_parts: int = _number(
        1,
        "parts of a step that ranks share, each with random numbers of its own",
        low=1,
        high=4096,
        models=("lgdgcn-ours",),
        needs=(_BATCHES,),
    )
    fan_out: int = _number(
        8,
        "neighbours drawn for a node of a batch, fewer at later hops; 0 for all",
        low=0,
        high=64,
        models=("lgdgcn-ours",),
        needs=(_BATCHES,),
    )
    hop_table: str = _choice(
        AUTO,
        "propagate features once, for all batches, instead of drawing neighbours at every hop",
        (AUTO, "always", "never"),
        models=("lgdgcn-ours",),
        needs=(_BATCHES, _HOPS),
    )
    class_weights: str = _choice(
        "none",
        "let rare classes or labels count more in the loss, or not",
        ("none", "balanced"),
    )
    metric: str = _choice(
        AUTO,
        "score that chooses the epoch to keep and is the headline",
        (
            AUTO,
            "accuracy",
            "balanced_accuracy",
            "macro_f1",
            "micro_f1",
            "roc_auc",
            "average_precision",
        ),
    )
    checkpoint_every: int = _number(25, "epochs between two checkpoints", low=1, per_member=True)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, _checked(field, getattr(self, field.name)))
        if self.factors == AUTO and self.variant != "ours":
            raise InputError(
                f"factors is {AUTO!r}, but the {self.variant} variant cannot find their "
                "number; use model lgdgcn or give a number"
            )

    @property
    def num_factors(self) -> int:
        """The number of factors, where it is known."""
        if isinstance(self.factors, str):
            raise InputError(
                f"factors is {self.factors!r}, which only lgdgcn train and LGDClassifier can find "
                "a number for; give a number"
            )
        return self.factors

    @property
    def feature_scaling(self) -> str:
        """How features are scaled, by whichever setting says it."""
        return "rows" if self.normalize_features and self.scaling == "none" else self.scaling

    @property
    def architecture(self) -> dict[str, Any]:
        """The settings that trainings of one pass have in common: all but per-member ones."""
        return {k: v for k, v in self.as_dict().items() if k not in PER_MEMBER_SETTINGS}

    def as_dict(self) -> dict[str, Any]:
        """Return the settings by name."""
        return dataclasses.asdict(self)


_FIELDS = dataclasses.fields(Settings)
_BY_NAME = {field.name: field for field in _FIELDS}

PER_MEMBER_SETTINGS = tuple(f.name for f in _FIELDS if f.metadata.get("per_member"))
"""Settings in which models that are trained in one pass may differ."""

LOSS_WEIGHTS = {f.metadata["weighs"]: f.name for f in _FIELDS if f.metadata.get("weighs")}
"""The setting that weighs a loss, by the loss's name."""


def belongs(name: str, model: str, variant: str | None = None) -> bool:
    """Whether a setting is one of a model, or of one of its variants where none is named.

    Example:
        >>> belongs("views", "lgdgcn", "ours"), belongs("views", "lgdgcn", "paper")
        (True, False)
        >>> belongs("views", "lgdgcn"), belongs("lr", "gcn"), belongs("heads", "gcn")
        (True, True, False)
    """
    models = _BY_NAME[name].metadata["models"]
    if not models or model in models:
        return True
    if variant is None:
        return any(one.startswith(f"{model}-") for one in models)
    return f"{model}-{variant}" in models


def check_belongs(given: Mapping[str, Any], model: str, variant: str | None = None) -> None:
    """Refuse settings that a model does not have, and two that say the same.

    Args:
        given: What the user gives.
        model: The model.
        variant: Its variant, if it is known.
    """
    for name in given:
        if not belongs(name, model, variant):
            has_variants = belongs("variant", model) and belongs(name, model)
            which = model_name(model, variant) if has_variants else model
            owners = (
                one.replace("lgdgcn-ours", "lgdgcn") for one in _BY_NAME[name].metadata["models"]
            )
            whose = " and ".join(one for one in owners if one in MODEL_NAMES)
            raise InputError(f"{name} is a setting of {whose}, not of {which}; leave it out")
    for name in ("hidden_channels", "free_share"):
        if given.get("factors") == AUTO and name in given:
            raise InputError(f"factors = {AUTO} finds {name}, too; leave out one of them")
    scaling = given.get("scaling", "rows")
    if given.get("normalize_features") and scaling not in ("none", "rows"):
        raise InputError(
            f"normalize_features = true means scaling = rows, and scaling is {scaling}; leave out "
            "one of them"
        )


def check_used(
    given: Mapping[str, Any],
    tried: Iterable[Settings],
    model: str,
    *,
    multi_label: bool = False,
) -> None:
    """Refuse settings of a part of the model that is switched off in all that is tried.

    Who switches it off in the same breath knows that, and may say how the rest stands: the
    ``config.toml`` of a run does, and so does an ablation.

    Args:
        given: What the user gives.
        tried: The settings that come of it.
        model: The model.
        multi_label: Whether nodes have sets of labels.
    """
    every = [(one.as_dict() | {"labels": _LABELS[multi_label]}, one.variant) for one in tried]
    for name in given:
        lacks = [_lacking(name, values, model, variant) for values, variant in every]
        if None not in lacks and not _switches(name) & given.keys():
            needed = f"{name} is used only with {lacks[0]}"
            raise InputError(f"{needed}; set that, too, or leave {name} out")


_LABELS = {False: "one", True: "sets"}  # of a node, as the needs of a setting name it


def _lacking(name: str, values: Mapping[str, Any], model: str, variant: str) -> str | None:
    """What must hold for a setting to have an effect, and does not; ``None`` if all does.

    What a model has no setting for holds.
    """
    if name not in _BY_NAME:
        return None
    where = _BY_NAME[name].metadata
    if where["needed_by"] and model not in where["needed_by"]:
        return None
    for need in where["needs"]:
        lacks: list[str | None] = []
        for way in need.split(" or "):
            other, sign, wanted = way.split()
            if other in _BY_NAME and not belongs(other, model, variant):
                continue
            if not _holds(values[other], sign, wanted):
                lacks.append(way)
            else:
                lacks.append(None if other == name else _lacking(other, values, model, variant))
        if lacks and None not in lacks:
            return " or ".join(dict.fromkeys(map(str, lacks)))
    return None


def _holds(value: Any, sign: str, wanted: str) -> bool:
    if sign == ">":
        return value != AUTO and bool(value > float(wanted))
    text = str(value).lower() if isinstance(value, bool | int) else value
    return (text == wanted) is (sign == "=")


@cache
def _switches(name: str) -> frozenset[str]:
    """The settings that decide whether another one has an effect."""
    needs = _BY_NAME[name].metadata["needs"] if name in _BY_NAME else ()
    named = {way.split()[0] for need in needs for way in need.split(" or ")} - {name}
    return frozenset(named.union(*map(_switches, named)))


def check_width(settings: Settings) -> None:
    """Refuse a width of the layers that the factors do not divide."""
    if settings.factors != AUTO and settings.hidden_channels % settings.num_factors:
        raise InputError(
            f"hidden_channels is {settings.hidden_channels}, which {settings.factors} factors do "
            f"not divide; use a multiple such as {settings.num_factors * 16}"
        )


def merge(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Merge layers of settings, later ones winning; unknown names are refused.

    Two settings say how features are scaled: the later of them wins, too.
    """
    merged: dict[str, Any] = {}
    names = [*_BY_NAME]
    for layer in layers:
        for key, value in layer.items():
            if key not in names:
                close = difflib.get_close_matches(key, names, n=1)
                hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(names)}"
                raise InputError(f"unknown key {key}: {hint}")
            merged[key] = value
        if "scaling" in layer and "normalize_features" not in layer:
            merged["normalize_features"] = False
        elif "normalize_features" in layer and "scaling" not in layer:
            merged["scaling"] = "none"
    return merged


def resolve(*layers: Mapping[str, Any]) -> Settings:
    """The settings of layers that are merged, see :func:`merge`."""
    return Settings(**merge(*layers))


def nearest_width(channels: int, factors: int) -> int:
    """The multiple of the factors that is next to a number of channels.

    Example:
        >>> nearest_width(64, 6)
        66
    """
    return factors * max(1, round(channels / factors))


def with_fitting_width(shipped: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """What is given, with a width that follows the factors where only these are given.

    Args:
        shipped: Settings below, whose ``hidden_channels`` the factors may not divide.
        given: What the user gives.
    """
    factors = given.get("factors")
    if type(factors) is not int or factors < 1 or "hidden_channels" in given:
        return given
    usual = shipped.get("hidden_channels", Settings.hidden_channels)
    fitting = nearest_width(usual, factors)
    if fitting == usual:
        return given
    warnings.warn(
        f"hidden_channels is {fitting} instead of {usual}, which {factors} factors do not divide",
        LGDWarning,
        stacklevel=3,
    )
    return {**given, "hidden_channels": fitting}


def auto_scaling(dataset: str) -> dict[str, Any]:
    """The scaling of a graph that no preset was made for: what its features ask for.

    Args:
        dataset: Name of the graph; any other text for a graph without presets of its own.

    Example:
        >>> auto_scaling("my-graph"), auto_scaling("cora"), auto_scaling("synthetic:factors=8")
        ({'scaling': 'auto'}, {}, {})
    """
    files = {file for file, _ in _preset_keys(dataset, "", None, False)} - {DEFAULTS}
    return {} if any(map(_presets_of, files)) else {"scaling": AUTO}


def check_value(name: str, value: Any) -> None:
    """Refuse what is no setting's value."""
    alone = {"variant": "ours"} if name == "factors" else {}  # which can find their number
    resolve(alone, {name: value})


def default_variant(model: str) -> str:
    """The variant of a model where none is named; only LGD-GCN has settings for ``ours``."""
    return "ours" if model == "lgdgcn" else "paper"


def model_and_variant(name: str) -> tuple[str, str | None]:
    """What ``--model`` names: a model, and which reading of it for the two that have several.

    Example:
        >>> model_and_variant("lgdgcn"), model_and_variant("lgdgcn-paper"), model_and_variant("gcn")
        (('lgdgcn', 'ours'), ('lgdgcn', 'paper'), ('gcn', None))
    """
    if name not in MODEL_NAMES:
        close = difflib.get_close_matches(name, MODEL_NAMES, n=1)
        hint = f"did you mean {close[0]}?" if close else f"choose from {', '.join(MODEL_NAMES)}"
        raise InputError(f"model is {name[:50]!r}; {hint}")
    model, _, variant = name.partition("-")
    if not belongs("variant", model):
        return model, None
    return model, variant or default_variant(model)


def model_name(model: str, variant: str | None) -> str:
    """What ``--model`` calls a model with this variant; see :func:`model_and_variant`."""
    if not belongs("variant", model) or variant in (None, default_variant(model)):
        return model
    return f"{model}-{variant}"


def parse_assignments(assignments: list[str]) -> dict[str, Any]:
    """Read ``key=value`` arguments; values are written as in TOML, plain words without quotes.

    Example:
        >>> parse_assignments(["lr=0.05", "graph=knn", "space=false"])
        {'lr': 0.05, 'graph': 'knn', 'space': False}
    """
    parsed: dict[str, Any] = {}
    for text in assignments:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not key:
            raise InputError(f"--set got {text!r}; write key=value, for example lr=0.05")
        if key in parsed:
            raise InputError(f"{key} is set twice, to {parsed[key]} and to {value}; leave out one")
        parsed[key] = _assigned(value)
    return parsed


def from_toml(path: Path) -> dict[str, Any]:
    """Read a configuration file: either flat keys or keys under ``[settings]``.

    Beside ``[settings]`` there may be the other tables of our own files, ``[run]`` and
    ``[preset]``, which say where the settings come from and are not used.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, ValueError, RecursionError) as error:  # tomllib raises all but the first
        raise InputError(f"{path}: not a TOML file ({error})") from None
    settings = document.get("settings", document)
    if not isinstance(settings, dict):
        raise InputError(f"{path}: settings must be a table of key = value lines")
    for name, value in document.items():
        if "settings" in document and name in _TABLES and isinstance(value, dict):
            continue
        if isinstance(value, dict):
            close = difflib.get_close_matches(name.lower(), ["settings"], n=1)
            hint = "did you mean [settings]?" if close else "settings go under [settings]"
            raise InputError(f"{path}: unknown table [{name}]: {hint}")
        if settings is not document:
            raise InputError(f"{path}: {name} is outside of [settings]; write it below that line")
    return settings


def to_toml(table: str, values: dict[str, Any]) -> str:
    """Write one flat table; the inverse of what :func:`from_toml` reads."""
    lines = (f"{_toml_key(key)} = {_toml_value(value)}" for key, value in values.items())
    return "\n".join([f"[{table}]", *lines]) + "\n"


def preset(
    dataset: str, model: str, variant: str | None = None, *, multi_label: bool = False
) -> dict[str, Any]:
    """Return the shipped settings of a model on a data set.

    Without such settings those of the model on any data set, and without these none. A generated
    graph such as ``synthetic:average_degree=6`` without its own has those of ``synthetic``.

    Args:
        dataset: Name of the graph; any other text for a graph without presets of its own.
        model: Name of the model.
        variant: ``"paper"``, ``"released"`` or ``"ours"``; by default :func:`default_variant`.
        multi_label: Whether nodes have sets of labels, for which there may be other settings.
    """
    return dict(_shipped_preset(dataset, model, variant, multi_label).get("settings", {}))


def preset_note(
    dataset: str, model: str, variant: str | None = None, *, multi_label: bool = False
) -> str | None:
    """Return what a reader of the preset's results should know, where there is anything."""
    shipped = _shipped_preset(dataset, model, variant, multi_label)
    note: str | None = shipped.get("preset", {}).get("note")
    return note


def has_own_preset(
    dataset: str, model: str, variant: str | None = None, *, multi_label: bool = False
) -> bool:
    """Whether there are settings for this very graph, not only for any."""
    keys = _preset_keys(dataset, model, variant, multi_label)
    return any(table in _presets_of(file) for file, table in keys if file != DEFAULTS)


def portfolio(
    model: str, variant: str | None = None, *, multi_label: bool = False
) -> list[dict[str, Any]]:
    """Return what is tried on a graph without settings of its own, the most useful first.

    Each entry is settings beside those of :func:`preset`; a model without a portfolio has one
    entry, which changes nothing.
    """
    file = resources.files("lgdgcn") / "portfolio.toml"
    known = tomllib.loads(file.read_text(encoding="utf-8"))
    table = f"{model}-{variant or default_variant(model)}" if model == "lgdgcn" else model
    found = known.get(f"{table}-multilabel" if multi_label else table, [{}])
    return [dict(entry) for entry in found]


def preset_names(
    dataset: str, model: str, variant: str | None = None, *, multi_label: bool = False
) -> list[str]:
    """Names of the presets that would do, the best first.

    Example:
        >>> preset_names("synthetic:average_degree=6", "gcn")
        ['synthetic_average_degree_6-gcn-paper', 'synthetic_average_degree_6-gcn', \
'synthetic-gcn-paper', 'synthetic-gcn', 'gcn-paper', 'gcn']
        >>> preset_names("", "lgdgcn", multi_label=True)[-4:]
        ['lgdgcn-ours-multilabel', 'lgdgcn-ours', 'lgdgcn-multilabel', 'lgdgcn']
    """
    keys = _preset_keys(dataset, model, variant, multi_label)
    return [table if file == DEFAULTS else f"{file}-{table}" for file, table in keys]


def _preset_keys(
    dataset: str, model: str, variant: str | None, multi_label: bool
) -> list[tuple[str, str]]:
    """File (one per graph, and one of defaults) and table of the presets that would do."""
    own = re.sub(r"[^a-z0-9.]+", "_", dataset.lower())
    files = dict.fromkeys([own, dataset.lower().partition(":")[0], DEFAULTS])
    endings = ("-multilabel", "") if multi_label else ("",)
    names = (f"{model}-{variant or default_variant(model)}", model)
    return [(file, name + ending) for file in files for name in names for ending in endings]


def _shipped_preset(
    dataset: str, model: str, variant: str | None, multi_label: bool
) -> dict[str, Any]:
    """The best preset that is there: its tables ``preset`` (how it was found) and ``settings``."""
    for file, table in _preset_keys(dataset, model, variant, multi_label):
        found: dict[str, Any] | None = _presets_of(file).get(table)
        if found is not None:
            return found
    return {}


@cache
def _presets_of(graph: str) -> dict[str, Any]:
    file = resources.files("lgdgcn") / "presets" / f"{graph}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def _checked(field: "dataclasses.Field[Any]", value: Any) -> Any:
    name: str = field.name
    kind: Any = type(field.default)
    may_be_auto = field.metadata.get("auto", False)
    if may_be_auto and isinstance(value, str) and value == AUTO:
        return value
    if kind is float and type(value) is int and abs(value) < 2**1023:
        value = float(value)
    if type(value) is not kind:
        expected = {bool: "true or false", int: "a whole number", float: "a number", str: "a word"}
        or_auto = f" or {AUTO}" if may_be_auto else ""
        raise InputError(f"{name} is {value!r}; it must be {expected[kind]}{or_auto}")
    if "options" in field.metadata and value not in field.metadata["options"]:
        raise InputError(f"{name} is {value!r}; choose from {', '.join(field.metadata['options'])}")
    if "limits" in field.metadata:
        limits = field.metadata["limits"]
        rules = [
            (value >= limits["low"], f"at least {limits['low']}"),
            (value <= limits["high"], f"at most {limits['high']}"),
            (value > limits["above"], f"above {limits['above']}"),
            (value < limits["below"], f"below {limits['below']}"),
        ]
        if kind is float and not math.isfinite(value):
            raise InputError(f"{name} is {value}; it must be a finite number")
        for holds, rule in rules:
            if not holds:
                raise InputError(f"{name} is {value}; it must be {rule}")
    return value


def _assigned(text: str) -> Any:
    try:
        document = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return document["value"] if len(document) == 1 else text


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _toml_value(key)


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # JSON's strings are TOML's, but for the one control character that JSON lets through
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml_value, value))}]"
    if isinstance(value, dict):
        pairs = (f"{_toml_key(key)} = {_toml_value(inner)}" for key, inner in value.items())
        return f"{{ {', '.join(pairs)} }}"
    return repr(value)
