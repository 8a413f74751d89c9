"""A cell: one configuration that is trained once per seed, and how often that is."""

import hashlib
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from lgdgcn.config import Settings, model_name, preset, resolve, to_toml
from lgdgcn.data.catalogue import has_label_sets

__all__ = ["FULL", "QUICK", "Cell", "Plan", "settings_line", "train_command"]

# of the models and their training; raised by a change that changes results
EDITION = 1
EDITIONS = {"ours": 2}  # of variants that have changed since
NOT_RESULTS = ("checkpoint_every",)  # settings that do not change the result
# settings that came later; at their defaults they change no result of before
LATER = (
    "free_share", "encoder_channels", "hops", "propagate", "hop_weights", "drop_nodes",
    "input_dropout", "batch_norm", "views", "lambda_consistency", "sharpening",
    "consistency_warmup", "confidence", "weight_average", "structure", "structure_neighbours",
    "structure_weight", "refresh_every", "unit_length", "metric", "class_weights", "scaling",
    "encoder_layers", "batch_size", "batch_parts", "fan_out", "hop_table",
)  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """A model with its settings on a graph, trained once per seed.

    Attributes:
        graph: Name of the graph, as :class:`lgdgcn.data.source.GraphSource` reads it.
        model: A key of :data:`lgdgcn.models.MODELS`.
        settings: Hyper-parameters.
        seeds: One training each.
        split: ``"standard"``, or ``"random"`` for another split of the same size per seed.
        keeps_units: Whether a figure needs the units of the best run.
    """

    graph: str
    model: str
    settings: Settings
    seeds: tuple[int, ...]
    split: str = "standard"
    keeps_units: bool = False

    @property
    def configuration(self) -> dict[str, Any]:
        """Everything but the seed that the result of a training depends on."""
        default = Settings().as_dict()
        settings = {
            key: value
            for key, value in self.settings.as_dict().items()
            if key not in NOT_RESULTS and (key not in LATER or value != default[key])
        }
        return {
            "edition": EDITIONS.get(self.settings.variant, EDITION),
            "graph": self.graph,
            "split": self.split,
            "model": self.model,
            "settings": settings,
        }

    @cached_property
    def key(self) -> str:
        """Hash of the configuration: the file name of its results."""
        text = json.dumps(self.configuration, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def settings_line(settings: Settings) -> str:
    """Write the settings that differ from the defaults as TOML on one line.

    Example:
        >>> settings_line(Settings(k=7, graph="knn"))
        'graph = "knn", k = 7'
    """
    default = Settings().as_dict()
    own = {key: value for key, value in settings.as_dict().items() if value != default[key]}
    return ", ".join(to_toml("settings", own).splitlines()[1:])


def train_command(cell: Cell) -> str:
    """Write the command that trains the seeds of a cell, starting from the shipped preset.

    Example:
        >>> train_command(Cell("my-graph", "lgdgcn", Settings(k=7, lambda_space=1e-5), (0, 1)))
        'lgdgcn train my-graph --model lgdgcn-paper --seeds 2 --set k=7'
    """
    settings = cell.settings.as_dict()
    variant = settings["variant"]
    multi_label = has_label_sets(cell.graph)
    own = preset(cell.graph.lower(), cell.model, variant, multi_label=multi_label)
    shipped = resolve(own, {"variant": variant}).as_dict()
    words = ["lgdgcn", "train", cell.graph, "--model", model_name(cell.model, variant)]
    words += ["--split", cell.split] if cell.split != "standard" else []
    words += ["--seeds", str(max(cell.seeds, default=0) + 1)]
    for key, value in settings.items():
        if value != shipped[key] and key not in NOT_RESULTS:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            words += ["--set", f"{key}={text}"]
    return shlex.join(words)


@dataclass(frozen=True)
class Plan:
    """How often and how long is trained.

    Attributes:
        seeds: Trainings per configuration, by the kind of experiment.
        epochs: Upper limit of the epochs of every training.
        graph_epochs: The same for the graphs named here.
        quick: Whether curves have only their ``quick_values``.
    """

    seeds: Mapping[str, int]
    epochs: int | None = None
    graph_epochs: Mapping[str, int] | None = None
    quick: bool = False

    def cell(self, described: Mapping[str, Any]) -> Cell:
        """Make a cell from its description in ``paper/*.toml``.

        Args:
            described: ``graph``, ``model`` and ``seeds`` (a key of :attr:`seeds`). Optional are
                ``preset``, the graph whose preset is used instead; ``variant``, by default the
                paper's, whose preset is looked up (a preset of another variant wins: the model
                was tuned in that one only);
                ``settings`` that differ from the preset; ``times``, settings to multiply;
                ``split``; and ``keeps_units``.
        """
        graph, model, variant = described["graph"], described["model"], described.get("variant")
        own, multi_label = described.get("preset", graph), has_label_sets(graph)
        shipped = preset(own, model, variant or "paper", multi_label=multi_label)
        chosen = {"variant": variant} if variant else {}
        settings = resolve(chosen, shipped, described.get("settings", {}))
        changed = {
            key: by * getattr(settings, key) for key, by in described.get("times", {}).items()
        }
        limit = (self.graph_epochs or {}).get(graph, self.epochs)
        if limit is not None:
            changed["epochs"] = min(settings.epochs, limit)
        return Cell(
            graph,
            model,
            replace(settings, **changed),
            tuple(range(self.seeds[described["seeds"]])),
            described.get("split", "standard"),
            described.get("keeps_units", False),
        )


FULL = Plan({"standard": 20, "random": 10, "ablation": 10, "synthetic": 10, "sweep": 10})
QUICK = Plan(
    dict.fromkeys(FULL.seeds, 2),
    epochs=80,
    graph_epochs={"cora": 50, "citeseer": 50, "pubmed": 15},
    quick=True,
)
