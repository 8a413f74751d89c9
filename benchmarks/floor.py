"""The counted floor: bytes and FLOPs that one training step cannot do without, and their time here.

Counted is the released model as the fast backends compute it: one sparse product and its weight
gradient, per layer one pass over the edges forward and one backward that repeats the forward
iterations, one exact brute-force search, averaging along the latent graph, the losses, Adam. Every
array is read or written once per part (neighbours come from cache); numbers and indices have four
bytes. A multiplication, an addition, a comparison and an exponential are one FLOP each. A part
takes at least the larger of bytes / copy bandwidth and FLOPs / matrix rate; the floor is the sum
of the parts. A search that prunes does less than this count, so a share of the floor above 100 %
is possible on large graphs.

Of our model is counted one sparse product per view (each has its own dropout) and its weight
gradient, K hops of the hidden channels there and back, the class units, the consistency and edge
losses, Adam; no routing and no structure, which is found anew only every so many epochs.
"""

import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch_geometric.data import Data

from lgdgcn.config import Settings

WORD = 4  # bytes
REPETITIONS = 12  # of a copy or a product

Part = tuple[str, int, int]  # name, bytes, FLOPs


def shape_of(data: Data, settings: Settings, *, ours: bool) -> dict[str, int]:
    """The sizes that decide how much work a step is."""
    sparse, labels = data.x.layout == torch.sparse_csr, int(data.y.max()) + 1
    graph = {
        "nodes": data.x.size(0),
        "edges": data.edge_index.size(1),
        "features": data.x.size(1),
        "nonzeros": data.x.values().numel() if sparse else data.x.numel(),
    }
    if ours:
        classes = max(settings.hidden_channels, settings.num_factors * labels)
        hidden, hops, views = settings.encoder_channels, settings.hops, settings.views
        return {**graph, "classes": classes, "hidden": hidden, "hops": hops, "views": views}
    return {
        **graph,
        "classes": labels,
        "hidden": settings.hidden_channels,
        "factors": settings.num_factors,
        "iterations": settings.iterations,
        "layers": settings.num_layers,
        "k": settings.k,
    }


def count_released(**shape: int) -> list[Part]:
    """Count the parts of a training step of the released model."""
    s = SimpleNamespace(**shape)
    units, weight, d = s.nodes * s.hidden, s.features * s.hidden, s.hidden // s.factors
    scores, head = s.nodes * s.classes, s.hidden * s.classes
    structure, listed = s.edges + s.nodes, s.factors * s.nodes * s.k
    parameters = (s.features + 1) * s.hidden + (s.hidden + 1) * s.classes

    stored = 2 * s.nonzeros + s.nodes  # values, columns, row boundaries
    projection = 2 * (stored + weight + units)  # backward: gradient of the units in, of weight out
    # one multiply-add per stored feature, twice; bias, ReLU, unit length; and back
    projecting = 2 * (2 * s.nonzeros * s.hidden) + (5 + 5) * units

    # backward: both directions; units, gradient in, two shares out
    routing = s.layers * ((structure + 2 * units) + (2 * structure + 4 * units))
    score = 2 * s.edges * s.hidden + 4 * s.edges * s.factors  # products; exp, sum, divide, max
    spread = 2 * s.edges * s.hidden
    once = s.iterations * spread + (s.iterations - 1) * (score + 4 * units)  # uniform start
    # back: of spread, towards probability and neighbour; of score, towards unit and neighbour
    back = s.iterations * 2 * spread + (s.iterations - 1) * (2 * score + 4 * units)
    between = (s.layers - 1) * (4 + 5) * units  # unit length of a layer's output; and back

    # one product serves both ends; a comparison for each
    searching = s.factors * s.nodes * (s.nodes - 1) // 2 * (2 * d + 2)
    # build: lists in; sources and weights out. At least: every edge listed by both ends
    averaging = 3 * listed + 2 * (2 * listed + 2 * units)
    statistics = 2 * units + 2 * units * d  # mean, centring, covariance
    space = units + 2 * units * d + 2 * units + 2 * units * d  # distance; and back
    quadratic = s.factors * units * (2 * d + 5)  # every unit under every component; and back
    volume = 5 * s.nodes * s.factors**3  # products, elimination, inverse
    return [
        ("projection", WORD * projection, projecting),
        ("routing", WORD * routing, s.layers * (2 * once + back) + between),
        ("nearest neighbours", WORD * (units + 2 * listed), searching),  # points in; lists out
        ("latent graph", WORD * averaging, 2 * (2 * s.k * units + 2 * units)),
        # units twice (the statistics come first), their gradient once
        ("losses", WORD * 3 * units, statistics + space + quadratic + volume),
        ("classifier", WORD * (3 * units + 2 * scores + 2 * head),
         3 * (2 * units * s.classes) + 6 * scores),
        ("Adam", WORD * 7 * parameters, 14 * parameters),  # four arrays in, three out
    ]  # fmt: skip


