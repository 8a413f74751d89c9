"""The command line: verbs only. Everything heavy is imported inside the verb that needs it."""

import errno
import os
import sys
import warnings
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from lgdgcn import __version__
from lgdgcn.commands import examples
from lgdgcn.commands.options import (
    Device,
    Features,
    Id,
    Ignore,
    Label,
    Metric,
    Model,
    Root,
    Run,
    Split,
    Verbs,
    assigned,
    graph_source,
    refuse_options_of_nodes,
)
from lgdgcn.errors import InputError, LGDError, LGDNote, LGDWarning, one_line
from lgdgcn.progress import Advance, show_with

__all__ = ["app", "main"]

app = Verbs(
    help="Disentangled node representations on graphs: which factor explains each edge, which "
    "nodes are alike in it, and what class each node has.",
    epilog=examples.START,
    no_args_is_help=True,
    rich_markup_mode="rich",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
data_app = Verbs(help="List, describe, check, pack and fetch graphs.", no_args_is_help=True)
app.add_typer(data_app, name="data")


def _version(value: bool) -> None:
    if value:
        typer.echo(f"lgdgcn {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def _setting(help: str) -> Any:
    return typer.Option(help=help, show_default="the preset's")


@app.command(epilog=examples.TRAIN)
def train(
    ctx: typer.Context,
    dataset: Annotated[
        str,
        typer.Argument(
            help="A data set (see: lgdgcn data list), synthetic:factors=8,seed=1, or a folder "
            "with edges.csv and nodes.csv."
        ),
    ] = "synthetic",
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
            help="sharp (units that are classes), paper (the text) or released (the authors' "
            "code).",
            show_default="sharp; for disengcn, paper",
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
    lr: Annotated[float | None, _setting("Learning rate.")] = None,
    factors: Annotated[str | None, _setting("Latent factors, or auto.")] = None,
    layers: Annotated[int | None, _setting("Layers.")] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            help="Nodes of a step, 0 for all of them (sharp).",
            show_default="all, if they fit into memory",
        ),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change any setting (see: lgdgcn settings); may be repeated.",
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML file of settings, for example a run's config.toml.")
    ] = None,
    device: Device = "auto",
    out: Annotated[
        Path | None, typer.Option(help="Run folder.", show_default="runs/DATASET-MODEL")
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
            "lgdgcn-sharp are the variants of LGD-GCN.",
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
    split: Split = "standard",
    features: Features = None,
    ignore: Ignore = None,
    label: Label = None,
    id: Id = None,
    root: Root = None,
) -> None:
    """Train a model on a graph and show how good it is."""
    from lgdgcn.commands.train import train as run
    from lgdgcn.commands.train_edges import train_edges

    source = graph_source(dataset, split, features, ignore, label, id, root)
    if task not in ("nodes", "edges"):
        raise InputError(f"--task is {task!r}; choose nodes or edges")
    if task == "edges":
        refuse_options_of_nodes(ctx)
        train_edges(
            source, factors=factors, seeds=seeds, device=device, folder=out, overwrite=overwrite
        )
        return
    beside = [name.strip() for name in (compare or "").split(",") if name.strip()]
    if compare is not None and not beside:
        raise InputError(f"--compare {compare!r} names no model; name one, such as gcn")
    run(
        source,
        model=model,
        seeds=1 if seeds is None else seeds,
        assignments=assigned(
            assignments,
            variant=variant,
            epochs=epochs,
            lr=lr,
            factors=factors,
            num_layers=layers,
            metric=metric,
            batch_size=batch_size,
        ),
        config=config,
        device=device,
        folder=out,
        resume=resume,
        overwrite=overwrite,
        compare=beside,
        budget=budget,
    )


@app.command(epilog=examples.TUNE)
def tune(
    dataset: Annotated[str, typer.Argument(help="A data set or a folder, as for train.")],
    model: Model = "lgdgcn",
    variant: Annotated[
        str | None,
        typer.Option(help="sharp, paper or released.", show_default="sharp; for disengcn, paper"),
    ] = None,
    trials: Annotated[int, typer.Option(help="Settings to try, by all workers together.")] = 200,
    seeds: Annotated[int, typer.Option(help="Trainings per trial, at least 3.")] = 3,
    space: Annotated[
        Path | None,
        typer.Option(
            help="TOML file with the ranges to search.",
            show_default="the paper's ranges; for sharp, ours",
        ),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Give a setting a value instead of searching it; may be repeated.",
        ),
    ] = None,
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
            help="Folder for preset, plots and table.", show_default="runs/tune/DATASET-MODEL"
        ),
    ] = None,
    metric: Metric = None,
    split: Split = "standard",
    features: Features = None,
    ignore: Ignore = None,
    label: Label = None,
    id: Id = None,
    root: Root = None,
) -> None:
    """Search for a model's best settings on validation and leave them as a preset."""
    from lgdgcn.commands.tune import tune as run

    run(
        graph_source(dataset, split, features, ignore, label, id, root),
        model=model,
        variant=variant,
        trials=trials,
        seeds=seeds,
        space=space,
        assignments=assigned(assignments, metric=metric),
        storage=storage,
        workers=workers,
        resume=resume,
        device=device,
        folder=out,
    )


