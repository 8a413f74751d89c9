"""Every fault has a test, and the table in ``faults/__init__.py`` tells the truth about it."""

import re
from importlib import import_module
from pathlib import Path

import faults

LAST = 50
HERE = [file.stem for file in Path(__file__).parent.glob("test_*.py") if file != Path(__file__)]
MODULES = [*(f"faults.{name}" for name in HERE), "runs.test_interrupted"]
MODULES += ["search.test_verb", "train.test_ranks"]


def checks_of(number: int) -> list[tuple[str, str, str]]:
    """Module, name and docstring of every test of a fault."""
    start = f"test_fault_{number:02d}_"
    return [
        (module, name, function.__doc__ or "")
        for module in MODULES
        for name, function in vars(import_module(module)).items()
        if name.startswith(start)
    ]


def test_every_fault_has_a_test_that_says_its_promise():
    for number in range(1, LAST + 1):
        assert checks_of(number), f"no test of fault {number}"
        assert all(document for *_, document in checks_of(number)), f"no docstring: fault {number}"


def test_the_table_is_that_of_the_tests():
    rows = re.findall(r"^ +(\d+)  (whole|in part) +([\w.]+)$", faults.__doc__, re.MULTILINE)
    table = {int(number): (kept, module) for number, kept, module in rows}
    for number in range(1, LAST + 1):
        found = checks_of(number)
        in_part = any("In part:" in document for *_, document in found)
        kept = "in part" if in_part else "whole"
        assert table.pop(number) == (kept, found[0][0].removeprefix("faults.")), f"fault {number}"
    assert not table
