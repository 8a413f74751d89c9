"""Where batches are read from: hops that were propagated before, or drawn neighbours.

It changes with the structure that a network has found. Drawing neighbours and gathering rows are
small random reads, for which a GPU's memory is some ten times as fast as that of its host, and
nothing has to be copied. So what batches are read from is moved to the GPU if it takes no more than
half of the free memory there; otherwise the host reads batches and copies them.
"""

import shutil
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor

from lgdgcn.config import Settings
from lgdgcn.errors import InputError
from lgdgcn.large.batches import BatchSampler
from lgdgcn.large.hops import (
    HopTable,
    hop_table,
    left_variance,
    row_ranges,
    table_bytes,
    table_folder,
)
from lgdgcn.large.rows import GraphRows, feature_rows
from lgdgcn.large.structure import check_structure_size, structure_rows
from lgdgcn.models import ClassUnitGCN
from lgdgcn.nn.encoder import PropagationEncoder
from lgdgcn.progress import long_work
from lgdgcn.runtime import available_memory, gibibytes

__all__ = ["BatchSource", "check_batchable", "lacks_table"]

_SHARE = 0.5  # of the free memory that a graph may take
_WIDEST = 1024  # features that a table on a disk may have
_EVALUATED = 8  # times as many neighbours in an evaluation, which is made once in an epoch


def check_batchable(settings: Settings, model: str) -> None:
    """Refuse what cannot be trained in batches of nodes, naming the setting."""
    wrong = [
        (model != "lgdgcn" or settings.variant != "ours", "another model than our variant"),
        (
            settings.latent_graph,
            "latent_graph; set it to false (our variant's latent neighbours are structure)",
        ),
        (settings.space or settings.diversity, "space and diversity; set them to false"),
        (settings.unit_length, "unit_length; set it to false"),
    ]
    for is_wrong, what in wrong:
        if is_wrong:
            raise InputError(f"batches of nodes (batch_size) cannot be trained with {what}")