@app.command(epilog=examples.PREDICT)
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
) -> None:
    """Write the predicted label, its probability and the factor behind it for every node.

    Beside them stand the true label and the split, where the graph knows them. Several labels of
    a node have | between them; a | or backslash within a name has a backslash before it. Feature
    columns are matched by name.

    Of a run of --task edges: the type or reason of every edge, its probability, the second best,
    and the type that was known. Where less than half of an edge is explained, it is unknown.
    """
    from lgdgcn.commands.predict import predict as write

    write(run, out, graph=graph, edges=edges, probabilities=proba, device=device)


@app.command(epilog=examples.MEASURE)
def measure(
    run: Run,
    out: Annotated[
        Path | None,
        typer.Option(help="JSON file to write.", show_default="measure.json in the run folder"),
    ] = None,
    device: Device = "auto",
) -> None:
    """Measure how well a run tells factors apart, beside an untrained and a permuted control."""
    from lgdgcn.commands.measure import measure_run

    measure_run(run, out, device=device)


@app.command(epilog=examples.EXPLAIN)
def explain(
    run: Run,
    node: Annotated[
        str | None, typer.Option(metavar="ID", help="Node whose prediction to explain.")
    ] = None,
    edge: Annotated[
        tuple[str, str] | None, typer.Option(metavar="A B", help="Ends of the edge to explain.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    device: Device = "auto",
) -> None:
    """Show what every factor is about, why an edge is there, or what a prediction rests on.

    Without an option, every factor has a name and three lines: labels, features and words that are
    more frequent in it, its size and typical edges, its most active nodes. An edge has its factors,
    what its ends share and their common neighbours. A node has its neighbours by factor, and the
    prediction on the graph without each factor's edges. Where a run has several seeds, numbers come
    with their range over the seeds. Runs of --task edges are explained, too.
    """
    from lgdgcn.commands.explain import explain as show

    show(run, node=node, edge=edge, as_json=as_json, device=device)


@app.command(epilog=examples.EXPLORE)
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
        str | None, typer.Option(metavar="NAME", help="Show only nodes with this known label.")
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    device: Device = "auto",
) -> None:
    """Write one HTML page to walk through a run: graph, factors, predictions and measures.

    Of more than 20,000 nodes a sample is shown, or those that --node or --label choose.
    """
    from lgdgcn.commands.explore import explore as write

    write(run, out, node=node, hops=hops, label=label, show=show, device=device)


@app.command(epilog="Example:\n\n  lgdgcn train cora --set views=2 --set lambda_edge=0.1")
def settings() -> None:
    """List every setting that --set and --config can change."""
    from lgdgcn.commands.settings import list_settings

    list_settings()


@app.command(epilog=examples.REPRODUCE)
def reproduce(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            help="table1 to table4, sharp (the sharp variant and its parts), fig-units, "
            "fig-correlation, fig-embedding, fig-lambda, fig-k, fig-factors, fig-sharp, or all; "
            "edges (known types of edges, on two real graphs) or edges:GRAPH.",
            show_default="all",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Two seeds and short trainings: minutes, not hours.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the report and all results; what is there is not trained again.",
            show_default="runs/reproduce, runs/reproduce-quick",
        ),
    ] = None,
    device: Device = "auto",
    root: Root = None,
) -> None:
    """Train what the paper shows, and write a report with its numbers beside ours.

    Interrupted, it goes on where it stopped when the command is repeated.
    """
    from lgdgcn.commands.reproduce import reproduce as run

    run(what or [], quick=quick, folder=out, device=device, root=root)


@data_app.command("list", epilog="Example: lgdgcn data list")
def data_list() -> None:
    """List the data sets and where they are."""
    from lgdgcn.commands.data import list_sets

    list_sets()


@data_app.command("info", epilog="Example: lgdgcn data info cora")
def data_info(name: Annotated[str, typer.Argument(help="Data set or folder.")]) -> None:
    """Describe one graph."""
    from lgdgcn.commands.data import show_info
    from lgdgcn.data.source import GraphSource

    show_info(GraphSource(name))


