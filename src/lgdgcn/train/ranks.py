"""The ranks of a training: processes, started by torchrun, that share the parts of every step.

Every rank holds the whole network and reads the parts of a step whose number is its own, modulo
the ranks. One sum over all ranks joins the gradients, the losses and what the edge loss has seen of
the nodes, in one row of numbers: the network is called by several of its methods, and the running
means have to be summed anyway, so ``DistributedDataParallel`` would not make it simpler. After that
all ranks make the same step.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from threading import Event, Thread
from typing import Any, NoReturn, TypeVar, cast
from uuid import uuid4

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from lgdgcn.errors import InputError, LGDError

__all__ = ["RankError", "Ranks", "rank_timeout"]

T = TypeVar("T")

TIMEOUT = "LGDGCN_RANK_TIMEOUT"  # the variable that says after how many seconds a rank hangs
_TIMEOUT = 600.0
_HEARD = 1.0  # seconds between two signs of life
_LOOK = 0.02  # seconds between two looks at an answer
_LOOK_AT_WORK = 0.1  # seconds between two looks at whether rank 0 has done its work
_FAILED = "failed"


class RankError(LGDError):
    """Another rank has ended or hangs; all can go on from the last checkpoint."""


class Ranks:
    """One process among those that train a model together.

    Attributes:
        rank: Its number; rank 0 alone writes the run folder.
        size: How many there are.
        restarts: How often torchrun has started them anew.
    """

    def __init__(self, rank: int = 0, size: int = 1, restarts: int = 0) -> None:
        self.rank, self.size, self.restarts = rank, size, restarts
        self._heard, self._works = 0.0, 0

    @staticmethod
    def current() -> "Ranks":
        """The ranks of this process; a single one where it was not started by torchrun."""
        return _current

    @staticmethod
    def start(device: torch.device) -> "Ranks":
        """Meet the other ranks, if torchrun has started some.

        Raises:
            RankError: They cannot be reached.
        """
        global _current
        if int(os.environ.get("WORLD_SIZE", "1")) == 1 or _current.size > 1:
            return _current
        restarts = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
        where = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
        limit = timedelta(seconds=rank_timeout())
        try:
            store, rank, size = next(rendezvous("env://", timeout=limit))
            own = PrefixStore(_new_name(store, rank, size), store)
            backend = "nccl" if device.type == "cuda" else "gloo"
            dist.init_process_group(backend, timeout=limit, world_size=size, rank=rank, store=own)
        except (RuntimeError, ValueError) as error:
            in_use = "in use" in str(error) or "EADDRINUSE" in str(error)
            raise RankError(
                f"the ranks cannot meet at {where}: "
                + ("the port is in use; name another with --master-port" if in_use else f"{error}")
            ) from None
        _current = Ranks(dist.get_rank(), dist.get_world_size(), restarts)
        return _current

    def end(self) -> None:
        """Part from the other ranks."""
        global _current
        if self.size > 1:
            dist.destroy_process_group()
        _current = Ranks()

    @property
    def is_first(self) -> bool:
        """Whether this is the one that writes."""
        return self.rank == 0

    def sum(self, row: Tensor) -> Tensor:
        """The sum of a tensor over all ranks, in its place."""
        if self.size > 1:
            with self._watched():
                dist.all_reduce(row)
        return row

    def agree(self, wish: bool) -> bool:
        """Whether any rank wishes it."""
        if self.size == 1:
            return wish
        device = "cuda" if dist.get_backend() == "nccl" else "cpu"
        return bool(self.sum(torch.tensor([float(wish)], device=device)))

    def from_first(self, value: T) -> T:
        """What rank 0 has, on all ranks."""
        if self.size == 1:
            return value
        with self._watched():
            held = [value]
            dist.broadcast_object_list(held)
        return held[0]

    def gather(self, value: T) -> list[T]:
        """What every rank has, by rank."""
        if self.size == 1:
            return [value]
        every: list[Any] = [None] * self.size
        with self._watched():
            dist.all_gather_object(every, value)
        return every

    def by_first(self, work: Callable[[], T]) -> T:
        """What rank 0 finds by itself, on all ranks, which wait while it gives signs of life.

        So the work may take longer than a rank may be silent.
        """
        if self.size == 1:
            return work()
        self._works += 1
        over = f"over/{self._works}"
        if not self.is_first:
            with self._watched() as store:
                self._wait_for_first(store, over)
            return cast("T", self.from_first(None))
        with self._alive(over):
            found = work()
        return self.from_first(found)

    @contextmanager
    def _alive(self, over: str) -> Iterator[None]:
        """Give signs of life from a thread, and write in the end whether all went well."""
        end, outcome = Event(), _FAILED
        store = dist.distributed_c10d._get_default_store()

        def beat() -> None:
            with suppress(RuntimeError):  # no store any more: the next message says so
                while not end.wait(_HEARD):
                    self._sign(store)

        thread = Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
            outcome = "done"
        finally:
            end.set()
            thread.join()
            with self._watched():
                store.set(over, outcome)

    def _wait_for_first(self, store: Store, over: str) -> None:
        """Wait until rank 0 has written how its work went, or has been silent for too long."""
        last, since = "", time.monotonic()
        while not (outcome := _read(store, over)):
            self._sign(store)
            heard = _read(store, "heard/0")
            if heard != last:
                last, since = heard, time.monotonic()
            elif time.monotonic() > since + rank_timeout():
                raise RuntimeError("timed out")
            time.sleep(_LOOK_AT_WORK)
        if outcome == _FAILED:
            raise RuntimeError(outcome)

    def check_same(self, about: Mapping[str, Any]) -> None:
        """Refuse ranks that do not train the same.

        Args:
            about: What must be the same, by a name that a message can use.

        Raises:
            InputError: The first thing that differs, and which rank has it.
        """
        for rank, other in enumerate(self.gather(dict(about))):
            for name, own in about.items():
                if other.get(name) != own:
                    raise InputError(
                        f"rank {rank} and rank {self.rank} differ in {name}; start all ranks with "
                        "the same version, graph and settings"
                    )

    @contextmanager
    def _watched(self) -> Iterator[Store]:
        """Give a sign of life, and name the rank that gives none if the others wait in vain."""
        store = dist.distributed_c10d._get_default_store()
        self._sign(store)
        try:
            yield store
        except RuntimeError as error:
            self._blame(store, str(error))

    def _sign(self, store: Store) -> None:
        """Give a sign of life, unless the last one is recent."""
        now = time.time()
        if now > self._heard + _HEARD:
            store.set(f"heard/{self.rank}", f"{now:.2f}")
            self._heard = now

    def _blame(self, store: Any, error: str) -> NoReturn:
        if "imed out" not in error and "imeout" not in error:
            raise RankError(
                f"rank {self.rank}: another rank has ended; all go on from the last checkpoint if "
                "torchrun was started with --max-restarts, or with --resume"
            ) from None
        silent, since = self.rank, 0.0
        for rank in range(self.size):
            if rank != self.rank and store.check([f"heard/{rank}"]):
                waited = time.time() - float(store.get(f"heard/{rank}"))
                silent, since = max((silent, since), (rank, waited), key=lambda one: one[1])
        raise RankError(
            f"rank {silent} hangs: rank {self.rank} has not heard of it for {since:.0f} s "
            f"({TIMEOUT}={rank_timeout():.0f}); look at its machine and start again with --resume"
        ) from None


def _new_name(store: Store, rank: int, size: int) -> str:
    """Agree on a name that was never used, for all that these ranks write into a store.

    torchrun may keep one store over its restarts, with the addresses of ranks that have ended. So
    every rank asks with a number of its own, and knows an answer to it from an older one.
    """
    own, end = uuid4().hex, time.monotonic() + rank_timeout()
    return _answer_all(store, size, own, end) if rank == 0 else _ask(store, rank, own, end)


def _answer_all(store: Store, size: int, name: str, end: float) -> str:
    """Rank 0 tells the name to whoever asks, until all have noted it."""
    missing = set(range(1, size))
    while missing:
        for rank in sorted(missing):
            if question := _read(store, f"question/{rank}"):
                store.set(f"answer/{rank}", f"{question} {name}")
            if _read(store, f"noted/{rank}") == name:
                missing.remove(rank)
        _wait(end, min(missing, default=0))
    return name


def _ask(store: Store, rank: int, question: str, end: float) -> str:
    """Another rank asks for the name until there is an answer to this very question."""
    store.set(f"question/{rank}", question)
    while True:
        answered, _, name = _read(store, f"answer/{rank}").partition(" ")
        if answered == question:
            store.set(f"noted/{rank}", name)
            return name
        _wait(end, 0)


def _read(store: Store, key: str) -> str:
    return str(store.get(key).decode()) if store.check([key]) else ""


def _wait(end: float, rank: int) -> None:
    if time.monotonic() > end:
        raise RuntimeError(f"rank {rank} has not come within {rank_timeout():g} s ({TIMEOUT})")
    time.sleep(_LOOK)


def rank_timeout() -> float:
    """Seconds after which a rank that is not heard of hangs."""
    text = os.environ.get(TIMEOUT) or str(_TIMEOUT)
    try:
        seconds = float(text)
        if 0 < seconds < 1e9:
            return seconds
    except ValueError:
        pass
    raise InputError(f"{TIMEOUT} is {text!r}; give a number of seconds above 0")


_current = Ranks()
