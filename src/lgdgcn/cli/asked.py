"""What a command line of ``lgdgcn train`` asks for, checked before anything heavy is loaded."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lgdgcn.config import (
    AUTO,
    Settings,
    auto_scaling,
    belongs,
    check_belongs,
    check_value,
    default_variant,
    from_toml,
    merge,
    model_and_variant,
    model_name,
)
from lgdgcn.data.source import GraphSource
from lgdgcn.errors import InputError
from lgdgcn.search.families import families_with

__all__ = ["Asked", "model_of", "settings_of"]


@dataclass(frozen=True)
class Asked:
    """What a command line asks for.

    Attributes:
        source: The graph.
        model: A name of ``--model``; ``None`` for the winner of a race of all.
        settings: What the user gives of settings, in a file and on the command line.
        seeds: Seeds, one training each; the first also chooses.
        given: Those on the command line.
        config: The file.
        device: A name of ``--device``.
        folder: The run folder, if it is named.
        resume: Go on with the run in it.
        overwrite: Replace the run in it.
        compare: Names of models that are trained, too.
        budget: How many settings to try; 0 takes the first, ``None`` is the whole portfolio.
        time_limit: The time limit for that as it is written, if it is.
        seconds: The limit that holds, if any.
    """

    source: GraphSource
    model: str | None
    settings: dict[str, Any]
    seeds: range
    given: dict[str, Any]
    config: Path | None
    device: str
    folder: Path | None
    resume: bool
    overwrite: bool
    compare: list[str]
    budget: int | None
    time_limit: str | None
    seconds: float | None

    def __post_init__(self) -> None:
        for name in self.compare:
            model_and_variant(name)  # refuses what is none
        if twice := [name for name in self.compare if self.compare.count(name) > 1]:
            raise InputError(f"--compare names {twice[0]} twice; leave out one")
        if self.model in self.compare and not self.settings:  # with some, the preset is another
            raise InputError(f"--compare names {self.model}, which is trained anyway; leave it out")
        if self.resume and self.overwrite:
            raise InputError("--resume and --overwrite exclude each other; leave out one of them")


def model_of(name: str, source: GraphSource, config: Path | None) -> str | None:
    """The model that ``--model`` names; ``None`` if all families take part in a race.

    Args:
        name: A model, or ``auto``.
        source: The graph: where it has presets, that of our model is the best known.
        config: A file of settings; that of a run says which model it has trained.
    """
    if name != AUTO:
        return model_name(*model_and_variant(name))
    if config is not None:
        settings = from_toml(config)  # which says what is wrong with the file
        run = tomllib.loads(config.read_text(encoding="utf-8-sig")).get("run", {})
        model = str(run.get("model", "lgdgcn"))
        return model_name(model, settings.get("variant") or default_variant(model))
    return None if auto_scaling(source.preset_name) else "lgdgcn"


def settings_of(name: str | None, given: dict[str, Any], config: Path | None) -> dict[str, Any]:
    """What the user gives of settings, in a file and, before it, on the command line.

    A file may hold all settings there are: those that the model does not have are left out where
    they have their defaults.

    Args:
        name: The model; ``None`` if all families take part in a race.
        given: Settings on the command line.
        config: The file.
    """
    if "variant" in given:
        raise InputError(
            "variant is part of a model's name: leave it out, and write --model "
            f"lgdgcn-{given['variant']}"
        )
    of_file = from_toml(config) if config else {}
    every = merge(of_file, given)
    for key, value in of_file.items():
        check_value(key, value)
    if name is None:
        families_with(every)  # refuses what no model has
        return every
    model, variant = model_and_variant(name)
    if variant is not None and of_file.get("variant", variant) != variant:
        other = model_name(model, of_file["variant"])
        raise InputError(f"{config} is of {other}; add --model {other}")
    usual = Settings().as_dict()
    differing = {k: v for k, v in of_file.items() if v != usual[k] and k != "variant"}
    check_belongs(differing, model, variant)
    check_belongs(given, model, variant)
    return {k: v for k, v in every.items() if k != "variant" and belongs(k, model, variant)}
