"""Runs and graphs that several tests look at."""

import random
from pathlib import Path

import pytest

from cli import edge_graph
from cli.runner import ForkServer, Outcome, call, train

CLASSES = ["=1+1", "größe", "plain"]


def write_graph(folder: Path, *, labels: bool = True, nodes: int = 24, scale: float = 1.0) -> Path:
    """A user's graph: names for ids and labels, one of each that a spreadsheet would run."""
    chance = random.Random(0)
    folder.mkdir(parents=True)
    ids = ["=cmd|' /C calc'!A0", "naïve, “quoted”", *(f"n{i}" for i in range(2, nodes))]
    lines = ["id,f1,f2,f3" + (",label,split" if labels else "")]
    for i, name in enumerate(ids):
        values = [scale * (chance.random() + (i % 3 == j)) for j in range(3)]
        cells = [f'"{name}"', *(f"{value:.6g}" for value in values)]
        cells += [CLASSES[i % 3], ("train", "val", "test")[i // 3 % 3]] if labels else []
        lines.append(",".join(cells))
    (folder / "nodes.csv").write_text("\n".join(lines) + "\n")
    edges = [(i, (i + 3) % nodes) for i in range(nodes)] + [(i, i + 1) for i in range(0, 12, 4)]
    edges += [(b, a) for a, b in edges]  # one direction alone would be worth a warning
    text = "".join(f'"{ids[a]}","{ids[b]}"\n' for a, b in edges)
    (folder / "edges.csv").write_text("source,target\n" + text)
    return folder


@pytest.fixture(autouse=True)
def quick_map(monkeypatch):
    """The figure is drawn, but without the seconds that t-SNE takes."""
    monkeypatch.setattr("lgdgcn.plots.tsne_map", lambda points, seed: points[:, :2])


@pytest.fixture
def quick_measures(monkeypatch):
    """The measures without resamples, which take most of the time."""
    from lgdgcn.metrics.controls import measure

    def quick(trained, data):
        return measure(trained, data, resamples=0)

    monkeypatch.setattr("lgdgcn.metrics.controls.measure", quick)


@pytest.fixture(scope="session")
def finished(tmp_path_factory) -> tuple[Path, Outcome]:
    """A run of two seeds beside a GCN: its folder, and what was printed."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    return folder, train(folder, "--seeds", 2, "--compare", "gcn")


@pytest.fixture(scope="session")
def mine(tmp_path_factory) -> tuple[Path, Path, Outcome]:
    """A run on a user's own graph: the graph, the run folder, and what was printed."""
    folder = tmp_path_factory.mktemp("mine")
    graph = write_graph(folder / "мой граф")
    return graph, folder / "run", train(folder / "run", graph=graph, epochs=40)


@pytest.fixture(scope="session")
def unrouted(tmp_path_factory) -> tuple[Path, Outcome]:
    """A run whose temperature is so high that all factors share every edge alike."""
    folder = tmp_path_factory.mktemp("unrouted") / "run"
    settings = ["--model", "lgdgcn-paper", "--set", "tau=1000", "--seeds", 2, "--compare", "gcn"]
    return folder, train(folder, *settings)


def _reasons(place: Path, share: float | None) -> tuple[Path, Path, Outcome]:
    graph = edge_graph.write(place / "graph", share=share)
    return graph, place / "run", call("train", graph, "--out", place / "run")


@pytest.fixture(scope="session")
def typed(tmp_path_factory) -> tuple[Path, Path, Outcome]:
    """A graph with known types of edges, the run of its reasons, and what was printed."""
    return _reasons(tmp_path_factory.mktemp("typed"), share=0.5)


@pytest.fixture(scope="session")
def untyped(tmp_path_factory) -> tuple[Path, Path, Outcome]:
    """The same without types."""
    return _reasons(tmp_path_factory.mktemp("untyped"), share=None)


@pytest.fixture(scope="module")
def server():
    server = ForkServer()
    yield server
    server.close()
