"""The table and the figure about types of edges, made of the results of ``edges``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lgdgcn.metrics.arrays import Array
from lgdgcn.plots import COLORS, save_figure
from lgdgcn.reasons.scores import BINS
from lgdgcn.reproduce.edge_methods import LEVELS
from lgdgcn.reproduce.edges import EdgeResult
from lgdgcn.reproduce.figures import LINE_MARKERS, STYLE
from lgdgcn.storage import write_json, write_text

__all__ = ["draw_edges", "edge_table", "mean_of", "write_edge_report"]

MEASURES = {
    "accuracy": "accuracy",
    "balanced": "balanced",
    "information": "AMI",
    "auroc": "AUROC",
    "calibration_error": "ECE",
    "ranking_precision": "LRAP",
    "recall_at_3": "recall@3",
}
NOTE = """\
Mean ± standard deviation over the seeds; a seed draws which types are shown and starts the method.
Accuracy, balanced accuracy (mean recall of the types), AMI (adjusted mutual information), macro
AUROC and ECE (expected calibration error) are of pairs with exactly one type; LRAP (label ranking
average precision) and recall@3 of pairs with several. Only pairs whose types are hidden are scored.
Without shown types clusters are matched to types one to one, once for accuracy and once for
balanced accuracy, and the number of types is given.
"""
COLOR = {"control": "0.6", "reference": COLORS[0], "model": COLORS[5]}
CURVES = ("shown-1", "shown-5", "shown-20")
RELIABILITY = "shown-5"

Styles = dict[str, dict[str, Any]]  # of lines, by the title of a method


def write_edge_report(folder: Path, results: Sequence[EdgeResult]) -> list[Path]:
    """Write ``edges.md``, ``edges.json`` and ``figures/edges.png``; returns the three files."""
    figure = draw_edges(results, folder / "figures")
    parts = ["# Which kind of link is this edge", NOTE]
    for graph in dict.fromkeys(one["graph"] for one in results):
        parts += [f"## {_escaped(graph)}", edge_table([r for r in results if r["graph"] == graph])]
    parts.append(f"![Types of edges](figures/{figure.name})")
    write_text(folder / "edges.md", "\n\n".join(part.strip() for part in parts) + "\n")
    write_json(folder / "edges.json", list(results))
    return [folder / "edges.md", folder / "edges.json", figure]


def edge_table(results: Sequence[EdgeResult]) -> str:
    """All results of one graph as a table of Markdown, by level of help."""
    lines = [
        f"| method | {' | '.join(MEASURES.values())} | seconds |",
        f"| --- |{' --- |' * (len(MEASURES) + 1)}",
    ]
    for level in LEVELS:
        rows = [one for one in results if one["level"] == level.id]
        if rows:
            lines.append(f"| **{level.title}** |{' |' * (len(MEASURES) + 1)}")
        for row in rows:
            cells = [_cell(row, measure) for measure in MEASURES]
            seconds = np.mean([run["seconds"] for run in row["runs"]])
            lines.append(f"| {row['title']} | {' | '.join(cells)} | {seconds:.1f} |")
    return "\n".join(lines)


def mean_of(result: EdgeResult, measure: str) -> tuple[float, float] | None:
    """Mean and standard deviation over the seeds; ``None`` where a measure does not exist."""
    values = [run[measure] for run in result["runs"] if run.get(measure) is not None]
    if not values:
        return None
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def _cell(result: EdgeResult, measure: str) -> str:
    found = mean_of(result, measure)
    if found is None:
        return "–"
    return f"{found[0]:.3f}" + (f" ± {found[1]:.3f}" if len(result["runs"]) > 1 else "")


def _escaped(text: str) -> str:
    return "".join(f"\\{letter}" if letter in r"\`*_{}[]<>#|!" else letter for letter in text)


def draw_edges(results: Sequence[EdgeResult], folder: Path) -> Path:
    """Draw three panels for every graph; the same results give the same file.

    Left what is found without any type, in the middle what a share of shown types adds, right how
    far confidence can be trusted.
    """
    graphs = list(dict.fromkeys(one["graph"] for one in results))
    styles = _styles(results)  # a method looks the same in all panels
    folder.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(15, 5.6 * len(graphs)), layout="constrained", facecolor="white")
        panels = figure.subplots(len(graphs), 3, squeeze=False, width_ratios=(1.5, 1, 1))
        for graph, (bars, curves, reliability) in zip(graphs, panels, strict=True):
            own = [one for one in results if one["graph"] == graph]
            bars.set_title(f"{graph}: no type shown", loc="left", parse_math=False)
            _plot_bars(bars, [one for one in own if one["level"] in ("none", "labels")])
            curves.set_title("some types shown", loc="left")
            _plot_shown(curves, own, styles)
            reliability.set_title("calibration with 5 % shown", loc="left")
            _plot_reliability(reliability, own, styles)
        return save_figure(figure, folder / "edges")


def _plot_bars(axes: Axes, results: Sequence[EdgeResult]) -> None:
    """Balanced accuracy and, darker, AMI of every method."""
    labels = []
    for place, result in enumerate(results):
        help_given = " (node labels)" if result["level"] == "labels" else ""
        labels.append(result["title"] + help_given)
        for measure, offset, shade in (("balanced", -0.2, 0.45), ("information", 0.2, 1.0)):
            found = mean_of(result, measure)
            if found is not None:
                axes.barh(place + offset, max(found[0], 0), 0.36, xerr=found[1], alpha=shade,
                          color=COLOR[result["kind"]], error_kw={"elinewidth": 0.8})  # fmt: skip
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.set_xlabel("balanced accuracy (pale) and AMI (full); grey: controls")
    axes.set_xlim(left=0)


def _plot_shown(axes: Axes, results: Sequence[EdgeResult], styles: Styles) -> None:
    """Balanced accuracy over the share of shown types, with one standard deviation."""
    levels = [level for level in LEVELS if level.id in CURVES]
    for title, style in styles.items():
        rows = {one["level"]: one for one in results if one["title"] == title}
        points = [
            (place, *found)
            for place, level in enumerate(levels)
            if level.id in rows and (found := mean_of(rows[level.id], "balanced")) is not None
        ]
        if points:
            x, mean, spread = np.array(points).T
            axes.plot(x, mean, **style, label=title)
            axes.fill_between(x, mean - spread, mean + spread, color=style["color"], alpha=0.15,
                              linewidth=0)  # fmt: skip
    ceiling = [one for one in results if one["level"] == "others" and one["kind"] != "control"]
    for one in ceiling:
        found = mean_of(one, "balanced")
        if found is not None:
            axes.axhline(found[0], color="0.3", linestyle=":", linewidth=1.3,
                         label=f"all other types shown, {one['title']}")  # fmt: skip
    axes.set_xticks(range(len(levels)), [f"{100 * (level.share or 0):.0f} %" for level in levels])
    axes.set_xlabel("share of the types that is shown")
    axes.set_ylabel("balanced accuracy")
    _legend(axes)


def _plot_reliability(axes: Axes, results: Sequence[EdgeResult], styles: Styles) -> None:
    """Accuracy over confidence, all seeds together; on the diagonal both are the same."""
    axes.plot([0, 1], [0, 1], color="0.6", linestyle=":", linewidth=1.3)
    for result in results:
        if result["level"] != RELIABILITY or result["kind"] == "control":
            continue
        confidence, accuracy, pairs = _pooled(result)
        error = mean_of(result, "calibration_error")
        if len(pairs) and error is not None:
            kept = pairs >= 0.005 * pairs.sum()  # a bin of a few pairs is only noise
            axes.plot(confidence[kept], accuracy[kept], **styles[result["title"]],
                      label=f"{result['title']}: ECE {error[0]:.3f}")  # fmt: skip
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xlabel("confidence")
    axes.set_ylabel("accuracy")
    _legend(axes)


def _legend(axes: Axes) -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=7.5, loc="upper left", bbox_to_anchor=(0, -0.12), ncols=1)


def _styles(results: Sequence[EdgeResult]) -> Styles:
    """Colour and marker of every method that has curves."""
    shown = [one for one in results if one["level"] in CURVES]
    titles = {one["title"]: one["kind"] for one in shown}
    styles: Styles = {}
    hues = [COLORS[i] for i in (0, 5, 2, 3, 1, 4, 7)]
    for title, kind in titles.items():
        number = sum(style["color"] != "0.6" for style in styles.values())
        color = "0.6" if kind == "control" else hues[number % len(hues)]
        styles[title] = {
            "color": color,
            "marker": LINE_MARKERS[len(styles) % len(LINE_MARKERS)],
            "markersize": 4.5,
            "linewidth": 1.6,
        }
    return styles


def _pooled(result: EdgeResult) -> tuple[Array, Array, Array]:
    """The reliability curves of all seeds as one: confidence, accuracy and pairs of every bin."""
    totals = np.zeros((3, BINS))
    for run in result["runs"]:
        curve = run["reliability"]
        for confidence, accuracy, pairs in zip(*curve.values(), strict=True):
            place = min(max(int(np.ceil(confidence * BINS - 1e-9)) - 1, 0), BINS - 1)
            totals[:, place] += pairs * np.array([confidence, accuracy, 1])
    filled = totals[2] > 0
    confidence, accuracy, pairs = totals[:, filled]
    return confidence / pairs, accuracy / pairs, pairs
