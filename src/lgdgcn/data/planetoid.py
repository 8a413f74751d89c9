"""Reader of the raw planetoid files (Python 2 pickles) that runs nothing found in them."""

import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from lgdgcn.data.download import MAX_BYTES, PARTS, PLANETOID, file_names
from lgdgcn.errors import InputError

__all__ = ["MAX_BYTES", "PLANETOID", "file_names", "read_planetoid"]

_ALLOWED = {
    ("scipy.sparse.csr", "csr_matrix"),
    ("scipy.sparse._csr", "csr_matrix"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("collections", "defaultdict"),
    ("__builtin__", "list"),
    ("builtins", "list"),
}
_DTYPES = {"f4", "f8", "i4", "i8"}


class _Record(dict[Any, Any]):
    """Inert stand-in for every allowed global: it keeps what the pickle says and does nothing."""

    args: tuple[Any, ...] = ()
    state: Any = None

    def __init__(self, *args: Any) -> None:
        super().__init__()
        self.args = args

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Unpickler(pickle._Unpickler):
    """Unpickler with an allow list.

    The pure Python class is used on purpose: its memo is a dict, so a forged memo index cannot
    claim memory that the file does not have.
    """

    def find_class(self, module: str, name: str) -> type[_Record]:
        if (module, name) not in _ALLOWED:
            raise InputError(f"it refers to {module}.{name}, which is not allowed in a data file")
        return _Record


def read_planetoid(folder: Path, name: str) -> dict[str, Any]:
    """Read ``ind.NAME.*`` into the arrays of the ``.npz`` format.

    Test nodes that ``test.index`` leaves out (citeseer has 15) get zero features and label -1.

    Args:
        folder: Folder with the eight raw files.
        name: cora, citeseer or pubmed.

    Returns:
        ``edge_index`` as found, ``x_data``, ``x_indices``, ``x_indptr``, ``x_shape``, ``y``,
        and the standard split ``train_idx``, ``val_idx``, ``test_idx``.
    """
    raw: dict[str, Any] = {}
    for part, file_name in zip(PARTS, file_names(name), strict=True):
        path = folder / file_name
        try:
            raw[part] = _READERS[part](_read(path))
        except Exception as error:  # whatever a damaged pickle breaks, it is a bad input file
            cause = " ".join(str(error).split())[:200] or type(error).__name__
            raise InputError(f"{path} is not a planetoid file: {cause}; get it again") from None
    try:
        return _assemble(raw)
    except (ValueError, IndexError) as error:
        raise InputError(f"{folder}: the ind.{name}.* files do not fit together: {error}") from None


def _assemble(raw: dict[str, Any]) -> dict[str, Any]:
    """Put the parts in node order: nodes of ``allx``, then the shuffled test nodes."""
    known, features = raw["allx"].shape
    test = raw["test.index"]
    nodes = len(raw["graph"])
    shapes = [raw[part].shape for part in ("x", "tx", "y", "ty", "ally")]
    train, labels = raw["y"].shape
    wanted = [(train, features), (len(test), features), (train, labels), (len(test), labels)]
    if shapes != [*wanted, (known, labels)]:
        raise InputError(f"shapes of x, tx, y, ty, ally are {shapes}")
    if test.min() < known or test.max() >= nodes or len(np.unique(test)) != len(test):
        raise InputError(f"test.index must name different nodes in {known}..{nodes - 1}")
    if train + 500 > known:
        raise InputError(f"{known} rows in allx leave no 500 validation nodes after {train}")

    rows = np.concatenate([np.arange(known), test])
    x = sparse.vstack([raw["allx"], raw["tx"]]).tocoo()
    x = sparse.csr_matrix((x.data, (rows[x.row], x.col)), shape=(nodes, features))
    one_hot = np.concatenate([raw["ally"], raw["ty"]])
    y = np.full(nodes, -1, dtype=np.int64)
    y[rows] = np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), -1)
    source = [node for node, targets in raw["graph"].items() for _ in targets]
    target = [node for targets in raw["graph"].values() for node in targets]
    return {
        "edge_index": np.array([source, target], dtype=np.int64),
        "x_data": x.data.astype(np.float32),
        "x_indices": x.indices,
        "x_indptr": x.indptr,
        "x_shape": np.array(x.shape),
        "y": y,
        "train_idx": np.arange(train),
        "val_idx": np.arange(train, train + 500),
        "test_idx": np.sort(test),
    }


def _read(path: Path) -> bytes:
    with open(path, "rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise InputError(f"it is larger than {MAX_BYTES} bytes")
    return content


def _unpickle(content: bytes) -> Any:
    return _Unpickler(io.BytesIO(content), encoding="latin1").load()


def _array(record: Any) -> Any:
    """Rebuild an array from the state numpy pickles: version, shape, dtype, order, bytes."""
    _, shape, dtype, fortran, data = record.state
    code, order = dtype.args[0], dtype.state[1]
    if code not in _DTYPES or order not in ("<", ">"):
        raise InputError(f"an array has type {order}{code}; only {sorted(_DTYPES)} are read")
    if not all(isinstance(size, int) and size >= 0 for size in shape):
        raise InputError(f"an array has shape {shape}")
    values = np.frombuffer(data.encode("latin1"), dtype=np.dtype(order + code))
    return values.reshape(shape, order="F" if fortran else "C")


def _matrix(record: Any) -> Any:
    """Rebuild a CSR matrix from the attributes scipy pickles."""
    data, indices, indptr = (_array(record.state[key]) for key in ("data", "indices", "indptr"))
    matrix = sparse.csr_matrix((data, indices, indptr), shape=record.state["_shape"])
    matrix.check_format(full_check=True)
    return matrix


def _graph(record: Any) -> dict[int, list[int]]:
    """Check the adjacency lists: nodes 0..N-1, and only such nodes as neighbours."""
    graph = dict(record)
    nodes = set(range(len(graph)))
    if graph.keys() != nodes or not all(nodes.issuperset(ends) for ends in graph.values()):
        raise InputError(f"the adjacency lists must hold nodes 0..{len(graph) - 1} only")
    return graph


_READERS: dict[str, Callable[[bytes], Any]] = {
    **{part: lambda content: _matrix(_unpickle(content)) for part in ("x", "tx", "allx")},
    **{part: lambda content: _array(_unpickle(content)) for part in ("y", "ty", "ally")},
    "graph": lambda content: _graph(_unpickle(content)),
    "test.index": lambda content: np.array(content.split(), dtype=np.int64),
}
