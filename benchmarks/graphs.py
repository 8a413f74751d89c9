"""Generated graphs of any size: packed ones with known factors, and ones in memory with classes."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from lgdgcn.data.features import csr_tensor
from lgdgcn.data.packed.manifest import Manifest
from lgdgcn.data.packed.pointers import RowPointers
from lgdgcn.data.packed.reader import PackedGraph
from lgdgcn.data.packed.writer import PackedWriter, index_type
from lgdgcn.errors import InputError
from lgdgcn.progress import long_work

CHUNK = 1 << 20  # edges or numbers that are drawn at a time
BLOCK = 1 << 22  # directed edges that are sorted at a time
SKEW = 2.0  # ranks are drawn as size · U^SKEW: degrees fall off with exponent 1 + SKEW / (SKEW - 1)
NOISE = 3.0  # standard deviation of features around those of their classes, which is 1
SHARES = (0.6, 0.8)  # of the nodes up to which they are for training and validation

FEATURES, CLASSES, WORDS = 500, 7, 20  # of graphs in memory
SAME_CLASS, OWN_WORDS = 0.8, 0.8  # share of edges within a class, of words from its vocabulary

Array = np.ndarray[Any, Any]


def write_scale_graph(
    folder: str | Path,
    nodes: int,
    edges: int,
    factors: int = 4,
    classes: int = 16,
    features: int = 64,
    seed: int = 0,
    overwrite: bool = False,
) -> PackedGraph:
    """Generate a graph whose edges are explained by known factors, and write it packed.

    Every factor deals the nodes into classes of equal size at random, and ranks the nodes of each
    class. An edge picks a factor and a class, and two of its nodes by their ranks, the first ones
    more often: degrees follow a power law. Features are split between the factors; those of
    a factor are the centre of a node's class and noise. A node's label is its class in the first
    factor.

    Memory is that of the classes and ranks, 5 bytes per node and factor, and of one block of edges.

    Args:
        folder: Folder to make.
        nodes: N.
        edges: Undirected edges that are drawn; loops and repetitions (a few per cent) are left out.
        factors: Number of factors.
        classes: Classes of each factor, at most 255.
        features: Number of features, at least one per factor.
        seed: The same seed gives the same graph, bit for bit.
        overwrite: Whether a packed graph in the folder is replaced.
    """
    if not (1 <= factors <= features and 2 <= classes <= min(255, nodes) and edges >= 1):
        raise InputError(
            f"{nodes} nodes, {edges} edges, {factors} factors, {classes} classes and {features} "
            "features make no graph; give 2 to 255 classes and at least a feature per factor"
        )
    plan = _Plan(nodes, edges, factors, classes, features, seed)
    with PackedWriter(folder, overwrite=overwrite) as writer:
        ranked = plan.ranked_nodes()
        count = _write_edges(plan, ranked, writer)
        membership = plan.membership(ranked)
        del ranked
        _write_nodes(plan, membership, writer)
        name = Path(folder).name.removesuffix(".lgd")
        about = Manifest(name, nodes, count, features, tuple(range(classes)), "single", True)
        writer.finish(about)
    return PackedGraph.open(folder)


@dataclass(frozen=True)
class _Plan:
    nodes: int
    edges: int
    factors: int
    classes: int
    features: int
    seed: int

    def random(self, *what: int) -> np.random.Generator:
        """A generator for one piece of the work, whichever piece is done before it."""
        return np.random.default_rng([self.seed, *what])

    @property
    def bounds(self) -> Array:
        """Where each class begins among ranked nodes, int64 ``[classes + 1]``."""
        return np.arange(self.classes + 1) * self.nodes // self.classes

    def ranked_nodes(self) -> list[Array]:
        """For each factor the nodes class by class, those of a class by rank: ``[N]``."""
        order = [np.arange(self.nodes, dtype=index_type(self.nodes)) for _ in range(self.factors)]
        for factor, ranked in enumerate(order):
            self.random(0, factor).shuffle(ranked)
        return order

    def membership(self, ranked: list[Array]) -> Array:
        """The class of every node in each factor, uint8 ``[N, factors]``."""
        found = np.zeros((self.nodes, self.factors), np.uint8)
        for factor, order in enumerate(ranked):
            for number, (start, end) in enumerate(zip(self.bounds, self.bounds[1:], strict=False)):
                found[order[start:end], factor] = number
        return found

    def drawn_edges(self, ranked: list[Array]) -> Iterator[tuple[Array, Array]]:
        """The ends of all edges, chunk by chunk, loops left out."""
        bounds = self.bounds
        for chunk, start in enumerate(range(0, self.edges, CHUNK)):
            random, size = self.random(1, chunk), min(CHUNK, self.edges - start)
            factor = random.integers(0, self.factors, size)
            group = random.integers(0, self.classes, size)
            first, width = bounds[group], (bounds[1:] - bounds[:-1])[group]
            ends = [np.empty(size, np.int64), np.empty(size, np.int64)]
            for end in ends:
                place = first + (width * random.random(size) ** SKEW).astype(np.int64)
                for number, order in enumerate(ranked):
                    mine = factor == number
                    end[mine] = order[place[mine]]
            different = ends[0] != ends[1]
            yield ends[0][different], ends[1][different]


def _write_edges(plan: _Plan, ranked: list[Array], writer: PackedWriter) -> int:
    """Write the CSR arrays: edges are dealt to blocks of sources, and each block is sorted."""
    nodes = plan.nodes
    blocks = max(1, -(-2 * plan.edges // BLOCK))
    starts = np.arange(blocks + 1) * nodes // blocks  # the first source of each block
    paths = [writer.work / f"block-{number}.tmp" for number in range(blocks)]
    done = 0
    with writer.refusals(), ExitStack() as stack, long_work("drawing edges", "edges") as advance:
        files = [stack.enter_context(open(path, "wb")) for path in paths]
        for source, target in plan.drawn_edges(ranked):
            keys = np.concatenate([source * nodes + target, target * nodes + source])
            keys.sort()
            cuts = np.searchsorted(keys, starts * nodes)
            for file, start, end in zip(files, cuts, cuts[1:], strict=False):
                file.write(keys[start:end].tobytes())
            done += len(source)
            advance(done, done / plan.edges)
    with (
        writer.array("row_ptr", np.int64) as row_ptr,
        writer.array("column", index_type(nodes)) as column,
        long_work("writing edges", "blocks") as advance,
    ):
        pointers = RowPointers(row_ptr)
        for number, path in enumerate(paths):
            keys = np.fromfile(path, np.int64)
            keys.sort()
            keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if len(keys) else keys
            source = keys // nodes
            pointers.append(source)
            column.append(keys - source * nodes)
            path.unlink()
            advance(number, number / blocks)
        pointers.finish(nodes)
    return pointers.edges


def _write_nodes(plan: _Plan, membership: Array, writer: PackedWriter) -> None:
    columns = np.arange(plan.features) % plan.factors  # the factor that each feature tells of
    centre = plan.random(2).standard_normal((plan.factors, plan.classes, plan.features), np.float32)
    rows = max(1, CHUNK // plan.features)
    with (
        writer.array("x", np.float32, plan.features) as x,
        writer.array("y", np.int32) as y,
        writer.array("split", np.uint8) as split,
        writer.array("y_factor", np.uint8, plan.factors) as y_factor,
        long_work("writing nodes", "nodes") as advance,
    ):
        for chunk, start in enumerate(range(0, plan.nodes, rows)):
            group = membership[start : start + rows]
            random = plan.random(3, chunk)
            block = NOISE * random.standard_normal((len(group), plan.features), np.float32)
            for factor in range(plan.factors):
                own = columns == factor
                block[:, own] += centre[factor][group[:, factor]][:, own]
            x.append(block)
            y.append(group[:, 0])
            y_factor.append(group)
            split.append(1 + np.searchsorted(SHARES, random.random(len(group)), side="right"))
            advance(start, start / plan.nodes)


def clustered_graph(nodes: int, degree: int = 4, seed: int = 0) -> Data:
    """Draw a canonical graph of any size: seven planted classes, bags of 20 words out of 500.

    Most edges are within a class and most words are of its vocabulary, so units form clusters.

    Args:
        nodes: Number of nodes N.
        degree: Neighbours per node, on average; N * degree columns of ``edge_index`` before
            duplicates and self loops go.
        seed: Seed of everything drawn.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(CLASSES, size=nodes)
    row_ptr = torch.arange(0, nodes * WORDS + 1, WORDS)
    ones = torch.ones(nodes * WORDS)
    x = csr_tensor(row_ptr, torch.from_numpy(_words(rng, y)).flatten(), ones, (nodes, FEATURES))
    data = Data(x=x, edge_index=torch.from_numpy(_edges(rng, y, degree)), y=torch.from_numpy(y))
    order = torch.from_numpy(rng.permutation(nodes))
    train, val = min(20 * CLASSES, nodes // 4), min(500, nodes // 4)
    splits = (order[:train], order[train : train + val], order[train + val :])
    for name, split in zip(("train_mask", "val_mask", "test_mask"), splits, strict=True):
        data[name] = torch.zeros(nodes, dtype=torch.bool).index_fill_(0, split, True)
    data.name = str(nodes)
    data.classes = list(range(CLASSES))
    return data


def _words(rng: np.random.Generator, y: Array) -> Array:
    """Distinct ascending words ``[N, 20]``, mostly from the vocabulary of the node's class.

    One word is drawn from each of 20 equal shares of the vocabulary; word w belongs to class
    w mod 7.
    """
    share = FEATURES // WORDS
    drawn = rng.integers(share, size=(len(y), WORDS))
    start = np.arange(WORDS) * share
    offset = (y[:, None] - start) % CLASSES  # the first word of the class in every share
    count = (share - 1 - offset) // CLASSES + 1
    own = offset + drawn % count * CLASSES
    return start + np.where(rng.random(drawn.shape) < OWN_WORDS, own, drawn)


def _edges(rng: np.random.Generator, y: Array, degree: int) -> Array:
    """Both directions of N * degree / 2 drawn edges, sorted by source, without duplicates."""
    nodes = len(y)
    a = rng.integers(nodes, size=nodes * degree // 2)
    members = np.argsort(y, kind="stable")
    size = np.bincount(y, minlength=CLASSES)
    start = size.cumsum() - size
    mate = members[start[y[a]] + (rng.random(len(a)) * size[y[a]]).astype(np.int64)]
    b = np.where(rng.random(len(a)) < SAME_CLASS, mate, rng.integers(nodes, size=len(a)))
    a, b = a[a != b], b[a != b]
    pair = np.unique(np.concatenate([a * nodes + b, b * nodes + a]))
    return np.stack([pair // nodes, pair % nodes])
