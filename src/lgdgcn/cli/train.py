"""``lgdgcn train``: learn a graph, show how good that is, leave a run folder behind."""

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from lgdgcn.cli import console
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
from lgdgcn.config import (
    AUTO,
    MODEL_NAMES,
    Settings,
    auto_scaling,
    belongs,
    check_belongs,
    check_value,
    default_variant,
    from_toml,
    merge,
    model_and_variant,
    model_name,
)
from lgdgcn.data.source import GraphSource
from lgdgcn.errors import InputError, UnlabelledError
from lgdgcn.search.families import budget_of, families_with, limit_of

__all__ = ["WITHOUT_LABELS", "Asked", "TrainOptions", "train"]

REASONS = (AUTO, "model", "factors", "none")  # what --reasons may be
# options that have a meaning where there are no labels, beside those that say how a graph is read
WITHOUT_LABELS = {field.name for field in fields(GraphOptions)} - {"label"} | {
    *("graph", "seeds", "seed", "factors", "reasons", "device", "out", "resume", "overwrite"),
    *("budget", "time_limit", "json", "quiet"),
}


def _setting(help: str) -> Any:
    return typer.Option(help=help, show_default="the preset's")


@dataclass(frozen=True)
class TrainOptions:
    """The options of ``lgdgcn train`` that say what is trained, and where it is left."""

    model: Annotated[
        str,
        typer.Option(
            help=f"auto, {', '.join(MODEL_NAMES[:-1])} or {MODEL_NAMES[-1]}. auto: on a graph with "
            "a preset lgdgcn, on any other the winner of a race of all on validation.",
            autocompletion=one_of((AUTO, *MODEL_NAMES)),
        ),
    ] = AUTO
    seeds: Annotated[
        int | None,
        typer.Option(
            help="Number of runs, each with a seed of its own.",
            show_default="1; of a graph without labels 3",
        ),
    ] = None
    reasons: Annotated[
        str,
        typer.Option(
            help="Who says why an edge is there. model: a model of edges, which gives types where "
            "edges.csv has a column type. factors: those of the model of nodes. none: nobody. "
            "auto: the model of edges, on a graph of your own that it does not take long for.",
            autocompletion=one_of(REASONS),
        ),
    ] = AUTO
    seed: Annotated[int, typer.Option(help="The first seed; others follow it.")] = 0
    epochs: Annotated[int | None, _setting("Most epochs.")] = None
    factors: Annotated[str | None, _setting("Latent factors, or auto.")] = None
    batch_size: Annotated[
        int | None,
        typer.Option(
            help="Nodes of a step, 0 for all of them (ours).",
            show_default="all, if they fit into memory",
        ),
    ] = None
    sets: Sets = None
    config: Annotated[
        Path | None, typer.Option(help="TOML file of settings, for example a run's config.toml.")
    ] = None
    device: Device = "auto"
    out: Annotated[
        Path | None, typer.Option(help="Run folder.", show_default="runs/GRAPH or runs/GRAPH-MODEL")
    ] = None
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run.")] = False
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the run in the folder.")
    ] = False
    compare: Annotated[
        str | None,
        typer.Option(metavar="MODEL,…", help="Also train these, each with its own preset."),
    ] = None
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="How many settings to try on validation for a graph without a preset; more than "
            "the portfolio has are searched for by Optuna. none takes the first.",
            show_default="the portfolio",
        ),
    ] = None
    time_limit: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Ends that early: 30s, 5m, 1h or none. The choice then depends on the machine.",
            show_default="30m",
        ),
    ] = None
    metric: Metric = None


@dataclass(frozen=True)
class Asked:
    """The options of a training of nodes, read and checked.

    Attributes:
        source: The graph.
        options: The options as they are written.
        model: A name of ``--model``; ``None`` for the winner of a race of all.
        given: Settings on the command line.
        settings: Settings in a file and on the command line.
        compare: Names of models that are trained, too.
        budget: How many settings to try; 0 takes the first, ``None`` is the whole portfolio.
        seconds: The time limit for that, if any.
    """

    source: GraphSource
    options: TrainOptions
    model: str | None
    given: dict[str, Any]
    settings: dict[str, Any]
    compare: list[str]
    budget: int | None
    seconds: float | None

    @classmethod
    def of(cls, source: GraphSource, options: TrainOptions) -> "Asked":
        """Read the options, and refuse what has no sense or no effect."""
        if options.reasons not in REASONS:
            raise InputError(f"--reasons is {options.reasons!r}; choose {', '.join(REASONS)}")
        if options.seeds is not None and options.seeds < 1:
            raise InputError(f"--seeds is {options.seeds}; give at least 1")
        if not 0 <= options.seed < 2**31:
            raise InputError(f"--seed is {options.seed}; give a whole number from 0")
        names = [name.strip() for name in (options.compare or "").split(",") if name.strip()]
        if options.compare is not None and not names:
            raise InputError(f"--compare {options.compare!r} names no model; name one, such as gcn")
        budget, limit = budget_of(options.budget), options.time_limit
        if budget == 0 and limit is not None:
            raise InputError(f"--budget none tries nothing; leave out --time-limit {limit}")
        with_option = ("epochs", "factors", "metric", "batch_size")
        given = assigned(options.sets, **{name: getattr(options, name) for name in with_option})
        model = _model_of(options.model, source, options.config)
        settings = _settings_of(model, given, options.config)
        seconds = limit_of(limit)
        for name in names:
            model_and_variant(name)  # refuses what is none
        if twice := [name for name in names if names.count(name) > 1]:
            raise InputError(f"--compare names {twice[0]} twice; leave out one")
        if model in names and not settings:  # with some, the preset is another
            raise InputError(f"--compare names {model}, which is trained anyway; leave it out")
        if options.resume and options.overwrite:
            raise InputError("--resume and --overwrite exclude each other; leave out one of them")
        return cls(source, options, model, given, settings, names, budget, seconds)

    @property
    def seeds(self) -> range:
        """Seeds, one training each; the first also chooses."""
        return range(self.options.seed, self.options.seed + (self.options.seeds or 1))


