"""Put measured tables into docs/reasons.md, between the marks that name them.

    lgdgcn reproduce edges --out runs/reproduce
    python benchmarks/edges_page.py runs/reproduce [--deletion deletion.md]

Takes the tables of ``edges.json`` and the figure of the report, and the table that
``benchmarks/deletion.py`` prints; nothing in these parts of the page is typed by hand.
"""

import argparse
import json
import re
import shutil
from pathlib import Path

from lgdgcn.reproduce.edge_report import NOTE, edge_table

DOCS = Path(__file__).resolve().parents[1] / "docs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("report", type=Path, help="folder of lgdgcn reproduce edges")
    parser.add_argument("--deletion", type=Path, help="what benchmarks/deletion.py has printed")
    given = parser.parse_args()
    page = DOCS / "reasons.md"
    text = replaced(page.read_text(encoding="utf-8"), "types", tables(given.report))
    if given.deletion is not None:
        rows = [line for line in given.deletion.read_text().splitlines() if line.startswith("|")]
        text = replaced(text, "deletion", "\n".join(rows))
    page.write_text(text, encoding="utf-8")
    for suffix in ("png", "svg"):
        name = f"edges.{suffix}"
        shutil.copyfile(given.report / "figures" / name, DOCS / "figures" / name)


def tables(report: Path) -> str:
    """The note and one table for every graph."""
    results = json.loads((report / "edges.json").read_text(encoding="utf-8"))
    parts = [NOTE.strip()]
    for graph in dict.fromkeys(one["graph"] for one in results):
        own = [one for one in results if one["graph"] == graph]
        seeds = sorted({len(one["runs"]) for one in own})
        title = f"### {graph}, {' or '.join(map(str, seeds))} seed{'s' * (seeds != [1])}"
        parts.append(f"{title}\n\n{edge_table(own)}")
    return "\n\n".join(parts)


def replaced(text: str, name: str, content: str) -> str:
    """The page with what is between the two marks of this name replaced."""
    marks = f"<!-- {name} -->", f"<!-- end of {name} -->"
    pattern = f"{re.escape(marks[0])}.*{re.escape(marks[1])}"
    new, count = re.subn(
        pattern, lambda _: f"{marks[0]}\n\n{content}\n\n{marks[1]}", text, flags=re.DOTALL
    )
    if count != 1:
        raise SystemExit(f"docs/reasons.md has {count} parts between {marks[0]} and {marks[1]}")
    return new


if __name__ == "__main__":
    main()