def count_ours(**shape: int) -> list[Part]:
    """Count the parts of a training step of our model."""
    s = SimpleNamespace(**shape)
    hidden, classes = s.views * s.nodes * s.hidden, s.views * s.nodes * s.classes
    weight, stored = s.features * s.hidden, s.views * (2 * s.nonzeros + s.nodes)
    hops = s.hops * (s.edges + s.nodes + 3 * hidden)  # of a hop in; of a hop and the mean out
    sums = s.hops * (2 * (s.edges + s.nodes) * s.views * s.hidden + hidden)
    head = 3 * (2 * hidden * s.classes)  # product, gradients of both
    losses = 8 * classes + 2 * s.views * s.edges  # softmax, mean of views, agreement; and back
    ends = 2 * (2 * s.views * s.edges * s.classes)
    parameters = (s.features + s.classes + 1) * s.hidden + s.classes
    return [
        ("projection", WORD * 2 * (stored + weight + hidden),
         2 * (2 * s.views * s.nonzeros * s.hidden)),
        ("propagation", WORD * 2 * hops, 2 * sums),
        ("class units", WORD * (4 * hidden + 2 * classes), head + 6 * classes),
        ("losses", WORD * losses, 20 * classes + ends),
        ("Adam", WORD * 7 * parameters, 14 * parameters),
    ]  # fmt: skip


def floor(counted: list[Part], copying: float, multiplying: float) -> dict[str, Any]:
    """Turn counts into milliseconds on a machine with these rates per second."""
    parts = []
    for name, size, flops in counted:
        moving, computing = size / copying, flops / multiplying
        least = {"ms": 1e3 * max(moving, computing)}
        bound = "bytes" if moving > computing else "flops"
        parts.append({"name": name, "bytes": size, "flops": flops, **least, "bound": bound})
    return {"ms": sum(part["ms"] for part in parts), "parts": parts}


def machine(device: torch.device) -> dict[str, Any]:
    """Name processor, threads, accelerator and versions, and measure the rates."""
    return {
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name(device) if device.type == "cuda" else None,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "copy_bytes_per_s": copy_rate(device),
        "matrix_flops_per_s": matrix_rate(device),
    }


def copy_rate(device: torch.device) -> float:
    """Bytes per second, read plus written, of copying an array far larger than any cache."""
    numbers = (1 << 30 if device.type == "cuda" else 1 << 28) // 4
    source = torch.ones(numbers, device=device)
    target = torch.empty_like(source)
    return 2 * 4 * numbers / _fastest(lambda: target.copy_(source), device)


def matrix_rate(device: torch.device) -> float:
    """FLOPs per second of a product of large square float32 matrices, full precision."""
    size = 8192 if device.type == "cuda" else 1536
    a = torch.ones(size, size, device=device)
    out = torch.empty_like(a)
    torch.set_float32_matmul_precision("highest")
    return 2 * size**3 / _fastest(lambda: torch.mm(a, a, out=out), device)


def wait(device: torch.device) -> None:
    """Wait until a GPU has done what it was told to do."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _fastest(work: Callable[[], Any], device: torch.device) -> float:
    times = []
    for _ in range(REPETITIONS):
        wait(device)
        start = time.perf_counter()
        work()
        wait(device)
        times.append(time.perf_counter() - start)
    return min(times)


def _processor() -> str:
    cpu = Path("/proc/cpuinfo")
    lines = cpu.read_text(encoding="utf-8").splitlines() if cpu.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
