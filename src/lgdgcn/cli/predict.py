"""``lgdgcn predict``: labels, probabilities and factors as a table."""

from pathlib import Path
from typing import Annotated

import typer

from lgdgcn.cli import console
from lgdgcn.cli.options import Device, Quiet, Run

__all__ = ["predict"]


def predict(
    run: Run,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write: CSV, or Parquet if its name ends in .parquet.",
            show_default="predictions.csv in the run folder; .parquet from a million packed nodes",
        ),
    ] = None,
    graph: Annotated[
        str | None,
        typer.Option(help="Folder or data set to predict.", show_default="the run's own graph"),
    ] = None,
    edges: Annotated[
        bool,
        typer.Option(
            "--edges",
            help="Also write every edge's factors, to NAME-edges.csv or .parquet; of a run of "
            "--task edges, only every edge's type or reason.",
        ),
    ] = False,
    proba: Annotated[
        bool, typer.Option("--proba", help="Also write the probability of every class.")
    ] = False,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Write the predicted label, its probability and the factor behind it for every node.

    Beside them stand the true label and the split, where the graph knows them. Several labels of
    a node have | between them; a | or backslash within a name has a backslash before it. Feature
    columns are matched by name.

    Of a run of --task edges: the type or reason of every edge, its probability, the second best,
    and the type that was known. Where less than half of an edge is explained, it is unknown.

    Examples:
        lgdgcn predict runs/cora-lgdgcn --proba
        lgdgcn predict runs/mine --graph new-graph/ --edges --out predictions.csv
        lgdgcn predict runs/reasons --edges
    """
    console.begin(quiet=quiet)
    from lgdgcn.commands.predict import predict as write

    write(run, out, graph=graph, edges=edges, probabilities=proba, device=device)
