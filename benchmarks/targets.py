"""The speeds this project set out to reach, measured one by one: a Markdown table on stdout.

``python benchmarks/targets.py cpu`` or ``cuda`` needs torch and the numerical libraries only; from
a checkout that is not installed, with ``PYTHONPATH=src``. ``$LGDGCN_DATA`` says where the graphs
are. A word in the name of a target, given as the second argument, picks some of them.
"""

import json
import sys
from collections.abc import Callable

from measuring import number
from step import growth, measured


def measure(row: str, size: str, layers: int, device: str, **more: object) -> dict:
    result = measured(row, size, layers=layers, device=device, **more)
    print(json.dumps({"size": size, "layers": layers, "row": row, **result}), file=sys.stderr)
    return result


def told(result: dict) -> str:
    if "left_out" in result:
        return result["left_out"]
    best, peak = result["min_ms"] / result["members"], result["peak_bytes"] / 1e6
    return f"{number(result['member_ms'])} ms (fastest {number(best)}), {number(peak)} MB"


def against(other: str, size: str, layers: int) -> str:
    slow, fast = (measure(row, size, layers, "cpu") for row in (other, "fast"))
    text = f"{told(fast)}; {other}: {told(slow)}"
    if "left_out" in slow or "left_out" in fast:
        return text
    keys = ("median_ms", "min_ms", "peak_bytes")
    median, best, memory = (number(slow[key] / fast[key]) for key in keys)
    return f"{text}; {other} takes {median}× the time (fastest {best}×), {memory}× the memory"


def ours(size: str) -> str:
    """Our model's step beside a plain GCN's, on a CPU."""
    plain, own = (measure(row, size, 1, "cpu") for row in ("gcn-sparse", "ours"))
    text = f"{told(own)}; GCN: {told(plain)}"
    if "left_out" in plain or "left_out" in own:
        return text
    median, best = (number(own[key] / plain[key]) for key in ("median_ms", "min_ms"))
    return f"{text}; {median}× its time (fastest {best}×)"


def growing() -> str:
    (line,) = growth("cpu", ["fast"])
    points = [f"{p['nodes']:,}: {number(p.get('median_ms'))} ms" for p in line["points"]]
    slopes = f"exponent {number(line['exponent'])} (last two {number(line['last_exponent'])})"
    return f"{slopes}; {', '.join(points)}"


def million() -> str:
    settings = {"k": 8, "factors": 4, "hidden_channels": 64}
    return told(measure("fast", "1000000", 1, "cuda", degree=10, settings=settings, seconds=10.0))


TARGETS: dict[str, list[tuple[str, str, Callable[[], str]]]] = {
    "cpu": [
        ("Cora, 4 layers", "dense ≥ 100× the time, ≥ 10× the memory",
         lambda: against("dense", "cora", 4)),
        ("Cora, 1 layer", "≤ 2.5× GCN", lambda: against("gcn-sparse", "cora", 1)),
        ("Pubmed, 1 layer", "≤ 400 ms, ≤ 1.5 GB",
         lambda: told(measure("fast", "pubmed", 1, "cpu"))),
        ("Cora, ours (S 4, K 8)", "≤ 2.5× GCN", lambda: ours("cora")),
        ("Pubmed, ours (S 4, K 5)", "≤ 4× GCN", lambda: ours("pubmed")),
        ("growth in N", "exponent ≤ 1.3 up to 200k", growing),
    ],
    "cuda": [
        ("Cora, 4 layers", "≤ 1.0 ms", lambda: told(measure("fast", "cora", 4, "cuda"))),
        ("Cora, 4 layers, population of 64", "≤ 0.12 ms per member",
         lambda: told(measure("population-64", "cora", 4, "cuda"))),
        ("Pubmed, 1 layer", "≤ 4 ms, ≤ 500 MB",
         lambda: told(measure("fast", "pubmed", 1, "cuda"))),
        ("Cora, ours (S 4, K 8)", "≤ 2 ms", lambda: told(measure("ours", "cora", 1, "cuda"))),
        ("Cora, ours, population of 64", "≤ 0.3 ms per member",
         lambda: told(measure("ours-population-64", "cora", 1, "cuda"))),
        ("Pubmed, ours (S 4, K 5)", "≤ 10 ms",
         lambda: told(measure("ours", "pubmed", 1, "cuda"))),
        ("1M nodes, 10M edges, k = 8, 1 layer", "≤ 8 s, ≤ 60 GB", million),
    ],
}  # fmt: skip


def main() -> None:
    device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
    word = sys.argv[2] if len(sys.argv) > 2 else ""
    print("| work | bar | measured |\n| --- | --- | --- |")
    for work, bar, work_out in TARGETS[device]:
        if word in work:
            print(f"| {work} | {bar} | {work_out()} |", flush=True)


if __name__ == "__main__":
    main()
