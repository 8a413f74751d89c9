"""``lgdgcn train --task edges``: why each edge is there, or which type it has."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
import torch
import typer
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.cli import console
from lgdgcn.cli.console import percent, plain
from lgdgcn.cli.options import GraphOptions
from lgdgcn.cli.train_nodes import default_folder, run_header
from lgdgcn.config import AUTO, to_toml
from lgdgcn.data.source import GraphSource
from lgdgcn.errors import InputError, one_line
from lgdgcn.metrics.edge_types import edge_type_scores
from lgdgcn.reasons import EdgeReasons, ModelChoice, fit_graph
from lgdgcn.reasons.edges import Array, Edges
from lgdgcn.reasons.explain_reasons import ReasonExplainer
from lgdgcn.reasons.explained import ONE_SEED
from lgdgcn.reasons.of_graph import check_edges_device, known_types, load_edges, unknown_edges
from lgdgcn.reasons.stability import Stability, over_fits, stability
from lgdgcn.reasons.store import Interval, edges_fingerprint, save_reasons
from lgdgcn.runs.folder import Run
from lgdgcn.runtime import set_threads

__all__ = ["print_reasons", "refuse_options_of_nodes", "train_edges"]

Result = dict[str, Any]

# Options that are of edges, too, beside those that say how the graph is read.
OF_EDGES = ("graph", "task", "seeds", "factors", "device", "out", "overwrite", "quiet")
HELD_BACK = 0.2  # of the known types
SEEDS = 3  # that are compared where no type is known
FEWEST = 50  # known types; a fifth of fewer measures nothing


def train_edges(
    source: GraphSource,
    *,
    factors: str | None,
    seeds: int | None,
    device: str,
    folder: Path | None,
    overwrite: bool,
) -> None:
    """Fit the edges of a graph, print what was found and leave a run folder behind.

    Args:
        source: The graph; labels of nodes are used where there are any.
        factors: Number of reasons, or ``auto``.
        seeds: How many times known types are held back to measure, 1 by default; without known
            types, how many seeds to compare, 3 by default. The reasons are of seed 0.
        device: ``auto`` or ``cpu``.
        folder: The run folder.
        overwrite: Replace the run in it.
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
    with run, console.steps() as progress:
        settings = {"factors": AUTO if number is None else number}
        count = seeds or (1 if types is not None else SEEDS)
        header = run_header(source, "edges", range(count))
        tables = {"run": header | {"task": "edges"}, "settings": settings}
        run.write_config("\n".join(to_toml(table, values) for table, values in tables.items()))
        measured, others = [], []
        if types is not None and (Edges.of_graph(data).once(types).sum(1) > 0).sum() >= FEWEST:
            for seed in range(count):
                progress(f"measuring on types that are held back, {seed + 1} of {count}")
                scores, probability = _measure(data, types, seed)
                measured.append(scores)
                others.append(probability)
        progress("fitting the edges")
        reasons = fit_graph(data, num_factors=number)
        for seed in range(1, 1 if measured else count):
            progress(f"fitting the edges with other seeds, {seed + 1} of {count}")
            same = None if types is not None else len(reasons.names)
            other = fit_graph(data, num_factors=same, seed=seed)
            others.append(Edges.of_graph(data).once(other.probability))
        stable, interval = _over_fits(data, reasons, others, named=types is not None)
        if types is not None:
            reasons, interval = reasons.with_known(types), _with_known(data, types, interval)
        run.files()  # refuses links that were made meanwhile
        save_reasons(run.reasons, reasons, data, 0, stability=stable, interval=interval)
        if len(reasons.curve.counts) > 1:
            from lgdgcn.plots import plot_reasons

            title = f"{source.name}: how many reasons its edges have"
            plot_reasons(reasons.curve, run.reasons_figure, title)
        rows = _rows(data, reasons, stable)
        result: Result = {"dataset": source.dataset, "task": "edges", "typed": types is not None}
        result |= {"data": edges_fingerprint(data), "reasons": rows, "choice": vars(reasons.curve)}
        result |= {"log_loss": reasons.log_loss, "held_back": measured}
        run.write_result(result)
    print_reasons(source.name, result, given=number is not None)
    console.say(f"run folder: {path}; what each is about: lgdgcn explain {path}")


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


