"""What the package needs, and when."""

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import lgdgcn

OPTIONAL = ["typer", "rich", "numba", "pooch", "matplotlib", "safetensors", "pyarrow"]


def run(code: str) -> str:
    """Run code in a fresh process and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_package_itself_is_light():
    loaded = run("import sys, lgdgcn; print(*(name.partition('.')[0] for name in sys.modules))")
    assert not {"torch", "numpy", "sklearn", "typer", *OPTIONAL} & set(loaded.split())


def test_data_sets_are_listed_without_what_takes_long_to_import():
    code = """
import sys
from lgdgcn.cli import main
sys.argv = ["lgdgcn", "data", "list"]
try:
    main()
except SystemExit:
    print(*(name.partition(".")[0] for name in sys.modules))
"""
    *_, loaded = run(code).splitlines()
    assert "rich" in loaded.split()
    assert not {"torch", "torch_geometric", "numpy", "scipy", "sklearn"} & set(loaded.split())


def test_the_training_path_needs_only_the_numerical_libraries():
    code = f"""
import sys
for name in {OPTIONAL}:
    sys.modules[name] = None
import torch
import lgdgcn.data
import lgdgcn.models
from lgdgcn.config import Settings
from lgdgcn.data.validate import canonical
from lgdgcn.train.population import Training
from lgdgcn.train.trainer import Trainer
data = canonical(lgdgcn.data.synthetic_graph(nodes=30, classes=3, factors=2, average_degree=6))
settings = Settings(factors=2, hidden_channels=4, epochs=2)
trainer = Trainer([Training("lgdgcn", settings, seed, data) for seed in range(2)])
trainer.train()
model = lgdgcn.LGDClassifier(budget="none", factors=2, hidden_channels=4, epochs=2).fit(data)
print(trainer.state(1).epoch, model.transform().shape)
"""
    assert run(code) == "2 (30, 2, 2)\n"


@pytest.mark.parametrize("name", [name for name in lgdgcn.__all__ if name.startswith("LGD")])
def test_the_main_classes_are_found_on_first_use(name):
    cls = getattr(lgdgcn, name)
    assert cls.__name__ == name
    assert cls.__module__.startswith("lgdgcn.")


def test_the_metrics_are_found_on_first_use():
    code = "import lgdgcn, sys; before = 'torch' in sys.modules; lgdgcn.metrics.disentanglement; "
    assert run(code + "print(before)") == "False\n"


def test_there_is_nothing_else():
    with pytest.raises(AttributeError, match="no attribute 'LGDRegressor'"):
        _ = lgdgcn.LGDRegressor


def test_the_version_is_said_once():
    project = Path(__file__).resolve().parents[1] / "pyproject.toml"
    assert lgdgcn.__version__ == tomllib.loads(project.read_text())["project"]["version"]
    assert lgdgcn.__version__ == metadata.version("lgdgcn")
    assert re.fullmatch(r"\d+\.\d+\.\d+", lgdgcn.__version__)