def _model_of(name: str, source: GraphSource, config: Path | None) -> str | None:
    """The model that ``--model`` names; ``None`` if all families take part in a race.

    Args:
        name: A model, or ``auto``.
        source: The graph: where it has presets, that of our model is the best known.
        config: A file of settings; that of a run says which model it has trained.
    """
    if name != AUTO:
        return model_name(*model_and_variant(name))
    if config is not None:
        settings = from_toml(config)  # which says what is wrong with the file
        run = tomllib.loads(config.read_text(encoding="utf-8-sig")).get("run", {})
        model = str(run.get("model", "lgdgcn"))
        return model_name(model, settings.get("variant") or default_variant(model))
    return None if auto_scaling(source.preset_name) else "lgdgcn"


def _settings_of(name: str | None, given: dict[str, Any], config: Path | None) -> dict[str, Any]:
    """What the user gives of settings, in a file and, before it, on the command line.

    A file may hold all settings there are: those that the model does not have are left out where
    they have their defaults.

    Args:
        name: The model; ``None`` if all families take part in a race.
        given: Settings on the command line.
        config: The file.
    """
    if "variant" in given:
        raise InputError(
            "variant is part of a model's name: leave it out, and write --model "
            f"lgdgcn-{given['variant']}"
        )
    of_file = from_toml(config) if config else {}
    every = merge(of_file, given)
    for key, value in of_file.items():
        check_value(key, value)
    if name is None:
        families_with(every)  # refuses what no model has
        return every
    model, variant = model_and_variant(name)
    if variant is not None and of_file.get("variant", variant) != variant:
        other = model_name(model, of_file["variant"])
        raise InputError(f"{config} is of {other}; add --model {other}")
    usual = Settings().as_dict()
    differing = {k: v for k, v in of_file.items() if v != usual[k] and k != "variant"}
    check_belongs(differing, model, variant)
    check_belongs(given, model, variant)
    return {k: v for k, v in every.items() if k != "variant" and belongs(k, model, variant)}


def train(
    ctx: typer.Context,
    graph: Graph = "synthetic",
    *,
    options: TrainOptions,
    json: Json = False,
    quiet: Quiet = False,
    reading: GraphOptions,
) -> None:
    """Learn the labels of a graph's nodes and the reasons of its edges, and show how good that is.

    On a graph of your own all models take part in a race on validation, and the winner is what
    lgdgcn predict uses. Every edge has its reasons; types where a column type in edges.csv names
    those of some edges. A graph without labels has reasons only.

    Examples:
        lgdgcn train my-graph/ --id key --label genre --ignore notes
        lgdgcn train my-graph/ --budget 100 --metric macro_f1 --seeds 5
        lgdgcn train my-graph/ --model lgdgcn --factors 3 --set dropout=0.3 --reasons factors
        lgdgcn train synthetic --compare gcn,disengcn,lgdgcn-paper
        lgdgcn train cora --model lgdgcn-released --seeds 10
        lgdgcn train cora --out runs/cora --resume
    """
    console.begin(quiet=quiet, as_json=json)
    source = reading.source(graph)
    asked = Asked.of(source, options)
    load_libraries()
    from lgdgcn.cli.train_nodes import train_nodes

    try:
        folder, results = train_nodes(asked)
    except UnlabelledError as error:
        if options.reasons in ("factors", "none") or _asks_for_labels(ctx):
            raise
        from lgdgcn.cli.reasons import train_reasons

        console.say(f"{error}; without them, reasons of edges are found")
        folder, result = train_reasons(asked)
        results = [result]
    if json and results:
        from lgdgcn.storage import to_json

        others = {model_name(one["model"], one["variant"]): one for one in results[1:]}
        console.as_json(to_json({"folder": str(folder), **results[0], "compared": others}))


def _asks_for_labels(ctx: typer.Context) -> bool:
    """Whether the command line has an option that is of no use without labels."""
    names = {str(param.name) for param in ctx.command.params} - WITHOUT_LABELS
    sources = (ctx.get_parameter_source(name) for name in names)
    return any(source is not None and source.name == "COMMANDLINE" for source in sources)
