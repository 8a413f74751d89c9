"""Options of several verbs, each declared once, and how a verb is made of a function.

A parameter of a verb whose type is a dataclass, such as :class:`GraphOptions`, stands for all
options of that class. What follows ``Examples:`` in a verb's docstring ends its help.
"""

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand

from lgdgcn.config import AUTO, MODEL_NAMES, Settings, check_value, parse_assignments
from lgdgcn.data.catalogue import DATASETS
from lgdgcn.errors import InputError

if TYPE_CHECKING:
    from lgdgcn.data.source import GraphSource

__all__ = [
    "Device",
    "Graph",
    "GraphOptions",
    "Json",
    "Metric",
    "Model",
    "Quiet",
    "Run",
    "Sets",
    "Verbs",
    "assigned",
    "features_of",
    "one_of",
]

STRUCTURE = ("spectral", "degree", "identity")  # kinds of features that need no column
SCORES = tuple(
    name
    for setting in fields(Settings)
    if setting.name == "metric"
    for name in setting.metadata["options"]
    if name != AUTO
)


def one_of(words: Iterable[str]) -> Callable[[str], list[str]]:
    """What lets a shell complete one of some words."""

    def beginning(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return beginning


def _device(name: str) -> str:
    """Refuse what names no device; whether there is such a one is seen later."""
    if not re.fullmatch("auto|cpu|cuda(:[0-9]+)?", name):
        raise InputError(f"device is {name!r}; use auto, cpu, cuda or cuda:N")
    return name


Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.", callback=_device)]
Graph = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH",
        help="A data set (see: lgdgcn data list), synthetic:factors=8,seed=1, or a folder with "
        "edges.csv and nodes.csv.",
        autocompletion=one_of(DATASETS),
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Metric = Annotated[
    str | None,
    typer.Option(
        help=f"Score that chooses the epoch to keep and is reported: {', '.join(SCORES[:-1])} or "
        f"{SCORES[-1]}.",
        show_default="what is fair to the labels",
        autocompletion=one_of(SCORES),
    ),
]
Model = Annotated[
    str,
    typer.Option(
        help=f"{', '.join(MODEL_NAMES[:-1])} or {MODEL_NAMES[-1]}.",
        autocompletion=one_of(MODEL_NAMES),
    ),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print nothing but warnings and errors.")
]


def _run(folder: Path) -> Path:
    """Refuse a folder with nothing of a run in it."""
    from lgdgcn.runs.files import no_run

    if not any((folder / name).exists() for name in ("config.toml", "model.safetensors")):
        raise InputError(no_run(folder))
    return folder


Run = Annotated[
    Path, typer.Argument(metavar="RUN", help="Run folder of lgdgcn train.", callback=_run)
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Give any setting a value (see: lgdgcn settings); may be repeated.",
    ),
]


_reading = partial(typer.Option, rich_help_panel="How the graph is read")


@dataclass(frozen=True)
class GraphOptions:
    """How a graph is read."""

    label: Annotated[
        str | None, _reading(metavar="COLUMN", help="Column of a folder's labels.")
    ] = None
    id: Annotated[str | None, _reading(metavar="COLUMN", help="Column of a folder's node ids.")] = (
        None
    )
    split: Annotated[
        str,
        _reading(
            help="standard, or random: another split of the same size per seed; for a folder also "
            "the column that says train, val or test."
        ),
    ] = "standard"
    ignore: Annotated[
        list[str] | None,
        _reading(metavar="COLUMN", help="Column of a folder not to use; may be repeated."),
    ] = None
    features: Annotated[
        list[str] | None,
        _reading(
            metavar="KIND",
            help="Make features from the structure: spectral, degree or identity. text:COLUMN also "
            "makes features of a column's words; may be repeated, or written text:A,text:B.",
        ),
    ] = None

    def source(self, graph: str) -> "GraphSource":
        """The graph of this name or folder, read so; it is refused if it is not there."""
        from lgdgcn.data.source import GraphSource

        columns = tuple(self.ignore or ())
        features = features_of(self.features)
        source = GraphSource(graph, None, self.split, features, columns, self.label, self.id)
        source.check_there()
        return source


def features_of(given: list[str] | None) -> str | None:
    """What all ``--features`` of a command say, as one of them with commas would.

    Example:
        >>> features_of(["text:title", "text:notes,degree"])
        'text:title,text:notes,degree'
    """
    if given is None:
        return None
    text = ",".join(given)
    if not text.strip(" ,"):
        raise InputError("--features names nothing; give spectral, degree, identity or text:COLUMN")
    for kind in (kind.strip() for kind in text.split(",")):
        if kind and kind not in STRUCTURE and not kind.startswith("text:"):
            choices = f"{', '.join(STRUCTURE)} or text:COLUMN"
            raise InputError(f"--features is {kind[:50]!r}; choose {choices}")
    return text


def assigned(sets: list[str] | None, **options: object) -> dict[str, Any]:
    """What ``--set`` gives, and settings that have an option of their own; each is checked."""
    set_twice = {text.partition("=")[0].strip(): text for text in sets or []}
    own = []
    for name, value in options.items():
        if value is None:
            continue
        if name in set_twice:
            option = f"--{name.replace('_', '-')} {value}"
            raise InputError(f"{option} and --set {set_twice[name]} are one setting; leave out one")
        own.append(f"{name}={value}")
    given = parse_assignments([*(sets or []), *own])
    for name, value in given.items():
        check_value(name, value)
    return given


class _Verb(TyperCommand):
    """A verb that refuses an option which is given twice: only one of them would count."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options of the verb; of a switch no value is shown, as it takes none."""
        params = super().get_params(ctx)
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line of the verb."""
        _, _, order = self.make_parser(ctx).parse_args(args=[*args])
        count = Counter(param for param in order if param.param_type_name == "option")
        for param, times in count.items():
            if times > 1 and not param.multiple and not param.is_eager:
                ctx.fail(f"{param.opts[0]} is given {times} times; leave out all but one")
        return super().parse_args(ctx, args)


class Verbs(typer.Typer):
    """Verbs of the command line."""

    def add(self, *verbs: Callable[..., None], name: str | None = None) -> None:
        """Add verbs, which are called as the functions are unless there is a name."""
        for verb in verbs:
            text, _, examples = (inspect.getdoc(verb) or "").partition("\nExamples:\n")
            help = "\n\n".join(part.replace("\n", " ") for part in text.strip().split("\n\n"))
            epilog = f"Examples:\n{examples}" if examples else None
            self.command(name, cls=_Verb, help=help, epilog=epilog)(_without_groups(verb))


def _without_groups(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb with the options of a group as parameters of its own, as typer wants them."""
    hints = get_type_hints(verb, include_extras=True)
    groups: dict[str, type] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(verb).parameters.items():
        if not is_dataclass(hints[name]):
            parameters.append(parameter.replace(annotation=hints[name]))
            continue
        groups[name] = hints[name]
        types = get_type_hints(hints[name], include_extras=True)
        parameters += [
            inspect.Parameter(
                field.name,
                parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=types[field.name],
            )
            for field in fields(hints[name])
        ]

    def call(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{one.name: values.pop(one.name) for one in fields(group)})
        verb(**values)

    keywords = [one.replace(kind=one.KEYWORD_ONLY) for one in parameters]
    call.__name__ = verb.__name__
    call.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in keywords}
    return call
