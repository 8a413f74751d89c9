"""The next batches are read while the last one is computed."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from queue import Queue
from threading import Event, Thread
from typing import Any, TypeVar

import torch

from lgdgcn.train.tensors import tensors_of

__all__ = ["ahead"]

T = TypeVar("T")

_CPU = torch.device("cpu")


def ahead(
    make: Sequence[Callable[[], T]], device: torch.device = _CPU, depth: int = 2
) -> Iterator[T]:
    """Call functions in a thread, a few of them ahead of what is asked for.

    On a GPU the thread has a CUDA stream of its own, so what it copies and draws there runs beside
    the computation.

    Args:
        make: Each returns a tuple with tensors, or anything else.
        device: Where its tensors are.
        depth: Results that may lie ready.
    """
    ready: Queue[tuple[T | None, BaseException | None]] = Queue(maxsize=depth)
    over = Event()
    stream = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]

    def work() -> None:
        with torch.cuda.stream(stream) if stream is not None else nullcontext():
            for function in make:
                if over.is_set():
                    return
                try:
                    result = function()
                    if stream is not None:
                        stream.synchronize()  # only this thread waits
                    ready.put((result, None))
                except BaseException as error:  # raised where the result is asked for
                    ready.put((None, error))
                    return

    thread = Thread(target=work, name="lgdgcn-batches", daemon=True)
    thread.start()
    try:
        for _ in make:
            result, error = ready.get()
            if error is not None:
                raise error
            if stream is not None:
                _use_here(result, device)
            yield result  # type: ignore[misc]
    finally:
        over.set()
        while thread.is_alive():  # it may wait for room
            while not ready.empty():
                ready.get()
            thread.join(0.01)


def _use_here(result: Any, device: torch.device) -> None:
    """Keep the memory of tensors, once they are freed, until the present stream has read them."""
    now = torch.cuda.current_stream(device)
    for tensor in tensors_of(result):
        parts = [tensor]
        if tensor.layout == torch.sparse_csr:
            parts = [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
        for part in parts:
            if part.is_cuda:
                part.record_stream(now)
