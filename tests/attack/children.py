"""Commands in forks of this process, which has everything loaded: cheap to start and to kill."""

import ctypes
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from cli.runner import Outcome
from lgdgcn.cli import main

__all__ = ["end_with_parent", "run"]

PR_SET_PDEATHSIG = 1


def run(*args: object, before: Callable[[], object] = lambda: None) -> Outcome:
    """Run ``lgdgcn ARGS`` in a child to its end.

    Args:
        *args: The command line.
        before: What the child does first.

    Returns:
        Its exit code, negative where a signal ended it, and what it printed.
    """
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder) / "out", Path(folder) / "err"
        pid = os.fork()
        if pid == 0:
            _child([*map(str, args)], out, err, before)
        try:
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        except BaseException:  # it hangs
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
        return Outcome(code, *(file.read_text(errors="replace") for file in (out, err)))


def end_with_parent() -> None:
    """Let this process be killed when the one that forked it ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _child(args: list[str], out: Path, err: Path, before: Callable[[], object]) -> NoReturn:
    end_with_parent()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    for number, file in ((0, os.devnull), (1, out), (2, err)):
        os.dup2(os.open(file, os.O_RDWR | os.O_CREAT, 0o666), number)
    sys.argv = ["lgdgcn", *args]
    code = 0
    try:
        before()
        main()
    except SystemExit as end:
        code = end.code or 0
    except BaseException:  # a Ctrl-C that nobody has handled: what a user would see
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
