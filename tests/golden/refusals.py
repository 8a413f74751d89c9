"""Wrong calls: the command line, what is broken first, the exit code and the words.

``records/refusals.txt`` is one table in paragraphs. Its lines begin with

==========  ====================================================================================
``#``       what the paragraphs from here are about
``>``       what is made or broken before each call of the paragraph: a preparation of worlds.py
``$``       a call, in a working folder that holds nothing else
two blanks  what is recorded of the call above: its lines on standard error, the exit code before
            the last of them, and the files that it made ``+``, removed ``-`` or changed ``~``
==========  ====================================================================================

What is recorded is written by :func:`record`, everything else by hand. ``{here}`` is the working
folder, ``{...}`` what differs between machines or what a library says.
"""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from golden.worlds import World

__all__ = ["TABLE", "differences", "record"]

TABLE = Path(__file__).parent / "records" / "refusals.txt"


def record() -> None:
    """Make every call of the table and write down anew what it gets."""
    lines = [text for line, found in _results() for text in (line, *found)]
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def differences() -> list[str]:
    """A line for every call that gets something else than is recorded."""
    found, preparations = [], []
    for (line, was), (_, now) in zip(_recorded(), _results(), strict=True):
        if was != now:
            given = f" with {'; '.join(preparations)}" if preparations else ""
            found.append(f"refusals: {line[2:]}{given}: was {_joined(was)}, is {_joined(now)}")
        if line.startswith(">"):
            preparations.append(line[2:])
        elif not line:
            preparations = []
    return found


def _joined(lines: list[str]) -> str:
    return " | ".join(line.strip() for line in lines) or "not recorded"


def _recorded() -> list[tuple[str, list[str]]]:
    """Every line that is written by hand, and what is recorded below it."""
    rows: list[tuple[str, list[str]]] = []
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line.startswith("  "):
            rows[-1][1].append(line)
        else:
            rows.append((line, []))
    return rows


def _results() -> Iterator[tuple[str, list[str]]]:
    """Every line that is written by hand, and what a call in it gets now."""
    written = [line for line, _ in _recorded()]
    for _, paragraph in groupby(written, key=bool):
        yield from _paragraph(list(paragraph))


def _paragraph(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    preparations = [line[1:] for line in lines if line.startswith(">")]
    world = None
    try:
        for line in lines:
            if not line.startswith("$"):
                yield line, []
                continue
            world = world or World(preparations)
            yield line, [f"  {text}" for text in world.call(line[1:])]
            if world.is_changed:
                world.close()
                world = None
    finally:
        if world:
            world.close()