@data_app.command("check", epilog="Example: lgdgcn data check my-graph/ --write")
def data_check(
    folder: Annotated[str, typer.Argument(help="Folder with edges.csv and nodes.csv.")],
    write: Annotated[
        bool, typer.Option("--write", help="Write the roles of the columns to graph.toml.")
    ] = False,
    split: Split = "standard",
    features: Features = None,
    ignore: Ignore = None,
    label: Label = None,
    id: Id = None,
) -> None:
    """Show what is understood of a graph of your own: the role of every column, nodes, edges."""
    from lgdgcn.commands.data import check_folder

    source = graph_source(folder, split, features, ignore, label, id)
    check_folder(source, write=write)


@data_app.command("pack", epilog=examples.PACK)
def data_pack(
    folder: Annotated[str, typer.Argument(help="Folder with edges.csv and nodes.csv.")],
    out: Annotated[Path, typer.Option(help="Folder to make, such as graph.lgd.")],
    memory: Annotated[
        str | None,
        typer.Option(
            help="Most memory to use, such as 1GB.",
            show_default="1GB, or a quarter of what is free",
        ),
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Read the columns as the model of this run folder does."),
    ] = None,
    half: Annotated[
        bool, typer.Option("--half", help="Store dense features as 16-bit numbers.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the packed graph in the folder.")
    ] = False,
    split: Split = "standard",
    features: Features = None,
    ignore: Ignore = None,
    label: Label = None,
    id: Id = None,
) -> None:
    """Pack a graph of your own, of any size, into arrays that every verb opens without reading."""
    from lgdgcn.commands.data import pack_folder

    source = graph_source(folder, split, features, ignore, label, id)
    pack_folder(source, out, memory=memory, like=like, half=half, overwrite=overwrite)


@data_app.command("get", epilog="Example: lgdgcn data get citeseer")
def data_get(name: Annotated[str, typer.Argument(help="Data set.")]) -> None:
    """Download a data set into the cache, verified."""
    from lgdgcn.commands.data import get_set

    get_set(name)


def main() -> None:
    """Run the command line; every expected error is one line and an exit code of its own."""
    _shown.clear()
    warnings.showwarning = _show_warning
    warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
    show_with(_work_progress)
    try:
        code = app(prog_name="lgdgcn", standalone_mode=False)  # quiet at Ctrl-C and | head
        if sys.stdout is not None:
            sys.stdout.flush()  # a full disk is found here, not when Python ends
        sys.exit(code)
    except KeyboardInterrupt:  # outside the command itself
        sys.exit(130)
    except LGDError as error:
        _fail(str(error), error.exit_code)
    except Exception as error:
        if hasattr(error, "format_message"):  # typer's word on a wrong command line
            _fail_usage(error)
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
            _fail(f"{error.filename}: {error.strerror}; give a shorter name or path", 2)
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - Python ends without the rest
            where = error.filename or "the output"
            _fail(f"cannot write {where}: {error.strerror}; free some space or write elsewhere", 2)
        if type(error).__name__ == "OutOfMemoryError":  # torch's; a GPU may fill up at any step
            _fail_for_memory()
        if os.environ.get("LGDGCN_DEBUG"):
            raise
        hint = "set LGDGCN_DEBUG=1 to see where, and please report it"
        _fail(f"internal error: {type(error).__name__}: {error} ({hint})", 1)


def _fail_usage(error: Any) -> NoReturn:
    if type(error).__name__ == "NoArgsIsHelpError":  # the help itself has been printed
        sys.exit(2)
    command = error.ctx.command_path if error.ctx else "lgdgcn"
    _fail(f"{error.format_message().rstrip('.')}; see: {command} --help", 2)


def _fail_for_memory() -> NoReturn:
    from lgdgcn.runtime import select_device
    from lgdgcn.train.memory import out_of_memory

    refused = out_of_memory(select_device())
    _fail(str(refused), refused.exit_code)


def _fail(message: str, exit_code: int) -> NoReturn:
    print(f"lgdgcn: {one_line(message)}", file=sys.stderr)  # noqa: T201
    sys.exit(exit_code)


def _work_progress(what: str, unit: str) -> AbstractContextManager[Advance]:
    from lgdgcn.commands.console import work_progress

    return work_progress(what, unit)


_shown: set[str] = set()  # Python forgets what it has shown whenever a library changes a filter


def _show_warning(
    message: Warning | str, category: type[Warning], *where: Any, **more: Any
) -> None:
    if str(message) in _shown:
        return
    _shown.add(str(message))
    if issubclass(category, LGDWarning) or os.environ.get("LGDGCN_DEBUG"):
        kind = "note" if issubclass(category, LGDNote) else "warning"
        print(f"lgdgcn: {kind}: {one_line(message)}", file=sys.stderr)  # noqa: T201
