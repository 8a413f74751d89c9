"""``python -m lgdgcn.benchmark '{"size": "cora", "layers": 4, "device": "cuda"}'``.

The same measurement as ``lgdgcn bench --json`` where only torch and the numerical libraries are
installed. Further keys are those of :class:`~lgdgcn.benchmark.workload.Workload`, and ``rows``.
"""

import json
import sys

from lgdgcn.benchmark.rows import ROWS
from lgdgcn.benchmark.run import benchmark
from lgdgcn.benchmark.workload import Workload


def main() -> None:
    """Measure the workload given as JSON and print the report."""
    arguments = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    rows = arguments.pop("rows", tuple(ROWS))
    report = benchmark(
        Workload(row="", **arguments), rows, on_start=lambda what: sys.stderr.write(f"{what}\n")
    )
    sys.stdout.write(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
