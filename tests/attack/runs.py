"""Damaged run folders: every command refuses in one line or does what it would have done."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from random import Random

import torch
from torch import Tensor

from attack.base_runs import Base
from attack.kills import FOREIGN, difference
from attack.run_damage import DAMAGES
from attack.verdict import Finding, Verdict, one_line_error
from cli.runner import Outcome, call, content
from lgdgcn import tensor_file
from lgdgcn.errors import CheckpointError

__all__ = ["damaged_run", "errors_in", "refusal"]

VERBS = ["resume", "resume", "train", "overwrite", "predict", "predict", "measure", "explore"]
OURS = ["model.safetensors", "checkpoint.safetensors", "config.toml", "metrics.jsonl"]
OURS += ["units.png", "measure.json", "explore.html", "checkpoint.previous.safetensors"]
UNSEALED = ("result.json", "metrics.jsonl", "config.toml", "run.lock")  # a flipped digit is a digit


def damaged_run(random: Random, folder: Path, shared: Path) -> Finding:
    """Damage a run, run a command on it, and look at what it says and what it has changed."""
    base = Base(shared)
    if random.random() < 0.15:
        return _not_a_run(random, folder, base)
    finished = random.random() < 0.6
    case = _Case(base, folder, finished, random.choice(VERBS) if finished else "resume")
    case.damage(random)
    before, around = content(case.run), content(case.others)
    outcome = _command(case.verb, base, case.run, case.out)
    finding = case.lost(around) or refusal(outcome)
    if finding is None:
        finding = case.changed_by_refusal(before) if outcome.code else case.wrong()
    return _described(str(case), finding, outcome)


def _not_a_run(random: Random, folder: Path, base: Base) -> Finding:
    """A folder with files of our names that we did not make: they all stay as they are."""
    (folder / "run").mkdir()
    for name in random.sample(OURS, random.randint(1, 4)):
        (folder / "run" / name).write_text("mine\n")
    before = content(folder / "run")
    verb = random.choice(["train", "overwrite", "resume"])
    outcome = _command(verb, base, folder / "run", folder / "out")
    after = content(folder / "run")
    lost = [name for name in before if after.get(name) != before[name]]
    finding = Finding(Verdict.LOST, f"changed {lost}") if lost else refusal(outcome)
    return _described(f"{verb} in a folder that is no run", finding, outcome)


def _command(verb: str, base: Base, run: Path, out: Path) -> Outcome:
    if verb in ("predict", "measure", "explore"):
        return call(verb, run, "--out", out)
    return call(*base.training(run), *([] if verb == "train" else [f"--{verb}"]))


def refusal(outcome: Outcome) -> Finding | None:
    """What is wrong with the end of a command, if anything: its code or its message."""
    if outcome.code == 0:
        return None
    if outcome.code not in (2, 3):
        return Finding(Verdict.INTERNAL, f"exit code {outcome.code}: {outcome.err[-300:]}")
    finding = one_line_error("\n".join(errors_in(outcome.err)))
    return finding if finding.failed else None


def errors_in(text: str) -> list[str]:
    """The lines on standard error that are neither warnings nor progress (``20 %: …``)."""
    lines = text.splitlines()
    return [line for line in lines if not re.match(r"lgdgcn: warning: |[0-9]+ %: ", line)]


def _described(case: str, finding: Finding | None, outcome: Outcome) -> Finding:
    if finding is None:
        return Finding(Verdict.CLEAN if outcome.code else Verdict.SUCCESS)
    return Finding(finding.verdict, f"{case}: {finding.reason}")


@dataclass
class _Case:
    """A copy of a run to be damaged, with files of others in it and beside it."""

    base: Base
    folder: Path
    finished: bool
    verb: str
    kind: str = ""
    changed: str = ""

    def __post_init__(self) -> None:
        self.run, self.others, self.out = (self.folder / name for name in ("run", "others", "out"))
        shutil.copytree(self.base.finished if self.finished else self.base.stopped, self.run)
        shutil.copytree(self.base.other, self.others / "run")
        (self.others / "folder").mkdir()
        (self.others / "folder" / "mine.safetensors").write_text("mine")
        (self.others / "thesis.txt").write_text("three years of work\n")

    def __str__(self) -> str:
        state = "finished" if self.finished else "stopped"
        return f"{self.verb} of a {state} run, {self.kind}: {self.changed}"

    def damage(self, random: Random) -> None:
        self.kind = random.choice(sorted(DAMAGES))
        self.changed = DAMAGES[self.kind](self.run, random, self.others)
        self.foreign = random.sample(FOREIGN, 2)
        for name in self.foreign:
            (self.run / name).parent.mkdir(exist_ok=True)
            (self.run / name).write_text("mine")

    def lost(self, around: dict[str, bytes]) -> Finding | None:
        """Whether a file that is not the run's was changed, or a payload ran."""
        if (self.others / "marker").exists():
            return Finding(Verdict.LOST, "a payload ran")
        now = content(self.others)
        changed = [name for name in around.keys() | now.keys() if around.get(name) != now.get(name)]
        inside = content(self.run)
        changed += [name for name in self.foreign if inside.get(name) != b"mine"]
        return Finding(Verdict.LOST, f"changed or removed {changed}") if changed else None

    def changed_by_refusal(self, before: dict[str, bytes]) -> Finding | None:
        """Whether a command that refused has changed the run all the same."""
        after = content(self.run)
        free = ["run.lock", "metrics.jsonl"]  # given back; rid of a torn line
        if not self.finished:  # went on from its checkpoint as far as it could
            free += [name for name in before if name.startswith("checkpoint.")]
        lost = [name for name in before if after.get(name) != before[name] and name not in free]
        return Finding(Verdict.LOST, f"refused, but changed {lost}") if lost else None

    def wrong(self) -> Finding | None:
        """Whether a command that went through gave another answer than on the sound run."""
        found = self._wrong()
        return Finding(Verdict.WRONG, found) if found else None

    def _wrong(self) -> str | None:
        if self.verb == "train":
            return "trained over a run without being told to"
        if self.verb in ("predict", "measure", "explore"):
            return self._wrong_answer()
        try:
            tensors, _ = tensor_file.load(self.run / "model.safetensors", "model")
        except CheckpointError as error:
            return f"said to be finished, but {error}"
        if self.kind == "forged" and not self.finished:
            # a checkpoint with a new sha256: nobody can tell, but no NaN may come out
            finite = all(tensor.isfinite().all() for tensor in tensors.values())
            return None if finite else "weights that are not finite were kept"
        if self.verb == "resume" and self.finished:
            same = _same_tensors(tensors, self.base.finished)
            return None if same else "said to be finished, with another model"
        ignore = {self.changed} if self.changed in UNSEALED else set()
        return difference(self.run, self.base.finished, ignore)

    def _wrong_answer(self) -> str | None:
        answer = self.out.read_bytes()
        if self.verb == "explore" and self.changed in UNSEALED:
            return None  # it shows what the unsealed files say
        same = answer == self.base.answer(self.verb, self.base.finished)
        return None if same else "another answer than on the sound run"


def _same_tensors(tensors: dict[str, Tensor], run: Path) -> bool:
    expected, _ = tensor_file.load(run / "model.safetensors", "model")
    same = (torch.equal(tensors[name], expected[name]) for name in expected)
    return tensors.keys() == expected.keys() and all(same)
