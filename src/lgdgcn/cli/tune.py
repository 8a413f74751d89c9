"""``lgdgcn tune``: search for a model's best settings and leave them as a preset."""

from pathlib import Path
from typing import Annotated

import typer

from lgdgcn.cli import console
from lgdgcn.cli.options import Device, Graph, GraphOptions, Metric, Model, Quiet, Sets, assigned
from lgdgcn.errors import InputError

__all__ = ["tune"]

LEAST_SEEDS = 3


def tune(
    graph: Graph,
    model: Model = "lgdgcn",
    variant: Annotated[
        str | None,
        typer.Option(help="ours, paper or released.", show_default="ours; for disengcn, paper"),
    ] = None,
    trials: Annotated[int, typer.Option(help="Settings to try, by all workers together.")] = 200,
    seeds: Annotated[int, typer.Option(help="Trainings per trial, at least 3.")] = LEAST_SEEDS,
    space: Annotated[
        Path | None,
        typer.Option(
            help="TOML file with the ranges to search.",
            show_default="that of the model",
        ),
    ] = None,
    sets: Sets = None,
    storage: Annotated[
        str | None,
        typer.Option(
            help="SQLite file of the study, or a URL such as postgresql://user@host/studies.",
            show_default="study.db in the output folder",
        ),
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes on this machine.")] = 1,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a study, or join others in it.")
    ] = False,
    device: Device = "auto",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for preset, plots and table.", show_default="runs/tune/GRAPH-MODEL"
        ),
    ] = None,
    metric: Metric = None,
    quiet: Quiet = False,
    *,
    reading: GraphOptions,
) -> None:
    """Search for a model's best settings on validation and leave them as a preset.

    What --set gives is not searched.

    Examples:
        lgdgcn tune cora --variant released --trials 200
        lgdgcn tune my-graph/ --set factors=3
        lgdgcn tune my-graph/ --model gcn --trials 50 --space my-space.toml
        lgdgcn tune cora --storage postgresql://user@host/studies --resume
    """
    console.begin(quiet=quiet)
    source = reading.source(graph)
    if seeds < LEAST_SEEDS:
        raise InputError(
            f"--seeds is {seeds}; one lucky seed must not win, give at least {LEAST_SEEDS}"
        )
    for name, value in (("trials", trials), ("workers", workers)):
        if value < 1:
            raise InputError(f"--{name} is {value}; give at least 1")
    assigned(sets, metric=metric)
    from lgdgcn.commands.tune import tune as run

    run(
        source,
        model=model,
        variant=variant,
        trials=trials,
        seeds=seeds,
        space=space,
        assignments=[*(sets or []), *([f"metric={metric}"] if metric else [])],
        storage=storage,
        workers=workers,
        resume=resume,
        device=device,
        folder=out,
    )
