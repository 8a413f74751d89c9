"""``lgdgcn train``: train a model on a graph, show how good it is, leave a run folder behind."""

from pathlib import Path
from typing import Annotated, Any

import typer

from lgdgcn.cli import console
from lgdgcn.cli.options import Device, Graph, GraphOptions, Metric, Model, Quiet, Sets, assigned
from lgdgcn.errors import InputError

__all__ = ["train"]


def _setting(help: str) -> Any:
    return typer.Option(help=help, show_default="the preset's")


def train(
    ctx: typer.Context,
    graph: Graph = "synthetic",
    task: Annotated[
        str,
        typer.Option(
            help="nodes: classes of nodes. edges: why each edge is there; types of all edges where "
            "edges.csv has a column type that names some of them. No node labels are needed."
        ),
    ] = "nodes",
    model: Model = "lgdgcn",
    variant: Annotated[
        str | None,
        typer.Option(
            help="ours (units that are classes), paper (the text) or released (the authors' code).",
            show_default="ours; for disengcn, paper",
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            help="Number of runs, seeded 0, 1, 2 and so on.",
            show_default="1; for --task edges without known types, 3",
        ),
    ] = None,
    epochs: Annotated[int | None, _setting("Most epochs.")] = None,
    factors: Annotated[str | None, _setting("Latent factors, or auto.")] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            help="Nodes of a step, 0 for all of them (ours).",
            show_default="all, if they fit into memory",
        ),
    ] = None,
    sets: Sets = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML file of settings, for example a run's config.toml.")
    ] = None,
    device: Device = "auto",
    out: Annotated[
        Path | None, typer.Option(help="Run folder.", show_default="runs/GRAPH-MODEL")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted run.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the run in the folder.")
    ] = False,
    compare: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL,…",
            help="Also train these, each with its own preset; lgdgcn-paper, lgdgcn-released and "
            "lgdgcn-ours are the variants of LGD-GCN.",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Most time to choose settings on validation for a graph without a preset: 30s, "
            "5m, 1h, or none to take the first.",
            show_default="1m",
        ),
    ] = None,
    metric: Metric = None,
    quiet: Quiet = False,
    *,
    reading: GraphOptions,
) -> None:
    """Train a model on a graph and show how good it is.

    Examples:
        lgdgcn train my-graph/ --id key --label genre --ignore notes
        lgdgcn train my-graph/ --budget 5m --metric macro_f1 --seeds 5
        lgdgcn train my-graph/ --factors 3 --epochs 500 --set dropout=0.3
        lgdgcn train synthetic --compare gcn,disengcn,lgdgcn-paper
        lgdgcn train cora --variant released --seeds 10
        lgdgcn train cora --out runs/cora --resume
        lgdgcn train my-graph/ --task edges --out runs/reasons
    """
    console.begin(quiet=quiet)
    source = reading.source(graph)
    if task not in ("nodes", "edges"):
        raise InputError(f"--task is {task!r}; choose nodes or edges")
    if seeds is not None and seeds < 1:
        raise InputError(f"--seeds is {seeds}; give at least 1")
    if task == "edges":
        from lgdgcn.cli.train_edges import refuse_options_of_nodes, train_edges

        refuse_options_of_nodes(ctx)
        train_edges(
            source, factors=factors, seeds=seeds, device=device, folder=out, overwrite=overwrite
        )
        return
    given = assigned(
        sets,
        variant=variant,
        epochs=epochs,
        factors=factors,
        metric=metric,
        batch_size=batch_size,
    )
    beside = [name.strip() for name in (compare or "").split(",") if name.strip()]
    if compare is not None and not beside:
        raise InputError(f"--compare {compare!r} names no model; name one, such as gcn")
    from lgdgcn.commands.train import train as run

    run(
        source,
        model=model,
        seeds=1 if seeds is None else seeds,
        given=given,
        config=config,
        device=device,
        folder=out,
        resume=resume,
        overwrite=overwrite,
        compare=beside,
        budget=budget,
    )
