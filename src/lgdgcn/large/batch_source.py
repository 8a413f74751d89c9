"""Where the batches of a training are read from, which changes with what a network has found."""

import torch

from lgdgcn.config import Settings
from lgdgcn.large.batch_input import BatchInput
from lgdgcn.large.batches import BatchSampler
from lgdgcn.large.resident import make_resident
from lgdgcn.large.rows import GraphRows
from lgdgcn.large.structure import check_structure_size, structure_rows
from lgdgcn.models import ClassUnitGCN

__all__ = ["BatchSource"]


class BatchSource:
    """What batches are read from, for networks that differ in the structure they have found.

    Args:
        graph: The graph.
        settings: Those of all networks.
        device: Where batches are computed; they are read there, too, if the graph fits.

    Raises:
        InputError: Latent neighbours of so many nodes cannot be found here.
    """

    def __init__(self, graph: GraphRows, settings: Settings, device: torch.device) -> None:
        if settings.structure in ("global", "both"):
            check_structure_size(graph.num_nodes)
        self.graph, self.settings, self.device = graph, settings, device
        self._now: BatchInput | None = None
        self._epoch = 0  # whose structure it has
        self._table = settings.hop_table

    @property
    def now(self) -> BatchInput:
        """What is read since the last network was looked at."""
        assert self._now is not None
        return self._now

    def look_at(self, model: ClassUnitGCN) -> BatchInput:
        """Read, from now on, what a single network needs: hops along its structure."""
        graph = model.propagation_graph
        past = None if graph is None else graph.past
        epoch = 0 if past is None else int(past.epoch)
        if self._now is None or self._epoch != epoch:
            self.release()  # a table, before there is another
            along = structure_rows(self.graph, model)
            found = BatchInput.of(self.graph, self.settings, model, along, self._table)
            self._now = make_resident(found, self.device)
            self._epoch = epoch
        return self._now

    def release(self) -> None:
        """Give up what is read, until the next network is looked at."""
        if self._now is not None:  # with a table or without: what was chosen stays
            self._table = "never" if self._now.table is None else "always"
        self._now = None

    def sampler(self, *, evaluates: bool = False) -> BatchSampler:
        """Return what makes batches, for scores with more neighbours."""
        return self.now.sampler(self.settings.fan_out, evaluates=evaluates)
