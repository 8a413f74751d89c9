"""Databases to test with: SQLite files, and a PostgreSQL server from the system's binaries."""

import os
import pwd
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, event, text

from lgdgcn.search.study import storage_url

USER, PASSWORD = "tuner", "s3cret/pa:ss"  # with characters that addresses must escape


@event.listens_for(Engine, "connect")
def _leave_writing_to_the_system(connection: object, _: object) -> None:
    """Do not wait for the disk: tests kill processes, but do not cut the power."""
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous = OFF")


def _program(name: str) -> str:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: float(p.parent.name))
    places = [*map(str, reversed(folders)), os.environ.get("PATH", "")]
    if found := shutil.which(name, path=os.pathsep.join(places)):
        return found
    pytest.skip(f"no PostgreSQL on this machine: {name} not found (apt install postgresql)")


def _owner() -> dict[str, Any]:
    """The server refuses to run as root: who else may run it."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    pytest.skip("PostgreSQL does not run as root, and there is no user postgres or nobody")


@contextmanager
def running_server() -> Iterator[str]:
    """Start a server on a socket in a temporary folder; skips the test where that fails.

    Yields:
        Address of an empty database, without driver.
    """
    initdb, control, owner = _program("initdb"), _program("pg_ctl"), _owner()
    folder = Path(tempfile.mkdtemp(prefix="lgdgcn-"))  # short: the path of a socket is limited
    os.chown(folder, owner.get("user", -1), owner.get("group", -1))

    def run(*command: str) -> None:
        log = folder / "log"
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=60, check=False, **owner
        )
        if done.returncode:
            said = done.stderr or done.stdout or (log.read_text() if log.exists() else "")
            pytest.skip(f"PostgreSQL does not start here: {said.strip()[-300:]}")

    try:
        (folder / "password").write_text(PASSWORD)
        os.chmod(folder / "password", 0o644)
        data = str(folder / "data")
        run(initdb, "-D", data, "-U", USER, "-A", "scram-sha-256", "--pwfile", "password",
            "--no-sync", "--no-instructions", "-E", "UTF8", "--locale=C")  # fmt: skip
        options = f"-k {folder} -c listen_addresses= -c fsync=off -c shared_buffers=16MB"
        # its output goes to a file: an inherited pipe would never be closed
        run(control, "-D", data, "-l", str(folder / "log"), "-o", options, "-w", "start")
        try:
            escaped = PASSWORD.replace("/", "%2F").replace(":", "%3A")
            yield f"postgresql://{USER}:{escaped}@/postgres?host={folder}"
        finally:
            run(control, "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def execute(storage: str, order: str) -> None:
    """Tell a database something, past Optuna."""
    engine = create_engine(storage_url(storage), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(order))
    engine.dispose()
