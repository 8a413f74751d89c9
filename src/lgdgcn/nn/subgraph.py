"""A part of a graph that stands for all of it: what a network needs to know of a batch of nodes."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from torch import Tensor

from lgdgcn.nn.propagation import SampledPropagator

__all__ = ["Subgraph"]


class Subgraph(NamedTuple):
    """Some nodes with the neighbours that were drawn for them, n nodes in all.

    While one is active, networks propagate along its matrix, weigh votes by how many neighbours
    were drawn, and take losses from its seeds and drawn edges only. Sums over the seeds, times
    ``parts``, are on average the sums over all nodes; those over ``edges``, by weight, likewise.

    Attributes:
        propagator: Rows of the normalised adjacency matrix, whose degrees are those of the graph.
        vote_scale: Neighbours of a node, divided by those that were drawn ``[n]``.
        seeds: Number of nodes that losses are taken from; they come first.
        edges: Drawn edges of the seeds ``[2, e]``.
        edge_weight: How many edges of the graph each stands for ``[e]``.
        parts: Number of such parts that the nodes of the graph are dealt to.
        num_nodes: Nodes of the graph N.
        num_edges: Its edges E, both directions counted.
        variance: Where features were propagated ahead, the share of the variance of what is
            dropped that averaging over neighbours leaves ``[n]``.
    """

    propagator: SampledPropagator
    vote_scale: Tensor
    seeds: int
    edges: Tensor
    edge_weight: Tensor
    parts: int
    num_nodes: int
    num_edges: int
    variance: Tensor | None = None

    @staticmethod
    def current() -> "Subgraph | None":
        """The part that is active, if any."""
        return _active.get()

    @contextmanager
    def active(self) -> Iterator[None]:
        """Let networks run on this part inside."""
        token = _active.set(self)
        try:
            yield
        finally:
            _active.reset(token)

    def seeds_of(self, rows: Tensor, views: int) -> Tensor:
        """The rows of the seeds in every view, ``[*, V * n, M, d] -> [*, V * seeds, M, d]``."""
        by_view = rows.view(*rows.shape[:-3], views, -1, *rows.shape[-2:])
        return by_view[..., : self.seeds, :, :].flatten(-4, -3)


_active: ContextVar[Subgraph | None] = ContextVar("subgraph", default=None)
