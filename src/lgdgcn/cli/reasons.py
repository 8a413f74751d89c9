"""What ``lgdgcn train`` finds and prints of the reasons of edges."""

import re
from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
from torch_geometric.data import Data

from lgdgcn.cli import console
from lgdgcn.cli.console import percent, plain
from lgdgcn.cli.train import Asked
from lgdgcn.config import AUTO, auto_scaling, to_toml
from lgdgcn.data.source import GraphSource
from lgdgcn.errors import InputError, one_line
from lgdgcn.reasons import EdgeReasonModel, EdgeReasons, Explanation, ModelChoice
from lgdgcn.reasons.edge_reasons import edges_fingerprint
from lgdgcn.reasons.explanation import ONE_SEED
from lgdgcn.reasons.model import FEWEST
from lgdgcn.reasons.of_graph import check_edges_device, known_types, load_edges
from lgdgcn.runs.folder import Run
from lgdgcn.runs.naming import default_folder, run_header
from lgdgcn.runtime import set_threads, stop_on_signals

__all__ = ["find_reasons", "print_reasons", "results_of", "train_reasons"]

Result = dict[str, Any]

MOST_EDGES = 150_000  # that auto looks at; they take about five minutes on two cores
TIME_LIMIT = 300  # seconds after which no further fit is begun
MOST_ROWS = 12  # of a table of reasons
MOST_WEIGHTS = 5  # along which labels travel
ONLY_GROUPS = (
    "nothing that nodes have in common tells these edges apart: groups only say in which part of "
    "the network an edge is; to find why it is there, name the type of about 50 edges in a column "
    "type of edges.csv"
)


def find_reasons(
    data: Data,
    source: GraphSource,
    mode: str,
    *,
    check: Callable[[], None] = lambda: None,
    several_splits: bool = False,
    **options: Any,
) -> EdgeReasons | None:
    """Find why the edges of a graph are there, unless the command or the size of it says not to.

    Labels of validation and test nodes have no part in it.

    Args:
        data: The graph.
        source: Where it is from.
        mode: What ``--reasons`` says.
        check: Called before every fit; may raise.
        several_splits: Whether other seeds have other training nodes.
        **options: Of :class:`~lgdgcn.reasons.EdgeReasonModel`.
    """
    if mode in ("factors", "none"):
        return None
    if data.edge_index is None:
        if mode == "model":
            raise InputError("--reasons model needs the graph in memory; use factors or none")
        console.say("reasons of edges are factors of the model: the graph is not read whole")
        return None
    edges = data.edge_index.size(1) // 2
    if not edges:
        return None
    if mode == AUTO and not auto_scaling(source.preset_name):
        return None  # it has a preset, which is about factors
    if mode == AUTO and edges > MOST_EDGES:
        console.say(
            f"reasons of edges are left out, as they take long for {edges:,} edges (more than "
            f"{MOST_EDGES:,}): find them with --reasons model"
        )
        return None
    known = copy(data)
    if several_splits:  # labels of training nodes are those of test nodes elsewhere
        known.y = None
    limit = f"{TIME_LIMIT // 60} min"
    with console.steps() as progress:

        def step(text: str) -> None:
            check()
            progress(f"{text} (time limit {limit})")

        model = EdgeReasonModel(time_limit=TIME_LIMIT, **options)
        return model.fit(known, progress=step).reasons_


def results_of(data: Data, reasons: EdgeReasons, name: str, run: Run) -> Result:
    """What ``result.json`` says of reasons; the picture of their number is drawn, too."""
    choice = reasons.about.get("choice")
    if choice is not None and len(choice["counts"]) > 1:
        from lgdgcn.plots import plot_reasons

        title = f"{name}: how many reasons its edges have"
        plot_reasons(ModelChoice.of(choice), run.reasons_figure, title)
    graph = edges_fingerprint(data)
    return Explanation(data, reasons).all() | reasons.about | {"graph": graph}


