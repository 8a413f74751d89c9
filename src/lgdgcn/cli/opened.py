"""What a verb opens: a run, its graph in memory or in parts, the reasons of its edges."""

import warnings
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.cli.train_table import factors_beside
from lgdgcn.data.packed import PackedGraph
from lgdgcn.data.packed.whole import memory_of_whole
from lgdgcn.data.source import GraphSource
from lgdgcn.errors import InputError, LGDWarning
from lgdgcn.large.batch_input import check_batchable
from lgdgcn.large.rows import mapped_graph
from lgdgcn.large.view import GraphView
from lgdgcn.metrics.routing import routing_warning, warnings_of_training
from lgdgcn.reasons import EdgeReasons, Explanation
from lgdgcn.reasons.of_graph import check_edges_device, load_edges
from lgdgcn.runs.finished import FinishedRun, open_run, without_training_notes
from lgdgcn.runs.folder import Run
from lgdgcn.runtime import available_memory

__all__ = [
    "OpenedRun",
    "factors_of",
    "graph_of",
    "large_graph",
    "warnings_of",
]


def factors_of(named: FinishedRun) -> tuple[FinishedRun, str | None]:
    """The run whose factors are looked at, and one line that says so if it is not this one.

    Where a model without factors is the best on a graph, LGD-GCN may be trained beside it.
    """
    run = named.with_factors()
    if run is named:
        return run, None
    return run, factors_beside(named.result, run.result, run.files.path)


def graph_of(run: FinishedRun) -> GraphView:
    """The graph of a run with its model, in memory or, where it is too large, mapped."""
    return large_graph(run) or GraphView.in_memory(run.trained, run.data)


def large_graph(run: FinishedRun, source: GraphSource | None = None) -> GraphView | None:
    """The graph of a run, or another one, if it is not to be read whole; else ``None``.

    So is a packed graph of a model that was trained in batches, or one that does not fit.

    Raises:
        InputError: It does not fit, and the model cannot be run on parts of it.
    """
    source = source or run.source
    if not source.is_packed:
        return None
    packed, settings = PackedGraph.open(source.dataset), run.trained.settings
    fits = memory_of_whole(packed) <= available_memory()
    if fits and not settings.batch_size:
        return None
    if source.features is not None:
        if fits:
            return None
        raise InputError(f"{source.dataset} is too large to be read whole, which --features needs")
    try:
        check_batchable(settings, run.trained.name)
    except InputError:
        if fits:
            return None
        raise InputError(
            f"{source.dataset} does not fit into memory, and the model of {run.files.path} needs "
            "all nodes at once; train one in batches (--batch-size)"
        ) from None
    packed.check_text()
    packed.check_hashes()  # all of it is used, and no index is looked at again
    is_of_run = source is run.source
    graph = GraphView.mapped(run.trained, packed, make_split=is_of_run and packed.y is not None)
    if is_of_run:
        with suppress(InputError):  # results or labels are gone, which a prediction can do without
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LGDWarning)  # the graph says it again
                data = mapped_graph(packed)
            run.check_same(data)
    return graph


class OpenedRun:
    """A run with its graph and why the edges are there, whoever found that.

    Attributes:
        files: The run folder.
        run: The model of nodes; None of a graph without labels.
        notes: What a reader should know of whose reasons they are, by a key.
    """

    def __init__(self, folder: Path, device: str) -> None:
        self.files = Run.open(folder)
        self.has_reasons = self.files.reasons.is_file()
        is_alone = self.has_reasons and not self.files.model.is_file()
        if is_alone:
            check_edges_device(device)
        self.run = None if is_alone else open_run(folder, device)
        self.notes: dict[str, str] = {}

    @property
    def source(self) -> GraphSource:
        """Where the graph is from."""
        return self.files.source

    @cached_property
    def graph(self) -> GraphView | None:
        """The graph with the model of nodes, if there is one."""
        return None if self.run is None else graph_of(self.run)

    @cached_property
    def data(self) -> Data:
        """The graph in canonical form."""
        if self.graph is not None:
            return self.graph.data
        with without_training_notes():
            return load_edges(self.source)

    @cached_property
    def reasons(self) -> EdgeReasons:
        """The reasons of the edges of a graph in memory, without a word of other seeds."""
        if self.has_reasons:
            return EdgeReasons.load(self.files.reasons, self.data)
        assert self.run is not None
        by, whose = factors_of(self.run)
        if whose is not None:
            self.notes["factors_of"] = whose
        return Explanation.of_factors(by.trained, self.data).reasons

    @cached_property
    def explanation(self) -> Explanation:
        """Why the edges of a graph in memory are there.

        Raises:
            InputError: Nobody has found out.
        """
        others = [] if self.run is None else self.run.other_seeds
        if self.has_reasons:
            return Explanation(self.data, self.reasons, self.graph, others=others)
        assert self.run is not None
        assert self.graph is not None
        by, whose = factors_of(self.run)
        if whose is None:
            return Explanation.of_factors(self.graph, self.data, others)
        self.notes["factors_of"] = whose
        reasons = Explanation.of_factors(by.trained, self.data, by.other_seeds).reasons
        return Explanation(self.data, reasons, self.graph, others=others)

    def explain(self, names: list[str]) -> Explanation:
        """Explain the nodes of these ids, or all reasons where there are none.

        Of a graph that is not read whole it is a part, which has what is near these nodes.
        """
        if self.graph is None or self.graph.packed is None:
            return self.explanation
        part = self.graph.part_around(names)
        nodes, every = part.x.size(0), self.graph.rows.num_nodes
        if nodes < every:
            self.notes["note"] = (
                f"what a factor is about is known from {nodes:,} of {every:,} nodes; all else is "
                "that of the whole graph"
            )
        return Explanation.of_factors(self.graph, part)

    def warnings(self, explanation: Explanation) -> tuple[list[str], list[str]]:
        """What a reader should know of the model and of its factors: all of it, what to print."""
        if self.run is None:
            return [], []
        factors = None
        if explanation.noun == "factor" and self.graph is not None:
            factors = self.graph.edge_factors
        return warnings_of(self.run, factors, again=True)


def warnings_of(
    run: FinishedRun, edge_factors: Tensor | None, *, again: bool
) -> tuple[list[str], list[str]]:
    """What a reader should know of a run's model and graph: all of it, and what to print.

    Args:
        run: The run; what ``train`` has said of its training is not printed again.
        edge_factors: Of the graph's edges ``[E, M]``, if the model has factors.
        again: Whether to print what factors say of the edges though ``train`` has said it: of
            another graph than the run's, and where the factors themselves are looked at.
    """
    said = warnings_of_training(run.warnings)
    routing = routing_warning(edge_factors, run.trained.settings)
    of_graph = [routing] if routing else []
    is_new = again or len(said) == len(run.warnings)
    return [*said, *of_graph], of_graph if is_new else []
