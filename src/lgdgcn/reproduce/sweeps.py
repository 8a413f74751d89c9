"""The paper's figures: curves over a setting, and pictures of trained models."""

from typing import Any

from lgdgcn.config import Settings
from lgdgcn.reproduce.cell import Cell
from lgdgcn.reproduce.exhibits import Curves, Entry, Panel, Picture, Series, View
from lgdgcn.reproduce.paper import parts, read
from lgdgcn.reproduce.plan import Plan

__all__ = ["curves", "picture"]


def curves(name: str, plan: Plan) -> Curves:
    """Describe a figure of scores against a setting."""
    described = read(name)
    panels = tuple(_panel(panel, plan) for panel in parts(described, "panels"))
    return Curves(name, described["title"], panels)


def picture(name: str, plan: Plan) -> Picture:
    """Describe a figure of trained models side by side."""
    described = read(name)
    views = tuple(
        View(
            view["title"],
            _cell(view, plan, view.get("settings", {}), keeps_units=True),
            view.get("layer", 0),
        )
        for view in parts(described, "views")
    )
    return Picture(name, described["title"], described["kind"], views, described.get("note", ""))


def _panel(panel: dict[str, Any], plan: Plan) -> Panel:
    values = plan.values(panel)
    cells = [_cell(panel, plan, _changed(panel, value, plan)) for value in values]
    series = tuple(
        Series(label, tuple(map(float, values)), tuple(Entry(cell, metric) for cell in cells))
        for label, metric in panel["series"].items()
    )
    return Panel(panel["title"], panel["x_label"], panel["y_label"], series, panel["note"])


def _changed(panel: dict[str, Any], value: float, plan: Plan) -> dict[str, Any]:
    """The settings at one value; factors need a layer they divide, as near as there is."""
    settings = {**panel.get("settings", {}), panel["setting"]: value}
    if panel["setting"] == "factors":
        hidden = _own(panel, plan).hidden_channels
        settings["hidden_channels"] = max(1, round(hidden / value)) * value
    return settings


def _own(panel: dict[str, Any], plan: Plan) -> Settings:
    return _cell(panel, plan, {}).settings


def _cell(
    described: dict[str, Any], plan: Plan, settings: dict[str, Any], *, keeps_units: bool = False
) -> Cell:
    return plan.cell(
        described["graph"],
        described["model"],
        described["seeds"],
        preset=described.get("preset"),
        variant=described.get("variant"),
        settings=settings,
        keeps_units=keeps_units,
    )
