"""``lgdgcn show``: the results of a run, as ``lgdgcn train`` has printed them."""

import json
from pathlib import Path
from typing import Any

from lgdgcn.cli import console
from lgdgcn.cli.libraries import load_libraries
from lgdgcn.cli.options import Json, Run, is_of_edges
from lgdgcn.errors import InputError

__all__ = ["show"]


def show(run: Run, as_json: Json = False) -> None:
    """Show the results of a run as train printed them: graph, ranking, scores, warnings, files.

    Examples:
        lgdgcn show runs/mine
        lgdgcn show runs/mine --json
    """
    console.begin(as_json=as_json)
    load_libraries()
    from lgdgcn.cli.train_edges import print_reasons
    from lgdgcn.cli.train_table import print_results
    from lgdgcn.runs.files import read_config, read_result
    from lgdgcn.runs.finished import no_run, source_of
    from lgdgcn.runs.folder import Run

    files = Run.open(run)
    if not files.config.is_file():
        raise InputError(no_run(run))
    config = read_config(files.config)
    if not files.result.is_file():
        raise InputError(
            f"{run} is not finished: go on with lgdgcn train {config['run']['dataset']} --resume "
            f"--out {run}, and the options that it was begun with"
        )
    source = source_of(files.config)
    read = {key: value for key, value in config["run"].items() if key != "model"}
    console.say(", ".join(f"{key} {_words(value)}" for key, value in read.items()))
    if is_of_edges(run):
        result = _result_of_edges(files.result)
        print_reasons(source.name, result, given=config["settings"].get("factors") != "auto")
        results = [result]
    else:
        beside = sorted((run / "compared").glob("*/result.json"))
        results = [read_result(file) for file in (files.result, *beside)]
        print_results(source, results, run, notes=False)
    names = [file.relative_to(run).as_posix() for file in files.files()]
    console.say(f"files in {run}: {', '.join(names)}")
    if as_json:
        console.as_json({"run": read, "results": results, "files": names})


def _words(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _result_of_edges(file: Path) -> Any:
    """What ``result.json`` says of a run of ``--task edges``."""
    try:
        result = json.loads(file.read_text(encoding="utf-8"))
        names = {"typed", "reasons", "choice", "held_back"}
        if names <= result.keys() and result["reasons"]:
            return result
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        pass
    raise InputError(f"{file} is damaged; restore it, or train again with --overwrite")
