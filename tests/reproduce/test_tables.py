"""The tables build, and their numbers are the paper's."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from lgdgcn.config import preset, preset_names
from lgdgcn.data.source import GraphSource
from lgdgcn.errors import InputError
from lgdgcn.models import MODELS
from lgdgcn.reproduce import plan
from lgdgcn.reproduce.catalogue import NAMES, exhibits
from lgdgcn.reproduce.exhibits import Table, cells
from lgdgcn.reproduce.paper import read
from lgdgcn.reproduce.plan import FULL, QUICK
from lgdgcn.reproduce.tables import table

TABLES = [name for name in NAMES if name.startswith("table")]


@pytest.fixture(scope="module")
def paper() -> str:
    """The paper's source; tests that need it skip elsewhere."""
    for parent in Path(__file__).resolve().parents:
        file = parent / "shared" / "paper" / "lgd-gcn.tex"
        if file.is_file():
            return file.read_text(encoding="utf-8")
    pytest.skip("no source of the paper: shared/paper/lgd-gcn.tex is not there")


def printed(paper: str, label: str) -> Iterator[list[tuple[float, float | None]]]:
    """The rows of numbers of the table with this label."""
    begin = paper.rindex(r"\begin{table}", 0, paper.index(rf"\label{{{label}}}"))
    body = paper[begin : paper.index(r"\end{table}", begin)].split(r"\begin{tabular}")[1]
    plain = re.sub(r"\\textbf\{|[}$]", "", body)
    for line in plain.splitlines():
        found = re.findall(r"&\s*(\d+\.\d)(?:\\pm(\d+\.\d))?(?![\d%])", line)
        if found:
            yield [(float(mean), float(std) if std else None) for mean, std in found]


def ours(one: Table, group: str) -> dict[str, list[tuple[float, float | None]]]:
    rows = [row for row in one.rows if row.group == group]
    return {row.label: [entry.paper for entry in row.entries] for row in rows}


@pytest.mark.parametrize(
    ("name", "label", "groups", "added"),
    [
        ("table1", "tab:disengcn_limitation", ["Micro-F1", "Macro-F1"], {"LGD-GCN"}),
        (
            "table2",
            "tab:cla_acc",
            ["Standard split", "Random splits"],
            {"APPNP", "GCNII", "LGD-GCN (paper)", "Sharp LGD-GCN (ours)"},
        ),
        (
            "table3",
            "tab:syn_mul_cal",
            ["Micro-F1, published graphs", "Macro-F1, published graphs"],
            {"Sharp LGD-GCN (ours)"},
        ),
        (
            "table4",
            "tab:abla_study",
            ["Standard split"],
            {"all, uniform routing", "all, latent graphs off at test time"},
        ),
    ],
)
def test_the_numbers_are_the_papers(paper, name, label, groups, added):
    one = table(name, FULL)
    rows = [row for group in groups for row in ours(one, group).items()]
    assert [row for key, row in rows if key not in added] == list(printed(paper, label))
    for key, row in rows:
        if key in added - {"LGD-GCN (paper)"}:
            assert row == [None] * len(one.columns)


def test_the_papers_number_is_beside_both_variants_and_both_kinds_of_graph():
    standard = ours(table("table2", FULL), "Standard split")
    assert standard["LGD-GCN (paper)"] == standard["LGD-GCN (released)"]
    one = table("table3", FULL)
    assert ours(one, "Micro-F1, published graphs") == ours(one, "Micro-F1 at 0.5, our generator")


@pytest.mark.parametrize("plan", [FULL, QUICK], ids=["full", "quick"])
@pytest.mark.parametrize("name", TABLES)
def test_tables_build(name, plan):
    one = table(name, plan)
    assert one.name == name
    assert all(len(row.entries) == len(one.columns) for row in one.rows)
    for entry in one.entries():
        assert entry.cell.model in MODELS
        assert GraphSource(entry.cell.graph).split == "standard"
        expected = "accuracy" if entry.cell.graph in ("cora", "citeseer", "pubmed") else "_f1"
        assert expected in entry.metric
        if plan is QUICK:
            assert len(entry.cell.seeds) == 2
            assert entry.cell.settings.epochs <= 80


def test_seeds_and_splits_are_those_of_the_protocol():
    counts = {row.group: len(row.entries[0].cell.seeds) for row in table("table2", FULL).rows}
    assert counts == {"Standard split": 20, "Random splits": 10}
    splits = {row.group: row.entries[0].cell.split for row in table("table2", FULL).rows}
    assert splits == {"Standard split": "standard", "Random splits": "random"}
    assert len(next(table("table3", FULL).entries()).cell.seeds) == 10
    assert len(next(table("table4", FULL).entries()).cell.seeds) == 10


def test_generated_graphs_have_the_published_ones_settings():
    rows = table("table3", FULL).rows
    for row in rows:
        if row.group == "Micro-F1, our generator":
            twin = next(
                other
                for other in rows
                if (other.group, other.label) == ("Micro-F1, published graphs", row.label)
            )
            for one, other in zip(row.entries, twin.entries, strict=True):
                assert one.cell.settings == other.cell.settings
                assert one.cell.graph.startswith("synthetic")
                assert other.cell.graph.startswith("lgd_syn_fac")


