"""Files that are either the old one or the new one, never half of each.

Every file of a run is written here: a temporary file in the same folder, flushed to the disk, then
renamed over its target. A full disk or a kill at any moment leaves the old file as it was.
"""

import csv
import errno
import json
import math
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from numbers import Number
from pathlib import Path
from typing import Any, BinaryIO

from lgdgcn.errors import InputError

__all__ = [
    "atomic_write",
    "cannot_write",
    "check_folder",
    "check_target",
    "csv_cell",
    "make_folder",
    "plain_file",
    "probe_folder",
    "remove_leftovers",
    "to_json",
    "write_csv",
    "write_json",
    "write_text",
]

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_FORMULA = tuple("=+-@\t\r\n＝＋－＠")  # what a spreadsheet may take for the start of a formula
_LEFTOVER = re.compile(r"\.(.*)\.[0-9a-f]{16}\.tmp", re.DOTALL)
_SHORT = 48  # characters of the target's name in the temporary one, which must stay a legal name
_FIXES = {
    errno.ENOSPC: "free some space or choose another folder",
    errno.EDQUOT: "free some of the quota or choose another folder",
    errno.EFBIG: "raise the limit on file sizes (ulimit -f)",
    errno.EIO: "the disk reports an error: check it or choose another one",
    errno.ENOENT: "create the folder first",
    errno.ENOTDIR: "a file stands where a folder is needed: choose another path",
    errno.EISDIR: "it is a folder: name a file",
}


def atomic_write(
    path: str | Path, data: bytes | Callable[[BinaryIO], None], keep: Path | None = None
) -> None:
    """Write a file completely or not at all.

    A link is followed. A device or pipe (``/dev/stdout``) is written to, never replaced.

    Args:
        path: The file to make or replace; its folder exists.
        data: The content, or a function that writes it to the binary file it is given.
        keep: The name in the same folder that the old file gets, once the new one is on the disk.

    Raises:
        InputError: The system refused (disk full, no such folder); the old file is unchanged.
    """
    try:
        mode = _mode(path)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if mode and not stat.S_ISREG(mode):
            with open(path, "wb") as file:
                _fill(file, data)
        else:
            _replace(Path(os.path.realpath(path)), data, keep)
    except BrokenPipeError:  # the reader of a pipe has gone: not a fault of the path
        raise
    except OSError as error:
        raise cannot_write(path, error) from error


def _mode(path: str | Path) -> int:
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return 0


def _fill(file: BinaryIO, data: bytes | Callable[[BinaryIO], None]) -> None:
    if callable(data):
        data(file)
    else:
        file.write(data)


