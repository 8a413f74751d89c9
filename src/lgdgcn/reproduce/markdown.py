"""Blocks as GitHub's Markdown."""

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

from lgdgcn.reproduce.document import (
    MARKS,
    Block,
    Code,
    Folded,
    Grid,
    Heading,
    Image,
    Paragraph,
    Verdicts,
    best_of_columns,
)
from lgdgcn.reproduce.finding import Finding
from lgdgcn.reproduce.reading import Verdict
from lgdgcn.reproduce.score import Score, signed, spread

__all__ = ["to_markdown"]


def to_markdown(title: str, blocks: Sequence[Block], folder: Path) -> str:
    """Write a page; pictures are linked relative to ``folder``."""
    return "\n\n".join([f"# {_text(title)}", *(_block(block, folder) for block in blocks)]) + "\n"


def _block(block: Block, folder: Path) -> str:
    match block:
        case Heading():
            return f"## {_text(block.text)}"
        case Paragraph():
            return _text(block.text)
        case Grid():
            return _grid(block)
        case Verdicts():
            header = ["", "Claim", "Found here"]
            return _table(block.caption, header, [_verdict(one) for one in block.verdicts])
        case Image():
            path = block.path.relative_to(folder).as_posix()
            return f"![{_text(block.alt)}]({path})\n\n*{_text(block.caption)}*"
        case Code():
            return f"```text\n{block.text}\n```"
        case Folded():
            inside = "\n\n".join(_block(one, folder) for one in block.blocks)
            summary = f"<summary>{escape(block.summary)}</summary>"  # HTML up to a blank line
            return f"<details>\n{summary}\n\n{inside}\n\n</details>"


def _grid(grid: Grid) -> str:
    best = best_of_columns(grid)
    rows = [
        [
            _score(cell, grid.seeds, best=(number, column) in best)
            if isinstance(cell, Score)
            else _text(cell)
            for column, cell in enumerate(row)
        ]
        for number, row in enumerate(grid.rows)
    ]
    return _table(grid.title, [_text(name) for name in grid.header], rows)


def _table(caption: str, header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"**{_text(caption)}**\n\n{table}" if caption else table


def _score(score: Score, seeds: int | None, *, best: bool) -> str:
    """Such as ``84.1 ± 0.6 (84.9 ± 0.4) ▼ −0.8``."""
    ours = "–"
    if score.ours:
        ours = spread(score.ours.mean, score.ours.std if score.count > 1 else None)
    parts = [f"**{ours}**" if best else ours]
    if score.paper:
        parts.append(f"({spread(*score.paper)})")
    if score.difference is not None:
        parts.append(f"{score.arrow} {signed(score.difference)}".strip())
    if score.gap:
        parts.append(f"[{score.gap}]")
    elif score.ours and score.count != seeds:
        parts.append(f"[n = {score.count}]")
    return " ".join(parts)


def _verdict(verdict: Verdict) -> list[str]:
    outcome = verdict.outcome
    claim = f"{_text(verdict.claim.text)} *({_text(verdict.claim.where)})*"
    found = "<br>".join(_finding(finding) for finding in verdict.findings)
    return [f"{MARKS[outcome]} **{outcome.value}**", claim, found]


def _finding(finding: Finding) -> str:
    evidence = _text(finding.evidence) or finding.outcome.value
    return f"{MARKS[finding.outcome]} {_text(finding.case)}: {evidence}"


def _text(text: str) -> str:
    """Plain text on one line, with nothing left that Markdown would take for markup."""
    return re.sub(r"([\\`*_\[\]<>|~$])", r"\\\1", " ".join(text.split()))
