"""The report shows every number, says what is missing, and is safe to open."""

import re
import tomllib
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from lgdgcn.config import model_and_variant, parse_assignments, preset, resolve
from lgdgcn.nn import cknn_graph
from lgdgcn.reproduce.cells import FULL, QUICK, settings_line, train_command
from lgdgcn.reproduce.exhibits import (
    CurveFigure,
    Entry,
    Exhibit,
    Panel,
    ResultRow,
    ResultTable,
    RowGroup,
    Series,
    cells,
    exhibits,
)
from lgdgcn.reproduce.graphs import DataTable
from lgdgcn.reproduce.report import configurations, factor_measures, write_report
from lgdgcn.reproduce.results import Results, Run
from reproduce.made_up import accuracy_row, cell, fill, table

MODELS = ("disengcn", "lgdgcn")
HOSTILE = '<script>alert(1)</script> & | * "quote" _x_'


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path / "cells")


def _exhibits(results: Results) -> list[Exhibit]:
    graphs = ("cora", "citeseer", "pubmed")
    printed = [(84.9, 0.4), (74.5, 0.8), (81.3, 0.6)]
    ours = [cell(graph, variant="released") for graph in graphs]
    lgd = accuracy_row(results, "lgdgcn (released)", ours, (84.0, 74.6, None), printed, std=0.6)
    others = [cell(graph, "disengcn") for graph in graphs]
    bare = [(83.7, None), (73.4, None), (80.5, None)]
    disen = accuracy_row(results, "disengcn", others, (82.0, 70.0, 78.5), bare, std=0.6)
    diverging = cell("pubmed", "gat")
    fill(results, diverging, {"accuracy": 77.0}, only=range(7))
    results.add(diverging, [Run(8, "data", 3, 1.0, {}, diverged="loss")])
    gat = ResultRow("gat", HOSTILE, (*disen.entries[:2], Entry(diverging, "accuracy")))
    own = table(("Cora", "Citeseer", "Pubmed"), disen, gat, lgd, note=HOSTILE)
    values = (1.0, 4.0, 12.0)
    entries = []
    for k in values:
        one = fill(results, cell(k=int(k), seeds=3), {"accuracy": 82 - k / 10})
        entries.append(Entry(one, "accuracy"))
    series = Series("LGD-GCN", values, tuple(entries))
    panels = [Panel(name, f"k on {name}", "k", "%", (series,)) for name in ("cora", "citeseer")]
    return [own, CurveFigure("fig-k", "k", tuple(panels))]


@pytest.fixture
def report(results: Results, tmp_path: Path) -> tuple[str, str]:
    data = [DataTable("Graphs", ["", "Cora"], [["nodes", "2708"], [HOSTILE, "1"]])]
    write_report(tmp_path, _exhibits(results), data, results, quick=False)
    return tuple((tmp_path / name).read_text("utf-8") for name in ("report.md", "report.html"))


def test_markdown_has_ours_the_papers_and_the_difference(report: tuple[str, str]) -> None:
    markdown, _ = report
    assert "| **84.0 ± 0.6** (84.9 ± 0.4) ▼ −0.9 |" in markdown
    assert "(74.5 ± 0.8) △ +0.1 |" in markdown
    assert "| – (81.3 ± 0.6) [0 of 10 seeds] |" in markdown
    assert "[7 of 10 seeds, 1 diverged]" in markdown
    assert "**The standard group (10 seeds)**" in markdown
    assert "](figures/fig-k.png)" in markdown
    assert "2708" in markdown


def test_markdown_tables_are_rectangular(report: tuple[str, str]) -> None:
    lines = report[0].splitlines()
    for number, line in enumerate(lines):
        if re.fullmatch(r"\|( --- \|)+", line):
            width = line.count("|")
            assert _bars(lines[number - 1]) == width
            following = number + 1
            while lines[following].startswith("|"):
                assert _bars(lines[following]) == width
                following += 1


def _bars(line: str) -> int:
    return len(re.findall(r"(?<!\\)\|", line))


def test_claims_are_in_both(report: tuple[str, str]) -> None:
    for text in report:
        assert "LGD-GCN beats DisenGCN on the standard split." in text
        assert "does not hold" in text
        assert "+2.0 ± 0.3" in text
        assert "Latent graphs matter" not in text  # table 4 was not asked for


