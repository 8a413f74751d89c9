"""A user's graph whose edges have two planted reasons, some of them known as types."""

import csv

import numpy as np

from reasons.planted import activity_graph

HOSTILE = ["</script>[b]", "=1+1"]  # in the order of the alphabet
IDS = [f"n{number}" for number in range(150)]
A, B = activity_graph(sizes=(50, 40))[0][:, 0]
IDS[A], IDS[B] = "=cmd|' /C calc'!A0", "naïve, “quoted”"


def write(folder, share=None, types=HOSTILE, pairs=None, nodes=False):
    """A planted graph; with a share, that share of the edges has a type in edges.csv."""
    ends, true = activity_graph(sizes=(50, 40))
    ends, true = ends[:, :pairs], true[:pairs]
    shown = np.random.default_rng(0).random(len(true)) < (share or 0)
    folder.mkdir(parents=True)
    with (folder / "edges.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["source", "target", *(["type"] if share is not None else [])])
        for (a, b), row, known in zip(ends.T, true, shown, strict=True):
            named = [name for name, has in zip(types, row, strict=True) if has and known]
            writer.writerow([IDS[a], IDS[b], *([";".join(named)] if share is not None else [])])
    if nodes:
        (folder / "nodes.csv").write_text("id,f\n" + "".join(f"n{i},{i % 7}\n" for i in range(4)))
    return folder
