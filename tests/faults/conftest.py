"""What the tests of several faults share."""

import pytest

from browser.conftest import chromium  # noqa: F401
from cli.conftest import mine, quick_map  # noqa: F401
from cli.runner import ForkServer


@pytest.fixture(scope="session")
def server():
    """A process that runs each command line in a fork of its own, which can be signalled."""
    server = ForkServer()
    yield server
    server.close()
