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

from lgdgcn.cli import console
from lgdgcn.config import AUTO
from lgdgcn.data.packed import PackedGraph
from lgdgcn.data.packed.whole import memory_of_whole
from lgdgcn.data.source import GraphSource, split_again
from lgdgcn.data.validate import fingerprint
from lgdgcn.errors import InputError, LGDWarning
from lgdgcn.large.batch_input import check_batchable
from lgdgcn.large.rows import mapped_graph
from lgdgcn.large.sampler import EpochOrder
from lgdgcn.runs.fit import fit
from lgdgcn.runtime import available_memory, select_device, stop_on_signals
from lgdgcn.search.factors import least_factors
from lgdgcn.search.families import Candidate
from lgdgcn.train.memory import TooLargeError, check_memory
from lgdgcn.train.ranks import Ranks

__all__ = ["check_same_graph", "fitting", "follow", "graph_loader", "several_ranks"]

BATCH_SIZE = 8192  # where nobody names one
BATCH_NODES = 4 * BATCH_SIZE  # that a step looks at, at least


def graph_loader(source: GraphSource, batch_size: int) -> Callable[[int], Data]:
    """Return what reads the graph of a seed.

    A packed graph that is trained on in batches stays on the disk, and so does one that does not
    fit into memory. Of a folder whose split is drawn for each seed only the split is made anew.
    """
    if source.is_packed:
        packed = PackedGraph.open(source.dataset)
        if batch_size or memory_of_whole(packed) > available_memory():
            source.check_unread(packed)
            packed.check_hashes()  # all of it is used, and no index is looked at again
            mapped = lru_cache(maxsize=1)(lambda: mapped_graph(packed))
            return lambda seed: mapped()
    if source.is_folder and source.split == "random":
        whole = lru_cache(maxsize=1)(replace(source, split="standard").load)
        return lambda seed: split_again(whole(), seed)
    read = lru_cache(maxsize=2)(source.load)
    return lambda seed: read(seed if source.varies_with_seed else 0)


def fitting(candidates: list[Candidate], data: Data, device: torch.device) -> list[Candidate]:
    """Return the candidates of families that can be trained here, in batches where need be.

    Raises:
        InputError: No family can be: why not the first one.
    """
    fitted: dict[Candidate, Candidate] = {}
    refused: list[InputError] = []
    for model in dict.fromkeys(one.model for one in candidates):
        family = [one for one in candidates if one.model == model]
        try:
            fitted |= zip(family, _in_batches(family, data, model, device), strict=True)
        except InputError as error:
            refused.append(error)
    if not fitted:
        raise refused[0]
    return [fitted[one] for one in candidates if one in fitted]


def _in_batches(
    tried: list[Candidate], data: Data, model: str, device: torch.device
) -> list[Candidate]:
    """Return what is tried: in batches if that is asked for, or if not all nodes fit at once."""
    first = tried[0].settings
    if first.factors == AUTO and (Ranks.current().size > 1 or data.edge_index is None):
        raise InputError(
            "factors is auto, which one process finds on a graph in memory; give a number"
        )
    size, alone = first.batch_size, [least_factors(first, model)]
    if not size:
        try:
            check_memory(data, alone, model, device)
            if data.edge_index is not None:
                return tried
            reason = "the graph does not fit into memory"
        except TooLargeError as error:
            try:
                check_batchable(first, model)
                check_memory(data, alone, model, device, nodes=BATCH_NODES)
            except InputError:
                raise error from None
            reason = str(error).partition(";")[0]
        size = BATCH_SIZE
    every = [replace(one.settings, batch_size=size) for one in tried]
    nodes, train = len(data.y), int(data.train_mask.sum())
    for settings in every:
        check_batchable(settings, model)
        EpochOrder(nodes, train, size, settings.batch_parts)  # which says whether that can be
    if not first.batch_size:
        console.say(f"{reason}: trained in batches of {size:,} nodes (--batch-size)")
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
            if not ranks.is_first:  # the first one says it
                console.silence()
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


def check_same_graph(load: Callable[[int], Data], seeds: range) -> None:
    """Refuse ranks with different graphs, before anything is chosen, written or replaced."""
    ranks = Ranks.current()
    if ranks.size > 1:
        ranks.check_same({"graph": fingerprint(load(seeds[0]))})


def follow(load: Callable[[int], Data], seeds: range, device: torch.device) -> None:
    """Train with rank 0, which chooses the model and its settings and writes all files."""
    check_same_graph(load, seeds)
    chosen: Candidate | None = Ranks.current().from_first(None)
    if chosen is not None:
        with stop_on_signals() as stop:
            fit(load, chosen.settings, chosen.model, seeds, device, stop=stop)
