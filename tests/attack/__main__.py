"""Run the attack and print its table: ``python -m attack --cases 20000 --kills 300``."""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is loaded: a process with threads cannot fork

from attack.parts import PARTS, guarded
from attack.verdict import FAILURES, Finding, Verdict
from attack.warm import warm_up

COUNTS = {
    "cases": (1000, "graph folders"),
    "runs": (100, "damaged run folders"),
    "kills": (30, "processes killed while training"),
    "signals": (50, "signals, closed pipes, full disks, bad targets"),
}


def main() -> int:
    options = _options()
    counts = _counts(options)
    if counts.keys() & {"damaged-run", "kill", "signal"}:
        warm_up()
    end = time.monotonic() + 60 * (options.minutes or 1e9)
    table: dict[str, Counter[Verdict | str]] = {}
    # the last case may be cut off while its commands still write
    with tempfile.TemporaryDirectory(prefix="attack-", ignore_cleanup_errors=True) as shared:
        if options.case is not None:
            return _repeat(options.part, options.seed, options.case, Path(shared))
        for number, (part, count) in enumerate(counts.items()):
            share = (end - time.monotonic()) / (len(counts) - number)  # of the time that is left
            findings = guarded(part, options.seed, range(count), Path(shared))
            table[part] = _collect(findings, count, share, f"--part {part} --seed {options.seed}")
    _say(_table(table))
    return int(any(row[verdict] for row in table.values() for verdict in FAILURES))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="attack", description=__doc__)
    for name, (count, meaning) in COUNTS.items():
        help = f"{meaning} (default: {count}, with --minutes as many as fit)"
        parser.add_argument(f"--{name}", type=int, help=help)
    parser.add_argument("--seed", type=int, default=0, help="of every random choice")
    parser.add_argument("--minutes", type=float, help="stop after so many, shared by the parts")
    parser.add_argument("--part", choices=PARTS, help="with --case: repeat one case")
    parser.add_argument("--case", type=int, help="its number")
    return parser.parse_args()


def _counts(options: argparse.Namespace) -> dict[str, int]:
    """How many cases of each part; of the kills, how many kills."""
    given = vars(options)
    asked = {
        name: given[name] if given[name] is not None else (10**9 if options.minutes else count)
        for name, (count, _) in COUNTS.items()
    }
    counts = {
        "round-trip": asked["cases"] - asked["cases"] // 2,
        "damaged-graph": asked["cases"] // 2,
        "damaged-run": asked["runs"],
        "kill": asked["kills"],
        "signal": asked["signals"],
    }
    return {part: count for part, count in counts.items() if count and options.part in (None, part)}


def _collect(
    findings: Iterable[Finding], count: int, seconds: float, part: str
) -> Counter[Verdict | str]:
    """Count the findings of one part and show its failures as they come."""
    row: Counter[Verdict | str] = Counter()
    start = time.monotonic()
    for index, finding in enumerate(findings):
        row[finding.verdict] += 1
        row["kills"] += finding.kills
        if finding.failed:
            _say(f'make attack ARGS="{part} --case {index}"')
            _say(f"    {finding.verdict.value}: {finding.reason[:400]}")
        if row["kills"] >= count or time.monotonic() - start > seconds:
            break
    row["seconds"] = round(time.monotonic() - start)
    return row


def _repeat(part: str, seed: int, index: int, shared: Path) -> int:
    """Run one case again."""
    (finding,) = guarded(part, seed, range(index, index + 1), shared)
    _say(f"{finding.verdict.value}: {finding.reason or '-'}")
    return int(finding.failed)


def _table(table: dict[str, Counter[Verdict | str]]) -> str:
    """The table in Markdown."""
    columns = [verdict.value for verdict in Verdict]
    lines = [["part", "cases", *columns, "seconds"]]
    lines += [["---", *["---:"] * (len(columns) + 2)]]
    for part, row in table.items():
        cases = str(sum(row[verdict] for verdict in Verdict))
        cases += f" ({row['kills']} kills)" if row["kills"] else ""
        counts = [str(row[verdict]) for verdict in Verdict]
        lines.append([part, cases, *counts, str(row["seconds"])])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
