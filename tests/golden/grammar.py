"""Graphs of the attack's grammar, each a function of its number on every machine."""

import gzip
import hashlib
import math
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from attack.damage import flip, spoil_arrays, spoil_cells, spoil_file
from attack.dialects import write_edges_alone, write_graph
from attack.graphs import draw

__all__ = ["digest", "write_damaged", "write_drawn"]


class _Steady(Random):
    """Random numbers without logarithms and sines, whose last digit differs between machines."""

    def gauss(self, mu: float = 0.0, sigma: float = 1.0) -> float:
        """About normal: the sum of twelve uniform numbers."""
        return mu + sigma * (math.fsum(self.random() for _ in range(12)) - 6)


def write_drawn(number: int, folder: Path) -> dict[str, Any]:
    """Write a valid folder; returns the arguments to read it with."""
    random = _Steady(f"drawn {number}")
    graph = draw(random)
    if graph.edges and random.random() < 0.03:
        write_edges_alone(folder, graph, random)
        return {"features": "identity", "require_labels": False}
    trainable = write_graph(folder, graph, random).graph.trainable
    labels = [True, None, False] if trainable else [None, False, False]
    return {"require_labels": random.choice(labels)}


def write_damaged(number: int, folder: Path) -> dict[str, Any]:
    """Write a folder with a damaged file; returns the arguments to read it with.

    The bytes of packed files (npz, parquet, gz) are left alone, since each version of the programs
    that pack them makes others: damage to these is among the tables.
    """
    random = _Steady(f"damaged {number}")
    write_graph(folder, draw(random), random)
    path = random.choice(sorted(folder.iterdir()))
    if random.random() < 0.05:
        spoil_file(random, path)
    elif path.suffix == ".npz":
        spoil_arrays(random, path)
    elif path.suffix == ".parquet" or random.random() < 0.5:
        spoil_cells(random, path)
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(flip(random, gzip.decompress(path.read_bytes())), 1))
    else:
        path.write_bytes(flip(random, path.read_bytes()))
    return {"require_labels": random.choice([True, None, False, False])}


def digest(folder: Path) -> str:
    """A hash of what the files of a folder hold, however they are packed."""
    content = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        content.update(f"\n{path.name}\n".encode())
        content.update(_unpacked(path) if path.is_file() else b"no file")
    return content.hexdigest()[:8]


def _unpacked(path: Path) -> bytes:
    packed = path.read_bytes()
    if not packed or path.suffix in (".csv", ".tsv"):
        return packed
    if path.suffix == ".gz":
        return gzip.decompress(packed)
    if path.suffix == ".parquet":
        with pq.ParquetFile(path) as file:  # whose columns may have one name
            table = file.read()
        return (
            repr([(field.name, str(field.type)) for field in table.schema]).encode()
            + repr([column.to_pylist() for column in table.columns]).encode()
        )
    with np.load(path, allow_pickle=True) as arrays:  # written a moment ago, here
        return b"".join(f"{name} {arrays[name].dtype} {arrays[name].tolist()}".encode()
                        for name in arrays.files)  # fmt: skip
