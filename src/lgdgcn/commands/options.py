"""Arguments and options that several verbs of the command line share, and when they are refused."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from lgdgcn.errors import InputError

if TYPE_CHECKING:  # imported where a verb needs it
    from lgdgcn.data.source import GraphSource

__all__ = [
    "Device",
    "Features",
    "Id",
    "Ignore",
    "Label",
    "Metric",
    "Model",
    "Root",
    "Run",
    "Split",
    "Verbs",
    "assigned",
    "features_of",
    "graph_source",
    "refuse_options_of_nodes",
]

STRUCTURE = ("spectral", "degree", "identity")  # kinds of features that need no column

Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")]
Features = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KIND",
        help="Make features from the structure: spectral, degree or identity. text:COLUMN also "
        "makes features of a column's words; may be repeated, or written text:A,text:B.",
    ),
]
Id = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of a folder's node ids.")]
Ignore = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Column of a folder not to use; may be repeated."),
]
Label = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of a folder's labels.")]
Metric = Annotated[
    str | None,
    typer.Option(
        help="Score that chooses the epoch to keep and is reported: accuracy, balanced_accuracy, "
        "macro_f1, micro_f1, roc_auc or average_precision.",
        show_default="what is fair to the labels",
    ),
]
Model = Annotated[
    str, typer.Option(help="lgdgcn, disengcn, gcn, gat, monet, appnp, gcnii, grand or mlp.")
]
Root = Annotated[
    str | None, typer.Option(help="Folder with data sets; else $LGDGCN_DATA or the cache.")
]
Split = Annotated[
    str,
    typer.Option(
        help="standard, or random: another split of the same size per seed; for a folder, the "
        "column that says train, val or test."
    ),
]
Run = Annotated[Path, typer.Argument(help="Run folder of lgdgcn train.")]


class _Verb(TyperCommand):
    """A verb that refuses an option which is given twice: only one of them would count."""

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

    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        """Add a verb."""
        return super().command(name, cls=_Verb, **options)


# What lgdgcn train has for --task edges; all else is of --task nodes
_OF_EDGES = (
    "dataset", "task", "seeds", "factors", "device", "out", "overwrite", "split", "features",
    "ignore", "label", "id", "root",
)  # fmt: skip


def refuse_options_of_nodes(ctx: typer.Context) -> None:
    """Refuse options that ``--task edges`` would not use."""
    for param in ctx.command.params:
        source = ctx.get_parameter_source(str(param.name))
        if source is not None and source.name == "COMMANDLINE" and param.name not in _OF_EDGES:
            raise InputError(f"{param.opts[0]} is of --task nodes; leave it out with --task edges")


def graph_source(
    dataset: str,
    split: str,
    features: list[str] | None,
    ignore: list[str] | None,
    label: str | None,
    id: str | None,
    root: str | None = None,
) -> "GraphSource":
    """The graph that an argument and the options about it name."""
    from lgdgcn.data.source import GraphSource

    columns = tuple(ignore or ())
    source = GraphSource(dataset, root, split, features_of(features), columns, label, id)
    if root is not None and (source.is_folder or source.name == "synthetic"):
        what = "a folder itself" if source.is_folder else "generated"
        raise InputError(
            f"--root is a folder of data sets, and {dataset[:200]} is {what}; leave it out"
        )
    return source


def assigned(assignments: list[str] | None, **options: object) -> list[str]:
    """What ``--set`` changes, and settings that have an option of their own, where it is given."""
    set_twice = {name.partition("=")[0].strip(): name for name in assignments or []}
    own = []
    for name, value in options.items():
        if value is None:
            continue
        if name in set_twice:
            option = f"--{_OPTIONS.get(name, name)} {value}"
            raise InputError(f"{option} and --set {set_twice[name]} are one setting; leave out one")
        own.append(f"{name}={value}")
    return [*(assignments or []), *own]


_OPTIONS = {"num_layers": "layers", "batch_size": "batch-size"}  # whose setting has another name


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
