"""What every model is to the trainer, the commands and the estimator."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from torch import Tensor, nn

from lgdgcn.nn import Disentangled, Moment

__all__ = ["NodeModel", "NodeOutput", "NodePicker"]

NodePicker = Callable[[Tensor], Tensor]  # takes some nodes out of all, [*, N, d] -> [*, n, d]


class NodeOutput(NamedTuple):
    """Class scores of the nodes and what each layer knows of factors.

    In training, a model with V views gives V times as many scores, view after view.
    """

    logits: Tensor  # [*, N, C]
    layers: list[Disentangled]  # empty for models without factors
    views: tuple[Tensor, ...] = ()  # scores of all nodes in every view, if a loss needs them


class NodeModel(nn.Module):
    """A node classifier that can be trained, saved and compared here.

    A model needs a constructor with ``in_channels`` and ``out_channels`` (its other arguments are
    settings, see :func:`lgdgcn.models.build`) and :meth:`forward`. All other methods have a
    default that does nothing; a model with losses, statistics or factors of its own says so here.

    Attributes:
        num_factors: Number of factors M, 0 for models without.
        is_batched: Whether its layers take weights and features with a leading axis of members;
            other models are run member by member, see :func:`lgdgcn.models.population.stack`.
        can_be_captured: Whether a GPU can record a training epoch as a CUDA graph.
        views: Random views of the graph that a training step scores the nodes in.
        refresh_every: Epochs between two calls of :meth:`refresh`; 0 for none.
        is_random_from_start: Whether training differs from evaluation before the first layer, so
            that no layer of an evaluation can be reused by the next step.
        uses_edge_weights: Whether an edge's weight has a part in what it does.
    """

    num_factors = 0
    is_batched = False
    can_be_captured = True
    views = 1
    refresh_every = 0
    is_random_from_start = False
    uses_edge_weights = False

    @property
    def views_now(self) -> int:
        """Views of a forward pass: all of them in training, one in evaluation."""
        return self.views if self.training else 1

    def observe(self, nodes: Tensor, y: Tensor, edge_index: Tensor, num_nodes: int) -> None:
        """Read labels, if they are an input of the model, before it is given weights.

        Args:
            nodes: Numbers of the training nodes ``[n]``.
            y: Their label sets, 0 or 1 each. Shape ``[n, C]``.
            edge_index: Edges. Shape ``[2, E]``.
            num_nodes: Number of nodes N.
        """

    def begin(self, y: Tensor, x: Tensor, edge_index: Tensor) -> None:
        """Prepare new weights for the graph that they are trained on.

        Args:
            y: Label sets of the training nodes, 0 or 1 each. Shape ``[n, C]``.
            x: Features of all nodes, dense or sparse. Shape ``[N, F]``.
            edge_index: Edges. Shape ``[2, E]``.
        """

    def factors(
        self,
        x: Tensor,
        edge_index: Tensor,
        known: Sequence[Disentangled] = (),
        count: int | None = None,
    ) -> list[Disentangled]:
        """Return what each layer knows of the factors of nodes and edges; nothing by default.

        Args:
            x: Features, dense or sparse. Shape ``[N, F]``.
            edge_index: Edges. Shape ``[2, E]``.
            known: Output of the first layers for the same weights, which is not computed again.
            count: How many layers to run; all by default.
        """
        return []

    def classify(
        self,
        x: Tensor,
        edge_index: Tensor,
        layers: Sequence[Disentangled],
        pick: NodePicker | None = None,
    ) -> Tensor:
        """Return the class scores ``[*, n, C]`` of all nodes, or of those that ``pick`` takes."""
        logits: Tensor = self(x, edge_index)
        return logits if pick is None else pick(logits)

    def disentangle(
        self,
        x: Tensor,
        edge_index: Tensor,
        known: Sequence[Disentangled] = (),
        pick: NodePicker | None = None,
    ) -> NodeOutput:
        """Return class scores and factors; see :meth:`factors` and :meth:`classify`."""
        layers = self.factors(x, edge_index, known)
        return NodeOutput(self.classify(x, edge_index, layers, pick), layers)

    def losses(self, output: NodeOutput, edge_index: Tensor) -> dict[str, Tensor]:
        """Return losses beside the classification's by name, ``[*]`` each; none by default.

        The trainer weighs a loss by the setting that names it
        (:data:`lgdgcn.config.LOSS_WEIGHTS`).
        """
        return {}

    def update_statistics(self, output: NodeOutput, moment: Moment) -> None:
        """Update what is not learned by gradients, at a moment of a training step."""

    def refresh(self, x: Tensor, edge_index: Tensor, due: Tensor) -> None:
        """Change buffers that depend on the whole graph, every ``refresh_every`` epochs.

        Args:
            x: Features. Shape ``[N, F]``.
            edge_index: Edges. Shape ``[2, E]``.
            due: The members whose time it is ``[R]``.
        """

    def for_nodes(self, numbers: Tensor) -> "NodeModel":
        """Return a model for a graph that shares nodes with the one it was trained on.

        Args:
            numbers: What number each node has in the latter, -1 where it is new ``[N]``.
        """
        return self

    def adapted(self, x: Tensor, edge_index: Tensor) -> "NodeModel":
        """Return the model for a graph that it may not be trained on; itself by default."""
        return self

    def resize(self, saved: Mapping[str, Tensor]) -> None:
        """Give buffers whose size depends on the graph that of the saved tensors, by name."""

    def factor_shares(self, units: Tensor, label: Tensor) -> Tensor | None:
        """Return what each factor adds to one label's score of every node ``[N, M]``."""
        return None

    def factor_classes(self, units: Tensor) -> Tensor | None:
        """Return each node's most probable class in every factor ``[N, M]``, 0 to d - 1.

        ``None``, the default, where the units ``[N, M, d]`` are not classes.
        """
        return None

    def owned_factors(self) -> Tensor | None:
        """Return whether labels own each factor ``[*, M]``, the others being free to explain edges.

        ``None``, the default, where labels own no factors.
        """
        return None

    def label_classes(self) -> Tensor | None:
        """Return the class that each label is ``[C]``, -1 for a label that is no single class.

        Class k of factor m has number m * d + k. ``None``, the default, where factors have no
        classes.
        """
        return None

    def reason_weights(self) -> Tensor | None:
        """Return how much labels travel along an edge of each reason, of all reasons 1 ``[*, R]``.

        ``None``, the default, where reasons of edges have no part in what it does.
        """
        return None

    def without_latent_graphs(self) -> "NodeModel | None":
        """Return a copy that does not aggregate along latent graphs; ``None`` if none does."""
        return None

    def concerns(self) -> list[str]:
        """Return what a user should know of the model before training, a sentence each."""
        return []
