"""The measures of disentanglement behind a table's cells."""

from pathlib import Path

from lgdgcn.reproduce.exhibits import Entry, Row, Table
from lgdgcn.reproduce.factor_grids import factor_blocks
from lgdgcn.reproduce.results import Results
from reproduce.made_up import cell, fill

NEW = {"edge_attribution": 0.5, "routing_entropy": 0.25, "dci_disentanglement": 0.125}


def test_rows_have_what_their_runs_have(tmp_path: Path) -> None:
    results = Results(tmp_path)
    new = fill(results, cell("cora"), {"accuracy": 80}, factors=NEW)
    old = fill(results, cell("pubmed"), {"accuracy": 80}, factors={"routing_entropy": 1.0})
    none = fill(results, cell("cora", "gcn"), {"accuracy": 80})
    rows = [
        Row(group, label, tuple(Entry(one, metric) for one in cells))
        for group, metric in (("Micro-F1", "accuracy"), ("Macro-F1", "other"))
        for label, cells in (("LGD-GCN", (new, old)), ("GCN", (none, none)))
    ]
    (block,) = factor_blocks(Table("t", "", ("Cora", "Pubmed"), tuple(rows)), results)
    (grid,) = block.blocks  # the other group reads the same trainings
    assert grid.header == ("Method and measure", "Cora", "Pubmed")
    assert grid.rows == (
        ("LGD-GCN: Edge attribution", "0.500", "–"),
        ("LGD-GCN: Routing entropy", "0.250", "1.000"),
        ("LGD-GCN: DCI disentanglement", "0.125", "–"),
    )
    table = Table("t", "", ("Cora", "Pubmed"), (rows[1],))
    assert factor_blocks(table, results) == []


def test_a_table_of_measures_has_no_other(tmp_path: Path) -> None:
    results = Results(tmp_path)
    one = fill(results, cell(), {"accuracy": 80}, factors=NEW)
    row = Row("g", "LGD-GCN", (Entry(one, "accuracy"), Entry(one, "edge_attribution")))
    assert factor_blocks(Table("t", "", ("Accuracy", "Attribution"), (row,)), results) == []
