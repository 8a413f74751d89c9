"""Whether a training reads all nodes in every step, how its graph is read, and by which ranks."""

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Any

import torch
from torch_geometric.data import Data

from lgdgcn.commands.console import out
from lgdgcn.config import AUTO, Settings
from lgdgcn.data.packed import PackedGraph
from lgdgcn.data.packed.whole import memory_of_whole
from lgdgcn.data.source import GraphSource
from lgdgcn.data.validate import fingerprint
from lgdgcn.errors import InputError, LGDWarning
from lgdgcn.large.batch_input import check_batchable
from lgdgcn.large.rows import mapped_graph
from lgdgcn.large.sampler import EpochOrder
from lgdgcn.runs.fit import fit
from lgdgcn.runtime import available_memory, select_device, stop_on_signals
from lgdgcn.search.factors import least_factors
from lgdgcn.search.portfolio import Candidate
from lgdgcn.train.memory import TooLargeError, check_memory
from lgdgcn.train.ranks import Ranks

__all__ = ["check_same_graph", "follow", "graph_loader", "in_batches", "several_ranks"]

BATCH_SIZE = 8192  # where nobody names one
BATCH_NODES = 4 * BATCH_SIZE  # that a step looks at, at least


def graph_loader(source: GraphSource, batch_size: int) -> Callable[[int], Data]:
    """Return what reads the graph of a seed.

    A packed graph that is trained on in batches stays on the disk, and so does one that does not
    fit into memory.
    """
    read = lru_cache(maxsize=2)(source.load)
    if source.is_packed:
        packed = PackedGraph.open(source.dataset)
        if batch_size or memory_of_whole(packed) > available_memory():
            source.check_unread(packed)
            packed.check_hashes()  # all of it is used, and no index is looked at again
            mapped = lru_cache(maxsize=1)(lambda: mapped_graph(packed))
            return lambda seed: mapped()
    return lambda seed: read(seed if source.varies_with_seed else 0)


def in_batches(
    tried: list[Candidate], data: Data, model: str, device: torch.device
) -> list[Candidate]:
    """Return what is tried: in batches if that is asked for, or if not all nodes fit at once.

    Raises:
        TooLargeError: Not all nodes fit, and the model cannot be trained in batches.
    """
    first = tried[0].settings
    if first.factors == AUTO and (Ranks.current().size > 1 or data.edge_index is None):
        raise InputError(
            "factors is auto, which one process finds on a graph in memory; give a number"
        )
    size = first.batch_size
    if not size:
        try:
            check_memory(data, [least_factors(first, model)], model, device)
            if data.edge_index is not None:
                return tried
            reason = "the graph does not fit into memory"
        except TooLargeError as error:
            alone = [least_factors(first, model)]
            try:
                check_batchable(first, model)
                check_memory(data, alone, model, device, nodes=BATCH_NODES)
            except InputError:
                raise error from None
            reason = str(error).partition(";")[0]
        size = BATCH_SIZE
        out.print(f"{reason}: trained in batches of {size:,} nodes (--batch-size)", soft_wrap=True)
    every = [replace(one.settings, batch_size=size) for one in tried]
    nodes, train = len(data.y), int(data.train_mask.sum())
    for settings in every:
        check_batchable(settings, model)
        EpochOrder(nodes, train, size, settings.batch_parts)  # which says whether that can be
    return [Candidate(model, settings) for settings in every]


@contextmanager
def several_ranks(
    device: str, own: dict[str, Any], compare: list[str]
) -> Iterator[tuple[Ranks, torch.device]]:
    """Meet the other ranks, if torchrun has started some, and part when all is done.

    Several ranks train in batches, whose parts they share.

    Args:
        device: That of the command; every rank of a machine takes a GPU of its own.
        own: Settings that are given, to which those of ranks are added.
        compare: What is to be trained beside.
    """
    index = os.environ.get("LOCAL_RANK", "0")
    if torch.cuda.is_available() and device in ("auto", "cuda") and "LOCAL_RANK" in os.environ:
        device = f"cuda:{index}"
        torch.cuda.set_device(int(index))
    where = select_device(device)
    ranks = Ranks.start(where)
    try:
        if ranks.size > 1:
            if compare:
                raise InputError("--compare is for a single process; leave it out with torchrun")
            out.quiet = not ranks.is_first
            if not ranks.is_first:  # the first one says it
                warnings.simplefilter("ignore", LGDWarning)
            own.setdefault("batch_parts", ranks.size)
            own.setdefault("batch_size", BATCH_SIZE)
            if own["batch_parts"] < ranks.size:
                raise InputError(
                    f"batch_parts is {own['batch_parts']}, fewer than the {ranks.size} ranks; "
                    "leave it out, or start fewer ranks"
                )
        yield ranks, where
    finally:
        ranks.end()


def check_same_graph(load: Callable[[int], Data]) -> None:
    """Refuse ranks with different graphs, before anything is chosen, written or replaced."""
    ranks = Ranks.current()
    if ranks.size > 1:
        ranks.check_same({"graph": fingerprint(load(0))})


def follow(load: Callable[[int], Data], model: str, seeds: int, device: torch.device) -> None:
    """Train with rank 0, which chooses the settings and writes all files."""
    check_same_graph(load)
    settings: Settings | None = Ranks.current().from_first(None)
    if settings is not None:
        with stop_on_signals() as stop:
            fit(load, settings, model, range(seeds), device, stop=stop)
