"""From two CSV files to predictions and a page to look at.

Run it with ``python examples/own_graph.py``; it writes into the folder ``example-graph``.
"""

import csv
import random
import subprocess
import sys
from pathlib import Path

PEOPLE, CLUBS = 90, ("chess", "rowing", "choir")


def write_graph(folder: Path) -> None:
    """Write a graph as you may have one: people, what they like, and who knows whom."""
    draw = random.Random(0)
    folder.mkdir(parents=True, exist_ok=True)
    club = {f"person {i}": CLUBS[i % 3] for i in range(PEOPLE)}
    with open(folder / "nodes.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "label", *(f"likes {name}" for name in CLUBS)])
        for name, own in club.items():
            likes = [round(draw.random() + 0.7 * (other == own), 2) for other in CLUBS]
            label = own if draw.random() < 0.8 else ""  # some labels are not known
            writer.writerow([name, label, *likes])
    with open(folder / "edges.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["source", "target"])
        for a in club:
            for b in club:
                if a < b and draw.random() < (0.2 if club[a] == club[b] else 0.02):
                    writer.writerow([a, b])


def lgdgcn(*arguments: object) -> None:
    """Run the command line tool, as you would in a terminal."""
    subprocess.run([sys.executable, "-m", "lgdgcn", *map(str, arguments)], check=True)


def main(folder: Path, epochs: int = 60) -> None:
    """Train, predict and make the page of the run."""
    graph, run = folder / "graph", folder / "run"
    write_graph(graph)
    lgdgcn("train", f"{graph}/", "--out", run, "--overwrite", "--set", f"epochs={epochs}")
    lgdgcn("predict", run, "--out", folder / "predictions.csv", "--edges")
    lgdgcn("explore", run)
    print((folder / "predictions.csv").read_text(encoding="utf-8")[:300])
    print(f"open {run / 'explore.html'} in a browser")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "example-graph"))
