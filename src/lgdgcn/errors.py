"""The few error types of the package; each knows the exit code the command line gives it."""

__all__ = [
    "CheckpointError",
    "DivergedError",
    "InputError",
    "LGDError",
    "LGDWarning",
    "StoppedError",
]


class LGDError(Exception):
    """Base of every error this package raises on purpose: one line that names cause and fix."""

    exit_code = 1


class InputError(LGDError, ValueError):
    """The user's input cannot be used: a graph, a setting, a path."""

    exit_code = 2


class CheckpointError(InputError):
    """A saved state cannot be used: damaged, of another kind, or from another run."""


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
