"""What a Python program hears from the library: notes in the log, warnings at its own lines."""

import contextlib
import inspect
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path

from lgdgcn.errors import LGDNote, LGDWarning

__all__ = ["said_to_caller"]

_INSIDE = (str(Path(__file__).parent), contextlib.__file__)


@contextlib.contextmanager
def said_to_caller() -> Iterator[None]:
    """Let notes go to the logger ``lgdgcn``, and warnings point at the line that called us."""
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
    finally:
        caller = inspect.currentframe()
        while caller and caller.f_code.co_filename.startswith(_INSIDE):
            caller = caller.f_back
        for one in caught:
            if issubclass(one.category, LGDNote):
                logging.getLogger("lgdgcn").info("%s", one.message)
            elif caller is not None and issubclass(one.category, LGDWarning):
                where = caller.f_code.co_filename, caller.f_lineno
                warnings.warn_explicit(one.message, one.category, *where)
            else:
                warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
