"""The blocks that a report is made of; ``templates/`` has how Markdown and HTML write them."""

import base64
import hashlib
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2

from lgdgcn.reproduce.checks import Outcome
from lgdgcn.reproduce.claims import Verdict
from lgdgcn.reproduce.statistics import Score

__all__ = [
    "Block",
    "Code",
    "Folded",
    "Grid",
    "Heading",
    "Image",
    "Paragraph",
    "Verdicts",
    "to_html",
    "to_markdown",
]

MARKS = {  # a sign beside the words, for those who skim or see no colours
    Outcome.HOLDS: "✔",
    Outcome.PARTLY: "◐",
    Outcome.FAILS: "✘",
    Outcome.UNDECIDED: "≈",
    Outcome.MISSING: "–",
}


@dataclass(frozen=True)
class Heading:
    """Starts a section; ``link`` is its name in the list of contents if that should be shorter."""

    text: str
    anchor: str
    link: str = ""


@dataclass(frozen=True)
class Paragraph:
    """Plain text."""

    text: str


@dataclass(frozen=True)
class Grid:
    """A table; the first cell of each row names it.

    Attributes:
        caption: What it shows.
        header: Names of the columns.
        rows: Cells, as many as the header has.
        seeds: Number of seeds of every score; ``None`` if it differs, and each score shows its own.
        marks_best: Whether the best score of a column is highlighted.
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str | Score]]
    seeds: int | None = None
    marks_best: bool = False

    @property
    def title(self) -> str:
        """The caption with the seeds."""
        return self.caption + (f" ({self.seeds} seeds)" if self.seeds else "")

    @property
    def best(self) -> set[tuple[int, int]]:
        """Row and column of the best score of every column that has more than one."""
        best = set()
        for column in range(1, len(self.header)) if self.marks_best else ():
            means = {}
            for number, row in enumerate(self.rows):
                cell = row[column]
                if isinstance(cell, Score) and cell.ours and cell.better != "none":
                    means[number] = -cell.ours.mean if cell.better == "lower" else cell.ours.mean
            if len(means) > 1:
                best.add((max(means, key=lambda number: means[number]), column))
        return best


@dataclass(frozen=True)
class Verdicts:
    """The claims about one exhibit."""

    caption: str
    verdicts: Sequence[Verdict]


@dataclass(frozen=True)
class Image:
    """A figure: a PNG file in the report's folder."""

    path: Path
    caption: str
    alt: str

    @property
    def data_uri(self) -> str:
        """The file itself, to be part of a page."""
        return f"data:image/png;base64,{base64.b64encode(self.path.read_bytes()).decode()}"

    @property
    def shown_size(self) -> tuple[int, int]:
        """Width and height at two thirds of the pixels: fine lines, and text of one size in all."""
        width, height = struct.unpack(">2I", self.path.read_bytes()[16:24])
        return round(width / 1.5), round(height / 1.5)


@dataclass(frozen=True)
class Code:
    """Lines to copy."""

    text: str


@dataclass(frozen=True)
class Folded:
    """Blocks that are shown on demand."""

    summary: str
    blocks: "Sequence[Block]"


Block = Heading | Paragraph | Grid | Verdicts | Image | Code | Folded


def to_markdown(title: str, blocks: Sequence[Block], folder: Path) -> str:
    """Write a page; pictures are linked relative to ``folder``."""
    template = _templates().get_template("report.md")
    return template.render(title=title, blocks=blocks, folder=folder, marks=MARKS)


def to_html(title: str, subtitle: str, blocks: Sequence[Block]) -> str:
    """Write a page that needs nothing else; its content-security policy allows its style only."""
    templates = _templates()
    style = templates.get_template("report.css").render()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return templates.get_template("report.html").render(
        title=title, subtitle=subtitle, blocks=blocks, marks=MARKS, style=style, style_hash=digest
    )


def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__),
        autoescape=jinja2.select_autoescape(["html"]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["kind"] = lambda block: type(block).__name__
    environment.filters["text"] = _escaped
    return environment


def _escaped(text: str) -> str:
    """Plain text on one line, with everything escaped that Markdown would take for markup."""
    return re.sub(r"([\\`*_\[\]<>|~$])", r"\\\1", " ".join(text.split()))
