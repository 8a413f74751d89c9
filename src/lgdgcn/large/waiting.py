"""How long a computation waits for its batches."""

import time
from collections.abc import Iterator
from typing import Generic, TypeVar

import torch

__all__ = ["Waiting"]

T = TypeVar("T")


class Waiting(Generic[T]):
    """Hands batches on, and measures the time in which there is none to compute.

    A GPU computes on while the host asks for the next batch. So there, the time is that between the
    end of the work on one batch and the beginning of the work on the next.

    Args:
        batches: What is waited for.
        device: Where they are computed.
    """

    def __init__(self, batches: Iterator[T], device: torch.device) -> None:
        self._batches, self._device = batches, device
        self._start = time.perf_counter()
        self._waited = 0.0
        self._events: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []

    def __iter__(self) -> "Waiting[T]":
        return self

    def __next__(self) -> T:
        """The next batch, when it is there."""
        if self._device.type == "cuda":
            done, ready = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
            stream = torch.cuda.current_stream(self._device)  # that of another GPU says nothing
            done.record(stream)
            batch = next(self._batches)
            ready.record(stream)
            self._events.append((done, ready))
            return batch
        start = time.perf_counter()
        batch = next(self._batches)
        self._waited += time.perf_counter() - start
        return batch

    def seconds(self) -> tuple[float, float]:
        """Seconds that were waited so far, and all seconds since the beginning."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
            self._waited = sum(done.elapsed_time(ready) for done, ready in self._events) / 1000
        return self._waited, time.perf_counter() - self._start