def test_the_ablation_changes_what_it_says():
    rows = {row.label: row.entries[0] for row in table("table4", FULL).rows}
    whole = rows["all"].cell
    assert whole.settings.variant == read("table4")["every"]["variant"] == "released"
    assert rows["all, latent graphs off at test time"].cell == whole
    assert rows["all, latent graphs off at test time"].local
    assert rows["all, uniform routing"].cell.settings.tau == 1e30
    parts = {
        label: (own.space, own.diversity, own.latent_graph)
        for label, entry in rows.items()
        if (own := entry.cell.settings).tau < 1e30 and not entry.local
    }
    assert parts == {
        "none": (False, False, False),
        "space": (True, False, False),
        "space + diversity": (True, True, False),
        "space + latent graphs": (True, False, True),
        "all": (True, True, True),
    }
    released = [row for row in table("table2", FULL).rows if row.label == "LGD-GCN (released)"]
    same = released[0].entries[0].cell
    assert same.key == whole.key  # trained once
    assert set(whole.seeds) <= set(same.seeds)


def test_a_table_can_show_several_metrics_of_a_graph():
    one = table("sharp", FULL)
    for row in one.rows:
        assert [entry.metric for entry in row.entries] == [
            "micro_f1",
            "edge_attribution",
            "routing_entropy",
            "dci_disentanglement",
        ]
        assert len({entry.cell for entry in row.entries}) == 1
    graphs = {(row.group, row.entries[0].cell.graph) for row in one.rows}
    assert graphs == {("Four factors", "lgd_syn_fac4"), ("Eight factors", "lgd_syn_fac8")}


@pytest.mark.parametrize("group", ["Four factors", "Eight factors"])
def test_the_sharp_variants_table_changes_what_it_says(group):
    rows = {
        row.label: row.entries[0].cell for row in table("sharp", FULL).rows if row.group == group
    }
    whole = rows["Sharp"].settings.as_dict()
    assert whole["variant"] == "sharp"
    double = {name: 2 * whole[name] for name in ("factors", "hidden_channels")}
    for label, own in {
        "Sharp without edge loss": {"lambda_edge": 0.0},
        "Sharp without label groups": {"label_groups": False},
        "Sharp without both": {"lambda_edge": 0.0, "label_groups": False},
        "Sharp, τ = 1": {"tau": 1.0},
        "Sharp, one round of votes": {"iterations": 1},
        "Sharp with space loss": {"space": True},
        "Sharp with diversity loss": {"diversity": True},
        "Sharp with latent graphs": {"latent_graph": True},
        "Sharp, twice the channels": double,
    }.items():
        assert rows[label].settings.as_dict() == whole | own
        assert all(whole[name] != value for name, value in own.items()), label
    for variant in ("paper", "released"):
        blunt, sharpened = (rows[f"LGD-GCN ({variant}){end}"] for end in ("", ", τ = 0.1"))
        assert blunt.settings.variant == variant
        assert sharpened.settings == replace(blunt.settings, tau=0.1) != blunt.settings
    factors = 4 if group == "Four factors" else 8
    assert rows["LGD-GCN (paper)"].settings.factors == factors
    assert len({cell.key for cell in rows.values()}) == len(rows)


def test_the_sharp_row_is_the_same_in_both_tables():
    beside, own = (
        {
            entry.cell
            for row in table(name, FULL).rows
            if row.label == label
            for entry in row.entries
        }
        for name, label in (("table3", "Sharp LGD-GCN (ours)"), ("sharp", "Sharp"))
    )
    assert own <= beside  # trained once


def test_exhibits_are_found_by_name():
    assert [one.name for one in exhibits(["fig-k", "table1", "fig-k"], QUICK)] == [
        "table1",
        "fig-k",
    ]
    assert tuple(one.name for one in exhibits(["table1", "all"], QUICK)) == NAMES
    assert all(cells(one) for one in exhibits(["all"], QUICK))
    with pytest.raises(InputError, match=r"'tabel2'; did you mean table2\? known: all, table1"):
        exhibits(["tabel2"], QUICK)


def test_every_model_has_been_searched_on_the_graph_it_is_shown_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: set[tuple[str, str, str | None]] = set()

    def remember(graph: str, model: str, variant: str | None = None) -> dict[str, Any]:
        asked.add((graph, model, variant))
        return preset(graph, model, variant)

    monkeypatch.setattr(plan, "shipped", remember)
    exhibits(["all"], FULL)
    folder = resources.files("lgdgcn") / "presets"
    for graph, model, variant in asked:
        own = [folder / f"{name}.toml" for name in preset_names(graph, model, variant)[:-2]]
        (found,) = [file for file in own if file.is_file()][:1] or [None]
        assert found is not None, (graph, model, variant)
        assert "search" in tomllib.loads(found.read_text(encoding="utf-8"))["preset"], found.name
