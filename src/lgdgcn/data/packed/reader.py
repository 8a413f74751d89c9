"""A packed graph that is there: its arrays, mapped into memory."""

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lgdgcn.data.encoding import Encoding
from lgdgcn.data.packed.manifest import AGAIN, FileEntry, Manifest, hash_file, read_manifest
from lgdgcn.data.packed.text import TextTable, arrow, row_numbers
from lgdgcn.errors import InputError
from lgdgcn.progress import long_work

if TYPE_CHECKING:  # arrays can be read without torch
    from torch_geometric.data import Data

__all__ = ["PackedGraph"]

Array = np.ndarray[Any, Any]

CHEAP = 1 << 24  # bytes of a file that is hashed whenever it is first used


class PackedGraph:
    """A graph whose arrays stay on the disk; what is looked at is read by the system.

    Example::

        graph = PackedGraph.open("graph.lgd")
        start, end = graph.row_ptr[7:9]
        graph.ids(graph.column[start:end])  # the neighbours of node 7

    Attributes:
        folder: Where it is.
        manifest: What it holds.
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder, self.manifest = folder, manifest
        self._arrays: dict[str, Array] = {}
        self._hashed: set[str] = set()

    @classmethod
    def open(
        cls, folder: str | Path, verify: Literal["sizes", "hashes"] = "sizes"
    ) -> "PackedGraph":
        """Open a folder.

        Args:
            folder: The folder.
            verify: ``sizes`` compares the sizes of all files with the manifest and looks at the
                ends of ``row_ptr`` (small files are also hashed at their first use); ``hashes``
                reads every byte now.

        Raises:
            InputError: A file is missing, cut off or changed, or the manifest is no such.
        """
        folder = Path(folder)
        graph = cls(folder, read_manifest(folder))
        for entry in graph.manifest.files.values():
            graph._check_size(entry.file, entry.bytes)
        graph._check_shapes()
        if verify == "hashes":
            graph.check_hashes()
        return graph

    @property
    def name(self) -> str:
        """Name of the graph."""
        return self.manifest.name

    @property
    def num_nodes(self) -> int:
        """N."""
        return self.manifest.nodes

    @property
    def num_edges(self) -> int:
        """E, every edge counted in both directions: that of ``edge_index`` ``[2, E]``."""
        return self.manifest.edges

    @property
    def num_features(self) -> int:
        """F; 0 if the graph has no features of its own."""
        return self.manifest.features

    @property
    def classes(self) -> list[Any]:
        """The original label of each class, or of each column of ``y``."""
        return list(self.manifest.classes)

    @property
    def row_ptr(self) -> Array:
        """Where the edges of each node begin, int64 ``[N + 1]``."""
        return self.array("row_ptr")

    @property
    def column(self) -> Array:
        """The other end of each edge, int32 or int64 ``[E]``, ascending for each node."""
        return self.array("column")

    @property
    def weight(self) -> Array | None:
        """Weights of the edges, float32 ``[E]``."""
        return self._optional("weight")

    @property
    def edge_type(self) -> Array | None:
        """Known types of the edges, uint8 0/1 ``[E, T]``; see ``manifest.edge_type_names``."""
        return self._optional("edge_type")

    @property
    def x(self) -> Array | None:
        """Dense features ``[N, F]``; ``None`` if they are sparse or there are none."""
        return self._optional("x")

    @property
    def x_csr(self) -> tuple[Array, Array, Array] | None:
        """Row pointers, columns and values of sparse features; ``None`` if they are dense."""
        if not self.has("x_row_ptr"):
            return None
        return self.array("x_row_ptr"), self.array("x_column"), self.array("x_value")

    @property
    def y(self) -> Array | None:
        """Classes, int32 ``[N]`` with -1 unknown; or label sets, uint8 ``[N, L]``, 255 unknown."""
        return self._optional("y")

    @property
    def split(self) -> Array | None:
        """0 none, 1 train, 2 validation, 3 test: uint8 ``[N]``; ``None`` if none was given."""
        return self._optional("split")

    @cached_property
    def encoding(self) -> Encoding | None:
        """How columns of a table became the features; ``None`` if they were arrays."""
        try:
            saved = self.manifest.encoding
            return None if saved is None else Encoding.from_dict(saved)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{self.folder}: the encoding is damaged ({error}); {AGAIN}") from None

    def has(self, name: str) -> bool:
        """Whether the graph has an array or table of this name."""
        return name in self.manifest.files

    def array(self, name: str) -> Array:
        """An array by its name, mapped read-only."""
        if name not in self._arrays:
            entry = self.manifest.files[name]
            self._check_file(name)
            dtype, path = np.dtype(entry.dtype), self.folder / entry.file
            if not entry.bytes:  # an empty file cannot be mapped
                self._arrays[name] = np.zeros(entry.shape, dtype)
            else:
                self._arrays[name] = np.memmap(path, dtype, "r", shape=entry.shape)
        return self._arrays[name]

    def features(self, nodes: Any) -> Array:
        """The features of some nodes, as float32 (float64 where they are) ``[n, F]``.

        Args:
            nodes: Their numbers ``[n]``, or a slice.
        """
        if self.x is not None:
            rows = np.asarray(self.x[nodes])
            return rows if rows.dtype == np.float64 else rows.astype(np.float32, copy=False)
        if self.x_csr is None:
            raise InputError(f"{self.folder} has no features; use --features degree")
        row_ptr, column, value = self.x_csr
        wanted = np.arange(self.num_nodes)[nodes] if isinstance(nodes, slice) else np.asarray(nodes)
        start, count = row_ptr[wanted], row_ptr[wanted + 1] - row_ptr[wanted]
        row = np.repeat(np.arange(len(wanted)), count)
        entry = np.arange(count.sum()) - np.repeat(count.cumsum() - count, count)
        entry += np.repeat(start, count)
        dense = np.zeros((len(wanted), self.num_features), value.dtype)
        dense[row, column[entry]] = value[entry]
        return dense

    def ids(self, nodes: Any = slice(None)) -> list[str]:
        """The ids of some nodes, as they were written.

        Args:
            nodes: Their numbers ``[n]``, or a slice; all by default.
        """
        if not self.has("ids"):
            return [str(node) for node in row_numbers(nodes, self.num_nodes).tolist()]
        return self._table("ids").cells("id", nodes)

    def find(self, ids: Sequence[str]) -> Array:
        """The numbers of nodes, int64 ``[n]``.

        Raises:
            InputError: There is no node of such an id.
        """
        if self.has("ids"):
            numbers = self._table("ids").find("id", ids)
        else:
            numbers = np.array([_row_number(name, self.num_nodes) for name in ids], np.int64)
        if (numbers < 0).any():
            missing = ids[int((numbers < 0).argmax())]
            count = int((numbers < 0).sum())
            more = f" and {count - 1} more ids" if count > 1 else ""
            raise InputError(f"{self.folder} has no node {missing[:50]!r}{more}; check the ids")
        return numbers

    def text(self, column: str, nodes: Any = slice(None)) -> list[str]:
        """The cells of a column that is kept as text, such as titles; see ``manifest.text``."""
        return self._table("columns").cells(column, nodes)

    def to_data(self, **options: Any) -> "Data":
        """The whole graph in memory, as its folder would be read.

        Args:
            **options: Those of :func:`~lgdgcn.data.packed.whole.read_packed`.
        """
        from lgdgcn.data.packed.whole import read_packed

        return read_packed(self, **options)

    def check_text(self) -> None:
        """Refuse a graph with ids or text, before any work, where nothing can read them.

        Raises:
            InputError: pyarrow is not installed.
        """
        if self.has("ids") or self.has("columns"):
            arrow()

    def check_hashes(self) -> None:
        """Read every file and compare it with the manifest.

        Raises:
            InputError: The first one that is not what was written.
        """
        size = max(1, sum(entry.bytes for entry in self.manifest.files.values()))
        done = 0
        with long_work(f"checking {self.folder.name}", "bytes") as advance:
            for name, entry in self.manifest.files.items():
                self._check_size(entry.file, entry.bytes)
                self._check_hash(entry)
                self._hashed.add(name)
                done += entry.bytes
                advance(done, done / size)

    def _check_size(self, file: str, expected: int) -> None:
        path = self.folder / file
        try:
            found = os.stat(path).st_size
        except OSError as error:
            raise InputError(f"{path} cannot be read ({error.strerror}); {AGAIN}") from None
        if found != expected:
            how = "cut off" if found < expected else "changed"
            raise InputError(
                f"{path} was {how}: it has {found:,} bytes instead of {expected:,}; {AGAIN}"
            )

    def _check_hash(self, entry: FileEntry) -> None:
        path = self.folder / entry.file
        try:
            found = hash_file(path)
        except OSError as error:
            raise InputError(f"{path} cannot be read ({error.strerror}); {AGAIN}") from None
        if found != entry.hash:
            raise InputError(
                f"{path} was changed after it was packed: its hash is {found[:8]}…, not "
                f"{entry.hash[:8]}…; {AGAIN}"
            )

    def _check_shapes(self) -> None:
        """Compare the shapes of the arrays with each other, so that no index leads outside."""
        about, nodes, edges = self.manifest, self.num_nodes, self.num_edges
        sparse = self.has("x_row_ptr")
        length = {"row_ptr": nodes + 1, "column": edges, "weight": edges, "edge_type": edges}
        length |= {"x": nodes, "x_row_ptr": nodes + 1, "y": nodes, "split": nodes, "ids": nodes}
        length |= {"columns": nodes, "y_factor": nodes}
        for name, entry in about.files.items():
            size = int(np.prod(entry.shape)) * np.dtype(entry.dtype).itemsize if entry.dtype else 0
            if entry.dtype and size != entry.bytes:
                raise InputError(f"{self.folder}: {name} has no shape {entry.shape}; {AGAIN}")
            if entry.shape[0] != length.get(name, entry.shape[0]):
                raise InputError(
                    f"{self.folder}: {name} has {entry.shape[0]:,} rows instead of "
                    f"{length[name]:,}; {AGAIN}"
                )
        for name in ("row_ptr", "column", *(("x_column", "x_value") if sparse else ())):
            if name not in about.files:
                raise InputError(f"{self.folder} has no array {name}; {AGAIN}")
        if int(self.row_ptr[0]) != 0 or int(self.row_ptr[-1]) != edges:
            raise InputError(f"{self.folder}: row_ptr is damaged; {AGAIN}")

    def _optional(self, name: str) -> Array | None:
        return self.array(name) if self.has(name) else None

    def _table(self, name: str) -> TextTable:
        self._check_file(name)
        return TextTable.open(self.folder / self.manifest.files[name].file)

    def _check_file(self, name: str) -> None:
        """Look at a file at its first use: it may have been cut off since, or changed."""
        entry = self.manifest.files[name]
        self._check_size(entry.file, entry.bytes)
        if entry.bytes <= CHEAP and name not in self._hashed:
            self._check_hash(entry)
            self._hashed.add(name)


def _row_number(name: str, num_nodes: int) -> int:
    """The number that an id is, where ids are row numbers; -1 if it is none."""
    is_plain = name.isascii() and name.isdigit() and (name == "0" or name[0] != "0")
    return int(name) if is_plain and int(name) < num_nodes else -1
