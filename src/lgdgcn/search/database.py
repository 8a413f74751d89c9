"""The database of a study: an SQLite file, or a PostgreSQL server that several machines share."""

import os
import re
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import filelock
import optuna
import sqlalchemy
from sqlalchemy.engine import URL, make_url

from lgdgcn.errors import InputError, LGDError
from lgdgcn.storage import cannot_write

__all__ = ["StudyAddress", "connect", "database_faults", "default_storage", "study_lock"]

HEARTBEAT_SECONDS = 15  # between two signs of life of a running trial
GRACE_SECONDS = 60  # without one, after which its worker counts as dead
_CONNECT_SECONDS = 10
_BUSY_SECONDS = 60  # how long a worker waits for its turn at an SQLite file
_LOCK_SECONDS = 60  # after which a server frees the lock of a machine that has vanished
_SECRETS = ("password", "sslpassword")
_JOURNAL = b'{"op_code":'  # how the study files of earlier versions begin
# Also mistyped ones: postgresql:/…, postgresql//…, user:secret@host. Never becomes a file.
_LIKE_A_URL = re.compile(
    r"[a-z][\w+.-]+:|(postgres|sqlite)\w*(\+\w+)?//|(?!\.{0,2}/[^/]).*(@|:/)", re.I | re.S
)


@dataclass(frozen=True)
class StudyAddress:
    """The file or the server of a study; as text, its passwords are hidden.

    Example:
        >>> str(StudyAddress.read("postgresql://me:secret@host/studies"))
        'postgresql+psycopg://me:***@host/studies'
        >>> str(StudyAddress.read("runs/study.db"))
        'runs/study.db'
    """

    url: URL

    @classmethod
    def read(cls, text: str) -> Self:
        """Understand ``--storage``: a URL, or the path of an SQLite file.

        Plain ``postgresql://`` means the driver of our ``postgres`` extra.

        Raises:
            InputError: It is neither; the message does not repeat what may hold a password.
        """
        if not text.strip() or "\0" in text:
            raise InputError(f"--storage {text!r} is no path: name a file or a database address")
        if not _LIKE_A_URL.match(text.lstrip()):
            return cls(URL.create("sqlite", database=text))
        try:
            url = make_url(text)
        except (sqlalchemy.exc.ArgumentError, ValueError):
            raise _not_an_address() from None
        if url.drivername in ("postgresql", "postgres"):
            url = url.set(drivername="postgresql+psycopg")
        if url.get_backend_name() == "sqlite":
            if not url.database or ":memory:" in url.database or url.database.startswith("file:"):
                raise InputError(
                    f"--storage {text}: a database in memory is lost at the end; "
                    "name a file: sqlite:///file.db"
                )
            return cls(url)
        if "@" in f"{url.host}{url.database}":  # the rest of a password
            raise _not_an_address("an @ in a password is written %40; ")
        if url.get_backend_name() != "postgresql":
            raise InputError(
                f"--storage {cls(url)}: studies are not kept in {url.drivername}; "
                "use postgresql:// or sqlite:///, or name a file"
            )
        return cls(url)

    def __str__(self) -> str:
        if self.file:
            return str(self.file)
        hidden = {key: "***" for key in _SECRETS if key in self.url.query}
        return self.url.update_query_dict(hidden).render_as_string(hide_password=True)

    @property
    def file(self) -> Path | None:
        """The SQLite file."""
        is_file = self.url.get_backend_name() == "sqlite"
        return Path(self.url.database) if is_file and self.url.database else None

    def reason(self, error: BaseException) -> str:
        """The first line of what a driver says, without passwords."""
        if isinstance(error, optuna.exceptions.StorageInternalError) and error.__cause__:
            error = error.__cause__
        said = str(getattr(error, "orig", None) or error).strip() or type(error).__name__
        line = said.splitlines()[0]
        secrets = [self.url.password, *(self.url.query.get(key) for key in _SECRETS)]
        for secret in filter(None, secrets):
            line = line.replace(str(secret), "***")
        return line


def _not_an_address(hint: str = "") -> InputError:
    return InputError(
        "--storage is not a valid database address (not repeated here, it may hold a password): "
        f"{hint}write postgresql://user:password@host:5432/base or sqlite:///file.db, "
        "or a file as ./NAME"
    )


def default_storage(folder: Path) -> str:
    """The file of a study in its output folder.

    Raises:
        InputError: There is the study of an earlier version instead.
    """
    file = folder / "study.db"
    if not file.exists():
        _refuse_journal(folder / "study.log")
    return str(file) if file.is_absolute() else f"./{file}"  # never like an address


