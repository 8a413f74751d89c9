"""``lgdgcn train --task edges``: why each edge is there, or which type it has."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
import typer

from lgdgcn.cli import console
from lgdgcn.cli.console import percent, plain
from lgdgcn.cli.options import GraphOptions
from lgdgcn.config import AUTO, to_toml
from lgdgcn.data.source import GraphSource
from lgdgcn.errors import InputError, one_line
from lgdgcn.reasons import EdgeReasonModel, Explanation, ModelChoice
from lgdgcn.reasons.edge_reasons import edges_fingerprint as fingerprint
from lgdgcn.reasons.explanation import ONE_SEED
from lgdgcn.reasons.model import FEWEST
from lgdgcn.reasons.of_graph import check_edges_device, known_types, load_edges
from lgdgcn.runs.folder import Run
from lgdgcn.runs.naming import default_folder, run_header
from lgdgcn.runtime import set_threads

__all__ = ["print_reasons", "refuse_options_of_nodes", "train_edges"]

Result = dict[str, Any]

# Options that are of edges, too, beside those that say how the graph is read.
OF_EDGES = ("graph", "task", "seeds", "factors", "device", "out", "overwrite", "json", "quiet")


def train_edges(
    source: GraphSource,
    *,
    factors: str | None,
    seeds: int | None,
    device: str,
    folder: Path | None,
    overwrite: bool,
) -> tuple[Path, Result]:
    """Fit the edges of a graph, print what was found and leave a run folder behind.

    Args:
        source: The graph; labels of nodes are used where there are any.
        factors: Number of reasons, or ``auto``.
        seeds: How many times known types are held back to measure, 1 by default; without known
            types, how many seeds to compare, 3 by default. The reasons are of seed 0.
        device: ``auto`` or ``cpu``.
        folder: The run folder.
        overwrite: Replace the run in it.

    Returns:
        The run folder, and what its ``result.json`` says.
    """
    check_edges_device(device)
    if source.split == "random":
        raise InputError("--split random draws nodes of --task nodes; leave it out with edges")
    number = _number(factors)
    path = folder or default_folder(source.name, "edges")
    run = Run.create(path, overwrite=overwrite)
    if run.config.is_file() and (run.result.is_file() or run.reasons.is_file()) and not overwrite:
        raise InputError(
            f"{path} already holds a run: add --overwrite to replace it, or choose another --out"
        )
    run.check()
    set_threads()
    data = load_edges(source)
    types = known_types(data)
    if not data.edge_index.numel():
        raise InputError(f"{source.dataset} has no edge between two different nodes; add some")
    if types is not None and number is not None:
        raise InputError(
            f"--factors is {number}, but {types.size(1)} types of edges are known, and each is a "
            "reason; leave out --factors"
        )
    model = EdgeReasonModel(number, fits=seeds)
    with run, console.steps() as progress:
        settings = {"factors": AUTO if number is None else number}
        header = run_header(source, "edges", range(seeds or 1))
        tables = {"run": header | {"task": "edges"}, "settings": settings}
        run.write_config("\n".join(to_toml(table, values) for table, values in tables.items()))
        reasons = model.fit(data, progress=progress).reasons_
        run.files()  # refuses links that were made meanwhile
        reasons.save(run.reasons, data)
        choice = ModelChoice.of(reasons.about["choice"])
        if len(choice.counts) > 1:
            from lgdgcn.plots import plot_reasons

            title = f"{source.name}: how many reasons its edges have"
            plot_reasons(choice, run.reasons_figure, title)
        result: Result = {"dataset": source.dataset, "task": "edges", "data": fingerprint(data)}
        result |= Explanation(data, reasons).all() | reasons.about
        run.write_result(result)
    print_reasons(source.name, result, given=number is not None)
    console.say(f"run folder: {path}; what each is about: lgdgcn explain {path}")
    return path, result


def refuse_options_of_nodes(ctx: typer.Context) -> None:
    """Refuse options that ``--task edges`` would not use."""
    own = {*OF_EDGES, *(field.name for field in fields(GraphOptions))}
    for param in ctx.command.params:
        source = ctx.get_parameter_source(str(param.name))
        if source is not None and source.name == "COMMANDLINE" and param.name not in own:
            raise InputError(f"{param.opts[0]} is of --task nodes; leave it out with --task edges")


def _number(factors: str | None) -> int | None:
    if factors in (None, AUTO):
        return None
    try:
        number = int(factors or "")
    except ValueError:
        number = 0
    if number < 1:
        raise InputError(f"--factors is {factors!r}; give a whole number from 1, or {AUTO}")
    return number


def print_reasons(name: str, result: Result, *, given: bool) -> None:
    """Print what was found in the edges of a graph.

    Args:
        name: Of the graph.
        result: What ``result.json`` says.
        given: Whether the number of reasons was given.
    """
    rows, noun, measured = result["reasons"], result["noun"], result["held_back"]
    typed = noun == "type"
    stable = rows[0]["stability"]
    cells = [
        [
            one_line(row["name"]),
            percent(row["share"]),
            str(row["edges"]),
            percent(row["unknown"] / row["edges"] if row["edges"] else None),
            *([_agreement(row["stability"])] if stable else []),
        ]
        for row in rows
    ]
    header = [noun, "share\nof edges", "edges", "unknown"]
    header += ["agreement\nof fits"] if stable else []
    total = sum(row["edges"] for row in rows)
    console.table(f"{name}: {total} edges, shares in %", header, cells)
    console.say(_choice_line(ModelChoice.of(result["choice"]), given=given, typed=typed))
    if typed:
        console.say(_measured_line(measured))
    console.say(_stability_line(stable, held_back=bool(measured)))


def _agreement(stable: Result) -> str:
    return percent(stable["agreement"]) + ("" if stable["stable"] else "\nnot stable")


def _stability_line(stable: Result | None, *, held_back: bool) -> str:
    """What the agreement is of, or that there is none."""
    if stable is None:
        return ONE_SEED
    fits = stable["fits"] - 1
    what = ", each without the types that were held back" if held_back else ""
    return (
        f"agreement with {fits} other fit{'s' if fits > 1 else ''}{what}: 100 % where the same "
        "edges are found again, 0 where no more than by chance"
    )


def _choice_line(choice: ModelChoice, *, given: bool, typed: bool) -> str:
    """Which family was chosen and how many reasons, with the likelihoods that decided."""
    if not choice.counts:
        return (
            "activities of nodes: too few edges, or too few nodes without one, to hold some out "
            "and compare models"
        )
    best = int(np.argmax(choice.mean))
    found = [f"activities {plain(choice.mean[best], 3)}", f"cliques {plain(choice.clique_mean, 3)}"]
    family = choice.family
    line = f"{choice.num_factors} {family} (log-likelihood of held-out edges: {', '.join(found)})"
    if typed:
        return f"{line}; one for each known type"
    if given:
        return f"{line}; the number was given"
    if choice.cliques:
        return f"{line}; the likelihood of cliques does not tell how many kinds there are"
    rule = "the fewest within one standard error of the best number"
    return f"{line}; {rule}, {choice.counts[best]}"


def _measured_line(measured: Sequence[Result]) -> str:
    if not measured:
        return f"fewer than {FEWEST} edges have a known type: too few to hold some back and measure"

    def mean(name: str) -> str:
        values = [one[name] for one in measured if one[name] is not None]
        spread = stdev(values) if len(values) > 1 else None
        return percent(fmean(values) if values else None, spread)

    draws = f", mean ± std of {len(measured)} draws" if len(measured) > 1 else ""
    held, one = measured[0]["held_back"], measured[0]["edges"]
    found = []
    if one:
        found.append(
            f"on the {one} of one type, in %: accuracy {mean('accuracy')}, balanced "
            f"{mean('balanced')}, calibration error {mean('calibration_error')}"
        )
    if held > one:
        found.append(
            f"on the {held - one} of several, in %: ranking precision "
            f"{mean('ranking_precision')}, types among the likeliest three {mean('recall_at_3')}"
        )
    return f"{held} edges of known type were held back{draws}; {'; '.join(found)}"
