"""Arguments and options that several verbs of the command line share."""

from pathlib import Path
from typing import Annotated

import typer

from lgdgcn.errors import InputError

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
    "assigned",
    "features_of",
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


def assigned(assignments: list[str] | None, **options: object) -> list[str]:
    """What ``--set`` changes, and settings that have an option of their own, where it is given."""
    own = [f"{name}={value}" for name, value in options.items() if value is not None]
    return [*(assignments or []), *own]


def features_of(given: list[str] | None) -> str | None:
    """What all ``--features`` of a command say, as one of them with commas would.

    Example:
        >>> features_of(["text:title", "text:notes,degree"])
        'text:title,text:notes,degree'
    """
    if given is None:
        return None
    text = ",".join(given)
    for kind in (kind.strip() for kind in text.split(",")):
        if kind and kind not in STRUCTURE and not kind.startswith("text:"):
            choices = f"{', '.join(STRUCTURE)} or text:COLUMN"
            raise InputError(f"--features is {kind[:50]!r}; choose {choices}")
    return text
