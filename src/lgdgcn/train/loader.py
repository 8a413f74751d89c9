"""What a step computes on: the protocol of a loader, and the whole graph as one batch."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.errors import InputError
from lgdgcn.kernels.dispatch import is_recordable
from lgdgcn.models import NodeModel, NodeOutput
from lgdgcn.nn import Disentangled
from lgdgcn.nn.subgraph import Subgraph
from lgdgcn.train.population import Population
from lgdgcn.train.prepared import attach_edge_weights
from lgdgcn.train.targets import Targets
from lgdgcn.train.task import Task, selection_scores
from lgdgcn.train.trained import TrainedModel

__all__ = ["Batch", "Loader", "WholeGraph"]


class Batch(NamedTuple):
    """What one forward pass computes on.

    Attributes:
        x: Features of its nodes, dense or sparse ``[n, F]``.
        edge_index: Edges in its own numbers ``[2, e]``.
        targets: Its training nodes.
        draw: Number of the random stream that dropout draws from, by member ``[R]``.
        known: Output of the first layers, where it is known already.
        subgraph: What networks know of a part of a graph; ``None`` of a whole one.
    """

    x: Tensor
    edge_index: Tensor
    targets: Targets
    draw: Tensor
    known: Sequence[Disentangled] = ()
    subgraph: Subgraph | None = None


class Loader(ABC):
    """What a population is trained on, and scored on after every epoch.

    The trainer calls :meth:`begin` first, and again whenever members have left. Then, epoch by
    epoch, it computes on the batches of :meth:`steps`, joins their gradients by :meth:`join`, and
    asks for the scores of the validation nodes with :meth:`validate`.

    Attributes:
        graphs: A prepared graph for each member, or one for all.
        dtype: Type of the features, and of the weights.
        num_features: How many features a node has.
        num_steps: Steps of an epoch.
        is_whole: Whether a batch has all nodes, so that statistics of a network can be taken of it.
        is_recorded: Whether a GPU records an epoch. Then nothing in it is read by the host, and all
            tensors stay where they are.
        validated: Whether each member has validation nodes ``[R]``; known after :meth:`begin`.
    """

    graphs: list[Data]
    device: torch.device
    dtype: torch.dtype
    num_features: int
    num_steps: int = 1
    is_whole: bool
    is_recorded: bool = False
    validated: Tensor

    @abstractmethod
    def prepare(self, model: NodeModel, graph: Data, outputs: int, *, is_new: bool) -> None:
        """Let a single model see the graph; new weights may begin with what it says."""

    @abstractmethod
    def begin(
        self,
        population: Population,
        models: Sequence[NodeModel],
        graphs: Sequence[Data],
        tasks: Sequence[Task],
    ) -> None:
        """Begin to load batches for a population, whose single models have the present weights."""

    @abstractmethod
    def steps(self) -> Iterable[Iterable[Batch]]:
        """The steps of an epoch; gradients of the batches of a step are added."""

    def join(self, losses: dict[str, Tensor]) -> dict[str, Tensor]:
        """Turn added gradients and losses into means; those of one batch are means already."""
        return losses

    @abstractmethod
    def validate(self) -> tuple[Tensor, Tensor, Tensor]:
        """Evaluate: score and loss of the validation nodes, without any the sum of all scores."""

    @abstractmethod
    def refresh(self, due: Sequence[bool]) -> None:
        """Let the network find what it propagates along, for the members whose time it is."""

    def tensors(self) -> dict[str, Tensor]:
        """What has to be saved beside the population to go on: nothing, unless a loader says so."""
        return {}

    def load(self, saved: dict[str, Tensor]) -> None:  # noqa: B027 - there may be nothing
        """Go on with what :meth:`tensors` has saved; called after :meth:`begin`."""

    @abstractmethod
    def output(self, graph: Data, trained: TrainedModel) -> NodeOutput:
        """What a finished model says of all nodes, with all their neighbours."""


class WholeGraph(Loader):
    """A loader with one batch: the whole graph.

    An epoch is one program of tensor operations that never waits for the host, so that a GPU can
    record and replay it.

    Args:
        graphs: A canonical graph for each member, on the device it is trained on; they may differ
            in the split only. Or one graph for all.
    """

    is_whole = True

    def __init__(self, graphs: Data | Sequence[Data]) -> None:
        self.graphs = [graphs] if isinstance(graphs, Data) else list(graphs)
        for key in ("x", "edge_index"):
            shapes = list(dict.fromkeys(tuple(graph[key].shape) for graph in self.graphs))
            if len(shapes) > 1:
                raise InputError(
                    f"graphs of a population may differ in their split only; {key} has the shapes "
                    f"{shapes[0]} and {shapes[1]}"
                )
        for graph in self.graphs:
            attach_edge_weights(graph)
        self.x, self.edge_index = self.graphs[0].x, self.graphs[0].edge_index
        self.device, self.dtype, self.num_features = self.x.device, self.x.dtype, self.x.size(1)

    def prepare(self, model: NodeModel, graph: Data, outputs: int, *, is_new: bool) -> None:
        """Show a model the label sets of the training nodes, all features and edges."""
        known = graph.y[graph.train_mask]
        label_sets = F.one_hot(known, outputs) if known.dim() == 1 else known
        nodes = graph.train_mask.nonzero().flatten()
        model.observe(nodes, label_sets, graph.edge_index, len(graph.x))
        model.begin(label_sets.cpu(), graph.x, graph.edge_index)

    def begin(
        self,
        population: Population,
        models: Sequence[NodeModel],
        graphs: Sequence[Data],
        tasks: Sequence[Task],
    ) -> None:
        """Read which nodes are trained on, and which are validation nodes."""
        self.population, self.network, self.tasks = population, population.network, tasks
        self.targets = Targets.of(graphs, "train_mask")
        if population.members[0].settings.class_weights == "balanced":
            self.targets = self.targets.balanced(tasks[0].outputs)
        self.validation = Targets.of(graphs, "val_mask")
        self.validated = self.validation.weight.any(-1).expand(len(graphs))
        self._all_validated = bool(self.validated.all())
        self.is_recorded = self.network.can_be_captured and is_recordable(self.x)
        self.known: list[Disentangled] = []  # by the last evaluation, reused by the next step

    def steps(self) -> Iterator[list[Batch]]:
        """One step on one batch; it begins with the layers that are known."""
        known, self.known = self.known, []
        draw = self.population.epoch + 1
        yield [Batch(self.x, self.edge_index, self.targets, draw, known)]

    def validate(self) -> tuple[Tensor, Tensor, Tensor]:
        """Score the validation nodes; all nodes if a member has none."""
        logits = self._evaluate()
        with torch.no_grad():
            logit_sum = torch.where(self.validated, 0, logits.sum((-1, -2)).double())
            if not self._all_validated:
                logits = self.validation.pick(logits)
            score = selection_scores(self.tasks, logits, self.validation)
            return score, self.tasks[0].loss(logits, self.validation).double(), logit_sum

    def _evaluate(self) -> Tensor:
        """Class scores, whose units also move the statistics (Alg. 2).

        The next step begins with the same weights, so up to the first dropout its forward pass is
        this one: these layers are computed with gradients and kept for it, unless the weights of an
        evaluation are averages.
        """
        self.network.eval()
        reused = None  # all layers
        if self.is_recorded or self.network.is_random_from_start or self.population.average:
            reused = 0
        elif self.population.has_dropout:
            reused = 1
        pick = self.validation.pick if self._all_validated else None
        with self.population.averaged():
            with torch.enable_grad():
                known = self.network.factors(self.x, self.edge_index, count=reused)
            with torch.no_grad():
                output = self.network.disentangle(self.x, self.edge_index, known, pick)
                self.network.update_statistics(output, "after_step")
        self.known = known
        return output.logits

    def refresh(self, due: Sequence[bool]) -> None:
        """Let the network weigh anew what it propagates along."""
        self.network.refresh(self.x, self.edge_index, torch.tensor(due, device=self.device))

    def output(self, graph: Data, trained: TrainedModel) -> NodeOutput:
        """Run the model on the graph."""
        return trained.run(graph)
