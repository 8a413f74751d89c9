"""Moved to :mod:`cli.conftest`."""

from cli.conftest import *  # noqa: F403
