"""Every fault has a test that says its promise."""

from importlib import import_module
from pathlib import Path

LAST = 50
HERE = [file.stem for file in Path(__file__).parent.glob("test_*.py") if file != Path(__file__)]
MODULES = [*(f"faults.{name}" for name in HERE), "runs.test_interrupted"]
MODULES += ["search.test_verb", "train.test_ranks"]


def test_every_fault_has_a_test_that_says_its_promise():
    tests = [
        (name, test) for module in MODULES for name, test in vars(import_module(module)).items()
    ]
    for number in range(1, LAST + 1):
        documents = [t.__doc__ for name, t in tests if name.startswith(f"test_fault_{number:02d}_")]
        assert documents, f"no test of fault {number}"
        assert all(documents), f"no docstring: fault {number}"
