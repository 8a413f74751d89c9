"""The command line: one module a verb, which imports what is heavy when it is called."""

import errno
import os
import sys
import warnings
from typing import Annotated, Any, NoReturn

import typer

from lgdgcn import __version__
from lgdgcn.cli import (
    console,
    data,
    explain,
    explore,
    measure,
    predict,
    reproduce,
    settings,
    show,
    train,
    tune,
)
from lgdgcn.cli.options import Verbs
from lgdgcn.errors import LGDError
from lgdgcn.progress import show_with

__all__ = ["app", "main"]

START = """With a graph of your own, a folder with edges.csv and nodes.csv:
    lgdgcn data check my-graph/
    lgdgcn train my-graph/ --out runs/mine
    lgdgcn predict runs/mine --proba
    lgdgcn explore runs/mine --open
"""

app = Verbs(
    help="Disentangled node representations on graphs: which factor explains each edge, which "
    "nodes are alike in it, and what class each node has.",
    epilog=START,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add(train.train, show.show, predict.predict, explain.explain, explore.explore)
app.add(measure.measure, tune.tune, settings.settings, reproduce.reproduce)
graphs = Verbs(help="List, check, pack and fetch graphs.", no_args_is_help=True)
graphs.add(data.list_sets, name="list")
graphs.add(data.check, data.pack, data.get)
app.add_typer(graphs, name="data")


def _version(value: bool) -> None:
    if value:
        console.begin()
        console.say(f"lgdgcn {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; every expected error is one line and an exit code of its own."""
    console.begin()
    warnings.showwarning = console.show_warning
    warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
    show_with(console.work_progress)
    try:
        code = app(prog_name="lgdgcn", standalone_mode=False)  # quiet at Ctrl-C and | head
        if sys.stdout is not None:
            sys.stdout.flush()  # a full disk is found here, not when Python ends
        sys.exit(code)
    except KeyboardInterrupt:  # outside the command itself
        sys.exit(130)
    except LGDError as error:
        _fail(error, error.exit_code)
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
    _fail(refused, refused.exit_code)


def _fail(message: object, exit_code: int) -> NoReturn:
    console.error(message)
    sys.exit(exit_code)
