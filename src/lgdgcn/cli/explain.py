"""``lgdgcn explain``: every factor, the reasons of an edge, or what a prediction rests on."""

from typing import Annotated

import typer

from lgdgcn.cli import console
from lgdgcn.cli.options import Device, Json, Run

__all__ = ["explain"]


def explain(
    run: Run,
    node: Annotated[
        str | None, typer.Option(metavar="ID", help="Node whose prediction to explain.")
    ] = None,
    edge: Annotated[
        tuple[str, str] | None, typer.Option(metavar="A B", help="Ends of the edge to explain.")
    ] = None,
    as_json: Json = False,
    device: Device = "auto",
) -> None:
    """Show what every factor is about, why an edge is there, or what a prediction rests on.

    Without an option, every factor has a name and three lines: labels, features and words that are
    more frequent in it, its size and typical edges, its most active nodes. An edge has its factors,
    what its ends share and their common neighbours. A node has its neighbours by factor, and the
    prediction on the graph without each factor's edges. Where a run has several seeds, numbers come
    with their range over the seeds. Runs of --task edges are explained, too.

    Examples:
        lgdgcn explain runs/cora-lgdgcn
        lgdgcn explain runs/cora-lgdgcn --node 42
        lgdgcn explain runs/mine --edge alice bob --json
    """
    console.begin()
    from lgdgcn.commands.explain import explain as show

    show(run, node=node, edge=edge, as_json=as_json, device=device)
