"""The few error types of the package; each knows the exit code the command line gives it."""

import re

__all__ = [
    "CheckpointError",
    "DivergedError",
    "InputError",
    "LGDError",
    "LGDNote",
    "LGDWarning",
    "StoppedError",
    "UnlabelledError",
    "one_line",
    "printable",
]

_LONGEST = 570  # characters; with what a caller puts in front, a line of less than 600
_LONG_WORD = re.compile(r"\S{100,}")


class LGDError(Exception):
    """Base of every error this package raises on purpose: one line that names cause and fix."""

    exit_code = 1


class InputError(LGDError, ValueError):
    """The user's input cannot be used: a graph, a setting, a path."""

    exit_code = 2


class CheckpointError(InputError):
    """A saved state cannot be used: damaged, of another kind, or from another run."""


class UnlabelledError(InputError):
    """No node of a graph has a label, which training needs."""


class DivergedError(LGDError, ArithmeticError):
    """The loss is not finite, or exploded so that nothing was learned; a checkpoint is kept."""

    exit_code = 3


class StoppedError(LGDError):
    """Training was asked to stop by a signal and has saved its state.

    Args:
        message: What was saved and how to go on.
        exit_code: 128 plus the signal number, as shells expect.
    """

    def __init__(self, message: str, exit_code: int = 130) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class LGDWarning(UserWarning):
    """Something about the input was adjusted; the result is still valid."""


class LGDNote(LGDWarning):
    """What was done with the user's data: nothing is wrong with them."""


def one_line(message: object) -> str:
    r"""The text of a message as one printable line that is no longer than a reader wants.

    Of a message that is too long, values without a space are cut first, and then its middle: the
    start says what is wrong, the end what to do.

    Example:
        >>> one_line("lr is 'fast\nor slow'")
        "lr is 'fast or slow'"
    """
    text = " ".join(_cut(str(message), 50 * _LONGEST).splitlines())
    text = printable(text)
    if len(text) > _LONGEST:
        text = _LONG_WORD.sub(lambda word: _cut(word[0], 90), text)
    return _cut(text, _LONGEST)


def printable(text: str) -> str:
    r"""A text without control characters, which would steer a terminal; line ends stay.

    Example:
        >>> printable("a\x1b[2Jb")
        'a\\x1b[2Jb'
    """
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def _cut(text: str, length: int) -> str:
    """Leave out the middle of a text that is too long."""
    half = (length - 3) // 2
    return text if len(text) <= length else f"{text[:half]}...{text[-half:]}"
