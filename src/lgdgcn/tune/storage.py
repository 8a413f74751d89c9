"""Where a study is kept: a local journal file, or any database Optuna knows by its address."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import optuna

from lgdgcn.errors import InputError
from lgdgcn.storage import to_json
from lgdgcn.train.identity import differences
from lgdgcn.tune.database import Address, open_database
from lgdgcn.tune.journal import open_journal

__all__ = ["LONGEST_NAME", "check_name", "open_study"]

LONGEST_NAME = 64  # of a study
_NAME = re.compile(rf"[A-Za-z0-9._-]{{1,{LONGEST_NAME}}}")
_MOST_SHOWN = 8  # differences in one message


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
        storage: Address of a database (``postgresql://user@host/base``, ``sqlite:///study.db``) or
            path of a journal file.
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
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    address = Address.read(storage) if "://" in storage else None
    shown = str(address or storage)
    file = address.file if address else _journal_path(storage)
    if resume and file is not None and not file.exists():
        raise _no_study(name, shown)
    opened = open_database(address) if address else open_journal(_journal_path(storage))
    try:
        exists = name in optuna.get_all_study_names(opened)
        if resume and not exists:
            raise _no_study(name, shown)
        if exists and not resume:
            raise _exists(name, shown)
        how = {"study_name": name, "storage": opened, "sampler": sampler, "pruner": pruner}
        if not exists:
            study = optuna.create_study(direction="maximize", **how)
            study.set_user_attr("search", to_json(space))
            return study
        study = optuna.load_study(**how)
        _check_same_search(study, to_json(space), shown)
        return study
    except optuna.exceptions.DuplicatedStudyError as error:  # somebody started it at this moment
        raise _exists(name, shown) from error
    except InputError:
        raise
    except Exception as error:  # each database fails in its own way
        reason = address.reason(error) if address else repr(error)
        raise InputError(
            f"cannot use study {name} in {shown}: {reason}; choose another --storage"
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


def _journal_path(storage: str) -> Path:
    if not storage or "\0" in storage:
        raise InputError(f"--storage {storage!r} is no path: name a file or a database address")
    return Path(storage)


def _exists(name: str, shown: str) -> InputError:
    return InputError(
        f"study {name} already exists in {shown}: add --resume to go on, "
        "or choose another --storage or --out"
    )


def _no_study(name: str, shown: str) -> InputError:
    return InputError(f"there is no study {name} in {shown} to go on with: leave out --resume")


def _check_same_search(study: optuna.Study, space: Mapping[str, Any], shown: str) -> None:
    known = study.user_attrs.get("search")
    if known is None and not study.get_trials(deepcopy=False):  # killed right after the start
        study.set_user_attr("search", space)
        return
    if not isinstance(known, Mapping) or study.directions != [optuna.study.StudyDirection.MAXIMIZE]:
        raise InputError(
            f"study {study.study_name} in {shown} was not made by lgdgcn tune: "
            "choose another --storage or --out"
        )
    if found := differences(known, space):
        more = f"; and {len(found) - _MOST_SHOWN} more" if len(found) > _MOST_SHOWN else ""
        raise InputError(
            f"study {study.study_name} in {shown} is of another search: "
            f"{'; '.join(found[:_MOST_SHOWN])}{more}; search the same space, "
            "or choose another --storage or --out"
        )
