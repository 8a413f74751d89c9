"""One cell of a table or point of a curve: what is trained, how often, and under which name."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from lgdgcn.config import Settings
from lgdgcn.train.member import OWN

__all__ = ["Cell"]

_EDITION = 1  # of the models and their training; a change that changes results raises it
_NOT_RESULTS = ("checkpoint_every",)  # settings that do not change what comes out


@dataclass(frozen=True)
class Cell:
    """A model with its settings on a graph, trained once per seed.

    Attributes:
        graph: The graph's address, as :class:`lgdgcn.data.source.GraphSource` reads it.
        model: A key of :data:`lgdgcn.models.MODELS`.
        settings: Hyper-parameters.
        seeds: One training each.
        split: ``"standard"``, or ``"random"`` for another split of the same size per seed.
        keeps_units: Whether the units of the best run are wanted, for a figure.
    """

    graph: str
    model: str
    settings: Settings
    seeds: tuple[int, ...]
    split: str = "standard"
    keeps_units: bool = False

    @property
    def configuration(self) -> dict[str, Any]:
        """Everything a training's result depends on, but for its seed."""
        settings = {k: v for k, v in self.settings.as_dict().items() if k not in _NOT_RESULTS}
        return {
            "edition": _EDITION,
            "graph": self.graph,
            "split": self.split,
            "model": self.model,
            "settings": settings,
        }

    @property
    def key(self) -> str:
        """Hash of the configuration: the name its results are kept under."""
        text = json.dumps(self.configuration, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def architecture(self) -> str:
        """What cells must have in common to be trained in one population."""
        shared = self.configuration
        shared["settings"] = {k: v for k, v in shared["settings"].items() if k not in OWN}
        return json.dumps(shared, sort_keys=True)
