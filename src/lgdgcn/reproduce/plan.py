"""How much is trained: everything as often as the paper, or a little of everything."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lgdgcn.config import preset as shipped
from lgdgcn.config import resolve
from lgdgcn.reproduce.cell import Cell

__all__ = ["FULL", "QUICK", "Plan"]


@dataclass(frozen=True)
class Plan:
    """Seeds and lengths of the trainings.

    Attributes:
        seeds: Trainings per configuration, by the kind of experiment.
        epochs: No training is longer.
        graph_epochs: The same for graphs that take longer, by address.
        quick: Whether curves have only their ``quick_values``.
    """

    seeds: Mapping[str, int]
    epochs: int | None = None
    graph_epochs: Mapping[str, int] | None = None
    quick: bool = False

    def values(self, panel: Mapping[str, Any]) -> list[Any]:
        """The values of the setting that a plot runs over."""
        return list(panel["quick_values" if self.quick else "values"])

    def cell(
        self,
        graph: str,
        model: str,
        kind: str,
        *,
        preset: str | None = None,
        variant: str | None = None,
        settings: Mapping[str, Any] | None = None,
        times: Mapping[str, int] | None = None,
        split: str = "standard",
        keeps_units: bool = False,
    ) -> Cell:
        """Describe trainings with shipped settings.

        Args:
            graph: Address of the graph.
            model: A key of :data:`lgdgcn.models.MODELS`.
            kind: Which of the plan's seeds.
            preset: The graph whose preset is used; the graph itself by default.
            variant: Whose preset is looked for. The preset has the last word: a model that has
                only been tuned in one variant is that variant.
            settings: What differs from the preset.
            times: Settings that are so many times what they were.
            split: ``"standard"`` or ``"random"``.
            keeps_units: Whether a figure needs the units of the best run.
        """
        chosen = {"variant": variant} if variant else {}
        resolved = resolve(chosen, shipped(preset or graph, model, variant), dict(settings or {}))
        grown = {name: by * getattr(resolved, name) for name, by in (times or {}).items()}
        resolved = replace(resolved, **grown)
        limit = (self.graph_epochs or {}).get(graph, self.epochs)
        if limit is not None:
            resolved = replace(resolved, epochs=min(resolved.epochs, limit))
        seeds = tuple(range(self.seeds[kind]))
        return Cell(graph, model, resolved, seeds, split, keeps_units)


FULL = Plan({"standard": 20, "random": 10, "ablation": 10, "synthetic": 10, "sweep": 10})
QUICK = Plan(
    dict.fromkeys(FULL.seeds, 2),
    epochs=80,
    graph_epochs={"cora": 50, "citeseer": 50, "pubmed": 15},
    quick=True,
)
