"""``lgdgcn explore``: one HTML file to walk through a run."""

from pathlib import Path
from typing import Annotated

import typer

from lgdgcn.cli import console
from lgdgcn.cli.options import Device, Quiet, Run

__all__ = ["explore"]


def explore(
    run: Run,
    out: Annotated[
        Path | None,
        typer.Option(help="HTML file to write.", show_default="explore.html in the run folder"),
    ] = None,
    node: Annotated[
        str | None, typer.Option(metavar="ID", help="Show only the surroundings of this node.")
    ] = None,
    hops: Annotated[
        int | None, typer.Option(help="How far from --node to look.", show_default="2")
    ] = None,
    label: Annotated[
        str | None,
        typer.Option("--class", metavar="NAME", help="Show only nodes with this known label."),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Write one HTML page to walk through a run: graph, factors, predictions and measures.

    Of more than 20,000 nodes a sample is shown, or those that --node or --class choose.

    Examples:
        lgdgcn explore runs/cora-lgdgcn --open
        lgdgcn explore runs/mine --out mine.html
        lgdgcn explore runs/mine --node alice --hops 2
    """
    console.begin(quiet=quiet)
    from lgdgcn.commands.explore import explore as write

    write(run, out, node=node, hops=hops, label=label, show=show, device=device)