def _refuse_journal(path: Path) -> None:
    if not path.is_file():
        return
    with path.open("rb") as file:
        start = file.read(len(_JOURNAL))
    if start == _JOURNAL:
        raise InputError(
            f"{path} is the study of an earlier version, which kept it as a journal: "
            "finish it with that version, or move it away and search anew"
        )


def connect(address: StudyAddress) -> Any:
    """Optuna's storage at an address; its tables and parent folders are made where missing.

    Raises:
        InputError: No such place, driver or server, no access, or tables of another Optuna.
    """
    if address.file:
        _check_file(address.file)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    warnings.filterwarnings("ignore", "Heartbeat of storage is supposed to be used with")
    for patience in (0.1, 0.5, 0):
        try:
            return _storage(address.url)
        except (ImportError, sqlalchemy.exc.NoSuchModuleError) as error:
            raise InputError(
                f"--storage {address} needs the driver {address.url.drivername}: install "
                "pip install 'lgdgcn[postgres]' and write postgresql://, or name a file"
            ) from error
        except Exception as error:  # each driver has errors of its own
            if not patience or "already exists" not in str(error):
                fix = "choose another file" if address.file else "check the address and the server"
                raise InputError(
                    f"cannot open --storage {address}: {address.reason(error)}; {fix}"
                ) from error
        time.sleep(patience)  # others are making the same tables
    raise AssertionError("the last attempt returns or raises")


def _check_file(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            raise InputError(f"--storage {path} is not a file: name one")
        _refuse_journal(path)
    except OSError as error:
        raise cannot_write(path, error) from error


def _storage(url: URL) -> Any:
    if url.get_backend_name() == "sqlite":
        url = url.set(database=os.path.realpath(url.database or ""))  # the folder may change
    text = url.render_as_string(hide_password=False)
    return optuna.storages.RDBStorage(
        text,
        engine_kwargs=_engine_options(url),
        heartbeat_interval=HEARTBEAT_SECONDS,
        grace_period=GRACE_SECONDS,
    )


def _engine_options(url: URL) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if url.get_backend_name() == "sqlite":
        options["timeout"] = _BUSY_SECONDS
    elif url.drivername == "postgresql+psycopg":
        # Heartbeats are compared as local times of the connections: all in one time zone.
        given = {"connect_timeout": _CONNECT_SECONDS, "options": "-c timezone=utc"}
        options = {key: value for key, value in given.items() if key not in url.query}
    return {"pool_pre_ping": True, "connect_args": options}  # survives a restarted server


def study_lock(storage: str, name: str) -> Callable[[], AbstractContextManager[None]]:
    """The lock under which workers claim and finish trials of a study, one at a time.

    It is freed by the system or the server when its owner is killed.

    Args:
        storage: Where the study is, as for :func:`lgdgcn.search.study.open_study`.
        name: Name of the study.

    Returns:
        Makes a context that holds the lock.
    """
    address = StudyAddress.read(storage)
    if address.file:  # a file beside it: SQLite would lose its own locks on the same one
        return partial(_file_lock, f"{os.path.realpath(address.file)}.lock")
    engine = sqlalchemy.create_engine(address.url, pool_size=1, **_engine_options(address.url))
    return partial(_server_lock, engine, name)


@contextmanager
def _file_lock(path: str) -> Iterator[None]:
    lock = filelock.FileLock(path)
    try:
        lock.acquire()
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _server_lock(engine: sqlalchemy.Engine, name: str) -> Iterator[None]:
    limit = f"SET LOCAL idle_in_transaction_session_timeout = '{_LOCK_SECONDS}s'"
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text(limit))
        wait = sqlalchemy.text("SELECT pg_advisory_xact_lock(hashtext(:name))")
        connection.execute(wait, {"name": f"lgdgcn tune {name}"})
        yield


@contextmanager
def database_faults(storage: str) -> Iterator[None]:
    """Turn what a database raises amid a search into one line; the study itself is kept.

    Args:
        storage: Where the study is, as for :func:`lgdgcn.search.study.open_study`.

    Raises:
        LGDError: The database failed.
    """
    try:
        yield
    except (sqlalchemy.exc.SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
        address = StudyAddress.read(storage)
        reason = address.reason(error)
        fix = "free some space, then" if re.search("disk|space", reason) else "when it is back,"
        raise LGDError(
            f"the study's database {address} failed: {reason}; {fix} go on with --resume"
        ) from error
