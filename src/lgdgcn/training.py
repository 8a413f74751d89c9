"""Trainings in, results out: as many in one pass as fit, halves of them where memory runs out.

Every verb that trains describes what it wants as :class:`Training` and reads :class:`Result`::

    for result in run(trainings, device, on_epoch):
        ...
"""

import gc
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from typing import Any, NoReturn

import torch
from torch_geometric.data import Data

from lgdgcn.data.scaling import suited_scaling
from lgdgcn.errors import DivergedError, InputError, LGDError
from lgdgcn.large.batch_input import check_batchable
from lgdgcn.large.rows import prepared_rows
from lgdgcn.large.sampler import NeighbourLoader
from lgdgcn.models import NodeModel, NodeOutput
from lgdgcn.train.loader import Loader, WholeGraph
from lgdgcn.train.memory import (
    check_memory,
    is_out_of_memory,
    members_at_once,
    out_of_memory,
    passes_at_once,
)
from lgdgcn.train.population import Epoch, Training, TrainState
from lgdgcn.train.prepared import prepared_alike
from lgdgcn.train.ranks import Ranks
from lgdgcn.train.task import Task
from lgdgcn.train.trained import TrainedModel
from lgdgcn.train.trainer import Trainer

__all__ = ["Epoch", "Result", "Training", "run"]

_MOST_AT_ONCE = 4  # passes side by side: beyond, they wait for the interpreter
_SMALL = 20_000  # nodes and edges, both ways, of a graph whose operations no cores share


@dataclass(frozen=True)
class Result:
    """A training that has ended.

    Attributes:
        graph: Its graph as it was trained on: on the device, with scaled features and ``scaling``.
        task: What it predicts, and which score has chosen the epoch to keep.
        state: Where it stands, with its tensors; ``None`` if it did not fit into memory.
        error: Why there is no model: it diverged, or did not fit by itself; ``None`` usually.
        network: Returns a single model with the weights of the best epoch or, called with
            ``"model"``, of the last one.
        output: Returns what a finished model says of all nodes of its graph, with all their
            neighbours.
    """

    training: Training
    graph: Data = field(repr=False)
    task: Task | None
    state: TrainState | None = field(repr=False)
    error: LGDError | None
    network: Callable[..., NodeModel] = field(repr=False)
    output: Callable[[TrainedModel], NodeOutput] = field(repr=False)


# Sees all trainings of a pass after each of their epochs. What it returns is given up (and keeps
# the best it has seen); it may raise to stop everything.
OnEpoch = Callable[[Sequence[Epoch]], Iterable[Training] | None]


def run(
    trainings: Sequence[Training],
    device: torch.device,
    on_epoch: OnEpoch = lambda epochs: None,
) -> Iterator[Result]:
    """Train, those of one architecture together, and yield each result when it is finished.

    Args:
        trainings: What is wanted; those of one pass have one graph, which may differ in its split.
        device: Where to train.
        on_epoch: See :data:`OnEpoch`.
    """
    alike: dict[Hashable, list[Training]] = {}
    scalings: dict[int, str] = {}  # by the features, which splits of one graph share
    for one in trainings:
        alone = id(one) if one.settings.batch_size else None
        key = (one.architecture, alone, _scaled_by(one, scalings))
        alike.setdefault(key, []).append(one)
    groups = sorted(alike.values(), key=len, reverse=True)
    is_alone = Ranks.current().size == 1 and not any(one.settings.batch_size for one in trainings)
    at_once = min(len(groups), torch.get_num_threads(), _MOST_AT_ONCE)
    if device.type == "cpu" and is_alone and at_once > 1:
        pairs = ((group[0].model, group[0].settings) for group in groups)
        at_once = min(at_once, passes_at_once(trainings[0].graph, pairs))
    if device.type == "cpu" and is_alone and at_once > 1:
        yield from _side_by_side(groups, device, on_epoch, at_once)
        return
    try:
        for together in groups:
            yield from _run_alike(together, device, on_epoch)
    finally:
        gc.unfreeze()


