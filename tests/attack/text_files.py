"""Tables as text, in the many ways that programs and people write them."""

import gzip
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from attack.rules import BLANKS

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
        rows: The cells.
        style: How.
        random: Where the style leaves a choice.
        hash_first: Leave a ``#`` at the start of the first row unquoted, as most writers do.
    """
    if any(set(cell) & set("\r\n") for cell in (rows or [[]])[0]):
        # whether tabs or blanks separate the cells is seen in the first line, which is not all
        style = replace(style, suffix=style.suffix.replace("tsv", "csv"))
    if style.delimiter == "\t" and _fits_blanks(rows) and random.random() < 0.3:
        lines = [random.choice([" ", "  "]).join(row) for row in rows]
    else:
        lines = _lines(rows, style, random, hash_first)
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
    path.write_bytes(gzip.compress(content, 1, mtime=0) if path.suffix == ".gz" else content)
    return path


def _fits_blanks(rows: list[list[str]]) -> bool:
    """Whether blanks can separate the cells: none is empty, has blanks or quotes, or begins #."""
    marks = (*BLANKS, "\n", "\r", '"')
    return bool(rows) and all(
        cell and not cell.startswith("#") and not any(mark in cell for mark in marks)
        for row in rows
        for cell in row
    )


def _lines(rows: list[list[str]], style: Style, random: Random, hash_first: bool) -> list[str]:
    """Lines of cells between delimiters, padded in the first row if anywhere."""
    first = rows[0] if rows else []
    plain = [
        i
        for i, cell in enumerate(first)
        if not _needs_quotes(cell, style.delimiter)
        and cell == cell.strip(BLANKS)
        and not (i == 0 and cell.startswith("#"))
    ]
    padded = bool(plain and style.padding) and not any(set(cell) & set("\r\n") for cell in first)
    sure = random.choice(plain) if padded else -1  # this cell shows that the blanks are layout
    lines = []
    for number, row in enumerate(rows):
        cells = []
        for i, cell in enumerate(row):
            blanks = cell != cell.strip(BLANKS) and (padded or number == 0)
            mark = number == i == 0 and cell.startswith("#") and not hash_first
            needs = blanks or mark or _needs_quotes(cell, style.delimiter)
            if number == 0 and i == sure and not needs:
                cell += " "
            elif needs or random.random() < style.quotes:
                cell = '"' + cell.replace('"', '""') + '"'
            elif padded and random.random() < style.padding:
                cell = " " * random.randint(0, 2) + cell + " " * random.randint(0, 2)
            cells.append(cell)
        lines.append(style.delimiter.join(cells))
    return lines


def _needs_quotes(cell: str, delimiter: str) -> bool:
    """Whether a cell cannot be written without quotes."""
    return any(mark in cell for mark in (delimiter, '"', "\n", "\r"))
