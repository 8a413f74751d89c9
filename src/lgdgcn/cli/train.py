"""``lgdgcn train``: train a model on a graph, show how good it is, leave a run folder behind."""

from typing import Annotated

import typer

from lgdgcn.cli import console
from lgdgcn.cli.asked import Asked, TrainOptions
from lgdgcn.cli.libraries import load_libraries
from lgdgcn.cli.options import Graph, GraphOptions, Json, Quiet
from lgdgcn.config import model_name
from lgdgcn.errors import InputError

__all__ = ["train"]


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
    *,
    options: TrainOptions,
    json: Json = False,
    quiet: Quiet = False,
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
    source, seeds = reading.source(graph), options.seeds
    if task not in ("nodes", "edges"):
        raise InputError(f"--task is {task!r}; choose nodes or edges")
    if seeds is not None and seeds < 1:
        raise InputError(f"--seeds is {seeds}; give at least 1")
    if task == "edges":
        load_libraries()
        from lgdgcn.cli.train_edges import refuse_options_of_nodes, train_edges

        refuse_options_of_nodes(ctx)
        train_edges(
            source,
            factors=options.factors,
            seeds=seeds,
            device=options.device,
            folder=options.out,
            overwrite=options.overwrite,
        )
        return
    asked = Asked.of(source, options)
    load_libraries()
    from lgdgcn.cli.train_nodes import train_nodes

    folder, results = train_nodes(asked)
    if json and results:
        others = {model_name(one["model"], one["variant"]): one for one in results[1:]}
        console.as_json({"folder": str(folder), **results[0], "compared": others})