def _side_by_side(
    groups: Sequence[Sequence[Training]], device: torch.device, on_epoch: OnEpoch, at_once: int
) -> Iterator[Result]:
    """Train several passes at once, each on its share of the cores.

    The operations of one pass on a small graph are too short to be shared by cores. What a pass
    computes does not depend on the others: they take turns in ``on_epoch`` and where weights are
    drawn, and what raises in one ends them all.
    """
    ready: SimpleQueue[Result | BaseException | None] = SimpleQueue()
    groups_left, turn, is_over = iter(groups), threading.Lock(), threading.Event()

    def follow(epochs: Sequence[Epoch]) -> Iterable[Training] | None:
        with turn:
            if is_over.is_set():
                raise _EndedError
            return on_epoch(epochs)

    def work() -> None:
        try:
            for together in groups_left:
                for result in _run_alike(together, device, follow):
                    ready.put(result)
            ready.put(None)
        except BaseException as error:
            ready.put(error)  # before other passes end because of it
            is_over.set()

    cores = torch.get_num_threads()
    graph = groups[0][0].graph
    is_small = len(graph.y) + graph.edge_index.size(1) < _SMALL
    torch.set_num_threads(1 if is_small else cores // at_once)  # of threads that begin now
    threads = [threading.Thread(target=work, daemon=True) for _ in range(at_once)]
    try:
        for thread in threads:
            thread.start()
        while at_once:
            result = ready.get()
            if isinstance(result, BaseException):
                raise result
            if result is None:
                at_once -= 1
            else:
                yield result
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
        torch.set_num_threads(cores)


class _EndedError(Exception):
    """Something was raised in another pass."""


def _run_alike(
    together: Sequence[Training], device: torch.device, on_epoch: OnEpoch
) -> Iterator[Result]:
    """Train what fits into one pass in as few passes as memory allows."""
    free_memory(device)
    largest = max((one.settings for one in together), key=lambda settings: settings.k)
    at_once = 1
    if not largest.batch_size:
        at_once = members_at_once(together[0].graph, largest, device, together[0].model)
    queue = deque(_passes(together, at_once))
    while queue:
        batch = queue.popleft()
        ended: set[int] = set()
        try:
            for result in _train(batch, device, on_epoch):
                ended.add(id(result.training))
                yield result
            continue
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            too_large = error if isinstance(error, InputError) else out_of_memory(device)
        # out here nothing holds the failed trainer any more
        too_large = too_large.with_traceback(None)
        free_memory(device)
        rest = [one for one in batch if id(one) not in ended]
        halves = list(_passes(rest, (len(rest) + 1) // 2))
        if len(halves) > 1:
            queue.extendleft(reversed(halves))
        else:
            for one in rest:
                yield Result(one, one.graph, None, None, too_large, _no_network, _no_network)


def _train(batch: Sequence[Training], device: torch.device, on_epoch: OnEpoch) -> Iterator[Result]:
    trainer = Trainer(batch, loader(batch, device))
    left = dict(enumerate(batch))
    while left:
        for index in filter(trainer.is_finished, list(left)):
            yield _result(left.pop(index), trainer, index)
        if left:
            given_up = {id(one) for one in on_epoch(trainer.epoch()) or ()}
            trainer.retire(index for index, one in left.items() if id(one) in given_up)


def loader(trainings: Sequence[Training], device: torch.device) -> Loader:
    """What these trainings, all of one architecture, compute on: batches, or the whole graph.

    Raises:
        InputError: They cannot be trained in batches, or do not fit into memory at once.
    """
    first, graphs = trainings[0], [one.graph for one in trainings]
    settings = first.settings
    if settings.batch_size:
        check_batchable(settings, first.model)
        return NeighbourLoader(prepared_rows(graphs[0], settings), settings, device)
    ready = prepared_alike(graphs, settings, device)
    left = [one for one in trainings if not (one.state or TrainState()).is_finished(one.settings)]
    check_memory(ready[0], [one.settings for one in left], first.model, device)
    return WholeGraph(ready)


def _result(one: Training, trainer: Trainer, index: int) -> Result:
    state = trainer.state(index)
    error = None if state.diverged is None else DivergedError(state.diverged)
    model, output = partial(trainer.model, index), partial(trainer.output, index)
    return Result(one, trainer.graphs[index], trainer.tasks[index], state, error, model, output)


def _no_network(*_: Any) -> NoReturn:
    raise InputError("the training did not fit into memory")


def _passes(trainings: Sequence[Training], size: int) -> Iterator[list[Training]]:
    """Cut trainings into passes of about this size, at least one group each."""
    groups: dict[Hashable, list[Training]] = {}
    for one in trainings:
        groups.setdefault(id(one) if one.group is None else one.group, []).append(one)
    batch: list[Training] = []
    for group in groups.values():
        if batch and len(batch) + len(group) > size:
            yield batch
            batch = []
        batch = batch + group
    if batch:
        yield batch


def _scaled_by(training: Training, scalings: dict[int, str]) -> Hashable:
    """The training nodes, if the features depend on them: other ones have no features in common."""
    if training.settings.batch_size:
        return None
    kind, x = training.settings.feature_scaling, training.graph.x
    if kind == "auto":
        if id(x) not in scalings:
            scalings[id(x)] = suited_scaling(x)
        kind = scalings[id(x)]
    return training.graph.train_mask.numpy().tobytes() if kind == "standard" else None


def free_memory(device: torch.device) -> None:
    """Give back what earlier trainers held, so that it counts as free.

    What is alive now, mostly modules, is left out of later collections until all trainings are
    over: recording an epoch collects too, and looking at every module each time took half of a
    race of small graphs.
    """
    if device.type == "cuda":
        gc.collect()
        gc.freeze()
        torch.cuda.empty_cache()
