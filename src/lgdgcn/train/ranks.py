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
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar
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
_LOOK = 0.02  # seconds between two looks at an answer
_PATIENT = timedelta(days=7)  # for what the first rank does by itself, however long it takes


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
        # objects are sent by the hosts, also between ranks that compute on GPUs
        self._hosts = dist.new_group(backend="gloo", timeout=_PATIENT) if size > 1 else None

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
        limit = timedelta(seconds=rank_timeout())
        try:
            store, rank, size = next(rendezvous("env://", timeout=limit))
            store = PrefixStore(_new_name(store, rank, size), store)
            backend = "nccl" if device.type == "cuda" else "gloo"
            dist.init_process_group(backend, timeout=limit, world_size=size, rank=rank, store=store)
            _current = Ranks(rank, size, restarts)
        except (RuntimeError, ValueError) as error:
            in_use = "in use" in str(error) or "EADDRINUSE" in str(error)
            where = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
            raise RankError(
                f"the ranks cannot meet at {where}: "
                + ("the port is in use; name another with --master-port" if in_use else f"{error}")
            ) from None
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
            with self._named_errors():
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
        with self._named_errors():
            held = [value]
            dist.broadcast_object_list(held, group=self._hosts)
        return held[0]

    def by_first(self, work: Callable[[], T]) -> T:
        """What rank 0 finds by itself, on all ranks, which wait for it however long it takes."""
        return self.from_first(work() if self.is_first else None)  # type: ignore[return-value]

    def check_same(self, about: Mapping[str, Any]) -> None:
        """Refuse ranks that do not train the same.

        Args:
            about: What must be the same, by a name that a message can use.

        Raises:
            InputError: The first thing that differs, and which rank has it.
        """
        if self.size == 1:
            return
        every: list[Any] = [None] * self.size
        with self._named_errors():
            dist.all_gather_object(every, dict(about), group=self._hosts)
        for rank, other in enumerate(every):
            for name, own in about.items():
                if other.get(name) != own:
                    raise InputError(
                        f"rank {rank} and rank {self.rank} differ in {name}; start all ranks with "
                        "the same version, graph and settings"
                    )

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Say in one line what is wrong where the others cannot be heard."""
        try:
            yield
        except RuntimeError as error:
            if "imed out" in str(error) or "imeout" in str(error):
                raise RankError(
                    f"another rank hangs: rank {self.rank} has waited for it for {TIMEOUT}="
                    f"{rank_timeout():.0f} s; look at the machines and start again with --resume"
                ) from None
            raise RankError(
                f"rank {self.rank}: another rank has ended; all go on from the last checkpoint if "
                "torchrun was started with --max-restarts, or with --resume"
            ) from None


def _new_name(store: Store, rank: int, size: int) -> str:
    """Agree on a name that was never used, for all that these ranks write into a store.

    torchrun may keep one store over its restarts, with the addresses of ranks that have ended, and
    several machines do not agree in how often they were restarted. So every rank asks with a number
    of its own, and knows an answer to it from an older one.
    """
    end, missing, name = time.monotonic() + rank_timeout(), set(range(1, size)), uuid4().hex
    if rank > 0:
        store.set(f"question/{rank}", name)
    while True:
        if rank > 0:
            answered, _, new = _read(store, f"answer/{rank}").partition(" ")
            if answered == name:
                store.set(f"noted/{rank}", new)
                return new
        for other in sorted(missing) if rank == 0 else ():
            if question := _read(store, f"question/{other}"):
                store.set(f"answer/{other}", f"{question} {name}")
            if _read(store, f"noted/{other}") == name:
                missing.remove(other)
        if not missing:
            return name
        if time.monotonic() > end:
            late = min(missing) if rank == 0 else 0
            raise RuntimeError(f"rank {late} has not come within {rank_timeout():g} s ({TIMEOUT})")
        time.sleep(_LOOK)


def _read(store: Store, key: str) -> str:
    return str(store.get(key).decode()) if store.check([key]) else ""


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