def train_reasons(asked: Asked) -> tuple[Path, Result]:
    """Find the reasons of a graph whose nodes have no labels, and leave a run folder behind."""
    source, options = asked.source, asked.options
    check_edges_device(options.device)
    number = _number(options.factors)
    path = options.out or default_folder(source.name, "", resume=options.resume)
    run = Run.create(path, resume=options.resume, overwrite=options.overwrite)
    run.check()
    set_threads()
    data = load_edges(source)
    if not data.edge_index.numel():
        raise InputError(f"{source.dataset} has no edge between two different nodes; add some")
    if (types := known_types(data)) is not None and number is not None:
        raise InputError(
            f"--factors is {number}, but {types.size(1)} types of edges are known, and each is a "
            "reason; leave out --factors"
        )
    with stop_on_signals() as stop, run:
        tables: Result = {"run": run_header(source, "none", asked.seeds)}
        tables["settings"] = {"factors": AUTO if number is None else number}
        run.write_config("\n".join(to_toml(table, values) for table, values in tables.items()))
        reasons = find_reasons(
            data,
            source,
            "model",
            check=lambda: stop.check("stopped before the reasons of edges were found; repeat that"),
            num_reasons=number,
            fits=options.seeds,
            random_state=options.seed,
        )
        assert reasons is not None
        run.files()  # refuses links that were made meanwhile
        reasons.save(run.reasons, data)
        result: Result = {"dataset": source.dataset}
        result["reasons"] = results_of(data, reasons, source.name, run)
        run.write_result(result)
    print_reasons(source.name, result)
    console.say(f"run folder: {path}; what each is about: lgdgcn explain {path}")
    return path, result


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


def print_reasons(name: str, result: Result) -> None:
    """Print what was found in the edges of a graph.

    Args:
        name: Of the graph.
        result: The content of ``result.json``.
    """
    found = result["reasons"]
    noun = found["noun"]
    rows = _folded([row for row in found["reasons"] if row["edges"] or noun == "type"])
    stable = found["reasons"][0]["stability"]
    only_groups = all(row["noun"] == "group" for row in rows)
    if only_groups:
        console.say(f"{name}: {ONLY_GROUPS}")
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
    console.table(f"{name}: {noun}s of {total} edges, shares in %", header, cells)
    for row in rows:
        if row["edges"] and "in_common" in row:
            console.say(f"{one_line(row['name'])}: {one_line(row['in_common'])}")
    if line := _labels_line(result.get("runs", ())):
        console.say(line)
    if "choice" in found:
        console.say(_choice_line(ModelChoice.of(found["choice"]), noun))
    if noun == "type":
        console.say(_measured_line(found["held_back"]))
    console.say(_stability_line(stable, held_back=bool(found["held_back"])))
    if left := found["left_out"]:
        console.say(f"{left} further fits were left out, as the time for reasons was over")


def _folded(rows: Sequence[Result]) -> list[Result]:
    """Rows of a table: groups, and reasons of one name that only their number tells apart, are one.

    The most frequent come first; beyond :data:`MOST_ROWS` they are one row, too.
    """
    alike: dict[str, list[Result]] = {}
    for row in rows:
        base = re.sub(r" \(\d+\)$", "", row["name"])
        alike.setdefault("group" if row["noun"] == "group" else base, []).append(row)
    lists = sorted(alike.items(), key=lambda item: -sum(row["edges"] for row in item[1]))
    folded = [_joined(f"{name}, {len(some)} groups", some) for name, some in lists[:MOST_ROWS]]
    rest = [row for _, some in lists[MOST_ROWS:] for row in some]
    return folded + ([_joined(f"{len(rest)} more: see lgdgcn explain", rest)] if rest else [])


def _joined(name: str, rows: Sequence[Result]) -> Result:
    """One row that stands for several."""
    if len(rows) == 1:
        return rows[0]
    sums = {key: sum(row[key] for row in rows) for key in ("edges", "share", "unknown")}
    stable = rows[0]["stability"]
    if stable:
        agreement = [row["stability"]["agreement"] for row in rows]
        known = [one for one in agreement if one is not None]
        stable = {"agreement": fmean(known) if known else None, "stable": True}
    return {"name": name, "noun": rows[0]["noun"], **sums, "stability": stable}


def _labels_line(runs: Sequence[Result]) -> str | None:
    """Along which reasons labels travel, as the mean of all seeds; None if no model lets them."""
    weights = [run["reasons"] for run in runs if run.get("reasons")]
    if not weights or len(weights[0]) < 2:
        return None
    mean = {name: fmean(one[name] for one in weights) for name in weights[0]}
    most = sorted(mean, key=lambda name: -mean[name])[:MOST_WEIGHTS]
    listed = ", ".join(f"{one_line(name)} {mean[name]:.2f}" for name in most)
    left = f", {len(mean) - len(most)} more" if len(mean) > len(most) else ""
    return f"labels travel along edges by their reasons, with weights {listed}{left}"


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


def _choice_line(choice: ModelChoice, noun: str) -> str:
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
    if noun == "type":
        return f"{line}; one for each known type"
    if choice.agreement_mean is not None:
        found.append(f"agreements {plain(choice.agreement_mean, 3)}")
        return (
            f"reasons are what ends agree in (log-likelihood of held-out edges: {', '.join(found)})"
        )
    if choice.cliques:
        return f"{line}; the likelihood of cliques does not tell how many kinds there are"
    if len(choice.counts) == 1:
        return f"{line}; the number was given"
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
