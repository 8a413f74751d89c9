"""The report: the paper's numbers, ours, and what does and does not hold."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from lgdgcn import __version__
from lgdgcn.reproduce.document import Block, Grid, Heading, Paragraph, Verdicts
from lgdgcn.reproduce.exhibit_blocks import appendix, exhibit_blocks, name_of
from lgdgcn.reproduce.exhibits import Exhibit, Facts
from lgdgcn.reproduce.html import to_html
from lgdgcn.reproduce.markdown import to_markdown
from lgdgcn.reproduce.protocol import HOW_TO_READ, PROTOCOL, QUICK, effort, headline
from lgdgcn.reproduce.reading import read_claims, summary
from lgdgcn.reproduce.results import Results
from lgdgcn.storage import write_text

__all__ = ["write_report"]

TITLE = "LGD-GCN reproduced"
READING = (
    "Each claim is checked with the numbers below. Differences are in points ± their standard "
    "error. That one number is above another holds, or does not, where a test is sure of it at "
    "the five per cent level, and is undecided otherwise: the paired t-test over the seeds where "
    "a seed means the same random split, or the same trained model, for both; Welch's test "
    "elsewhere. Whichever side gains from picking the best of several values has to pass a test "
    "stricter by their number. Other rules: the paper's number is reached at or above it, and is "
    "not reached more than two standard errors of both below it; an aim of ours is tested as "
    "one number against the mean; a curve is stable where its "
    "means lie within one point, and is not where the best is surely above the worst as well; "
    "edges are routed where the entropy is below 90 % of its maximum, and are not above 99 %; "
    "they go to their factors at more than twice the share that one channel for all would get, "
    "and do not below 1.25 times of it; blocks, of one run each, are told apart where their ratios "
    "differ by more than a tenth. A claim holds in part where some cases hold and no more fail. "
    "Where LGD-GCN has two variants, the one with the better validation score speaks for it."
)
APPENDIX = (
    "Every cell: where it stands, the hash its results are kept under, the settings that differ "
    "from the defaults, and the command that trains the same models. Commands start from the "
    "presets of this version, and leave out what these already say."
)


def write_report(
    folder: Path,
    exhibits: Sequence[Exhibit],
    facts: Sequence[Facts],
    results: Results,
    *,
    quick: bool,
) -> None:
    """Write ``report.md``, ``report.html`` and the figures of what has been trained so far.

    Args:
        folder: Where to; figures go to ``figures`` inside it.
        exhibits: What to show, in this order.
        facts: Statistics of the data.
        results: Finished runs; what is missing is shown as such.
        quick: Whether this is a quick run, not to be quoted.
    """
    done = effort(exhibits, results)
    blocks = list(_blocks(folder, exhibits, facts, results, quick=quick, done=done))
    title = TITLE + (" (quick run)" if quick else "")
    subtitle = f"Every table and figure of the paper with lgdgcn {__version__}: {done}."
    write_text(folder / "report.md", to_markdown(title, [Paragraph(subtitle), *blocks], folder))
    write_text(folder / "report.html", to_html(title, subtitle, blocks))


def _blocks(
    folder: Path,
    exhibits: Sequence[Exhibit],
    facts: Sequence[Facts],
    results: Results,
    *,
    quick: bool,
    done: str,
) -> Iterator[Block]:
    """Everything below the title, in order."""
    if quick:
        yield Paragraph(QUICK)
    short = headline(exhibits, results)
    if short:
        yield Heading("In short", "in-short")
        yield short
        yield Paragraph(HOW_TO_READ)
    yield from _reading(exhibits, results)
    yield Heading("Protocol", "protocol")
    yield Paragraph(PROTOCOL)
    if not short:
        yield Paragraph(HOW_TO_READ)
    for exhibit in exhibits:
        yield from exhibit_blocks(exhibit, results, folder / "figures")
    if facts:
        yield Heading("The data", "data")
    for fact in facts:
        yield Grid(fact.title, tuple(fact.header), tuple(tuple(row) for row in fact.rows))
    yield Heading("Exact configuration behind each cell", "configuration")
    yield Paragraph(APPENDIX)
    yield from appendix(exhibits)


def _reading(exhibits: Sequence[Exhibit], results: Results) -> Iterator[Block]:
    verdicts = read_claims(exhibits, results)
    if not verdicts:
        return
    names = {exhibit.name: name_of(exhibit) for exhibit in exhibits}
    yield Heading("What holds and what does not", "reading")
    yield Paragraph(f"{summary(verdicts)} {READING}")
    for name, some in groupby(verdicts, key=lambda verdict: verdict.claim.exhibit):
        yield Verdicts(names[name], tuple(some))