class _Page(HTMLParser):
    """Collects tags and what they refer to."""

    void = ("meta", "img", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_safe_and_stands_alone(report: tuple[str, str]) -> None:
    page = _Page()
    page.feed(report[1])
    assert page.open == []
    names = [tag for tag, _ in page.tags]
    assert "script" not in names
    assert "link" not in names
    assert not any(
        "style" in own or any(key.startswith("on") for key in own) for _, own in page.tags
    )
    policy = next(own["content"] for tag, own in page.tags if tag == "meta" and "http-equiv" in own)
    assert policy is not None
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    images = [own for tag, own in page.tags if tag == "img"]
    assert all(own["src"].startswith("data:image/png;base64,") and own["alt"] for own in images)
    anchors = {own["id"] for _, own in page.tags if "id" in own}
    links = {own["href"].removeprefix("#") for tag, own in page.tags if tag == "a"}
    assert links <= anchors
    assert "highest 81.9 at 1, lowest 80.8 at 12" in images[0]["alt"]
    tables = report[1].count("<table>")
    assert tables == report[1].count("<caption>")
    assert all("scope" in own for tag, own in page.tags if tag == "th")


def test_notes_on_presets_are_true() -> None:
    """They tell what the shipped presets are: who changes these changes the notes."""
    known = {exhibit.name: exhibit for exhibit in exhibits(["all"], FULL)}
    for name in ("table1", "table3", "fig-factors"):
        exhibit = known[name]
        note = exhibit.panels[0].note if isinstance(exhibit, CurveFigure) else exhibit.note
        ours = [one.settings for one in cells(exhibit) if one.model == "lgdgcn"]
        ours = [settings for settings in ours if settings.variant != "ours"]
        empty = {(settings.graph, settings.k) for settings in ours} == {("cknn", 1)}
        assert empty == ("such graphs have no edges" in note)
    for group in known["table3"].groups:
        (row,) = [row for row in group.rows if row.id == "ours"]
        for column, entry in zip(known["table3"].columns, row.entries, strict=True):
            assert entry.cell.settings.factors == int(column)
    assert cknn_graph(torch.randn(50, 3), k=1).numel() == 0
    assert {preset("synthetic", model, "paper")["num_layers"] for model in MODELS} == {1}
    for picture in (known["fig-units"], known["fig-correlation"]):
        assert {one.settings.iterations for one in cells(picture)} == {2}
        assert "two routing iterations and were tuned with one layer" in picture.note


def test_rules_are_told(report: tuple[str, str]) -> None:
    for text in report:
        for word in ("paired t-test", "Welch's test", "each says how it was found"):
            assert word in unescape(text)


def test_a_table_of_measures_marks_what_is_better(results: Results, tmp_path: Path) -> None:
    rows = []
    for label, share, entropy in (("old", 0.3, 0.9), ("new", 0.9, 0.2)):
        factors = {"edge_attribution": share, "routing_entropy": entropy}
        one = fill(results, cell(lr=share), {"micro_f1": 100 * share}, factors=factors)
        metrics = ("micro_f1", *factors, "dci_disentanglement")
        rows.append(ResultRow(label, label, tuple(Entry(one, metric) for metric in metrics)))
    columns = ("Micro-F1", "Edge attribution", "Routing entropy", "DCI disentanglement")
    write_report(tmp_path, [table(columns, *rows, name="ours")], [], results, quick=False)
    text = (tmp_path / "report.md").read_text("utf-8")
    assert "## Title of ours\n" in text
    assert "| old | 30.0 ± 0.5 | 30.0 ± 0.0 | 90.0 ± 0.0 | – |" in text
    assert "| new | **90.0 ± 0.5** | **90.0 ± 0.0** | **20.0 ± 0.0** | – |" in text
    assert "How well the channels" not in text


def test_a_quick_run_warns(results: Results, tmp_path: Path) -> None:
    write_report(tmp_path, exhibits(["fig-k"], QUICK), [], results, quick=True)
    for name in ("report.md", "report.html"):
        text = (tmp_path / name).read_text("utf-8")
        assert "too noisy to quote" in text
        assert "not measured" in text


@pytest.mark.parametrize("plan", [FULL, QUICK])
def test_commands_repeat_the_cells(plan: object) -> None:
    for one in {one.key: one for each in exhibits(["all"], plan) for one in cells(each)}.values():
        words = train_command(one).split()
        assert words[:3] == ["lgdgcn", "train", one.graph]
        options = dict(zip(words[3::2], words[4::2], strict=True))
        own = parse_assignments([b for a, b in pairwise(words) if a == "--set"])
        model, variant = model_and_variant(options["--model"])
        named = {} if variant is None else {"variant": variant}
        multi_label = "syn" in one.graph  # as train does
        shipped = preset(one.graph, model, variant, multi_label=multi_label)
        found = resolve(shipped, named, own)
        assert found == one.settings
        assert options.get("--split", "standard") == one.split
        assert int(options["--seeds"]) == len(one.seeds)
        line = settings_line(one.settings)
        listed = tomllib.loads(line.replace(", ", "\n"))
        assert resolve(listed) == one.settings


def test_a_cell_is_listed_once_with_all_its_places() -> None:
    (shown,) = exhibits(["table3"], FULL)
    listed = configurations(shown)
    assert len(listed) == 2 * 5 * 5
    assert "MLP / 4 / Micro-F1, published graphs; MLP / 4 / Macro-F1, published graphs" in listed[0]


MEASURED = {"edge_attribution": 0.5, "routing_entropy": 0.25, "dci_disentanglement": 0.125}


def test_rows_have_the_measures_that_their_runs_have(results: Results) -> None:
    new = fill(results, cell("cora"), {"accuracy": 80}, factors=MEASURED)
    old = fill(results, cell("pubmed"), {"accuracy": 80}, factors={"routing_entropy": 1.0})
    none = fill(results, cell("cora", "gcn"), {"accuracy": 80})
    groups = []
    for metric in ("accuracy", "other"):
        rows = [
            ResultRow(label, label, tuple(Entry(one, metric) for one in own))
            for label, own in (("LGD-GCN", (new, old)), ("GCN", (none, none)))
        ]
        groups.append(RowGroup(metric, metric, tuple(rows)))
    own = ResultTable("t", "", ("Cora", "Pubmed"), tuple(groups))
    (grid,) = factor_measures(own, results)  # the other group has the same trainings
    assert grid.caption == "accuracy"
    assert grid.header == ("Method and measure", "Cora", "Pubmed")
    assert grid.rows == [
        ["LGD-GCN: Edge attribution", "0.500", "–"],
        ["LGD-GCN: Routing entropy", "0.250", "1.000"],
        ["LGD-GCN: DCI disentanglement", "0.125", "–"],
    ]
    assert factor_measures(table(("Cora", "Pubmed"), groups[0].rows[1]), results) == []


def test_a_table_of_measures_has_no_others(results: Results) -> None:
    one = fill(results, cell(), {"accuracy": 80}, factors=MEASURED)
    row = ResultRow("a", "a", (Entry(one, "accuracy"), Entry(one, "edge_attribution")))
    assert factor_measures(table(("Accuracy", "Attribution"), row), results) == []
