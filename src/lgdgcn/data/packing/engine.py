"""DuckDB with bounded memory: its queries, how far they are, and its errors in one line."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

from lgdgcn.errors import InputError
from lgdgcn.progress import long_work
from lgdgcn.runtime import available_memory

__all__ = ["Engine", "literal", "memory_size", "require_duckdb"]

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
PYTHON_BYTES = 100 * 10**6  # bytes for arrays in Python, beside what the engine may use
COUNTED = 0.7  # share of its memory that the engine counts, measured
ELSEWHERE = 300 * 10**6  # bytes that Python with all modules has, where nobody can ask
DISK = re.compile("No space left on device|File too large|Disk quota exceeded|max_temp_directory")
ROWS, FEW_ROWS = 122_880, 8192  # that the engine compresses at a time, in memory
WIDE = 100  # columns from which it takes few
LEAST = 96 * 10**6  # with less the engine does nothing
PER_THREAD = 64 * 10**6  # bytes that a thread of the engine needs to read and join


def require_duckdb() -> Any:
    """The ``duckdb`` module; where it or pyarrow is missing, the error says what to install."""
    try:
        import duckdb
        import pyarrow  # noqa: F401 (which hands over what it finds)
    except ImportError as error:
        name = "pyarrow" if error.name == "pyarrow" else "DuckDB"
        raise InputError(f"packing a graph needs {name}; pip install 'lgdgcn[scale]'") from None
    return duckdb


def memory_size(text: str | None) -> int:
    """The bytes that ``1GB`` or ``512MiB`` mean.

    By default what the process has already and 1 GB more, or a quarter of what is free.

    Example:
        >>> memory_size("1.5GB"), memory_size("512 MiB")
        (1500000000, 536870912)
    """
    if text is None:
        return _resident() + max(10**9, available_memory() // 4)
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) *([A-Za-z]*)", text.strip())
    if found is None or found[2].upper() not in UNITS:
        raise InputError(f"--memory is {text[:50]!r}; write it like 1GB or 512MB")
    return int(float(found[1]) * UNITS[found[2].upper()])


def literal(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


class Engine:
    """A database in a file of the working folder.

    Args:
        folder: Where its file and what it spills go.
        target: What is being written, for messages.
        memory: Most bytes that this process may have.
        columns: How many columns its widest table has.
    """

    def __init__(self, folder: Path, target: Path, memory: int, columns: int) -> None:
        self.target, self.memory = target, memory
        self._duckdb = require_duckdb()
        used = _resident()
        limit = int(COUNTED * (memory - used - PYTHON_BYTES))
        if limit < LEAST:
            raise InputError(
                f"--memory leaves {max(0, limit) // 10**6} MB to sort with; give at least "
                f"{int(used + PYTHON_BYTES + LEAST / COUNTED) // 10**6 + 1} MB"
            )
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
        settings = {
            "memory_limit": f"{limit}B",
            "temp_directory": str(folder / "spilled"),
            "threads": max(1, min(cores, limit // PER_THREAD)),
            "allocator_flush_threshold": "16MB",  # give back what is freed
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        with self._translated():
            self._connection = self._duckdb.connect(config=settings)
            file, rows = literal(str(folder / "work.duckdb")), ROWS if columns <= WIDE else FEW_ROWS
            sql = f"ATTACH {file} AS work (ROW_GROUP_SIZE {rows})"
            self._connection.execute(sql).fetchall()
            _prepare(self._connection)

    def close(self) -> None:
        """Close the database."""
        with suppress(self._duckdb.Error):
            self._connection.close()

    def run(self, sql: str, what: str = "", size: int = 0) -> None:
        """Run a statement.

        Args:
            sql: The statement.
            what: What it does, for a progress bar.
            size: Bytes it reads, to say how fast it is.
        """
        with self._translated():
            if not what:
                self._connection.execute(sql).fetchall()
                return
            with self._watched(what, size):
                self._connection.execute(sql).fetchall()

    def load(self, sql: str, expected: int | None, what: str, size: int) -> bool:
        """Append the rows of a file to a table.

        Args:
            sql: An ``INSERT`` statement.
            expected: How many rows it must give; ``None`` if that is not known.
            what: What it does, for a progress bar.
            size: Bytes it reads.

        Returns:
            Whether it was done; otherwise the file is not plain CSV and nothing was appended.
        """
        self.run("BEGIN")
        try:
            with self._translated(), self._watched(what, size):
                count = self._connection.execute(sql).fetchall()[0][0]
            done = expected is None or count == expected
        except _NotPlainError:
            done = False
        except BaseException:
            with suppress(InputError):
                self.run("ROLLBACK")
            raise
        self.run("COMMIT" if done else "ROLLBACK")
        return done

    def one(self, sql: str, *values: Any) -> Any:
        """The first row of a short answer; ``None`` if it has no row."""
        return next(iter(self.rows(sql, *values)), None)

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """All rows of a short answer."""
        with self._translated():
            found: list[tuple[Any, ...]] = self._connection.execute(sql, list(values)).fetchall()
            return found

    def batches(self, sql: str, rows: int) -> Iterator[Any]:
        """The answer of any size, as Arrow batches of at most so many rows."""
        with self._translated():
            cursor = self._connection.cursor()  # the connection stays free for other questions
            _prepare(cursor)
            try:
                yield from cursor.sql(sql).to_arrow_reader(rows)
            finally:
                cursor.close()

    def insert(self, table: str, batch: Any) -> None:
        """Append an Arrow table."""
        with self._translated():
            self._connection.register("batch", batch)
            self._connection.execute(f"INSERT INTO {table} SELECT * FROM batch").fetchall()
            self._connection.unregister("batch")

    @contextmanager
    def _watched(self, what: str, size: int) -> Iterator[None]:
        """Show how far a statement is while it runs."""
        done = Event()
        with long_work(what, "MB") as advance:

            def watch() -> None:
                while not done.wait(0.2):
                    with suppress(Exception):  # the statement may end at this moment
                        share = self._connection.query_progress() / 100
                        if share > 0:
                            advance(int(share * size / 10**6), min(1.0, share))

            watcher = Thread(target=watch, daemon=True)
            watcher.start()
            try:
                yield
            finally:
                done.set()
                watcher.join()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Say in one line what the engine complains of."""
        duckdb = self._duckdb
        try:
            yield
        except duckdb.InterruptException:
            raise KeyboardInterrupt from None
        except RuntimeError as error:
            if str(error) != "Query interrupted":  # what the engine makes of Ctrl-C
                raise
            raise KeyboardInterrupt from None
        except duckdb.Error as error:
            if DISK.search(str(error)) or isinstance(error, duckdb.IOException):
                raise self._full(error) from OSError(str(error))  # which keeps finished stages
            if isinstance(error, duckdb.OutOfMemoryException):
                raise InputError(
                    f"packing {self.target} needs more than the {self.memory / 10**9:.3g} GB of "
                    "--memory; give more"
                ) from None
            if isinstance(error, duckdb.InvalidInputException | duckdb.ConversionException):
                raise _NotPlainError(_short(error)) from None
            raise InputError(f"packing {self.target}: {_short(error)}") from None

    def _full(self, error: Exception) -> InputError:
        reason = re.search(
            r"No space left on device|File too large|Disk quota exceeded", str(error)
        )
        said = reason[0] if reason else _short(error)
        if "max_temp_directory" in said:  # how it says that nothing more can be spilled
            said = "No space left on device"
        return InputError(
            f"cannot write {self.target}: {said}; free some space or choose another folder, then "
            "pack again: what is finished is kept"
        )


def _prepare(connection: Any) -> None:
    """How far a statement is can be asked for, but is not printed by the engine itself."""
    connection.execute("USE work").fetchall()
    for setting in ("enable_progress_bar = true", "enable_progress_bar_print = false"):
        connection.execute(f"SET {setting}").fetchall()


def _resident() -> int:
    """Bytes of memory that this process has now."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):  # elsewhere than on Linux
        return ELSEWHERE


class _NotPlainError(InputError):
    """The engine does not understand a file as its options say."""


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
