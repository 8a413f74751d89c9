"""``lgdgcn explain``: every factor, the reasons of an edge, or what a prediction rests on."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from lgdgcn.cli import console
from lgdgcn.cli.console import plain
from lgdgcn.cli.libraries import load_libraries
from lgdgcn.cli.options import Device, Json, Run
from lgdgcn.errors import InputError, one_line

__all__ = ["explain"]

Answer = dict[str, Any]

LONGEST = 24  # letters of a name in a table
SHOWN = 3  # neighbours or probabilities in a cell; --json has all
NAME_IN_CELL = 14  # letters of a name in a table with many columns: it should fit 80
UNKNOWN_EDGE = {
    "reason": "unknown: more than half of this edge is explained by no reason",
    "type": "unknown: the graph says little of its type (what is uncertain is more than half of "
    "what it is for an edge of which nothing is known)",
}


def explain(
    run: Run,
    node: Annotated[
        str | None, typer.Option(metavar="ID", help="Node whose prediction to explain.")
    ] = None,
    edge: Annotated[
        tuple[str, str] | None, typer.Option(metavar="A B", help="Ends of the edge to explain.")
    ] = None,
    as_json: Json = False,
    device: Device = "auto",
) -> None:
    """Show what every factor is about, why an edge is there, or what a prediction rests on.

    Without an option, every factor has a name and three lines: labels, features and words that are
    more frequent in it, its size and typical edges, its most active nodes. An edge has its factors,
    what its ends share and their common neighbours. A node has its neighbours by factor, and the
    prediction on the graph without each factor's edges. Where a run has several seeds, numbers come
    with their range over the seeds.

    Examples:
        lgdgcn explain runs/cora-lgdgcn
        lgdgcn explain runs/cora-lgdgcn --node 42
        lgdgcn explain runs/mine --edge alice bob --json
    """
    console.begin(as_json=as_json)
    if node is not None and edge is not None:
        raise InputError("give one thing to explain: --node ID, or --edge A B")
    load_libraries()
    from lgdgcn.cli.opened import OpenedRun
    from lgdgcn.reasons.explanation import ONE_SEED

    opened = OpenedRun(run, device)
    explanation = opened.explain(list(edge) if edge else [node] if node else [])
    warnings, unsaid = opened.warnings(explanation)
    if edge is not None:
        answer, show = explanation.edge(*edge), _print_edge
    elif node is not None:
        answer, show = explanation.node(node), _print_node
    else:
        answer, show = explanation.all(), _print_all
    answer |= opened.notes
    if as_json:
        from lgdgcn.storage import to_json

        console.as_json(to_json(answer | {"warnings": warnings}))
        return
    show(answer)
    for note in opened.notes.values():
        console.say(note)
    if explanation.num_fits == 1:
        console.say(ONE_SEED)
    for warning in unsaid:
        console.warn(warning)


def _print_all(answer: Answer) -> None:
    noun = answer["noun"]
    for one in answer["reasons"]:
        number, name = f"{noun} {one['reason']}", one["name"]
        title = number if name == number else f"{number}: {_short(name, 60)}"
        console.say(f"{title}{_agreement(one) if one['edges'] else ''}")
        for line in one["about"]:
            console.say(f"  {one_line(line)}")


def _print_edge(answer: Answer) -> None:
    from lgdgcn.reasons.traits import title_of

    (first, second), noun = answer["ends"], answer["noun"]
    likeliest = answer["reasons"][0]
    several, by_class = answer["fits"] > 1, likeliest["classes"] is not None
    columns: Columns = {
        noun: (True, lambda one: _factor(one, noun)),
        "class of\nboth ends": (by_class, _both),
        "edges of\nboth in it": (True, lambda one: " / ".join(f"{n:.1f}" for n in one["activity"])),
        "probability": (True, lambda one: plain(one["probability"])),
        "over fits": (several, lambda one: _span(one["over_fits"])),
        "agreement": (several, _stable),
    }
    _table(
        f"{_short(first['id'])} – {_short(second['id'])}", columns, answer["reasons"], 1 + by_class
    )
    for line in likeliest["about"]:
        console.say(f"{noun} {likeliest['reason']}, {one_line(line)}")
    if answer["unknown"]:
        console.say(UNKNOWN_EDGE[noun])
    if likeliest["known_at_ends"] is not None:
        counts = " and ".join(str(count) for count in likeliest["known_at_ends"])
        given = ", ".join(map(_short, answer["known"])) or "none"
        text = f"known type: {given}; other edges of the ends known as {_short(likeliest['name'])}"
        console.say(f"{text}: {counts}")
    for end in (first, second):
        if about := _prediction(end):
            console.say(f"{_short(end['id'])}: {about}")
    names = ", ".join(map(_short, answer["most_specific_neighbours"][:5]))
    console.say(f"common neighbours: {answer['common_neighbours']}{names and f' ({names})'}")
    shared = [
        f"{_short(title_of(one['kind'], one['name']))} (as {one['nodes'] - 2} others)"
        for one in answer["shared"][:5]
    ]
    console.say(f"both have: {', '.join(shared) or 'nothing that is known'}")


def _print_node(answer: Answer) -> None:
    noun, several, predicts = answer["noun"], answer["fits"] > 1, "predicted" in answer
    unknown = any(one["unknown"] for one in answer["reasons"])
    is_whole = "note" not in answer  # edges of a part are not all
    empty = [one for one in answer["reasons"] if is_whole and not one["edges"]]

    def neighbours(one: Answer) -> str:
        names = [_short(other["id"], NAME_IN_CELL) for other in one["neighbours"]]
        text = ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
        return _short(text, NAME_IN_CELL) if predicts and several else text

    columns: Columns = {
        noun: (True, lambda one: _factor(one, noun, NAME_IN_CELL)),
        "neighbours": (True, neighbours),
        "without it": (
            predicts,
            lambda one: _short(_labels(one["without"]["predicted"]), NAME_IN_CELL),
        ),
        "edges\nhere": (True, lambda one: str(len(one["neighbours"]))),
        "of these\nunknown": (unknown, lambda one: str(one["unknown"])),
        "proba-\nbility": (
            predicts,
            lambda one: _numbers(one["without"]["probability_of_prediction"]),
        ),
        "over\nseeds": (
            any((one["without"] or {}).get("over_fits") for one in answer["reasons"]),
            lambda one: _spans(one["without"]["over_fits"]),
        ),
        "agreement": (several, _stable),
    }
    about = _prediction(answer)
    title = f"{_short(answer['node'])}{about and f': {about}'}"
    _table(
        title,
        columns,
        [one for one in answer["reasons"] if one not in empty],
        text_columns=2 + predicts,
    )
    if empty:
        names = ", ".join(_factor(one, noun) for one in empty)
        console.say(f"no edges: {noun}{'s' * (len(empty) > 1)} {names}")
    if predicts:
        console.say(f"without it: predicted on the graph without any edge of this {noun}")
        console.say("probability: of what was predicted with it")
    if predicts and answer["features_stay"]:
        console.say("features that were made from the structure stay those of the whole graph")


# Of a table of factors by its heading: whether a column is shown, and its cell for a factor.
Columns = dict[str, tuple[bool, Callable[[Answer], str]]]


def _table(title: str, columns: Columns, factors: list[Answer], text_columns: int) -> None:
    shown = {heading: cell for heading, (is_shown, cell) in columns.items() if is_shown}
    rows = [[cell(one) for cell in shown.values()] for one in factors]
    console.table(title, [*shown], rows, text_columns)


def _factor(factor: Answer, noun: str, letters: int = LONGEST) -> str:
    """Its number, and its name if it has one."""
    number, name = str(factor["reason"]), factor["name"]
    return number if name == f"{noun} {number}" else f"{number}: {_short(name, letters)}"


def _both(factor: Answer) -> str:
    """The class of both ends in one factor."""
    first, second = map(_short, factor["classes"])
    return first if first == second else f"{first} / {second}"


def _agreement(factor: Answer) -> str:
    """How well fits agree on a factor, as the end of its title."""
    one = factor["stability"]
    if one is None:
        return ""
    span = f"{one['agreement']:.2f} ({one['low']:.2f} to {one['high']:.2f})"
    note = "" if one["stable"] else ": is not stable"
    return f", agreement of {one['fits']} fits {span}{note}"


def _stable(factor: Answer) -> str:
    """The same in a cell."""
    one = factor["stability"]
    return f"{one['agreement']:.2f}" + ("" if one["stable"] else "\nnot stable")


def _prediction(node: Answer) -> str:
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
    return " ".join([f"{p:.2f}" for p in values[:SHOWN]] + ["…"] * (len(values) > SHOWN))


def _span(bounds: list[float] | None) -> str:
    return "–" if bounds is None else f"{bounds[0]:.2f}–{bounds[1]:.2f}"


def _spans(bounds: list[list[float]] | None) -> str:
    """The probability of a label over the seeds; of several labels, how far they lie apart."""
    spans = bounds or []
    if len(spans) > 1:
        return f"within {max(high - low for low, high in spans):.2f}"
    return _span(spans[0]) if spans else "–"


def _short(name: str, letters: int = LONGEST) -> str:
    """A name as one line that leaves room for others."""
    text = one_line(name)
    return text if len(text) <= letters else text[: letters - 1] + "…"
