"""``lgdgcn show``: the results of a run, as ``lgdgcn train`` has printed them."""

import json
from typing import Any

from lgdgcn.cli import console
from lgdgcn.cli.libraries import load_libraries
from lgdgcn.cli.options import Json, Run
from lgdgcn.errors import InputError, LGDError

__all__ = ["show"]


def show(run: Run, as_json: Json = False) -> None:
    """Show the results of a run as train printed them: graph, ranking, scores, warnings, files.

    Examples:
        lgdgcn show runs/mine
        lgdgcn show runs/mine --json
    """
    console.begin(as_json=as_json)
    load_libraries()
    from lgdgcn.cli.reasons import print_reasons
    from lgdgcn.cli.train_table import print_results
    from lgdgcn.runs.files import read_config, read_result
    from lgdgcn.runs.folder import Run

    files = Run.open(run)
    config = read_config(files.config)
    if not files.result.is_file():
        raise InputError(
            f"{run} is not finished: go on with lgdgcn train {config['run']['dataset']} --resume "
            f"--out {run}, and the options that it was begun with"
        )
    source = files.source
    read = {key: value for key, value in config["run"].items() if key != "model"}
    console.say(", ".join(f"{key} {_words(value)}" for key, value in read.items()))
    try:
        if files.model.is_file():
            beside = sorted((run / "compared").glob("*/result.json"))
            results = [read_result(file) for file in (files.result, *beside)]
            print_results(source, results, run, notes=False)
        else:
            results = [json.loads(files.result.read_text(encoding="utf-8"))]
        if "reasons" in results[0] or not files.model.is_file():
            print_reasons(source.name, results[0])
    except LGDError:
        raise
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(
            f"{files.result} is damaged: {error}; restore it, or train again with --overwrite"
        ) from None
    names = [file.name for file in files.files()]
    names += [f"compared/{folder.name}/" for folder in sorted((run / "compared").glob("*"))]
    console.say(f"files in {run}: {', '.join(names)}")
    if as_json:
        console.as_json({"run": read, "results": results, "files": names})


def _words(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
