"""Studies: a new one, or one that goes on if it is of the same search."""

import re
from collections.abc import Mapping
from typing import Any

import optuna

from lgdgcn.errors import InputError
from lgdgcn.runs.checkpoint import differences
from lgdgcn.search.database import StudyAddress, connect
from lgdgcn.storage import to_json

__all__ = ["LONGEST_NAME", "check_name", "open_study"]

LONGEST_NAME = 64  # of a study
_NAME = re.compile(rf"[A-Za-z0-9._-]{{1,{LONGEST_NAME}}}")
_MAX_DIFFERENCES = 8  # in one message


def open_study(
    name: str,
    storage: str,
    *,
    space: Mapping[str, Any],
    resume: bool,
    sampler: Any = None,
    pruner: Any = None,
) -> optuna.Study:
    """Start a study, or go on with one of the same search.

    Args:
        name: Name of the study.
        storage: Path of an SQLite file, or a URL (``postgresql://user@host/base``,
            ``sqlite:///study.db``).
        space: All that makes two searches the same one, in types JSON has: model, graph, ranges,
            fixed settings, seeds. Kept as the study's user attribute ``search``.
        resume: Whether the study must exist already; otherwise it must not.
        sampler: Optuna's sampler of this process.
        pruner: Optuna's pruner of this process.

    Returns:
        The study; the larger objective is the better one.

    Raises:
        InputError: The name, the storage or the study cannot be used, or another search was asked.
    """
    check_name(name)
    address = StudyAddress.read(storage)
    if resume and address.file and not address.file.exists():
        raise _no_study(name, address)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    opened = connect(address)
    try:
        exists = name in optuna.get_all_study_names(opened)
        if resume and not exists:
            raise _no_study(name, address)
        if exists and not resume:
            raise _exists(name, address)
        how = {"study_name": name, "storage": opened, "sampler": sampler, "pruner": pruner}
        if not exists:
            study = optuna.create_study(direction="maximize", **how)
            study.set_user_attr("search", to_json(space))
            return study
        study = optuna.load_study(**how)
        _check_same_search(study, to_json(space), address)
        return study
    except optuna.exceptions.DuplicatedStudyError as error:  # somebody started it at this moment
        raise _exists(name, address) from error
    except InputError:
        raise
    except Exception as error:  # each database fails in its own way
        raise InputError(
            f"cannot use study {name} in {address}: {address.reason(error)}; "
            "choose another --storage"
        ) from error


def check_name(name: str) -> None:
    """Refuse a name of a study that is not also safe as a part of a file name.

    Example:
        >>> check_name("cora-lgd_gcn.v2")
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            f"study name {name[:80]!r} cannot be used: "
            f"take 1 to {LONGEST_NAME} letters, digits, dots, dashes and underscores"
        )


def _exists(name: str, address: StudyAddress) -> InputError:
    return InputError(
        f"study {name} already exists in {address}: add --resume to go on, "
        "or choose another --storage or --out"
    )


def _no_study(name: str, address: StudyAddress) -> InputError:
    return InputError(f"there is no study {name} in {address} to go on with: leave out --resume")


def _check_same_search(
    study: optuna.Study, space: Mapping[str, Any], address: StudyAddress
) -> None:
    known = study.user_attrs.get("search")
    if known is None and not study.get_trials(deepcopy=False):  # killed right after the start
        study.set_user_attr("search", space)
        return
    if not isinstance(known, Mapping) or study.directions != [optuna.study.StudyDirection.MAXIMIZE]:
        raise InputError(
            f"study {study.study_name} in {address} was not made by lgdgcn tune: "
            "choose another --storage or --out"
        )
    if found := differences(known, space):
        rest = len(found) - _MAX_DIFFERENCES
        more = f"; and {rest} more" if rest > 0 else ""
        raise InputError(
            f"study {study.study_name} in {address} is of another search: "
            f"{'; '.join(found[:_MAX_DIFFERENCES])}{more}; search the same space, "
            "or choose another --storage or --out"
        )
