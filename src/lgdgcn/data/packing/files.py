"""The tables that are packed: which files they are, how they are written, whether they change."""

import os
import re
import warnings
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from lgdgcn.data.delimited import unpacked
from lgdgcn.data.packed.manifest import new_hash
from lgdgcn.data.tables import TEXT_SUFFIXES
from lgdgcn.errors import InputError, LGDNote, LGDWarning

__all__ = ["Scan", "check_unchanged", "file_states", "find_files", "scan"]

SUFFIXES = (*TEXT_SUFFIXES, ".parquet")
END = 1 << 16  # bytes of a file's head and tail that are hashed
CHUNK = 1 << 22
BLANK_AFTER_QUOTE = re.compile(rb'"[ \t]')


def find_files(folder: Path, stem: str) -> list[Path]:
    """The files of a table: ``edges.csv``, or else ``edges-1.csv``, ``edges-2.csv`` and so on.

    A folder ``edges/`` may hold them, too. They are read in the order of their names.
    """
    found = [p for p in _listed(folder) if p.name.startswith(stem) and p.name.endswith(SUFFIXES)]
    single = [p for p in found if p.name.removeprefix(stem) in SUFFIXES]
    if single and len(found) > len(single):
        unread = min(p.name for p in found if p not in single)
        message = f"{folder}: {unread} is not read, for there is {single[0].name}"
        warnings.warn(f"{message}; rename that to {stem}-0 to read both", LGDWarning, stacklevel=3)
    found = single or found
    inside = [p for p in _listed(folder / stem) if p.name.endswith(SUFFIXES)]
    if found and inside:
        raise InputError(f"{folder} has {found[0].name} and a folder {stem}/; keep one of them")
    files = sorted(found or inside, key=lambda path: _natural(path.name))
    names: dict[str, Path] = {}
    for path in files:
        if not path.is_file():
            raise InputError(f"{path} is not a file; put a table there")
        bare = next(path.name.removesuffix(end) for end in SUFFIXES if path.name.endswith(end))
        if other := names.get(bare):
            raise InputError(f"{folder} has {other.name} and {path.name}; keep one of them")
        names[bare] = path
    if len(files) > 1:
        listed = f"{files[0].name} … {files[-1].name}"
        message = f"{folder}: {stem} are read from {len(files)} files, {listed}"
        warnings.warn(message, LGDNote, stacklevel=3)
    return files


def _listed(folder: Path) -> list[Path]:
    return [folder / name for name in os.listdir(folder)] if folder.is_dir() else []


def _natural(name: str) -> list[Any]:
    """Part 10 comes after part 9."""
    return [(0, int(p), p) if p.isdigit() else (1, 0, p) for p in re.split(r"([0-9]+)", name)]


def file_states(paths: Iterable[Path]) -> dict[str, Any]:
    """What tells a file from another version of it: size, time, and a hash of both ends."""
    states = {}
    for path in paths:
        try:
            stat = path.stat()
            with open(path, "rb") as file:
                digest = new_hash(file.read(END))
                file.seek(max(0, stat.st_size - END))
                digest.update(file.read(END))
        except OSError as error:
            raise InputError(f"{path} cannot be read ({error.strerror}); check the file") from None
        states[str(path)] = [stat.st_size, stat.st_mtime_ns, digest.hexdigest()]
    return states


def check_unchanged(states: Mapping[str, Any]) -> None:
    """Refuse files that are not what they were when the work began."""
    for path, state in states.items():
        if file_states([Path(path)])[path] != state:
            raise InputError(f"{path} changed while it was read; pack again when it is complete")


class Scan(NamedTuple):
    """What the bytes of a text file tell.

    Attributes:
        quotes: Whether there is a quote in it.
        unusual: Whether it has line ends or quotes that engines read in different ways.
        lines: How many lines it has.
    """

    quotes: bool
    unusual: bool
    lines: int


def scan(path: Path) -> Scan:
    """Go through the bytes of a text file once."""
    quotes = unusual = False
    lines, last = 0, b""
    try:
        with open(path, "rb") as raw:
            file = unpacked(path, raw)
            while chunk := file.read(CHUNK):
                both = last[-1:] + chunk  # a pair of bytes may be divided between two chunks
                if b'"' in chunk:
                    quotes = True
                if quotes:
                    unusual = unusual or BLANK_AFTER_QUOTE.search(both) is not None
                if b"\r" in both[:-1]:
                    pairs = both.count(b"\r\n")
                    unusual = unusual or pairs != both[:-1].count(b"\r")
                lines += chunk.count(b"\n")
                last = chunk
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read ({error}); check the file") from None
    unusual = unusual or last.endswith(b"\r")
    return Scan(quotes, unusual, lines + (not last.endswith(b"\n") and bool(last)))
