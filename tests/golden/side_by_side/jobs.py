"""What is done with a tree, and how its outputs are kept and compared."""

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .differences import Difference, compare
from .spellings import Spelling
from .trees import Tree, machine

__all__ = ["RUN", "Call", "Compared", "Job", "compare_jobs"]

RUN = Path("run")  # folder of a run, within that of its job
DONE = "done.json"

Say = Callable[[str], None]


@dataclass(frozen=True)
class Call:
    """A command line.

    Attributes:
        words: The command line.
        name: Of the files that take what it prints.
        ranks: How many processes do it together.
        stop: A file and a number of lines, at which it is interrupted.
        code: The exit code it should have.
    """

    words: list[str]
    name: str
    ranks: int = 1
    stop: tuple[str, int] | None = None
    code: int = 0


@dataclass(frozen=True)
class Job:
    """Some command lines in a folder, one after the other, and what is read of their outputs.

    Attributes:
        name: Of the job and its folder.
        calls: The command lines, as a tree spells them.
        read: What is compared, from the folder.
    """

    name: str
    calls: Callable[[Spelling], list[Call]]
    read: Callable[[Path, Spelling], dict[str, Any]]


@dataclass
class Compared:
    """A row of the table: what one job has come to."""

    name: str
    seconds: dict[str, float | None] = field(default_factory=dict)  # by tree; None: kept
    differences: list[Difference] = field(default_factory=list)


def compare_jobs(
    jobs: Sequence[Job], old: Tree, new: Tree, folder: Path, say: Say
) -> list[Compared]:
    """Run all jobs in both trees at the same time, and compare what comes out.

    What is there of the old tree, from the same sources on the same machine, is used again.
    """
    where = {old.name: folder / f"old-{old.digest}", new.name: folder / "new"}

    def run_all(tree: Tree) -> list[float | None]:
        return [_run(job, tree, where[tree.name] / job.name, say) for job in jobs]

    with ThreadPoolExecutor(2) as both:
        seconds = dict(zip(where, both.map(run_all, (old, new)), strict=True))
    rows = []
    for number, job in enumerate(jobs):
        row = Compared(job.name, {name: seconds[name][number] for name in where})
        row.differences = _compared(job, old, new, where)
        rows.append(row)
    return rows


def _run(job: Job, tree: Tree, folder: Path, say: Say) -> float | None:
    """Do a job in an empty folder; returns the seconds, or None where it had been done before."""
    calls = [asdict(call) for call in job.calls(tree.spelling)]
    about = json.dumps([calls, tree.digest, machine()])
    key = hashlib.sha256(about.encode()).hexdigest()
    done = folder / DONE
    if tree.name == "old" and done.is_file():
        before = json.loads(done.read_text())
        if before["key"] == key and not before["failed"]:
            say(f"{tree.name}: {job.name}: kept from before")
            return None
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    total, failed = 0.0, ""
    for call in calls:
        code = call.pop("code")
        answer = tree.call(folder=str(folder.resolve()), **call)
        total += answer["seconds"]
        if any(one != code for one in answer["codes"]):
            lines = (folder / f"{call['name']}.err").read_text(errors="replace").splitlines()
            failed = f"{call['name']} ends with {answer['codes']}: {lines[-1] if lines else ''}"
            break
    done.write_text(json.dumps({"key": key, "calls": calls, "seconds": total, "failed": failed}))
    say(f"{tree.name}: {job.name}: {total:.1f} s{f', {failed}' if failed else ''}")
    return total


def _compared(job: Job, old: Tree, new: Tree, where: dict[str, Path]) -> list[Difference]:
    records, found = [], []
    for tree in (old, new):
        folder = where[tree.name] / job.name
        failed = json.loads((folder / DONE).read_text())["failed"]
        if not failed:
            try:
                records.append(job.read(folder, tree.spelling))
                continue
            except (OSError, ValueError, KeyError) as error:
                failed = f"{type(error).__name__}: {error}"
        found.append(Difference(f"the {tree.name} tree", failed))
    return found or [*compare(*records)]
