"""``lgdgcn measure``: how well a run tells factors apart, beside two controls."""

from pathlib import Path
from typing import Annotated

import typer

from lgdgcn.cli import console
from lgdgcn.cli.options import Device, Quiet, Run

__all__ = ["measure"]


def measure(
    run: Run,
    out: Annotated[
        Path | None,
        typer.Option(help="JSON file to write.", show_default="measure.json in the run folder"),
    ] = None,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Measure how well a run tells factors apart, beside an untrained and a permuted control.

    Examples:
        lgdgcn measure runs/cora-lgdgcn
        lgdgcn measure runs/mine --out mine.json
    """
    console.begin(quiet=quiet)
    from lgdgcn.commands.measure import measure_run

    measure_run(run, out, device=device)
