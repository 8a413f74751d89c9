"""Blocks as one HTML file that needs nothing else: no script, no network, pictures inside."""

import base64
import hashlib
import struct
from collections.abc import Sequence
from html import escape
from importlib import resources

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
from lgdgcn.reproduce.finding import Finding, Outcome
from lgdgcn.reproduce.reading import Verdict
from lgdgcn.reproduce.score import Score, signed, spread

__all__ = ["to_html"]

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#content">Skip to the results</a>
<header><h1>{title}</h1><p>{subtitle}</p></header>
<div class="page">
<nav aria-label="Contents"><ul>
{contents}
</ul></nav>
<main id="content">
{content}
</main>
</div>
</body>
</html>
"""


def to_html(title: str, subtitle: str, blocks: Sequence[Block]) -> str:
    """Write a page."""
    style = (resources.files(__package__) / "report.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'"
    headings = [block for block in blocks if isinstance(block, Heading)]
    links = [
        f'<li><a href="#{escape(one.anchor)}">{escape(one.link or one.text)}</a></li>'
        for one in headings
    ]
    return PAGE.format(
        policy=policy,
        title=escape(title),
        subtitle=escape(subtitle),
        style=style,
        contents="\n".join(links),
        content="\n".join(_block(block) for block in blocks),
    )


def _block(block: Block) -> str:
    match block:
        case Heading():
            return f'<h2 id="{escape(block.anchor)}">{escape(block.text)}</h2>'
        case Paragraph():
            return f"<p>{escape(block.text)}</p>"
        case Grid():
            return _grid(block)
        case Verdicts():
            claims = "\n".join(_verdict(verdict) for verdict in block.verdicts)
            return f'<h3>{escape(block.caption)}</h3>\n<ul class="claims">\n{claims}\n</ul>'
        case Image():
            return _figure(block)
        case Code():
            return f'<pre tabindex="0"><code>{escape(block.text)}</code></pre>'
        case Folded():
            inside = "\n".join(_block(one) for one in block.blocks)
            return f"<details><summary>{escape(block.summary)}</summary>\n{inside}\n</details>"


def _figure(image: Image) -> str:
    """The picture in the page, at two thirds of its pixels: sharp, and all of one letter size."""
    content = image.path.read_bytes()
    width, height = (round(size / 1.5) for size in struct.unpack(">2I", content[16:24]))
    data = base64.b64encode(content).decode()
    return (
        f'<figure><img src="data:image/png;base64,{data}" width="{width}" height="{height}" '
        f'alt="{escape(image.alt)}"><figcaption>{escape(image.caption)}</figcaption></figure>'
    )


def _grid(grid: Grid) -> str:
    best = best_of_columns(grid)
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in grid.header)
    rows = []
    for number, (name, *cells) in enumerate(grid.rows):
        label = f'<th scope="row">{escape(str(name))}</th>'
        written = [
            _score(cell, grid.seeds, best=(number, column) in best)
            if isinstance(cell, Score)
            else f"<td>{escape(cell)}</td>"
            for column, cell in enumerate(cells, start=1)
        ]
        rows.append(f"<tr>{label}{''.join(written)}</tr>")
    caption = f"<caption><span>{escape(grid.title)}</span></caption>" if grid.title else ""
    body = "\n".join(rows)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(grid.title)}">'
        f"<table>{caption}<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"
    )


def _score(score: Score, seeds: int | None, *, best: bool) -> str:
    parts = ['<span class="none">–</span>']
    if score.ours:
        text = spread(score.ours.mean, score.ours.std if score.count > 1 else None)
        mean, _, deviation = text.partition(" ± ")
        rest = f" <small>± {deviation}</small>" if deviation else ""
        if not score.gap and score.count != seeds:
            rest += f' <small class="seeds">n = {score.count}</small>'
        parts = [f'<span class="ours{" best" if best else ""}">{mean}{rest}</span>']
    second = []
    if score.paper:
        second.append(f'<span class="paper">({spread(*score.paper)})</span>')
    if score.difference is not None:
        way = "noise" if not score.differs else "up" if score.difference > 0 else "down"
        text = f"{score.arrow} {signed(score.difference)}".strip()
        second.append(f'<span class="{way}">{text}</span>')
    if second:
        parts.append(f'<span class="beside">{" ".join(second)}</span>')
    if score.gap:
        parts.append(f'<span class="gap">{escape(score.gap)}</span>')
    return f"<td>{''.join(parts)}</td>"


def _verdict(verdict: Verdict) -> str:
    outcome = verdict.outcome
    found = "".join(_finding(finding) for finding in verdict.findings)
    return (
        f'<li class="{_name(outcome)}"><p class="badge">{MARKS[outcome]} {outcome.value}</p>'
        f'<div><p class="claim">{escape(verdict.claim.text)} '
        f'<span class="where">{escape(verdict.claim.where)}</span></p>'
        f'<ul class="findings">{found}</ul></div></li>'
    )


def _finding(finding: Finding) -> str:
    evidence = escape(finding.evidence or finding.outcome.value)
    mark = f'<span class="mark" title="{finding.outcome.value}">{MARKS[finding.outcome]}</span>'
    return (
        f'<li class="{_name(finding.outcome)}">{mark} <b>{escape(finding.case)}</b> {evidence}</li>'
    )


def _name(outcome: Outcome) -> str:
    return outcome.name.lower()