class BatchSource:
    """What batches are read from, for networks that differ in the structure they have found.

    They are read where they are computed, on the device, if the graph fits there.

    Raises:
        InputError: Latent neighbours of so many nodes cannot be found here.
    """

    def __init__(self, graph: GraphRows, settings: Settings, device: torch.device) -> None:
        if settings.structure in ("global", "both"):
            check_structure_size(graph.num_nodes)
        self.graph, self.settings, self.device = graph, settings, device
        self._now: BatchSampler | None = None
        self._table: HopTable | None = None
        self._epoch = 0  # whose structure it has
        self._wanted = settings.hop_table

    @property
    def now(self) -> BatchSampler:
        """What makes batches for the network that was looked at last."""
        assert self._now is not None
        return self._now

    def look_at(self, network: ClassUnitGCN) -> None:
        """Read, from now on, what a single network needs: hops along its structure."""
        graph, encoder = network.propagation_graph, network.encoder
        past = None if graph is None else graph.past
        epoch = 0 if past is None else int(past.epoch)
        if self._now is not None and self._epoch == epoch:
            return
        self.release()  # a table, before there is another
        self._epoch = epoch
        along = structure_rows(self.graph, network)
        drawn, variance = 0, None
        if encoder is not None:
            variance = self._make_table(encoder, along)
            drawn = len(encoder.deeper) + (encoder.hops if self._table is None else 0)
        features = self.graph.features if self._table is None else self._table.rows
        votes = self.settings.iterations * self.settings.num_layers
        sampler = BatchSampler(
            self.graph, features, votes, drawn, self.settings.fan_out, along, variance
        )
        self._now = self._on_device(sampler)

    def release(self) -> None:
        """Give up what is read, until the next network is looked at."""
        if self._now is not None:  # with a table or without: what was chosen stays
            self._wanted = "never" if self._table is None else "always"
        self._now = self._table = None

    def sampler(self, *, evaluates: bool = False) -> BatchSampler:
        """Return what makes batches; for scores with more neighbours, which make them exact."""
        now = self.now
        return replace(now, fan_out=now.fan_out * _EVALUATED) if evaluates else now

    def set_input_scale(self, network: ClassUnitGCN) -> None:
        """Let a new encoder divide by the spread of propagated features, if it does so at all."""
        self.look_at(network)
        encoder, table, graph = network.encoder, self._table, self.graph
        if encoder is None or encoder.input_scale is None:
            return
        if table is None and encoder.hops == 0:
            size = table_bytes(graph, 0, summed=False)
            table = hop_table(graph, 0, folder=table_folder(size))
        if table is None:
            raise InputError("batch_norm needs hop_table = always where neighbours are drawn")
        spread = table.spread(encoder.hop_shares().detach().cpu())
        encoder.input_scale.copy_(torch.where(spread > 0, 1 / spread, 0))

    def _make_table(self, encoder: PropagationEncoder, along: GraphRows) -> Tensor | None:
        """Propagate features once, if that is wanted and there is room.

        Returns:
            What is left of the variance of dropped nodes in the table's rows ``[N]``.
        """
        summed = encoder.hop_weights == "mean" and self.settings.drop_nodes == 0
        if not encoder.hops:
            return None
        has_room, folder = _place(along, encoder.hops, summed, self._wanted)
        if not has_room:
            return None
        shares = encoder.hop_shares().detach().cpu() if summed else None
        with long_work("propagating features", "rows") as advance:
            self._table = hop_table(along, encoder.hops, shares, folder, advance)
        return left_variance(along, encoder.hops, folder)

    def _on_device(self, sampler: BatchSampler) -> BatchSampler:
        """Move what batches are read from to a GPU if there is room for it."""
        device = self.device
        if device.type == "cpu" or not self._has_room(sampler):
            return sampler
        graph = sampler.graph.to(device)
        along = graph if sampler.along is sampler.graph else sampler.along.to(device)
        variance = None if sampler.variance is None else sampler.variance.to(device)
        if self._table is not None:
            self._table = HopTable(self._table.hops.to(device))
            features = self._table.rows
        else:
            features = partial(feature_rows, _all_features(sampler.graph, device))
        if device.type == "cuda":
            torch.cuda.synchronize(device)  # another stream will read it
        return replace(sampler, graph=graph, along=along, variance=variance, features=features)

    def _has_room(self, sampler: BatchSampler) -> bool:
        """Whether all of it takes little enough of the device's memory."""
        graph = sampler.graph
        size = graph.nbytes + (0 if sampler.along is graph else sampler.along.nbytes)
        size += 0 if sampler.variance is None else sampler.variance.nbytes
        if self._table is not None:
            size += self._table.hops.nbytes
        elif graph.features(torch.arange(min(1, graph.num_nodes))).layout != torch.strided:
            return False  # sparse features are read by the host
        else:  # while they are put together there are two copies
            size += 2 * graph.num_nodes * graph.num_features * graph.dtype.itemsize
        return size < _SHARE * available_memory(self.device)


def lacks_table(graph: GraphRows, settings: Settings) -> bool:
    """Whether settings cannot be trained: batch norm needs a table, which would be too large."""
    if not (settings.batch_norm and settings.hops and settings.encoder_channels):
        return False
    summed = settings.hop_weights == "mean" and settings.drop_nodes == 0
    return not _place(graph, settings.hops, summed, settings.hop_table)[0]


def _place(graph: GraphRows, hops: int, summed: bool, wanted: str) -> tuple[bool, Path | None]:
    """Whether there is room for a table, and the folder that has it; ``None`` for memory."""
    size = table_bytes(graph, hops, summed)
    if wanted == "never":
        return False, None
    folder = table_folder(size)
    is_wide = graph.num_features > _WIDEST  # its rows would be read from a file too slowly
    if folder is None or (is_wide and size < available_memory() / 4):
        return True, None
    room = shutil.disk_usage(folder).free
    if size < room / 2 and (wanted == "always" or not is_wide):
        return True, folder
    if wanted == "always":
        raise InputError(
            f"a table of hops takes {gibibytes(size)}, more than half of the {gibibytes(room)} "
            f"that {folder} has; name another folder with TMPDIR, or set hop_table = never"
        )
    return False, None


def _all_features(graph: GraphRows, device: torch.device) -> Tensor:
    """The scaled features of all nodes ``[N, F]``, read some rows at a time."""
    cuts = row_ranges(graph.row_ptr.numpy(), graph.num_features)
    rows = [graph.features(torch.arange(low, high)).to(device) for low, high in pairwise(cuts)]
    return torch.cat(rows)
