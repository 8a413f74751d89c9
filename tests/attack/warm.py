"""Loaded into the process that forks: use everything once, so that no child loads it again."""

import tempfile
from pathlib import Path

from attack.stand_ins import install
from commands.conftest import write_graph
from commands.runner import call, train

install()
with tempfile.TemporaryDirectory() as _name:
    _folder = Path(_name)
    assert train(_folder / "run", graph=write_graph(_folder / "graph"), epochs=2).code == 0
    for _verb in ("predict", "measure", "explore"):
        assert call(_verb, _folder / "run", "--out", _folder / _verb).code == 0
