"""Arrays with a row for every node, in files without a name where they are large.

The system takes back the pages of a mapped file when it needs them, so memory does not grow with
the graph.
"""

import math
import os
import tempfile
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch import Tensor

from lgdgcn.errors import InputError
from lgdgcn.runtime import gibibytes

__all__ = ["new_array", "node_array", "nodes_of"]

Array = np.ndarray[Any, Any]

_SMALL = 1 << 22  # bytes; larger arrays of :func:`node_array` are mapped files
_PIECE = 1 << 20  # nodes of a mask that are looked at at once


def new_array(size: tuple[int, ...], dtype: torch.dtype, folder: Path | None) -> Array:
    """Zeros, in memory or in a file without a name, which is gone when the array is."""
    kind = torch.zeros(0, dtype=dtype).numpy().dtype
    if folder is None:
        return np.zeros(size, kind)
    with tempfile.TemporaryFile(dir=folder) as file:
        _reserve(file, math.prod(size) * kind.itemsize, folder)
        array: Array = np.memmap(file, kind, "r+", shape=size)  # the map keeps the file
    return array


def node_array(size: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Zeros with a row for every node, in memory or, from a few megabytes on, in a file."""
    is_small = math.prod(size) * dtype.itemsize < _SMALL
    folder = None if is_small else Path(tempfile.gettempdir())
    return torch.from_numpy(np.asarray(new_array(size, dtype, folder)))


def nodes_of(mask: Tensor, value: bool = True, every: int = 1) -> Tensor:
    """The nodes at which a mask ``[N]`` has a value, ascending, in the smallest type they fit.

    Args:
        mask: The mask.
        value: The value.
        every: Of so many of these nodes, the first one is returned.

    Example:
        >>> nodes_of(torch.tensor([True, False, True, True]), every=2)
        tensor([0, 3], dtype=torch.int32)
    """
    count = int(mask.count_nonzero())
    count = count if value else len(mask) - count
    dtype = torch.int32 if len(mask) < 2**31 else torch.int64
    found = node_array((-(-count // every),), dtype)
    seen = done = 0
    for low in range(0, len(mask), _PIECE):
        nodes = (mask[low : low + _PIECE] == value).nonzero().squeeze(1)
        chosen = nodes[-seen % every :: every] + low
        found[done : done + len(chosen)] = chosen
        seen, done = seen + len(nodes), done + len(chosen)
    return found


def _reserve(file: IO[bytes], size: int, folder: Path) -> None:
    """Give a file its size, and the disk's room at once: a map that finds none ends the process."""
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.truncate(size)
    except OSError as error:
        raise InputError(
            f"a table takes {gibibytes(size)}, which {folder} has no room for ({error.strerror}); "
            "name another folder with TMPDIR"
        ) from None
