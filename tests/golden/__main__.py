"""Record or check what must not change: ``cd tests && python -m golden check``."""

import argparse
import importlib
import sys
import time
from pathlib import Path

from golden import PARTS, reader

SHOWN = 40  # differences of one part


def main() -> int:
    """Run the command line; 1 if something differs."""
    parser = argparse.ArgumentParser(prog="golden", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb, meaning in (("record", "write down what is so"), ("check", "compare with it")):
        parts = verbs.add_parser(verb, help=meaning)
        parts.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    shown = verbs.add_parser("show", help="write the files of a case of the reader to a folder")
    shown.add_argument("part", choices=["reader"])
    shown.add_argument("case", help="such as drawn/0012")
    shown.add_argument("--to", type=Path, required=True, help="a new folder")
    options = parser.parse_args()
    if options.verb == "show":
        _say(*reader.show(options.case, options.to))
        return 0
    if unknown := {*options.parts} - {*PARTS}:
        parser.error(f"no part {min(unknown)}; choose from {', '.join(PARTS)}")
    return max(_run(options.verb, name) for name in options.parts or PARTS)


def _run(verb: str, name: str) -> int:
    part, start = importlib.import_module(f"golden.{name}"), time.monotonic()
    if name == "reader" and (absent := reader.skipped()):
        _say(f"reader: {len(absent)} cases are left out, as $LGDGCN_DATA has no {absent[0]}")
    if verb == "record":
        part.record()
        _say(f"{name}: recorded in {time.monotonic() - start:.0f} s")
        return 0
    found = part.differences()
    _say(*found[:SHOWN])
    more = f", of which {SHOWN} are shown" if len(found) > SHOWN else ""
    _say(f"{name}: {len(found)} differences{more}, in {time.monotonic() - start:.0f} s")
    return int(bool(found))


def _say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
