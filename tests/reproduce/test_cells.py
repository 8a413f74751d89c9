"""Cells are named by what they are."""

import re
from pathlib import Path

from lgdgcn.config import Settings
from lgdgcn.reproduce.cells import FULL, Cell, train_command
from lgdgcn.reproduce.exhibits import cells, exhibits
from reproduce.tiny import cell


def test_the_key_is_what_the_result_depends_on():
    one = cell()
    assert cell(seeds=(5,), keeps_units=True).key == one.key
    assert cell(checkpoint_every=7).key == one.key
    others = [cell("disengcn"), cell(k=5), cell(split="random"), cell(graph="cora"), cell(tau=2.0)]
    assert len({one.key, *(other.key for other in others)}) == 6


def test_results_of_earlier_versions_are_found_again():
    """A key that changes makes every run folder train all over again."""
    assert cell().key == "dbd1bd7ef49d25aa"
    assert cell("gcn", split="random").key == "60afea9e05dde317"
    settings = Settings(variant="released", k=7, lr=0.03)
    assert Cell("cora", "lgdgcn", settings, (0, 1)).key == "01a1197f53535040"


def is_literal(cell):
    """Whether it has the literal Eq. 3; the page has the scaled one in its place."""
    return cell.model == "lgdgcn" and cell.settings.variant == "paper"


def published():
    """Keys and commands of the page, but for those of LGD-GCN (paper)."""
    page = Path(__file__).parents[2] / "docs" / "results.md"
    found = re.findall(
        r"^# cell (\w+):.*\n(?:.*\n)?(lgdgcn train .*)$",
        page.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    return [one for one in found if "--model lgdgcn-paper" not in one[1]]


def cells_now():
    found = [one for shown in exhibits(["all"], FULL) for one in cells(shown)]
    return [one for one in found if not is_literal(one)]


def test_the_published_results_are_those_of_the_cells():
    assert {key for key, _ in published()} == {one.key for one in cells_now()}


def test_without_a_variant_a_cell_is_the_papers_and_its_command_says_so():
    described = {"graph": "cora", "model": "lgdgcn", "seeds": "standard"}
    paper = FULL.cell(described)
    assert paper == FULL.cell({**described, "variant": "paper"})
    assert paper.settings.variant == "paper"
    assert train_command(paper) == "lgdgcn train cora --model lgdgcn-paper --seeds 20"
    assert "--model gcn --seeds" in train_command(FULL.cell({**described, "model": "gcn"}))


def test_the_published_commands_are_those_of_the_cells():
    assert {command for _, command in published()} == {train_command(one) for one in cells_now()}
