"""``lgdgcn explain``: every factor, the reasons of an edge, or what a prediction rests on."""

import json
import sys
from pathlib import Path
from typing import Any

from lgdgcn.cli.train_edges import check_edges_device, load_edges
from lgdgcn.commands.console import out as console
from lgdgcn.commands.console import plain, print_table, print_warning
from lgdgcn.commands.large import large_graph
from lgdgcn.edges.explain import Explainer
from lgdgcn.edges.explain_reasons import ReasonExplainer
from lgdgcn.edges.explained import ONE_SEED, ExplainedGraph
from lgdgcn.edges.large_explain import LargeExplainer
from lgdgcn.edges.store import load_reasons, load_stability
from lgdgcn.errors import InputError, one_line
from lgdgcn.metrics.routing import routing_warning, told_of_training
from lgdgcn.runs.finished import open_run, source_of
from lgdgcn.runs.folder import Run
from lgdgcn.storage import to_json

__all__ = ["explain", "open_reasons"]

Found = dict[str, Any]

LONGEST = 24  # letters of a name in a table
LISTED = 3  # neighbours or probabilities in a cell; --json has all
NAME_IN_CELL = 14  # letters of a name in a table with many columns: it should fit 80
UNKNOWN_EDGE = {
    "reason": "unknown: more than half of this edge is explained by no reason",
    "type": "unknown: the graph says little of its type (what is uncertain is more than half of "
    "what it is for an edge of which nothing is known)",
}


def explain(
    run: Path,
    *,
    node: str | None,
    edge: tuple[str, str] | None,
    as_json: bool,
    device: str,
) -> None:
    """Explain all factors of a run, or one node or one edge of its graph."""
    if node is not None and edge is not None:
        raise InputError("give one thing to explain: --node ID, or --edge A B")
    graph, warnings = _open(run, device, list(edge) if edge else [node] if node else [])
    if edge is not None:
        found = graph.explain_edge(*edge)
    elif node is not None:
        found = graph.explain_node(node)
    else:
        found = graph.explain_factors()
    found["warnings"] = warnings
    note = graph.note if isinstance(graph, LargeExplainer) else None
    if note is not None:
        found["note"] = note
    if as_json:
        text = json.dumps(to_json(found), indent=2, ensure_ascii=False)
        # JSON allows control characters beyond ASCII, a terminal obeys them: written as \u009b
        safe = (c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)
        sys.stdout.write("".join(safe) + "\n")
        return
    if edge is not None:
        _print_edge(found, graph.noun)
    elif node is not None:
        _print_node(found, graph.noun)
    else:
        _print_factors(found, graph.noun)
    if note is not None:
        console.print(note, soft_wrap=True)
    if graph.num_fits == 1:
        console.print(ONE_SEED, soft_wrap=True)
    for warning in warnings:
        print_warning(warning)


def open_reasons(run: Path, device: str) -> ReasonExplainer:
    """What a run of ``--task edges`` has found, beside its graph."""
    check_edges_device(device)
    files = Run.open(run)
    data = load_edges(source_of(files.config))
    reasons = load_reasons(files.reasons, data)
    return ReasonExplainer(data, reasons, *load_stability(files.reasons))


def _open(run: Path, device: str, names: list[str]) -> tuple[ExplainedGraph, list[str]]:
    """A run's graph with its reasons, and what a reader should know of them.

    Of a large graph, only the nodes of these names and what is near them.
    """
    if Run.open(run).reasons.is_file():
        return open_reasons(run, device), []
    finished = open_run(run, device)
    large = large_graph(finished)
    if large is not None:
        explainer: Explainer = LargeExplainer.of(large, names)
    else:
        explainer = Explainer(finished.trained, finished.data, finished.other_seeds)
    unrouted = routing_warning(explainer.edge_factors_of_graph, finished.trained.settings)
    told = told_of_training(finished.warnings)
    return explainer, [*told, *([unrouted] if unrouted else [])]


def _print_factors(found: Found, noun: str) -> None:
    for one in found["factors"]:
        number, name = f"{noun} {one['factor']}", one["name"]
        title = number if name == number else f"{number}: {_short(name, 60)}"
        console.print(f"{title}{_agreement(one) if one['edges'] else ''}", soft_wrap=True)
        for line in one["about"]:
            console.print(f"  {one_line(line)}", soft_wrap=True)


def _print_edge(found: Found, noun: str) -> None:
    first, second = found["ends"]
    several, by_class = found["fits"] > 1, "classes" in found["factors"][0]
    header = [noun, *(["class of\nboth ends"] if by_class else []), "edges of\nboth in it"]
    rows = [
        [
            _factor(one, noun),
            *([_both(one)] if by_class else []),
            " / ".join(f"{count:.1f}" for count in one["activity"]),
            plain(one["probability"]),
            *([_span(one["over_fits"]), _stable(one)] if several else []),
        ]
        for one in found["factors"]
    ]
    header += ["probability", *(["over fits", "agreement"] if several else [])]
    title = f"{_short(first['id'])} – {_short(second['id'])}"
    print_table(title, header, rows, text_columns=1 + by_class)
    likeliest = found["factors"][0]
    for line in likeliest["about"]:
        console.print(f"{noun} {likeliest['factor']}, {one_line(line)}", soft_wrap=True)
    if found.get("unknown"):
        console.print(UNKNOWN_EDGE[noun], soft_wrap=True)
    if "known_at_ends" in likeliest:
        counts = " and ".join(str(count) for count in likeliest["known_at_ends"])
        given = ", ".join(map(_short, found["known"])) or "none"
        text = f"known type: {given}; other edges of the ends known as {_short(likeliest['name'])}"
        console.print(f"{text}: {counts}", soft_wrap=True)
    for end in (first, second):
        if told := _told(end):
            console.print(f"{_short(end['id'])}: {told}", soft_wrap=True)
    common = _listed(found["most_specific_neighbours"])
    console.print(f"common neighbours: {found['common_neighbours']}{common}", soft_wrap=True)
    shared = [
        f"{one['kind']} {_short(one['name'])} (as {one['nodes'] - 2} others)"
        for one in found["shared"][:5]
    ]
    console.print(f"both have: {', '.join(shared) or 'nothing that is known'}", soft_wrap=True)


