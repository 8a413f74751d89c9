"""A program of tensors that a GPU records once and repeats without the host."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

__all__ = ["Recorded"]

_REPEATS = 10  # epochs between two looks of the host


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Keep the collector from freeing an earlier graph, which would spoil the recording."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Recorded:
    """Runs a program that returns a row of numbers; on a GPU as a CUDA graph.

    The first run is an ordinary one, which compiles kernels and fills caches; then the program is
    recorded and replayed a few times for every look of the host.

    Args:
        program: Changes tensors in place and returns a row; shapes and places must stay the same.
        recordable: Whether to record; everything else runs the program as it is.
    """

    def __init__(self, program: Callable[[], Tensor], recordable: bool) -> None:
        self.program = program
        self.recording = recordable
        self._graph: torch.cuda.CUDAGraph | None = None
        self._warm = False
        self._row: Tensor | None = None

    def run(self) -> list[Tensor]:
        """Run the program once or, recorded, a few times; returns every run's row on the CPU."""
        if not self.recording or not self._warm:
            self._warm = True
            return [self.program().cpu()]
        if self._graph is None:
            with _no_garbage():
                self._graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self._graph):
                    self._row = self.program()
        assert self._row is not None
        rows = []
        for _ in range(_REPEATS):
            self._graph.replay()
            rows.append(self._row.clone())
        return list(torch.stack(rows).cpu())
