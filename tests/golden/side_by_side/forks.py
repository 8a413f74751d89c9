"""Command lines in forks of one process that has loaded and compiled everything: cheap to start.

A script of its own: ``python forks.py FOLDER`` with ``PYTHONPATH`` set to a tree's sources. The
first line of stdin is a JSON list of command lines that are run in this process, in the folder, so
that forks need not load what these have loaded. Every further line is a call, see :func:`_call`;
it is answered by one line that says the exit codes and the seconds.
"""

import json
import os
import runpy
import signal
import socket
import sys
import time
import traceback
from pathlib import Path
from typing import Any

LONGEST = 1200.0  # seconds a call may take
LOOK = 0.01  # seconds between two looks at a fork

os.environ.setdefault("OMP_NUM_THREADS", "1")  # a process with threads cannot fork


def main() -> None:
    os.chdir(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w")
    _print_to("warm-up.out", "warm-up.err")
    for words in json.loads(sys.stdin.readline()):
        if code := _run(words):
            answers.write(json.dumps({"failed": f"{' '.join(words)}: exit code {code}"}) + "\n")
            return
    for line in sys.stdin:
        answers.write(json.dumps(_call(**json.loads(line))) + "\n")
        answers.flush()


def _call(
    words: list[str],
    folder: str,
    name: str,
    ranks: int,
    stop: tuple[str, int] | None,
) -> dict[str, Any]:
    """Run a command line in a fork, or in one for each rank, and wait for all of them.

    Args:
        words: The command line, or a Python file and its arguments.
        folder: Where it runs.
        name: Of the files there that take what is printed: ``NAME.out`` and ``NAME.err``.
        ranks: How many processes do it together, as torchrun would start them.
        stop: A file and a number of lines: once it has them, the forks are interrupted.
    """
    start = time.monotonic()
    running = {}
    for rank, more in enumerate(_environments(ranks)):
        running[_fork(words, folder, f"{name}{f'-{rank}' if rank else ''}", more)] = rank
    codes = [0] * ranks
    while running:
        for pid, rank in [*running.items()]:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                codes[rank] = os.waitstatus_to_exitcode(status)
                del running[pid]
        if stop and _has_lines(Path(folder, stop[0]), stop[1]):
            stop = _signal(running, signal.SIGINT)
        if time.monotonic() > start + LONGEST:
            _signal(running, signal.SIGKILL)
        time.sleep(LOOK)
    return {"codes": codes, "seconds": time.monotonic() - start}


def _environments(ranks: int) -> list[dict[str, str]]:
    if ranks == 1:
        return [{}]
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        meet = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(probe.getsockname()[1])}
    meet["WORLD_SIZE"] = str(ranks)
    return [meet | {"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(ranks)]


def _fork(words: list[str], folder: str, name: str, more: dict[str, str]) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.chdir(folder)
        os.environ.update(more)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        _print_to(f"{name}.out", f"{name}.err")
        code = _run(words)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # a tree that fails is a result, too
        traceback.print_exc()
    finally:
        os._exit(code)


def _run(words: list[str]) -> int:
    """Run ``python FILE …`` or ``python -m lgdgcn …`` in this process; returns its exit code."""
    is_file = words[0].endswith(".py")
    sys.argv = words if is_file else ["lgdgcn", *words]
    try:
        if is_file:
            runpy.run_path(words[0], run_name="__main__")
        else:
            runpy.run_module("lgdgcn", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _print_to(out: str, err: str) -> None:
    for number, file in ((1, out), (2, err)):
        os.dup2(os.open(file, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o666), number)


def _has_lines(file: Path, lines: int) -> bool:
    return file.is_file() and file.read_bytes().count(b"\n") >= lines


def _signal(running: dict[int, int], number: int) -> None:
    for pid in running:
        os.kill(pid, number)


if __name__ == "__main__":
    main()
