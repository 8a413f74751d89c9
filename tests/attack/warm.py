"""Use everything once, so that the processes forked from here have it loaded and compiled."""

import tempfile
from pathlib import Path

from attack.stand_ins import install
from cli.conftest import write_graph
from cli.runner import call, train

__all__ = ["warm_up"]


def warm_up() -> None:
    """Train a little and run the other verbs; what is slow is replaced in this process."""
    install()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        assert train(folder / "run", graph=write_graph(folder / "graph"), epochs=2).code == 0
        for verb in ("predict", "measure", "explore"):
            assert call(verb, folder / "run", "--out", folder / verb).code == 0