def _measure(data: Data, types: Tensor, seed: int) -> tuple[Result, Array]:
    """Fit without a fifth of the known types: scores of these, and all probabilities."""
    of_pair = Edges.of_graph(data).once(types)
    known = np.flatnonzero(of_pair.sum(1))
    held = np.zeros(len(of_pair), dtype=bool)
    held[np.random.default_rng(seed).permutation(known)[: round(HELD_BACK * len(known))]] = True
    kept = torch.from_numpy(~held[Edges.of_graph(data).number])
    reasons = fit_graph(data, shown=types * kept[:, None], seed=seed)
    probability = Edges.of_graph(data).once(reasons.probability)
    scores = edge_type_scores(probability, of_pair, named=True, scored=held)
    counts = {"pairs": int((held & (of_pair.sum(1) == 1)).sum()), "held_back": int(held.sum())}
    return {"seed": seed, **counts, **scores._asdict()}, probability


def _over_fits(
    data: Data, reasons: EdgeReasons, others: Sequence[Array], *, named: bool
) -> tuple[Stability | None, Interval | None]:
    """How well other fits agree with the reasons, and what they say of every pair."""
    if not others:
        return None, None
    fits = [Edges.of_graph(data).once(reasons.probability), *others]
    found = stability(fits, named=named)
    return found, over_fits(fits, found.matched)


def _with_known(data: Data, types: Tensor, interval: Interval | None) -> Interval | None:
    """No fit can doubt a type that was given."""
    if interval is None:
        return None
    given = Edges.of_graph(data).once(types).astype(float)
    known = given.any(1)
    share = given[known] / given[known].sum(1, keepdims=True)
    for bound in interval:
        bound[known] = share
    return interval


def _rows(data: Data, reasons: EdgeReasons, stable: Stability | None) -> list[Result]:
    """Size of each reason, by pairs, and what it is about."""
    explained = ReasonExplainer(data, reasons, stable)
    probability = Edges.of_graph(data).once(reasons.probability)
    best = Edges.of_graph(data).once(reasons.predict())
    unknown = Edges.of_graph(data).once(unknown_edges(reasons, data))
    return [
        {
            "name": name,
            "share": float(probability[:, number].mean()),
            "edges": int((best == number).sum()),
            "unknown": float(unknown[best == number].mean()) if (best == number).any() else None,
            **{key: explained.about(number)[key] for key in ("about", "traits", "stability")},
        }
        for number, name in enumerate(reasons.names)
    ]


def print_reasons(name: str, result: Result, *, given: bool) -> None:
    """Print what was found in the edges of a graph.

    Args:
        name: Of the graph.
        result: What ``result.json`` says.
        given: Whether the number of reasons was given.
    """
    rows, typed, measured = result["reasons"], result["typed"], result["held_back"]
    stable = rows[0]["stability"]
    cells = [
        [
            one_line(row["name"]),
            percent(row["share"]),
            str(row["edges"]),
            percent(row["unknown"]),
            *([_agreement(row["stability"])] if stable else []),
        ]
        for row in rows
    ]
    header = ["type" if typed else "reason", "mean\nprobability", "likeliest\nof edges", "unknown"]
    header += ["agreement\nof fits"] if stable else []
    total = sum(row["edges"] for row in rows)
    console.table(f"{name}: {total} edges, shares in %", header, cells)
    console.say(_choice_line(ModelChoice(**result["choice"]), given=given, typed=typed))
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
    held, one = measured[0]["held_back"], measured[0]["pairs"]
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
