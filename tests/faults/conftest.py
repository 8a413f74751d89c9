"""What the tests of several faults share."""

import pytest

from browser.conftest import chromium  # noqa: F401
from commands.conftest import mine, quick_map  # noqa: F401
from commands.runner import ForkServer
from faults import PENDING


def pytest_collection_modifyitems(items):
    """Expect the failures that :data:`faults.PENDING` lists."""
    for item in items:
        if item.name in PENDING and item.path.parent.name == "faults":
            mark = pytest.mark.xfail(reason="pending, see tests/faults/__init__.py", strict=True)
            item.add_marker(mark)


@pytest.fixture(scope="session")
def server():
    """A process that runs each command line in a fork of its own, which can be signalled."""
    server = ForkServer()
    yield server
    server.close()
