"""Ctrl-C, SIGTERM, a kill, a closed pipe, a full disk and bad folders, during every verb."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from signal import SIGINT, SIGKILL, SIGTERM

from attack.base_runs import Base
from attack.children import run
from attack.kills import difference
from attack.runs import errors_in, refusal
from attack.sabotage import (
    WHEN,
    at_function_call,
    at_system_call,
    closed_pipe,
    full_disk,
    full_output,
)
from attack.verdict import Finding, Verdict
from cli.runner import Outcome

__all__ = ["interrupted"]

ENDS = {SIGINT: (130,), SIGTERM: (143, -SIGTERM), SIGKILL: (-SIGKILL,)}


@dataclass
class Verb:
    """A command line, how to go on with it after an interruption, and what it must come to.

    Attributes:
        args: The command line.
        resume: What is added to go on, once its folder is there.
        out: What it writes.
        right: Says what is wrong with it once the command has ended well, if anything.
        whole: Whether an interrupted command leaves ``out`` as it was or complete.
    """

    args: list[object]
    out: Path
    right: Callable[[Path], str | None]
    resume: tuple[str, ...] = ()
    whole: bool = False

    def run(self, before: Callable[[], None] = lambda: None) -> Outcome:
        return run(*self.args, *(self.resume if self.out.exists() else ()), before=before)


def _verbs(base: Base, folder: Path) -> dict[str, Verb]:
    out = folder / "out"

    def same_as(answer: str) -> Callable[[Path], str | None]:
        expected = base.answer(answer, base.finished)
        return lambda path: None if path.read_bytes() == expected else "another answer"

    def has(*names: str) -> Callable[[Path], str | None]:
        return lambda path: next((f"no {n}" for n in names if not list(path.glob(n))), None)

    tune = ["tune", base.graph, "--model", "mlp", "--trials", 3, "--set", "epochs=3", "--out", out]
    return {
        "train": Verb(
            base.training(out), out, lambda p: difference(p, base.finished), ("--resume",)
        ),
        "predict": Verb(
            ["predict", base.finished, "--out", out], out, same_as("predict"), whole=True
        ),
        "measure": Verb(
            ["measure", base.finished, "--out", out], out, same_as("measure"), whole=True
        ),
        "explore": Verb(
            ["explore", base.finished, "--out", out], out, same_as("explore"), whole=True
        ),
        "tune": Verb(tune, out, has("*.toml", "trials.csv"), ("--resume",)),
        "reproduce": Verb(
            ["reproduce", "--quick", "table1", "--out", out], out, has("report.html", "report.md")
        ),
        "info": Verb(["data", "check", base.graph], out, lambda path: None),
        "list": Verb(["data", "list"], out, lambda path: None),
    }


def interrupted(random: Random, folder: Path, shared: Path) -> Finding:
    """Disturb a command, then run it again in peace: nothing is lost, and it ends well."""
    verbs = _verbs(Base(shared), folder)
    name = random.choice(sorted(verbs))
    kind = random.choice(sorted(DISTURBANCES))
    finding = DISTURBANCES[kind](verbs[name], random, folder)
    return Finding(finding.verdict, f"{name}, {kind}: {finding.reason}" if finding.failed else "")


def _signal(verb: Verb, random: Random, folder: Path) -> Finding:
    sent = random.choice([SIGINT, SIGTERM, SIGKILL])
    if random.random() < 0.5:
        before = partial(at_system_call, random.randint(1, 40), random.choice(WHEN), sent)
    else:
        before = partial(at_function_call, int(10 ** random.uniform(2, 5.3)), sent)
    old = _old_file(verb, random)
    outcome = verb.run(before)
    if outcome.code not in (0, 2, *ENDS[sent]):
        return Finding(Verdict.INTERNAL, f"{sent.name} gave {outcome.code}: {outcome.err[-300:]}")
    if "Traceback" in outcome.err or "internal error" in outcome.err:
        return Finding(Verdict.INTERNAL, f"{sent.name}: {outcome.err[-300:]}")
    return _again(verb, old, outcome)


def _closed_pipe(verb: Verb, random: Random, folder: Path) -> Finding:
    old = _old_file(verb, random)
    outcome = verb.run(closed_pipe)
    if errors_in(outcome.err):
        return Finding(Verdict.INTERNAL, f"not quiet, {outcome.code}: {outcome.err[-300:]}")
    return _again(verb, old, outcome)


def _full_output(verb: Verb, random: Random, folder: Path) -> Finding:
    """Standard output goes to a file on a full disk."""
    old = _old_file(verb, random)
    outcome = verb.run(full_output)
    return refusal(outcome) or _again(verb, old, outcome)


def _full_disk(verb: Verb, random: Random, folder: Path) -> Finding:
    """No file may grow beyond some size."""
    old = _old_file(verb, random)
    outcome = verb.run(partial(full_disk, int(10 ** random.uniform(3, 5))))
    return refusal(outcome) or _again(verb, old, outcome)


def _bad_target(verb: Verb, random: Random, folder: Path) -> Finding:
    """The output cannot be written: a file as parent, a full device, a folder in place."""
    if "--out" not in verb.args:
        return _signal(verb, random, folder)
    (folder / "file").write_text("mine")
    targets = [folder / "file" / "x", folder / "file" / "x" / "y"]
    if verb.whole:
        targets += [Path("/dev/full"), folder]
    else:
        targets += [folder / "file"]
    args = [random.choice(targets) if arg == verb.out else arg for arg in verb.args]
    outcome = run(*args)
    if (folder / "file").read_text() != "mine":
        return Finding(Verdict.LOST, "a file in the way was changed")
    if outcome.code == 0:
        return Finding(Verdict.WRONG, f"{args[-1]} cannot be written, but nothing was said")
    return refusal(outcome) or Finding(Verdict.CLEAN)


DISTURBANCES = {
    "signal": _signal,
    "closed pipe": _closed_pipe,
    "full output": _full_output,
    "full disk": _full_disk,
    "bad target": _bad_target,
}


def _old_file(verb: Verb, random: Random) -> bytes | None:
    """Now and then there is an earlier output."""
    if verb.whole and random.random() < 0.5:
        verb.out.write_text("old")
        return b"old"
    return None


def _again(verb: Verb, old: bytes | None, outcome: Outcome) -> Finding:
    """Nothing half-written is there, and the command, repeated, ends well."""
    now = verb.out.read_bytes() if verb.out.is_file() else None
    if verb.whole and outcome.code and now != old and (now is None or verb.right(verb.out)):
        return Finding(Verdict.LOST, "the output is neither the old one nor complete")
    again = verb.run()
    if again.code == 2 and verb.resume and verb.out.exists():  # nothing to resume yet: start
        started = run(*verb.args)
        if started.code == 2 and "finished" not in started.err:
            why = f"neither {verb.resume[0]} ({again.err}) nor a start ({started.err}) works"
            return Finding(Verdict.LOST, why)
        again = started
    if again.code:
        return Finding(Verdict.LOST, f"does not go on, {again.code}: {again.err[-300:]}")
    found = verb.right(verb.out)
    if found:
        return Finding(Verdict.WRONG, found)
    return Finding(Verdict.CLEAN if outcome.code else Verdict.SUCCESS)
