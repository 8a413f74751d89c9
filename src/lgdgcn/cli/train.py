"""``lgdgcn train``: train a model on a graph, show how good it is, leave a run folder behind."""

from pathlib import Path
from typing import Annotated, Any

import typer

from lgdgcn.cli import console
from lgdgcn.cli.asked import Asked, model_of, settings_of
from lgdgcn.cli.libraries import load_libraries
from lgdgcn.cli.options import (
    Device,
    Graph,
    GraphOptions,
    Json,
    Metric,
    Quiet,
    Sets,
    assigned,
    one_of,
)
from lgdgcn.config import AUTO, MODEL_NAMES, model_name
from lgdgcn.errors import InputError
from lgdgcn.search.families import budget_of, limit_of

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
    model: Annotated[
        str,
        typer.Option(
            help=f"auto, {', '.join(MODEL_NAMES[:-1])} or {MODEL_NAMES[-1]}. auto: on a graph with "
            "a preset lgdgcn, on any other the winner of a race of all on validation.",
            autocompletion=one_of((AUTO, *MODEL_NAMES)),
        ),
    ] = AUTO,
    seeds: Annotated[
        int | None,
        typer.Option(
            help="Number of runs, each with a seed of its own.",
            show_default="1; for --task edges without known types, 3",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="The first seed; others follow it.")] = 0,
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
        Path | None, typer.Option(help="Run folder.", show_default="runs/GRAPH or runs/GRAPH-MODEL")
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
            help="Also train these, each with its own preset.",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="How many settings to try on validation for a graph without a preset; more than "
            "the portfolio has are searched for by Optuna. none takes the first.",
            show_default="the portfolio",
        ),
    ] = None,
    time_limit: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Ends that early: 30s, 5m, 1h or none. The choice then depends on the machine.",
            show_default="30m",
        ),
    ] = None,
    metric: Metric = None,
    json: Json = False,
    quiet: Quiet = False,
    *,
    reading: GraphOptions,
) -> None:
    """Train a model on a graph and show how good it is.

    On a graph of your own all models take part in a race on validation, and the winner is what
    lgdgcn predict uses.

    Examples:
        lgdgcn train my-graph/ --id key --label genre --ignore notes
        lgdgcn train my-graph/ --budget 100 --metric macro_f1 --seeds 5
        lgdgcn train my-graph/ --model lgdgcn --factors 3 --set dropout=0.3
        lgdgcn train synthetic --compare gcn,disengcn,lgdgcn-paper
        lgdgcn train cora --model lgdgcn-released --seeds 10
        lgdgcn train cora --out runs/cora --resume
        lgdgcn train my-graph/ --task edges --out runs/reasons
    """
    console.begin(quiet=quiet, as_json=json)
    source = reading.source(graph)
    if task not in ("nodes", "edges"):
        raise InputError(f"--task is {task!r}; choose nodes or edges")
    if seeds is not None and seeds < 1:
        raise InputError(f"--seeds is {seeds}; give at least 1")
    if task == "edges":
        load_libraries()
        from lgdgcn.cli.train_edges import refuse_options_of_nodes, train_edges

        refuse_options_of_nodes(ctx)
        train_edges(
            source, factors=factors, seeds=seeds, device=device, folder=out, overwrite=overwrite
        )
        return
    if not 0 <= seed < 2**31:
        raise InputError(f"--seed is {seed}; give a whole number from 0")
    options = {"epochs": epochs, "factors": factors, "metric": metric, "batch_size": batch_size}
    beside = [name.strip() for name in (compare or "").split(",") if name.strip()]
    if compare is not None and not beside:
        raise InputError(f"--compare {compare!r} names no model; name one, such as gcn")
    if budget_of(budget) == 0 and time_limit is not None:
        raise InputError(f"--budget none tries nothing; leave out --time-limit {time_limit}")
    given, name = assigned(sets, **options), model_of(model, source, config)
    asked = Asked(
        source=source,
        model=name,
        settings=settings_of(name, given, config),
        seeds=range(seed, seed + (seeds or 1)),
        given=given,
        config=config,
        device=device,
        folder=out,
        resume=resume,
        overwrite=overwrite,
        compare=beside,
        budget=budget_of(budget),
        time_limit=time_limit,
        seconds=limit_of(time_limit),
    )
    load_libraries()
    from lgdgcn.cli.train_nodes import train_nodes

    folder, results = train_nodes(asked)
    if json and results:
        others = {model_name(one["model"], one["variant"]): one for one in results[1:]}
        console.as_json({"folder": str(folder), **results[0], "compared": others})