def _print_node(found: Found, noun: str) -> None:
    several, predicts = found["fits"] > 1, "predicted" in found
    has_unknown = any(one.get("unknown") for one in found["factors"])
    header = [noun, "neighbours", *(["without it"] if predicts else []), "edges\nhere"]
    header += ["of these\nunknown"] if has_unknown else []
    header += [
        *(["proba-\nbility"] if predicts else []),
        *(["over\nseeds"] if several and predicts else []),
    ]
    header += ["agreement"] if several else []
    rows = []
    is_whole = "note" not in found  # edges of a part are not all
    empty = [one for one in found["factors"] if is_whole and not one["edges"]]
    for one in (one for one in found["factors"] if one not in empty):
        names = ", ".join(_short(other["id"], NAME_IN_CELL) for other in one["neighbours"][:LISTED])
        names += ", …" if len(one["neighbours"]) > LISTED else ""
        if predicts and several:
            names = _short(names, NAME_IN_CELL)
        row, without = [_factor(one, noun, NAME_IN_CELL), names], one.get("without")
        row += [_short(_labels(without["predicted"]), NAME_IN_CELL)] if without else []
        row.append(str(len(one["neighbours"])))
        row += [str(one["unknown"])] if has_unknown else []
        if without:
            row.append(_numbers(without["probability_of_prediction"]))
            row += [_spans(without["over_fits"])] if several else []
        rows.append([*row, *([_stable(one)] if several else [])])
    told = _told(found)
    title = f"{_short(found['node'])}{': ' if told else ''}{told}"
    print_table(title, header, rows, text_columns=2 + predicts)
    if empty:
        names = ", ".join(_factor(one, noun) for one in empty)
        console.print(f"no edges: {noun}{'s' * (len(empty) > 1)} {names}", soft_wrap=True)
    if predicts:
        console.print(f"without it: predicted on the graph without any edge of this {noun}")
        console.print("probability: of what was predicted with it")
    if found.get("features_stay"):
        console.print("features that were made from the structure stay those of the whole graph")


def _factor(factor: Found, noun: str, letters: int = LONGEST) -> str:
    """Its number, and its name if it has one."""
    number, name = str(factor["factor"]), factor["name"]
    return number if name == f"{noun} {number}" else f"{number}: {_short(name, letters)}"


def _both(factor: Found) -> str:
    """The class of both ends in one factor."""
    first, second = map(_short, factor["classes"])
    return first if factor["same_class"] else f"{first} / {second}"


def _agreement(factor: Found) -> str:
    """How well fits agree on a factor, as the end of its title."""
    one = factor["stability"]
    if one is None:
        return ""
    span = f"{one['agreement']:.2f} ({one['low']:.2f} to {one['high']:.2f})"
    note = "" if one["stable"] else ": is not stable"
    return f", agreement of {one['fits']} fits {span}{note}"


def _stable(factor: Found) -> str:
    """The same in a cell."""
    one = factor["stability"]
    return f"{one['agreement']:.2f}" + ("" if one["stable"] else "\nnot stable")


def _told(node: Found) -> str:
    known = f"known {_labels(node['labels'])}" if node["labels"] else ""
    if "predicted" not in node:
        return known
    spans = f" ({_spans(node['over_fits'])} over seeds)" if node["over_fits"] else ""
    said = f"predicted {_labels(node['predicted'])} {_numbers(node['probability'])}{spans}"
    return f"{said}, {known}" if known else said


def _labels(names: list[str]) -> str:
    return _short("|".join(map(_short, names))) or "none"


def _numbers(values: list[float]) -> str:
    """Probabilities of the labels of a node: one, or the first few of several."""
    return " ".join([f"{p:.2f}" for p in values[:LISTED]] + ["…"] * (len(values) > LISTED))


def _span(bounds: list[float] | None) -> str:
    return "–" if bounds is None else f"{bounds[0]:.2f}–{bounds[1]:.2f}"


def _spans(bounds: list[list[float]] | None) -> str:
    """The probability of a label over the seeds; of several labels, how far they lie apart."""
    found = bounds or []
    if len(found) > 1:
        return f"within {max(high - low for low, high in found):.2f}"
    return _span(found[0]) if found else "–"


def _listed(names: list[str]) -> str:
    return f" ({', '.join(map(_short, names[:5]))})" if names else ""


def _short(name: str, letters: int = LONGEST) -> str:
    """A name as one line that leaves room for others."""
    text = one_line(name)
    return text if len(text) <= letters else text[: letters - 1] + "…"