def _replace(
    target: Path, data: bytes | Callable[[BinaryIO], None], keep: Path | None = None
) -> None:
    temporary = target.with_name(f".{target.name[:_SHORT]}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            _fill(file, data)
            file.flush()
            os.fsync(file.fileno())
        if keep is not None:
            os.replace(target, keep)
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make a rename survive a power cut, on file systems that know how."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:  # a folder one may write to but not list
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def cannot_write(path: str | Path, error: OSError) -> InputError:
    """The one line for a file that could not be written: path, reason, way out."""
    reason = error.strerror or str(error)
    fix = _FIXES.get(error.errno or 0, "choose a folder you can write to")
    return InputError(f"cannot write {path}: {reason}; {fix}")


def make_folder(path: str | Path) -> Path:
    """Make a folder with its parents and see that it can be written to, before any work is done."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"probe")
    except FileExistsError as error:  # a file stands where the folder should be
        refused = NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        raise cannot_write(path, refused) from error
    except OSError as error:
        raise cannot_write(path, error) from error
    return folder


def check_folder(path: str | Path) -> None:
    """See that a folder can be written to or made, before any work is done; nothing is made."""
    try:
        probe_folder(path)
    except OSError as error:
        raise cannot_write(path, error) from error


def probe_folder(path: str | Path) -> None:
    """Try to write to a folder or, where it is not there yet, to the nearest one above it.

    Raises:
        OSError: It cannot be written to; where a file is in the way, the reason names it.
    """
    for folder in (Path(path), *Path(path).parents):
        try:
            os.lstat(folder)
        except (FileNotFoundError, NotADirectoryError):
            continue
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, f"{folder} is a file, not a folder")
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"probe")
        return


def plain_file(path: Path) -> bool:
    """Whether a file of a run is there; a link, folder or device in its place is refused.

    A run writes nothing through a link: what it leads to belongs to somebody else.
    """
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise cannot_write(path, error) from error
    if stat.S_ISLNK(mode):
        raise InputError(
            f"{path} is a link, which a run does not follow: remove it or choose another --out"
        )
    if not stat.S_ISREG(mode):
        raise InputError(f"{path} is not a regular file: move it away or choose another --out")
    return True


def check_target(path: str | Path) -> Path:
    """See that a file can be written, before any work is done; its folder must be there."""
    try:
        mode = _mode(path)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not mode or stat.S_ISREG(mode):  # a device or pipe is not replaced
            with tempfile.TemporaryFile(dir=Path(os.path.realpath(path)).parent) as probe:
                probe.write(b"probe")
    except OSError as error:
        raise cannot_write(path, error) from error
    return Path(path)


def remove_leftovers(folder: Path, name: str = "") -> None:
    """Remove the temporary files a killed write has left; only for the sole writer of the folder.

    Args:
        folder: Where to look; not below it.
        name: How the names of the targets begin.
    """
    with suppress(OSError):
        for entry in os.listdir(folder):
            match = _LEFTOVER.fullmatch(entry)
            if match and match[1].startswith(name[:_SHORT]):
                with suppress(OSError):
                    os.unlink(folder / entry)


def write_text(path: str | Path, text: str) -> None:
    """Write UTF-8 text atomically; what UTF-8 cannot hold is written as an escape."""
    atomic_write(path, text.encode("utf-8", "backslashreplace"))


def write_json(path: str | Path, value: object) -> None:
    """Write JSON atomically; NaN and infinities become ``null``, as JSON has no such numbers."""
    text = json.dumps(to_json(value), allow_nan=False, ensure_ascii=False, indent=2)
    write_text(path, text + "\n")


def to_json(value: Any) -> Any:
    """The same value in types JSON has: scalars of numpy and torch unpacked, NaN and inf ``None``.

    Example:
        >>> to_json({"test": float("nan"), "runs": (1, 2.5)})
        {'test': None, 'runs': [1, 2.5]}
    """
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Path):
        return str(value)
    return to_json(value.item()) if hasattr(value, "item") else value


def csv_cell(value: object) -> str:
    """The text of one cell; text that a spreadsheet would run as a formula gets a ``'`` in front.

    So does text that looks as if it had got one, so that no two texts become one.

    Example:
        >>> [csv_cell(value) for value in ("=1+1", "-1.5", -1.5, "@x", "plain", None, "'=1+1")]
        ["'=1+1", '-1.5', '-1.5', "'@x", 'plain', '', "''=1+1"]
    """
    text = "" if value is None else str(value)
    formula = text.lstrip("'").startswith(_FORMULA)
    if isinstance(value, Number) or not formula or _NUMBER.fullmatch(text):
        return text
    return "'" + text


class _Lines:
    """Ends rows in LF. The csv module must end them in CRLF to quote cells with a single CR."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file

    def write(self, row: str) -> None:
        self.file.write(row.removesuffix("\r\n").encode("utf-8", "backslashreplace") + b"\n")


def write_csv(path: str | Path, header: Iterable[object], rows: Iterable[Iterable[object]]) -> None:
    """Write a CSV file atomically, row by row, each cell through :func:`csv_cell`."""

    def fill(file: BinaryIO) -> None:
        writer = csv.writer(_Lines(file), lineterminator="\r\n")
        writer.writerow([csv_cell(cell) for cell in header])
        writer.writerows([csv_cell(cell) for cell in row] for row in rows)

    atomic_write(path, fill)
