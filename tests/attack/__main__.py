"""Run the attack and print its table: ``python -m attack --cases 20000 --kills 300``."""

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from attack.parts import PARTS, guarded
from attack.verdict import FAILURES, Verdict


def main() -> int:
    options = _options()
    if options.case is not None:
        return _repeat(options.part, options.seed, options.case)
    end = time.monotonic() + 60 * options.minutes
    table: dict[str, Counter[Verdict | str]] = {}
    for part, count in _counts(options).items():
        table[part] = _attack(part, options.seed, count, end)
    _say(_table(table))
    return int(any(row[verdict] for row in table.values() for verdict in FAILURES))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="attack", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, help="graph folders")
    parser.add_argument("--runs", type=int, default=100, help="damaged run folders")
    parser.add_argument("--kills", type=int, default=30, help="processes killed while training")
    parser.add_argument("--signals", type=int, default=50, help="signals and full disks")
    parser.add_argument("--seed", type=int, default=0, help="of every random choice")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after so many")
    parser.add_argument("--part", choices=PARTS, help="with --case: repeat one case")
    parser.add_argument("--case", type=int, help="its number")
    return parser.parse_args()


def _counts(options: argparse.Namespace) -> dict[str, int]:
    """How many cases of each part; of the kills, how many kills."""
    counts = {
        "round-trip": options.cases - options.cases // 2,
        "damaged-graph": options.cases // 2,
        "damaged-run": options.runs,
        "kill": options.kills,
        "signal": options.signals,
    }
    return {part: count for part, count in counts.items() if count and options.part in (None, part)}


def _attack(part: str, seed: int, count: int, end: float) -> Counter[Verdict | str]:
    """Run one part and show its failures as they come."""
    row: Counter[Verdict | str] = Counter()
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="attack-") as shared:
        for index, finding in enumerate(guarded(part, seed, range(count), Path(shared))):
            row[finding.verdict] += 1
            row["kills"] += finding.kills
            if finding.failed:
                command = f"python -m attack --part {part} --seed {seed} --case {index}"
                _say(f"{command}\n    {finding.verdict.value}: {finding.reason[:400]}")
            if row["kills"] >= count or time.monotonic() > end:
                break
    row["seconds"] = round(time.monotonic() - start)
    return row


def _repeat(part: str, seed: int, index: int) -> int:
    """Run one case again, with its folder kept to look at."""
    shared = Path(tempfile.mkdtemp(prefix="attack-"))
    finding = next(guarded(part, seed, [index], shared))
    _say(f"{finding.verdict.value}: {finding.reason or '-'}")
    return int(finding.failed)


def _table(table: dict[str, Counter[Verdict | str]]) -> str:
    """The table, in the form that docs/reliability.md shows."""
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
