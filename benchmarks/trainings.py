"""What measurements of accuracy share: development graphs, scored trainings, worker processes."""

import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from lgdgcn.data.source import GraphSource
from lgdgcn.runtime import keep_freed_memory
from lgdgcn.train.trained import TrainedModel, feature_names
from lgdgcn.training import Epoch, Result, Training, run

CITATIONS = ("cora", "citeseer", "pubmed")  # random splits, as their standard one is only one

Row = dict[str, Any]


def source_of(name: str) -> GraphSource:
    """A development graph, with random splits where there is only one other."""
    return GraphSource(name, split="random" if name in CITATIONS else "standard")


def scored(
    trainings: Sequence[Training], device: torch.device, judged: Sequence[int] = ()
) -> Iterator[tuple[Result, Row]]:
    """Train; yield every training with its scores as soon as it is finished.

    A row has the best validation score after each of the ``judged`` epochs (``rounds``), the one in
    the end (``val``) and the test score of the weights that are kept; ``None`` where it diverged.
    """
    best: dict[Training, list[float]] = {one: [] for one in trainings}

    def on_epoch(epochs: Sequence[Epoch]) -> None:
        for epoch in epochs:
            if epoch.state.diverged is None:
                # by epoch, as a training may begin again if memory runs out
                best[epoch.training][epoch.state.epoch - 1 :] = [epoch.state.best_score]

    for result in run(trainings, device, on_epoch):
        if result.state is None:
            raise result.error
        seen, state = best[result.training], result.state
        row: Row = {"val": None, "test": None, "seconds": state.seconds, "epochs": state.epoch}
        row["rounds"] = [seen[min(end, len(seen)) - 1] if seen else None for end in judged]
        if not state.diverged and state.epoch:
            row |= {"val": state.best_score, "test": _test_score(result)}
        yield result, row


def _test_score(result: Result) -> float:
    one, task, graph = result.training, result.task, result.graph
    names = list(getattr(one.graph, "classes", range(task.outputs)))
    model = TrainedModel(one.model, result.network(), one.settings, task, names,
                         one.graph.x.size(1), feature_names(one.graph))  # fmt: skip
    logits = result.output(model).logits
    task = task.tuned(logits, graph.y, graph.val_mask)
    return next(iter(task.scores(logits, graph.y, graph.test_mask).values()))


def in_workers(do: Callable[[Any], str], tasks: Iterable[Any], workers: int) -> None:
    """Do tasks in so many processes; print what each answers as it is done."""
    with multiprocessing.get_context("spawn").Pool(workers, keep_freed_memory) as pool:
        for done in pool.imap_unordered(do, tasks):
            if done:
                print(done, flush=True)
