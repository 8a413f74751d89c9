"""What a report is made of; Markdown and HTML are two ways to write the same blocks."""

from dataclasses import dataclass
from pathlib import Path

from lgdgcn.reproduce.finding import Outcome
from lgdgcn.reproduce.reading import Verdict
from lgdgcn.reproduce.score import Score

__all__ = [
    "MARKS",
    "Block",
    "Code",
    "Folded",
    "Grid",
    "Heading",
    "Image",
    "Paragraph",
    "Verdicts",
    "best_of_columns",
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
    """Starts a section.

    Attributes:
        text: What it says.
        anchor: Its name in addresses.
        link: What the list of contents says, where that should be shorter.
    """

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
        seeds: How many seeds each score has; where that differs, each says its own.
        marks_best: Whether the best score of a column stands out.
    """

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str | Score, ...], ...]
    seeds: int | None = None
    marks_best: bool = False

    @property
    def title(self) -> str:
        """The caption with the seeds."""
        return self.caption + (f" ({self.seeds} seeds)" if self.seeds else "")


@dataclass(frozen=True)
class Verdicts:
    """The claims about one exhibit."""

    caption: str
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True)
class Image:
    """A figure: a PNG file below the report's folder."""

    path: Path
    caption: str
    alt: str


@dataclass(frozen=True)
class Code:
    """Lines to copy."""

    text: str


@dataclass(frozen=True)
class Folded:
    """Blocks that are shown on demand."""

    summary: str
    blocks: "tuple[Block, ...]"


Block = Heading | Paragraph | Grid | Verdicts | Image | Code | Folded


def best_of_columns(grid: Grid) -> set[tuple[int, int]]:
    """Row and column of the best score of every column, where scores can be compared."""
    best = set()
    for column in range(1, len(grid.header)) if grid.marks_best else ():
        cells = [row[column] for row in grid.rows]
        means = {
            place: -cell.ours.mean if cell.better == "lower" else cell.ours.mean
            for place, cell in enumerate(cells)
            if isinstance(cell, Score) and cell.ours
        }
        if len(means) > 1:
            best.add((max(means, key=lambda place: means[place]), column))
    return best
