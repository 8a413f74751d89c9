"""Which runs and graphs are too large to be read whole, and are looked at in parts."""

import warnings

from lgdgcn.data.packed import PackedGraph
from lgdgcn.data.packed.whole import memory_of_whole
from lgdgcn.data.source import GraphSource
from lgdgcn.data.validate import fingerprint
from lgdgcn.errors import InputError, LGDWarning
from lgdgcn.large.batch_input import check_batchable
from lgdgcn.large.rows import mapped_graph
from lgdgcn.large.view import GraphView
from lgdgcn.runs.finished import FinishedRun
from lgdgcn.runtime import available_memory

__all__ = ["large_graph"]


def large_graph(finished: FinishedRun, source: GraphSource | None = None) -> GraphView | None:
    """The graph of a run, or another one, if it is not to be read whole; else ``None``.

    So is a packed graph of a model that was trained in batches, or one that does not fit.

    Raises:
        InputError: It does not fit, and the model cannot be run on parts of it.
    """
    source = source or finished.source
    if not source.is_packed:
        return None
    packed, settings = PackedGraph.open(source.dataset), finished.trained.settings
    fits = memory_of_whole(packed) <= available_memory()
    if fits and not settings.batch_size:
        return None
    if source.features is not None:
        if fits:
            return None
        raise InputError(f"{source.dataset} is too large to be read whole, which --features needs")
    try:
        check_batchable(settings, finished.trained.name)
    except InputError:
        if fits:
            return None
        raise InputError(
            f"{source.dataset} does not fit into memory, and the model of {finished.folder} needs "
            "all nodes at once; train one in batches (--batch-size)"
        ) from None
    packed.check_text()
    packed.check_hashes()  # all of it is used, and no index is looked at again
    own = source is finished.source
    graph = GraphView.mapped(finished.trained, packed, make_split=own and packed.y is not None)
    if own:
        _check_same(finished, packed)
    return graph


def _check_same(finished: FinishedRun, packed: PackedGraph) -> None:
    """Say so if the graph has changed since the training."""
    try:
        trained_on = finished.best_run.get("data")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LGDWarning)  # the graph says it again
            same = trained_on in (None, "", fingerprint(mapped_graph(packed)))
    except InputError:  # results or labels are gone, which a prediction can do without
        return
    if not same:
        warnings.warn(
            f"the data have changed since the run in {finished.folder} was trained: what follows "
            "is of the model that was trained before",
            LGDWarning,
            stacklevel=3,
        )
