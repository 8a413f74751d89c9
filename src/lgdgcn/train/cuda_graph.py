"""A training epoch that a GPU records once and replays without the host."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

__all__ = ["CudaGraphRunner"]

_REPLAYS = 10  # epochs between two reads of the host


class CudaGraphRunner:
    """Runs a function of tensors as a CUDA graph.

    The first run is an ordinary one, which compiles kernels and fills caches. Then the function
    is recorded, and replayed a few times for every read of the host: launching the hundreds of
    small kernels of an epoch one by one takes longer than computing them.

    Args:
        function: Changes tensors in place and returns a row of numbers; the shapes and addresses
            of all tensors must stay the same.
    """

    def __init__(self, function: Callable[[], Tensor]) -> None:
        self.function = function
        self._graph: torch.cuda.CUDAGraph | None = None
        self._is_warm = False
        self._row: Tensor | None = None

    def run(self, most: int | None = None) -> list[Tensor]:
        """Run the function once, or replay it a few times; returns each run's row on the CPU."""
        if not self._is_warm:
            self._is_warm = True
            return [self.function().cpu()]
        if self._graph is None:
            with _no_garbage_collection():
                self._graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self._graph):
                    self._row = self.function()
        assert self._row is not None
        rows = []
        for _ in range(_REPLAYS if most is None else min(most, _REPLAYS)):
            self._graph.replay()
            rows.append(self._row.clone())
        return list(torch.stack(rows).cpu())


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Keep the collector from freeing an earlier graph, which would spoil the recording."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
