"""Work that may take long, and who shows how far it is.

The modules that do the work know nothing of terminals: they say what they do, and the command line
says how that is shown. Without a display, as in a notebook, nothing is.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

__all__ = ["Advance", "Display", "long_work", "show_with"]

Advance = Callable[[int, float | None], None]  # how many are done, and which share of all


class Display(Protocol):
    """Shows one piece of work while its context lasts."""

    def __call__(self, what: str, unit: str) -> AbstractContextManager[Advance]:
        """Begin; ``unit`` is what is counted, nothing if the work has no steps."""


_display: Display | None = None


def show_with(display: Display | None) -> None:
    """Show all long work of this process with a display from now on."""
    global _display
    _display = display


@contextmanager
def long_work(what: str, unit: str = "") -> Iterator[Advance]:
    """Announce work; the function that is given tells how far it is.

    Example:
        >>> with long_work("counting", "numbers") as advance:
        ...     advance(3, 0.5)
    """
    if _display is None:
        yield lambda done, share: None
    else:
        with _display(what, unit) as advance:
            yield advance
