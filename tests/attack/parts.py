"""The parts of the attack, and how one case of a part is run: alone, or in a guarded process."""

import json
import os
import resource
import signal
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from types import FrameType

from attack import folders, kills, runs, signals
from attack.children import end_with_parent
from attack.verdict import Finding, Verdict

__all__ = ["PARTS", "guarded", "run_case"]

Case = Callable[[Random, Path, Path], Finding]
PARTS: dict[str, Case] = {
    "round-trip": lambda random, folder, shared: folders.round_trip(random, folder),
    "damaged-graph": lambda random, folder, shared: folders.damaged(random, folder),
    "damaged-run": runs.damaged_run,
    "kill": kills.killed,
    "signal": signals.interrupted,
}
LONGEST = 150  # seconds a case may take before it counts as hanging
MEMORY = 4 << 30  # bytes a case may ask for beyond what is loaded


class HangingError(BaseException):
    """A case took too long; nothing that is attacked may catch this."""


def run_case(part: str, seed: int, index: int, shared: Path) -> Finding:
    """Run one case: a function of the part, the seed and its index.

    Args:
        part: A key of :data:`PARTS`.
        seed: Seed of the whole attack.
        index: Which case.
        shared: Folder that is kept for all cases of the attack.
    """
    random = Random(f"{seed}:{part}:{index}")
    with tempfile.TemporaryDirectory(dir=shared) as folder:
        return PARTS[part](random, Path(folder), shared)


def guarded(part: str, seed: int, indices: range, shared: Path) -> Iterator[Finding]:
    """Run cases in a forked process with bounded memory; a crash is a finding, not the end."""
    while indices:
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            _work(part, seed, indices, shared, write)
        os.close(write)
        done = 0
        with os.fdopen(read) as lines:
            try:
                for line in lines:
                    verdict, *details = json.loads(line)
                    done += 1
                    yield Finding(Verdict(verdict), *details)
            except GeneratorExit:  # enough
                os.kill(pid, signal.SIGKILL)
                raise
            finally:
                _, status = os.waitpid(pid, 0)
        if done < len(indices):
            done += 1
            code = os.waitstatus_to_exitcode(status)
            yield Finding(Verdict.INTERNAL, f"the process died, exit code {code}")
        indices = indices[done:]


def _work(part: str, seed: int, indices: range, shared: Path, write: int) -> None:
    """The forked process: one line per case; never returns."""
    end_with_parent()
    signal.signal(signal.SIGALRM, _hanging)
    tempfile.tempdir = str(shared)  # cleared away by the parent, however this process ends
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    code = 0
    try:
        for index in indices:
            signal.alarm(LONGEST)
            try:
                finding = run_case(part, seed, index, shared)
            except HangingError:
                finding = Finding(Verdict.INTERNAL, f"still running after {LONGEST} seconds")
            signal.alarm(0)
            line = json.dumps([finding.verdict.value, finding.reason, finding.kills]) + "\n"
            os.write(write, line.encode())
    except BaseException:
        traceback.print_exc()
        code = 70  # a fault of the attack itself
    os._exit(code)


def _hanging(number: int, frame: FrameType | None) -> None:
    raise HangingError
