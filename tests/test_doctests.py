"""The examples in the docstrings, module by module."""

import doctest
import importlib
import pkgutil

import pytest

import lgdgcn

MODULES = [
    module.name
    for module in pkgutil.walk_packages(lgdgcn.__path__, "lgdgcn.")
    if not module.name.endswith("__main__")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("lgdgcn"):
            raise
        pytest.skip(f"needs {error.name}")
    assert doctest.testmod(module).failed == 0
