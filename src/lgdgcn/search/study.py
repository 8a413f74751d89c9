"""Where a study is kept: an SQLite file, or a PostgreSQL server that several machines share."""

import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import optuna
import sqlalchemy
from sqlalchemy.engine import URL, make_url

from lgdgcn.errors import InputError, LGDError
from lgdgcn.runs.checkpoint import differences
from lgdgcn.storage import make_folder, to_json

__all__ = ["database_faults", "open_study", "storage_url"]

_SECRETS = ("password", "sslpassword")  # in the query of an address
_MAX_DIFFERENCES = 8  # in one message
# Whatever else has an @ or a colon may be a mistyped address with a password, and is no file name.
_FILE = re.compile(r"\.{0,2}/.*|[^@:]+", re.S)


def storage_url(text: str | Path) -> URL:
    """Understand ``--storage``: the path of an SQLite file, or a database's address.

    Example:
        >>> storage_url("postgresql://me:secret@host/studies")  # with the driver that we install
        postgresql+psycopg://me:***@host/studies
    """
    if isinstance(text, Path) or _FILE.fullmatch(text):
        return URL.create("sqlite", database=str(text))
    with suppress(sqlalchemy.exc.ArgumentError, ValueError):
        url = make_url(text)
        if url.drivername in ("postgresql", "postgres"):
            url = url.set(drivername="postgresql+psycopg")
        is_file = bool(url.database) and url.database != ":memory:"
        has_all_of_password = "@" not in f"{url.host}{url.database}"
        backend = url.get_backend_name()
        if (backend == "sqlite" and is_file) or (backend == "postgresql" and has_all_of_password):
            return url
    raise InputError(
        "--storage is no place for a study (it is not repeated here, as it may hold a password): "
        "write postgresql://user:password@host:5432/base, with %40 for an @ in the password, or "
        "name a file such as ./study.db"
    )


def open_study(
    name: str,
    url: URL,
    search: Mapping[str, Any],
    *,
    resume: bool,
    sampler: optuna.samplers.BaseSampler | None = None,
) -> optuna.Study:
    """Start a study, or go on with one of the same search; the larger score is the better one.

    Args:
        name: Name of the study.
        url: Where it is kept, see :func:`storage_url`.
        search: All that makes two searches the same one; kept as the study's user attribute.
        resume: Whether the study must exist already; otherwise it must not.
        sampler: Optuna's sampler of this process.
    """
    place, search = _shown(url), to_json(search)
    file = _file(url)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    how: Any = {"study_name": name, "sampler": sampler}
    if not resume:
        try:
            study = optuna.create_study(storage=_storage(url), direction="maximize", **how)
        except optuna.exceptions.DuplicatedStudyError:
            raise InputError(
                f"study {name} already exists in {place}: add --resume to go on, "
                "or choose another --storage or --out"
            ) from None
        study.set_user_attr("search", search)
        return study
    try:
        if file is not None and not file.exists():
            raise KeyError(name)
        study = optuna.load_study(storage=_storage(url), **how)
    except KeyError:
        raise InputError(
            f"there is no study {name} in {place} to go on with: leave out --resume"
        ) from None
    known = study.user_attrs.get("search")
    if known is None and not study.get_trials(deepcopy=False):  # killed right after the start
        study.set_user_attr("search", search)
    elif not isinstance(known, Mapping):
        raise InputError(
            f"study {name} in {place} was not made by lgdgcn tune: choose another --storage"
        )
    elif found := differences(known, search):
        more = "; and more" if len(found) > _MAX_DIFFERENCES else ""
        raise InputError(
            f"study {name} in {place} is of another search: "
            f"{'; '.join(found[:_MAX_DIFFERENCES])}{more}; search the same space, "
            "or choose another --storage or --out"
        )
    return study


def _storage(url: URL) -> optuna.storages.RDBStorage:
    if file := _file(url):
        make_folder(file.parent)
        _refuse_stranger(file)
    options = {"timeout": 60} if file else {"connect_timeout": 10}  # seconds
    try:
        return optuna.storages.RDBStorage(
            url.render_as_string(hide_password=False),
            engine_kwargs={"pool_pre_ping": True, "connect_args": options},
        )
    except (ImportError, sqlalchemy.exc.NoSuchModuleError):
        raise InputError(
            f"--storage {_shown(url)} needs the driver {url.drivername}: install "
            "pip install 'lgdgcn[postgres]' and write postgresql://, or name a file"
        ) from None
    except Exception as error:  # each driver has errors of its own
        fix = "choose another file" if file else "check the address and the server"
        raise InputError(
            f"cannot open --storage {_shown(url)}: {_reason(url, error)}; {fix}"
        ) from error


def _refuse_stranger(file: Path) -> None:
    """Refuse an SQLite file of something else, before Optuna makes its tables in it."""
    if not file.is_file() or not file.stat().st_size:
        return
    with suppress(sqlite3.Error):  # which opening it as a study will say
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as base:
            tables = {name for (name,) in base.execute("SELECT name FROM sqlite_master")}
        if tables and "studies" not in tables:
            raise InputError(f"--storage {file} is a database of something else: name another file")


def _file(url: URL) -> Path | None:
    return Path(str(url.database)) if url.get_backend_name() == "sqlite" else None


def _shown(url: URL) -> str:
    """The file, or the address without its passwords."""
    if file := _file(url):
        return str(file)
    hidden = {key: "***" for key in _SECRETS if key in url.query}
    return url.update_query_dict(hidden).render_as_string(hide_password=True)


def _reason(url: URL, error: BaseException) -> str:
    """The first line of what a driver says, without passwords."""
    if isinstance(error, optuna.exceptions.StorageInternalError) and error.__cause__:
        error = error.__cause__
    line = (str(getattr(error, "orig", None) or error).splitlines() or [type(error).__name__])[0]
    for secret in filter(None, [url.password, *(url.query.get(key) for key in _SECRETS)]):
        line = line.replace(str(secret), "***")
    return line


@contextmanager
def database_faults(url: URL) -> Iterator[None]:
    """Turn what a database raises amid a search into one line; the study itself is kept."""
    try:
        yield
    except (sqlalchemy.exc.SQLAlchemyError, optuna.exceptions.OptunaError) as error:
        reason = _reason(url, error)
        fix = "free some space, then" if re.search("disk|space", reason) else "when it is back,"
        raise LGDError(
            f"the study's database {_shown(url)} failed: {reason}; {fix} go on with --resume"
        ) from error
