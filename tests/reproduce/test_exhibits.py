"""The tables and figures build, vary what they say, and have the paper's numbers."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from lgdgcn.config import preset
from lgdgcn.data.source import GraphSource
from lgdgcn.errors import InputError
from lgdgcn.models import MODELS
from lgdgcn.reproduce import cells as cell_module
from lgdgcn.reproduce.cells import FULL, QUICK, Plan
from lgdgcn.reproduce.exhibits import (
    CURVES,
    NAMES,
    TABLES,
    Exhibit,
    ResultTable,
    cells,
    exhibits,
    read_toml,
)


def exhibit(name: str, plan: Plan = FULL) -> Exhibit:
    (found,) = exhibits([name], plan)
    return found


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


def papers(one: ResultTable, group: str) -> dict[str, list[tuple[float, float | None]]]:
    """The numbers of the paper by row."""
    return {row.id: [entry.paper for entry in row.entries] for row in one.rows(group)}


@pytest.mark.parametrize(
    ("name", "label", "groups", "added"),
    [
        ("table1", "tab:disengcn_limitation", ["micro", "macro"], {"lgdgcn"}),
        (
            "table2",
            "tab:cla_acc",
            ["standard", "random"],
            {"appnp", "gcnii", "grand", "lgdgcn-paper", "ours"},
        ),
        ("table3", "tab:syn_mul_cal", ["micro-published", "macro-published"], {"ours"}),
        ("table4", "tab:abla_study", ["standard"], {"uniform-routing", "graphs-off-at-test"}),
    ],
)
def test_the_numbers_are_the_papers(paper, name, label, groups, added):
    one = exhibit(name)
    rows = [row for group in groups for row in papers(one, group).items()]
    assert [row for key, row in rows if key not in added] == list(printed(paper, label))
    for key, row in rows:
        if key in added - {"lgdgcn-paper"}:
            assert row == [None] * len(one.columns)


def test_the_papers_number_is_beside_both_variants_and_both_kinds_of_graph():
    standard = papers(exhibit("table2"), "standard")
    assert standard["lgdgcn-paper"] == standard["lgdgcn-released"]
    one = exhibit("table3")
    assert papers(one, "micro-published") == papers(one, "micro-at-0.5-generated") != {}


@pytest.mark.parametrize("name", NAMES)
def test_ids_are_unique(name):
    described = read_toml(name)
    for kind in ("groups", "rows", "panels", "views"):
        names = [one["id"] for one in described.get(kind, [])]
        assert len(set(names)) == len(names)
        assert not {one.get("method") for one in described.get(kind, [])} & {*names}


@pytest.mark.parametrize("plan", [FULL, QUICK], ids=["full", "quick"])
@pytest.mark.parametrize("name", [name for name in TABLES if name != "ours"])
def test_tables_build(name, plan):
    one = exhibit(name, plan)
    assert one.name == name
    assert all(len(row.entries) == len(one.columns) for group in one.groups for row in group.rows)
    for entry in one.entries():
        assert entry.cell.model in MODELS
        assert GraphSource(entry.cell.graph).split == "standard"
        expected = "accuracy" if entry.cell.graph in ("cora", "citeseer", "pubmed") else "_f1"
        assert expected in entry.metric
        if plan is QUICK:
            assert len(entry.cell.seeds) == 2
            assert entry.cell.settings.epochs <= 80


def test_seeds_and_splits_are_those_of_the_protocol():
    cells_of = {group.id: group.rows[0].entries[0].cell for group in exhibit("table2").groups}
    assert {key: len(cell.seeds) for key, cell in cells_of.items()} == {
        "standard": 20,
        "random": 10,
    }
    assert {key: cell.split for key, cell in cells_of.items()} == {
        "standard": "standard",
        "random": "random",
    }
    assert len(next(exhibit("table3").entries()).cell.seeds) == 10
    assert len(next(exhibit("table4").entries()).cell.seeds) == 10


def test_generated_graphs_have_the_published_ones_settings():
    one = exhibit("table3")
    rows = zip(one.rows("micro-generated"), one.rows("micro-published"), strict=True)
    for generated, published in rows:
        for mine, other in zip(generated.entries, published.entries, strict=True):
            assert mine.cell.settings == other.cell.settings
            assert mine.cell.graph.startswith("synthetic")
            assert other.cell.graph.startswith("lgd_syn_fac")


def test_the_ablation_changes_what_it_says():
    rows = {row.id: row.entries[0] for row in exhibit("table4").rows("standard")}
    whole = rows["all"].cell
    assert whole.settings.variant == read_toml("table4")["every"]["variant"] == "released"
    assert rows["graphs-off-at-test"].cell == whole
    assert rows["graphs-off-at-test"].local
    assert rows["uniform-routing"].cell.settings.tau == 1e30
    parts = {
        name: (own.space, own.diversity, own.latent_graph)
        for name, entry in rows.items()
        if (own := entry.cell.settings).tau < 1e30 and not entry.local
    }
    assert parts == {
        "none": (False, False, False),
        "space": (True, False, False),
        "space-diversity": (True, True, False),
        "space-graphs": (True, False, True),
        "all": (True, True, True),
    }
    standard = {row.id: row.entries[0].cell for row in exhibit("table2").rows("standard")}
    same = standard["lgdgcn-released"]
    assert same.key == whole.key  # trained once
    assert set(whole.seeds) <= set(same.seeds)


def test_a_table_can_show_several_metrics_of_a_graph():
    one = exhibit("ours")
    graphs = {"four": "lgd_syn_fac4", "eight": "lgd_syn_fac8"}
    for group in (found.id for found in one.groups):
        graph = graphs.get(group, group)
        for row in one.rows(group):
            assert [entry.metric for entry in row.entries] == [
                "micro_f1" if group in graphs else "accuracy",
                "edge_attribution",
                "routing_entropy",
                "factor_usage",
                "dci_disentanglement",
            ]
            assert len({entry.cell for entry in row.entries}) == 1
            assert row.entries[0].cell.graph == graph


@pytest.mark.parametrize(("group", "factors"), [("four", 4), ("eight", 8)])
def test_the_ours_variants_table_changes_what_it_says(group, factors):
    rows = {row.id: row.entries[0].cell for row in exhibit("ours").rows(group)}
    whole = rows["ours"].settings.as_dict()
    assert whole["variant"] == "ours"
    double = {name: 2 * whole[name] for name in ("factors", "hidden_channels")}
    for name, own in {
        "no-edge-loss": {"lambda_edge": 0.0},
        "no-label-groups": {"label_groups": False},
        "neither": {"lambda_edge": 0.0, "label_groups": False},
        "tau-1": {"tau": 1.0},
        "one-iteration": {"iterations": 1},
        "no-votes": {"iterations": 0},
        "uniform-routing": {"tau": 1e9},
        "one-factor": {"factors": 1},
        "space-loss": {"space": True},
        "diversity-loss": {"diversity": True},
        "latent-graphs": {"latent_graph": True},
        "double-channels": double,
    }.items():
        assert rows[name].settings.as_dict() == whole | own
        assert all(whole[key] != value for key, value in own.items()), name
    for variant in ("paper", "released"):
        blunt, sharpened = (rows[f"{variant}{end}"] for end in ("", "-tau-0.1"))
        assert blunt.settings.variant == variant
        assert sharpened.settings == replace(blunt.settings, tau=0.1) != blunt.settings
    assert rows["paper"].settings.factors == factors
    assert len({cell.key for cell in rows.values()}) == len(rows)


@pytest.mark.parametrize("group", ["cora", "citeseer", "pubmed"])
def test_the_ablation_on_citation_graphs_changes_what_it_says(group):
    rows = {row.id: row.entries[0].cell for row in exhibit("ours").rows(group)}
    whole = rows.pop("ours").settings.as_dict()
    expected = {
        "no-edge-loss": {"lambda_edge": 0.0},
        "one-factor": {"factors": 1},
        "no-consistency": {"lambda_consistency": 0.0},
        "one-view": {"views": 1},
        "no-dropped-nodes": {"drop_nodes": 0.0},
        "no-propagation": {"hops": 0},
        "votes": {"iterations": 1, "tau": 0.1},
        "uniform-votes": {"iterations": 1, "tau": 1e9},
        "unit-length": {"unit_length": True},
    }
    kinds = ("none", "local", "global", "both")
    structures = {f"structure-{kind}": {"structure": kind} for kind in kinds}
    assert set(rows) == {*expected, *structures}
    repeated = [name for name, own in (expected | structures).items() if whole | own == whole]
    assert len(repeated) == {"pubmed": 2}.get(group, 1)  # a structure, and Pubmed's drops no nodes
    for name, own in (expected | structures).items():
        assert rows[name].settings.as_dict() == whole | own
        if name not in repeated:
            assert all(whole[key] != value for key, value in own.items()), name
        assert (rows[name].split, len(rows[name].seeds)) == ("standard", 10)
    keys = {cell.key for cell in rows.values()}
    assert len(keys) == len(rows) - len(repeated) + 1


def cells_of_row(name, row):
    return {
        entry.cell
        for group in exhibit(name).groups
        for one in group.rows
        if one.id == row
        for entry in one.entries
    }


def test_what_several_exhibits_show_is_trained_once():
    own = {cell.key for cell in cells_of_row("ours", "ours")}
    known = {cell.key for name in ("table2", "table3") for cell in cells_of_row(name, "ours")}
    assert own <= known
    drawn = {cell.key for cell in cells(exhibit("fig-ours"))}
    shown = {cell.key for name in ("table3", "ours") for cell in cells(exhibit(name))}
    assert len(drawn) == 30
    new = [cell for cell in cells(exhibit("fig-ours")) if cell.key not in shown]
    graphs = {"lgd_syn_fac6", "lgd_syn_fac10", "lgd_syn_fac12"}
    assert {(cell.graph, cell.settings.variant) for cell in new} == {(g, "paper") for g in graphs}


def test_the_figure_of_our_variant_is_over_graphs():
    both = exhibit("fig-ours")
    models = [[series.label for series in panel.series] for panel in both.panels]
    assert models[1] == models[0][:4]
    assert [panel.has_chance for panel in both.panels] == [False, True]
    for panel in both.panels:
        for series in panel.series:
            assert series.values == (4, 6, 8, 10, 12)
            for value, entry in zip(series.values, series.entries, strict=True):
                assert entry.cell.graph == f"lgd_syn_fac{value:g}"
                if series.label in ("LGD-GCN (paper)", "LGD-GCN (ours)"):
                    assert entry.cell.settings.factors == value


@pytest.mark.parametrize("plan", [FULL, QUICK], ids=["full", "quick"])
@pytest.mark.parametrize("name", CURVES)
def test_curves_build(name, plan):
    for panel in exhibit(name, plan).panels:
        for series in panel.series:
            assert len(series.values) == len(series.entries) >= 4
            assert list(series.values) == sorted(set(series.values))
            assert len({entry.cell.key for entry in series.entries}) == len(series.entries)
            assert all(len(e.cell.seeds) == plan.seeds["sweep"] for e in series.entries)
            own = {(e.cell.model, repr(e.cell.settings.architecture)) for e in series.entries}
            if name != "fig-ours":  # whose graphs have presets of their own
                assert len(own) == (len(series.entries) if name == "fig-factors" else 1)


def test_the_ranges_are_the_papers():
    one = exhibit("fig-lambda")
    (space,), (diversity,) = (one.panel(f"{loss}-cora").series for loss in ("space", "diversity"))
    assert [space.values[end] for end in (0, -1)] == [0, 5]
    assert [diversity.values[end] for end in (0, -1)] == [0, 0.5]
    settings = [entry.cell.settings for entry in space.entries]
    assert [own.lambda_space for own in settings] == list(space.values)
    assert not any(own.diversity for own in settings)
    assert all(entry.cell.settings.diversity for entry in diversity.entries)
    for panel in exhibit("fig-k").panels:
        assert [entry.cell.settings.k for entry in panel.series[0].entries] == [*range(1, 13)]


def test_layers_are_as_wide_as_the_factors_allow():
    micro, macro = exhibit("fig-factors").panel("factors").series
    settings = [entry.cell.settings for entry in micro.entries]
    assert [own.factors for own in settings] == [2, 4, 6, 8, 10, 12, 14, 16]
    width = next(own.hidden_channels for own in settings if own.factors == 8)
    for own in settings:
        assert abs(own.hidden_channels - width) <= own.factors
    assert [entry.cell for entry in micro.entries] == [entry.cell for entry in macro.entries]


@pytest.mark.parametrize(("name", "views"), [("units", 3), ("correlation", 4), ("embedding", 4)])
def test_pictures_build(name, views):
    one = exhibit(f"fig-{name}", QUICK)
    assert one.kind == name
    assert len(one.views) == views
    assert all(view.cell.keeps_units for view in one.views)


def test_the_correlation_is_of_one_and_two_layers():
    views = exhibit("fig-correlation").views
    assert [(v.cell.model, v.layer, v.cell.settings.num_layers) for v in views] == [
        ("disengcn", 1, 1),
        ("lgdgcn", 1, 2),
        ("lgdgcn", 2, 2),
        ("lgdgcn", 2, 2),
    ]
    assert [view.cell.settings.latent_graph for view in views[1:]] == [True, True, False]
    assert views[1].cell == views[2].cell


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
    asked: set[tuple[str, str, str]] = set()

    def remember(graph: str, model: str, variant: str, *, multi_label: bool) -> dict[str, Any]:
        asked.add((graph, model, variant))
        return preset(graph, model, variant, multi_label=multi_label)

    monkeypatch.setattr(cell_module, "preset", remember)
    exhibits(["all"], FULL)
    folder = resources.files("lgdgcn") / "presets"
    for graph, model, variant in asked:
        file = folder / f"{graph.partition(':')[0]}.toml"
        presets = tomllib.loads(file.read_text(encoding="utf-8"))
        own = [name for name in (f"{model}-{variant}", model) if name in presets]
        assert own, (graph, model, variant)
        assert "search" in presets[own[0]]["preset"]
