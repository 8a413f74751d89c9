"""Are explanations faithful: what happens to predictions when the named factor's edges go.

    python benchmarks/deletion.py RUN [RUN …] [--nodes 60] [--draws 3] [--out docs/figures]

Takes k edges of the factor that is named for a node away from it, the likeliest first, runs the
model again, and compares the fall of the prediction's probability with that for k random edges of
the same node. Prints a table in Markdown and writes ``deletion.png`` and ``deletion.svg``.
"""

import argparse
from pathlib import Path

import matplotlib
import numpy as np
from faithfulness import DeletionCurve, faithfulness
from matplotlib.figure import Figure

from lgdgcn.plots import COLORS, save_figure
from lgdgcn.reasons import Explanation
from lgdgcn.reproduce.figures import STYLE
from lgdgcn.runs.finished import FinishedRun, open_run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+", help="folders of lgdgcn train")
    parser.add_argument("--nodes", type=int, default=60)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--most", type=int, default=8)
    parser.add_argument("--out", type=Path, default=Path("docs/figures"))
    given = parser.parse_args()
    curves = {}
    for folder in given.runs:
        run: FinishedRun = open_run(folder, "auto")
        explanation = Explanation.of_factors(run.trained, run.data)
        name = f"{run.source.name}, {run.trained.settings.variant}"
        shares = [one.share for one in explanation.descriptions]
        print(f"{name}: shares of the edges by factor {np.round(shares, 3).tolist()}")
        curves[name] = faithfulness(
            explanation, count=given.nodes, most=given.most, draws=given.draws
        )
        if not curves[name].nodes.any():
            print(f"{name}: no node that was drawn has an edge of the factor named for it")
    print(table(curves))
    given.out.mkdir(parents=True, exist_ok=True)
    print(draw({name: one for name, one in curves.items() if one.nodes.any()}, given.out))


def table(curves: dict[str, DeletionCurve]) -> str:
    """Means of all graphs in Markdown."""
    lines = ["| graph | edges removed | nodes | named factor | random edges | difference |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for name, curve in curves.items():
        columns = (curve.removed, curve.nodes, curve.named, curve.random, curve.error)
        for k, nodes, named, random, error in zip(*columns, strict=True):
            if nodes:
                lines.append(
                    f"| {name} | {k} | {nodes} | {named:.3f} | {random:.3f} | "
                    f"{named - random:+.3f} ± {error:.3f} |"
                )
    return "\n".join(lines)


def draw(curves: dict[str, DeletionCurve], folder: Path) -> Path:
    """One panel for every graph."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(4.2 * len(curves), 3.6), layout="constrained", facecolor="white")
        panels = figure.subplots(1, len(curves), squeeze=False)[0]
        for axes, (name, curve) in zip(panels, curves.items(), strict=True):
            seen = curve.nodes > 0
            x, named, random = curve.removed[seen], curve.named[seen], curve.random[seen]
            error = np.nan_to_num(curve.error[seen])
            axes.plot(x, named, marker="o", color=COLORS[5], label="named factor's edges")
            axes.fill_between(x, named - error, named + error, color=COLORS[5], alpha=0.2)
            axes.plot(x, random, marker="s", color="0.5", label="random edges")
            axes.set_title(name, loc="left", parse_math=False)
            axes.set_xlabel("edges removed from the node")
            axes.set_xticks(x)
            axes.set_ylim(bottom=min(0, float(np.min([named, random], initial=0))))
        panels[0].set_ylabel("fall of the prediction's probability")
        panels[0].legend()
        return save_figure(figure, folder / "deletion")


if __name__ == "__main__":
    main()
