"""Databases as storage of a study: addresses without secrets in messages, and safe sharing."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import optuna
import sqlalchemy
from sqlalchemy.engine import URL, make_url

from lgdgcn.errors import InputError, LGDError
from lgdgcn.storage import cannot_write

__all__ = ["Address", "database_faults", "open_database", "refuse_mistyped"]

_CONNECT_SECONDS = 10
_BUSY_SECONDS = 60  # how long a worker waits for its turn at an SQLite file
_SECRETS = ("password", "sslpassword")
# Also mistyped ones: postgresql:/me:secret@host, postgresql//host, me:secret@host/base.
_LIKE_AN_ADDRESS = re.compile(r"[a-z][\w+.-]+:|(postgres|sqlite)\w*//|[^/]*:[^/]*@", re.IGNORECASE)


def refuse_mistyped(storage: str) -> None:
    """Refuse what is meant as an address but is none: it must not become a file or folder.

    The message does not repeat it, as it may hold a password.
    """
    if "://" not in storage and _LIKE_AN_ADDRESS.match(storage.lstrip()):
        raise InputError(
            "--storage is no valid database address (not repeated here, it may hold a password): "
            "write postgresql://user:password@host:5432/base or sqlite:///file.db, "
            "or a file as ./name"
        )


@dataclass(frozen=True)
class Address:
    """The address of a database; as text, its passwords are hidden.

    Example:
        >>> str(Address.read("postgresql://me:secret@host/studies"))
        'postgresql+psycopg://me:***@host/studies'
    """

    url: URL

    @classmethod
    def read(cls, text: str) -> Self:
        """Understand an address; plain ``postgresql://`` means the driver of our extra."""
        try:
            url = make_url(text)
        except (sqlalchemy.exc.ArgumentError, ValueError) as error:
            scheme = text.split("://")[0]
            raise InputError(
                f"--storage {scheme}://... is not a valid database address: "
                "write it as postgresql://user:password@host:5432/base or sqlite:///file.db"
            ) from error
        if url.drivername in ("postgresql", "postgres"):
            url = url.set(drivername="postgresql+psycopg")
        if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
            raise InputError(
                f"--storage {text}: a database in memory is lost at the end; "
                "name a file: sqlite:///file.db"
            )
        return cls(url)

    def __str__(self) -> str:
        hidden = {key: "***" for key in _SECRETS if key in self.url.query}
        return self.url.update_query_dict(hidden).render_as_string(hide_password=True)

    @property
    def file(self) -> Path | None:
        """The file of an SQLite database."""
        name = self.url.database
        is_file = self.url.get_backend_name() == "sqlite" and name and not name.startswith("file:")
        return Path(name) if is_file and name else None

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


def open_database(address: Address) -> Any:
    """Connect to the database of an address and make Optuna's tables where they are missing.

    Raises:
        InputError: No driver, no server, no access, or tables of another Optuna.
    """
    if address.file:
        try:
            address.file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(address.file, error) from error
    try:
        return _connect(address.url)
    except ImportError as error:
        raise _no_driver(address) from error
    except sqlalchemy.exc.NoSuchModuleError as error:
        raise InputError(
            f"--storage {address}: there is no database {address.url.drivername}; "
            "use postgresql:// or sqlite:///, or name a journal file"
        ) from error
    except Exception as error:  # each driver has errors of its own
        raise InputError(
            f"cannot open --storage {address}: {address.reason(error)}; "
            "check the address and that the server runs"
        ) from error


@contextmanager
def database_faults(storage: str) -> Iterator[None]:
    """Turn what a database raises amid a search into one line; the study itself is kept.

    Args:
        storage: Where the study is, as for :func:`lgdgcn.tune.storage.open_study`.

    Raises:
        LGDError: The database failed.
    """
    try:
        yield
    except (sqlalchemy.exc.SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
        address = Address.read(storage)
        raise LGDError(
            f"the study's database {address} failed: {address.reason(error)}; "
            "go on with --resume when it is back"
        ) from error


def _no_driver(address: Address) -> InputError:
    if address.url.get_backend_name() == "postgresql":
        fix = "install it with pip install 'lgdgcn[postgres]' and write postgresql://..."
    else:
        fix = "install it"
    return InputError(
        f"--storage {address} needs the driver {address.url.get_driver_name()}: {fix}"
    )


def _connect(url: URL) -> Any:
    is_sqlite = url.get_backend_name() == "sqlite"
    options: dict[str, Any] = {}
    if is_sqlite:
        options["timeout"] = _BUSY_SECONDS
    elif url.drivername == "postgresql+psycopg" and "connect_timeout" not in url.query:
        options["connect_timeout"] = _CONNECT_SECONDS
    engine = {"pool_pre_ping": True, "connect_args": options}  # survives a restarted server
    text = url.render_as_string(hide_password=False)
    for patience in (0.1, 0.5, None):
        try:
            storage = optuna.storages.RDBStorage(text, engine_kwargs=engine)
            break
        except Exception as error:  # others may be making the same tables at this moment
            if patience is None or "already exists" not in str(error):
                raise
            time.sleep(patience)
    if is_sqlite:
        _take_turns(storage.engine)
    return storage


def _take_turns(engine: Any) -> None:
    """Lock an SQLite file from the first read of a transaction on.

    By default only the first write locks it, and two workers could both read that a trial waits
    and then both take it.
    """

    def leave_transactions_to_us(connection: Any, _: object) -> None:
        connection.isolation_level = None

    def begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    sqlalchemy.event.listen(engine, "connect", leave_transactions_to_us)
    sqlalchemy.event.listen(engine, "begin", begin)
    engine.dispose()  # connections made before know nothing of it
