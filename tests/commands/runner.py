"""Moved to :mod:`cli.runner`."""

from cli.runner import *  # noqa: F403
