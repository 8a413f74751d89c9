"""Run an older tree and this one side by side, and print what differs, and in which digit.

``python tests/golden/compare.py OLD [PART ...]``, where OLD is a folder with another commit's tree,
such as a ``git worktree``, or the name of a commit. The exit code is 0 if nothing differs, 1
otherwise; timings never fail. README.md in this folder says what each part does.
"""

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from side_by_side.answers import answer_jobs
from side_by_side.differences import Difference
from side_by_side.digits import ordinal
from side_by_side.jobs import Compared, Job, compare_jobs
from side_by_side.speed import compare_speed
from side_by_side.trainings import training_jobs
from side_by_side.trees import Tree, checkout, data_folder
from side_by_side.typed import edge_jobs

ROOT = Path(__file__).parents[2]
PARTS = ("trainings", "answers", "edges", "speed")


def main() -> int:
    options = _options()
    with tempfile.TemporaryDirectory(prefix="side-by-side-") as temporary:
        keep = Path(options.keep or temporary).resolve()
        (keep / "trees").mkdir(parents=True, exist_ok=True)
        path = checkout(options.old, keep / "trees")
        with (
            Tree("old", path, keep / "old-process") as old,
            Tree("new", ROOT, keep / "new-process") as new,
        ):
            _say(f"old: {old.path} (sources {old.digest})")
            _say(f"new: {new.path} (sources {new.digest})")
            if old.digest == new.digest:
                _say("both have the same sources: what differs is chance")
            if data_folder() is None:
                _say("no benchmark graphs: what needs them is left out; set LGDGCN_DATA")
            return _compare(options, old, new, keep)


def _compare(options: argparse.Namespace, old: Tree, new: Tree, keep: Path) -> int:
    rows: list[tuple[str, Compared]] = []
    lines: list[str] = []
    for part in options.parts:
        start = time.monotonic()
        if part == "speed":
            lines += compare_speed(
                old, new, keep, _say,
                device=options.device, repeats=options.repeats, word=options.rows,
                quick=options.quick,
            )  # fmt: skip
        else:
            jobs = _jobs(part, keep / "graphs", options.quick)
            rows += [(part, row) for row in compare_jobs(jobs, old, new, keep / part, _say)]
        _say(f"{part}: {time.monotonic() - start:.0f} s")
    differences = [f"{row.name}: {one}" for _, row in rows for one in row.differences]
    (keep / "differences.txt").write_text("".join(f"{line}\n" for line in differences))
    _say("\n".join(["", *_table(rows), *lines]))
    differing = sum(bool(row.differences) for _, row in rows)
    if rows:
        kept = f"; all of it: {keep / 'differences.txt'}" if options.keep else ""
        said = f"{differing} of {len(rows)} differ{kept}" if differing else "nothing differs"
        _say(f"\n{said}")
    return int(differing > 0)


def _jobs(part: str, graphs: Path, quick: bool) -> list[Job]:
    if part == "trainings":
        return training_jobs(graphs, quick=quick)
    return answer_jobs(graphs) if part == "answers" else edge_jobs(graphs, quick=quick)


def _table(rows: Sequence[tuple[str, Compared]]) -> list[str]:
    """A row for each job, and below it what differs."""
    if not rows:
        return []
    width = max(len(row.name) for _, row in rows)
    lines = [f"{'part':10} {'what':{width}} {'old s':>7} {'new s':>7}  differs"]
    for part, row in rows:
        seconds = [_seconds(row.seconds[name]) for name in ("old", "new")]
        said = f"{len(row.differences)} things{_worst(row.differences)}" if row.differences else "-"
        lines.append(f"{part:10} {row.name:{width}} {' '.join(seconds)}  {said}")
        lines += _by_output(row.differences)
    return lines


def _by_output(differences: Sequence[Difference]) -> list[str]:
    """A line for each output that differs: how much, and what differs first."""
    outputs: dict[str, list[Difference]] = {}
    for one in differences:
        outputs.setdefault(re.split(r"[/\[]", one.where)[0], []).append(one)
    lines = []
    for name, found in outputs.items():
        first = str(found[0]).removeprefix(name).lstrip("/")
        many = f"{name}: {len(found)}{_worst(found)}; first, {first}"
        lines.append(f"    {many if len(found) > 1 else found[0]}")
    return lines


def _worst(differences: Sequence[Difference]) -> str:
    digits = [one.digit for one in differences if one.digit]
    return f", from the {ordinal(min(digits))} digit on" if digits else ""


def _seconds(spent: float | None) -> str:
    return f"{'kept' if spent is None else f'{spent:.1f}':>7}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", help="folder of the other tree, or a commit")
    parser.add_argument(
        "parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}; all by default"
    )
    parser.add_argument("--quick", action="store_true", help="no timings, no large graphs")
    parser.add_argument(
        "--keep", help="folder for all outputs; those of the old tree are used again"
    )
    parser.add_argument("--device", default="cpu", help="of the timings: cpu or cuda")
    parser.add_argument("--repeats", type=int, default=3, help="timings of each tree")
    parser.add_argument("--rows", default="", metavar="WORD", help="timings with it in their name")
    options = parser.parse_args()
    if unknown := [part for part in options.parts if part not in PARTS]:
        parser.error(f"part is {unknown[0]!r}; choose from {', '.join(PARTS)}")
    known = [part for part in PARTS if not (options.quick and part == "speed")]
    options.parts = options.parts or known
    return options


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
