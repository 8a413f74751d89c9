"""Tables as text, in the many ways that programs and people write them."""

import gzip
from dataclasses import dataclass
from pathlib import Path
from random import Random

__all__ = ["Style", "draw_style", "write_text_table"]

COMMENTS = ["# made by hand", "#", '  # "open', "# a,b,c", "#\ta\tb", "#id,label", "# ünïcode"]


@dataclass(frozen=True)
class Style:
    """How a text file is written; ``suffix`` is .csv, .tsv or either with .gz."""

    suffix: str
    newline: str
    bom: bool
    comments: tuple[str, ...]
    quotes: float  # the share of cells that are quoted without need
    padding: float  # the share of unquoted cells with blanks around them
    blank_lines: float
    last_newline: bool

    @property
    def delimiter(self) -> str:
        return "\t" if self.suffix.startswith(".tsv") else ","


def draw_style(random: Random) -> Style:
    often = random.random() < 0.3
    return Style(
        suffix=random.choice([".csv", ".csv", ".tsv"]) + random.choice(["", "", ".gz"]),
        newline=random.choice(["\n", "\n", "\r\n"]),
        bom=random.random() < 0.2,
        comments=tuple(random.sample(COMMENTS, random.choice([0, 0, 1, 3]))),
        quotes=random.choice([0, 0, 0.3, 1]),
        padding=0.3 if often else 0,
        blank_lines=0.2 if often else 0,
        last_newline=random.random() < 0.8,
    )


def write_text_table(
    stem: Path, rows: list[list[str]], style: Style, random: Random, *, hash_first: bool = False
) -> Path:
    """Write rows, a header among them if there is one.

    Args:
        stem: The path without its suffix.
        rows: Cells without blanks around them.
        style: How.
        random: Where the style leaves a choice.
        hash_first: Leave a ``#`` at the start of the first row unquoted, as most writers do.
    """
    if style.delimiter == "\t" and _fits_blanks(rows) and random.random() < 0.3:
        lines = [random.choice([" ", "  "]).join(row) for row in rows]
    else:
        lines = [_line(row, style, random) for row in rows]
    if lines and lines[0].lstrip().startswith("#") and not hash_first:
        first, *others = rows[0]
        lines[0] = style.delimiter.join([_quoted(first), _line(others, style, random)])
    for place in range(len(lines), -1, -1):
        if random.random() < style.blank_lines:
            lines.insert(place, random.choice(["", "  "]))
    text = style.newline.join([*style.comments, *lines])
    if style.last_newline:
        text += style.newline
    if style.bom or text.startswith("\ufeff"):  # else the name's own mark would be taken for one
        text = "\ufeff" + text
    content = text.encode()
    path = stem.with_name(stem.name + style.suffix)
    path.write_bytes(
        gzip.compress(content, 1, mtime=0) if style.suffix.endswith(".gz") else content
    )
    return path


def _fits_blanks(rows: list[list[str]]) -> bool:
    """Whether blanks can separate the cells: none is empty, has blanks or begins with a quote."""
    return all(
        cell and cell[0] not in "\"'#" and not any(char.isspace() for char in cell)
        for row in rows
        for cell in row
    )


def _line(row: list[str], style: Style, random: Random) -> str:
    return style.delimiter.join(_cell(cell, style, random) for cell in row)


def _cell(cell: str, style: Style, random: Random) -> str:
    needs = any(mark in cell for mark in (style.delimiter, '"', "\n", "\r")) or cell.strip() != cell
    if needs or random.random() < style.quotes:
        return _quoted(cell)
    if random.random() < style.padding:
        return " " * random.randint(0, 2) + cell + " " * random.randint(0, 2)
    return cell


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'
