"""Does all that is meant for a GPU run on this one? One command, eight minutes at most.

``make gpu-check``, or ``PYTHONPATH=src python benchmarks/gpu_check.py [PART ...]`` from a checkout
that is not installed. It needs torch, PyTorch Geometric, Triton, numba, the numerical libraries and
pytest, and nothing else that the package depends on. Every part has processes of its own: one that
fails or hangs is named, and the next one begins. The exit code is the number of parts that failed.
``--device cpu`` tries the parts themselves where there is no GPU.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 480.0  # seconds for everything
LONGEST = 240.0  # seconds for one process
TESTS = [
    *(f"tests/kernels/gpu/test_{name}.py" for name in (
        "route", "nearest", "units", "gaussian", "aggregate", "products", "propagate", "sample")),
    "tests/kernels/test_products.py -k recorded",
    "tests/nn/test_routing.py",
    "tests/faults/test_numerics.py -k gpu",
    "tests/train/test_cuda_graph.py",
    "tests/large/test_sampler.py",
    "tests/train/test_trainer.py -k gpu_kernels",
    "tests/train/test_equivalence.py",
    "tests/train/test_views.py",
]  # fmt: skip


# The parts: each prints what it found, and raises if something is wrong


def batches(device: str) -> None:
    """Training in batches: on the device as on a CPU, drawn or from a table, resumed and scored."""
    import torch
    from graphs import write_scale_graph

    from lgdgcn.config import Settings
    from lgdgcn.data.packed import PackedGraph
    from lgdgcn.large.rows import mapped_graph, prepared_rows
    from lgdgcn.large.sampler import NeighbourLoader
    from lgdgcn.train.population import Training
    from lgdgcn.train.trained import TrainedModel
    from lgdgcn.train.trainer import Trainer

    plain = {"variant": "ours", "space": False, "diversity": False, "latent_graph": False}
    encoder = {"encoder_channels": 8, "hops": 2, "hop_weights": "learned", "iterations": 0}
    kinds = {
        "votes": {"iterations": 2},
        "table of hops": {**encoder, "views": 2},
        "drawn hops": {**encoder, "hop_table": "never"},
        "latent structure": {
            **encoder,
            "structure": "both",
            "structure_neighbours": 3,
            "refresh_every": 2,  # found within the three epochs below
        },
    }

    def final_scores(trainer, graph, own):
        present = trainer.model(0, "model")  # which epoch is best may hang on the last digit
        trained = TrainedModel(
            "lgdgcn", present, own, trainer.tasks[0], graph.classes, packed.num_features
        )
        return trainer.output(0, trained).logits.cpu()

    with tempfile.TemporaryDirectory() as folder:
        write_scale_graph(f"{folder}/graph", 3_000, 20_000)
        packed = PackedGraph.open(f"{folder}/graph")
        for where, graph in (("packed", mapped_graph(packed)), ("in memory", packed.to_data())):
            for name, kind in kinds.items():
                # steps so short that rounding does not grow
                own = Settings(
                    **plain, hidden_channels=16, batch_size=512, fan_out=4, lr=1e-4, **kind
                )

                def train(on: str, epochs: int, state=None, graph=graph, own=own):
                    loader = NeighbourLoader(prepared_rows(graph, own), own, on)
                    trainer = Trainer([Training("lgdgcn", own, 3, graph, state)], loader)
                    losses = [r.metrics["total"] for _ in range(epochs) for r in trainer.epoch()]
                    return trainer, losses

                on_cpu, want = train("cpu", 3)
                trainer, found = train(device, 3)
                near = {"rtol": 1e-3, "atol": 1e-3}
                torch.testing.assert_close(torch.tensor(found), torch.tensor(want), **near)
                _, rest = train(device, 1, train(device, 2)[0].state(0))
                torch.testing.assert_close(rest[0], found[2], rtol=1e-4, atol=1e-4)
                assert all(weight.isfinite().all() for weight in trainer.state(0).tensors.values())
                scores = [final_scores(one, graph, own) for one in (on_cpu, trainer)]
                # a near tie may give a few nodes other latent neighbours
                same = torch.isclose(*scores, rtol=1e-2, atol=1e-2).all(1).float().mean()
                assert same > 0.99, f"{same:.4f} of the nodes have the scores of a CPU"
                print(f"{where}, {name}: losses {found}")


def resume(device: str) -> None:
    """A run folder whose training was stopped goes on to the scores of one that was not."""
    from lgdgcn.config import preset, resolve
    from lgdgcn.data.source import GraphSource
    from lgdgcn.errors import StoppedError
    from lgdgcn.runs.fit import fit
    from lgdgcn.runs.folder import Run
    from lgdgcn.runtime import StopRequest, select_device

    class Later(StopRequest):
        asked = 0

        def __bool__(self) -> bool:
            self.asked += 1
            return self.asked > 3

    data = GraphSource("synthetic:nodes=400").load()
    for model, variant in (("lgdgcn", "ours"), ("lgdgcn", "paper"), ("gcn", "")):
        shipped = preset("synthetic", model, *([variant] if variant else []), multi_label=True)
        settings = resolve({**shipped, "epochs": 60, "patience": 60})
        on = select_device(device)

        def train(folder, model=model, settings=settings, on=on, **more):
            with folder as run:
                about = f'dataset = "synthetic"\nmodel = "{model}"\nseeds = 2\nsplit = "standard"'
                run.write_config(f"[run]\n{about}\n[settings]\n")
                return fit(lambda _: data, settings, model, [0, 1], on, run, **more)

        with tempfile.TemporaryDirectory() as place:
            whole, _ = train(Run.create(Path(place, "whole")))
            try:
                train(Run.create(Path(place, "run")), stop=Later())
                raise AssertionError("it was not stopped")
            except StoppedError as stopped:
                print(model, variant, stopped)
            rest, _ = train(Run.create(Path(place, "run"), resume=True))
        for one, other in zip(whole, rest, strict=True):
            assert one.epochs == other.epochs, (one.epochs, other.epochs)
            assert abs(one.val - other.val) < 0.02, (one.val, other.val)
        print(f"{model} {variant}: validation {[one.val for one in rest]}, as undisturbed")


def portfolio(device: str) -> None:
    """Settings are chosen for an unknown graph, and its nodes predicted."""
    from lgdgcn import LGDClassifier
    from lgdgcn.data.source import GraphSource

    data = GraphSource("synthetic:nodes=300,factors=2").load()
    model = LGDClassifier(budget=4, epochs=100, device=device).fit(data)
    score = model.score()
    print(f"test score {score:.3f}")
    assert score > 0.5, score


def reasons(device: str) -> None:
    """Reasons of edges, and types of all edges where some are known."""
    import numpy as np
    import torch
    from torch_geometric.data import Data
    from torch_geometric.utils import to_undirected
    from typed_graphs import carriers

    from lgdgcn.reasons import fit_edges

    typed = carriers(np.random.default_rng(0))
    ends, types = torch.from_numpy(typed.ends), torch.from_numpy(typed.types)
    shown = types * (torch.rand(len(types), 1) < 0.2)
    data = Data(edge_index=ends, shown=shown, num_nodes=typed.nodes)
    index, both = to_undirected(data.edge_index, data.shown, num_nodes=typed.nodes, reduce="max")
    found = fit_edges(index, typed.nodes, num_factors=3)
    print(f"reasons without types: {found.probability.shape}")
    known = fit_edges(index, typed.nodes, shown=both, type_names=[*"abcdefghij"][: types.shape[1]])
    assert bool(known.probability.isfinite().all())
    print(f"types with a fifth known: {known.probability.shape}")


def large(device: str) -> None:
    """A packed graph of 1M edges: an epoch in batches, and the scores of all nodes."""
    import json

    import torch
    from scale import measure

    from lgdgcn.data.packed import PackedGraph
    from lgdgcn.large.view import GraphView
    from lgdgcn.train.trained import TrainedModel

    with tempfile.TemporaryDirectory() as place:
        graph, model = f"{place}/graph.lgd", f"{place}/model"
        measure("generate", graph, nodes=100_000, edges=1_000_000)
        found = measure("epoch", graph, model=model, batch_size=8192, device=device)
        print(f"epoch: {json.dumps(found)}")
        start = time.perf_counter()
        large = GraphView.mapped(TrainedModel.load(Path(model), device), PackedGraph.open(graph))
        logits = large.output(torch.arange(large.rows.num_nodes)).logits
        assert bool(logits.isfinite().all())
        print(f"predict: {logits.size(0)} nodes in {time.perf_counter() - start:.2f} s")


def targets(device: str) -> None:
    """The speeds of ``benchmarks/targets.py``, which needs the GPU for itself."""
    command = [sys.executable, str(ROOT / "benchmarks/targets.py"), device]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    print(done.stdout)
    rows = done.stdout.strip().splitlines()[2:]
    assert rows, "no row was measured"
    left_out = [row for row in rows if " ms " not in row]
    assert not left_out, left_out


PARTS = {
    "batches": batches,
    "resume": resume,
    "portfolio": portfolio,
    "reasons": reasons,
    "large": large,
    "targets": targets,
}


# Running them


def environment() -> dict[str, str]:
    paths = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}


def run(name: str, command: list[str], deadline: float) -> tuple[str, bool, float, str]:
    """Run one process; returns its name, whether it went well, its seconds, what it printed."""
    start = time.monotonic()
    room = min(LONGEST, deadline - start)
    if room <= 0:
        return name, False, 0.0, "not begun: the time for all parts was over"
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment(), timeout=room, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        good, text = done.returncode == 0, done.stdout
    except subprocess.TimeoutExpired as error:
        said = error.stdout or b""
        text = (said.decode(errors="replace") if isinstance(said, bytes) else said) or ""
        good, text = False, f"{text}\nnot done after {room:.0f} s"
    return name, good, time.monotonic() - start, text.strip()


def results(
    work: list[tuple[str, list[str]]], workers: int, deadline: float
) -> Iterator[tuple[str, bool, float, str]]:
    with ThreadPoolExecutor(workers) as pool:
        for one in as_completed([pool.submit(run, *pair, deadline) for pair in work]):
            yield one.result()


def report(name: str, good: bool, seconds: float, text: str) -> None:
    """One line for a part, and below it all that a part said that failed."""
    lines = text.splitlines()
    last = lines[-1] if lines else ""
    print(f"{'ok  ' if good else 'FAIL'} {seconds:6.1f} s  {name}: {last}", flush=True)
    if not good or name in ("targets", "large"):
        print("\n".join(f"       {line}" for line in lines[-40:]), flush=True)


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    words.add_argument("parts", nargs="*", help=f"kernels, {', '.join(PARTS)}; all by default")
    words.add_argument("--device", default="cuda")
    words.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = words.parse_args()
    if given.inside:
        warnings.simplefilter("ignore")
        return PARTS[given.parts[0]](given.device)
    wanted = given.parts or ["kernels", *PARTS]
    if unknown := set(wanted) - {"kernels", *PARTS}:
        words.error(f"no part {', '.join(unknown)}; choose from kernels, {', '.join(PARTS)}")
    import torch

    if given.device == "cuda" and not torch.cuda.is_available():
        sys.exit("torch sees no GPU here; --device cpu tries the parts themselves")
    where = torch.cuda.get_device_name() if given.device == "cuda" else "CPU"
    print(f"{where}, torch {torch.__version__}, {os.cpu_count()} cores", flush=True)
    start = time.monotonic()
    test = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts="]
    side_by_side = [(file, [*test, *file.split()]) for file in TESTS] * ("kernels" in wanted)
    inside = {
        name: [sys.executable, __file__, "--inside", "--device", given.device, name]
        for name in wanted
        if name in PARTS
    }
    side_by_side += [(name, command) for name, command in inside.items() if name != "targets"]
    alone = [(name, command) for name, command in inside.items() if name == "targets"]
    failed = 0
    for work, workers in ((side_by_side, max(1, (os.cpu_count() or 1) // 2)), (alone, 1)):
        for one in results(work, workers, start + LIMIT):
            failed += not one[1]
            report(*one)
    print(f"{failed} failed, {time.monotonic() - start:.0f} s", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
