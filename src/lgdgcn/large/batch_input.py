"""Where batches are read from: hops that were propagated before, or drawn neighbours.

It changes with the structure that a network has found. Drawing neighbours and gathering rows are
small random reads, for which a GPU's memory is some ten times as fast as that of its host, and
nothing has to be copied. So what batches are read from is moved to the GPU if it takes no more than
half of the free memory there; otherwise the host reads batches and copies them.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
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


@dataclass(frozen=True)
class BatchInput:
    """How batches are made for one network.

    Attributes:
        graph: The graph.
        along: What the network propagates along: the graph, or a structure.
        table: Hops that were propagated before, if any.
        variance: What is left of the variance of dropped nodes in the table's rows ``[N]``.
        features: What the network reads of some nodes.
        drawn: Hops of drawn neighbours that it propagates along.
        votes: Hops of drawn neighbours that vote.
    """

    graph: GraphRows
    along: GraphRows
    table: HopTable | None
    variance: Tensor | None
    features: Callable[[Tensor], Tensor]
    drawn: int
    votes: int

    @classmethod
    def of(
        cls,
        graph: GraphRows,
        settings: Settings,
        network: ClassUnitGCN,
        along: GraphRows,
        table_wanted: str,
    ) -> "BatchInput":
        """Choose by the network, and by the size of a table.

        Args:
            graph: The graph.
            settings: Those of the network.
            network: A single network.
            along: What it propagates along.
            table_wanted: The setting ``hop_table``, or what it has come to.
        """
        encoder = network.encoder
        votes = settings.iterations * settings.num_layers
        table, variance, hops, deeper = None, None, 0, 0
        if encoder is not None:
            hops, deeper = encoder.hops, len(encoder.deeper)
            summed = encoder.hop_weights == "mean" and settings.drop_nodes == 0
            has_table, folder = False, None
            if hops:
                has_table, folder = _place(along, hops, summed, table_wanted)
            if has_table:
                shares = encoder.hop_shares().detach().cpu() if summed else None
                with long_work("propagating features", "rows") as advance:
                    table = hop_table(along, hops, shares, folder, advance)
                variance = left_variance(along, hops, folder)
        drawn = deeper + (0 if table is not None else hops)
        features = graph.features if table is None else table.rows
        return cls(graph, along, table, variance, features, drawn, votes)

    def begin(self, network: ClassUnitGCN, graph: GraphRows) -> None:
        """Let an encoder find the spread of propagated features, where it divides by it.

        Args:
            network: A single network.
            graph: The graph in main memory or in mapped files.
        """
        encoder = network.encoder
        if encoder is None or encoder.input_scale is None:
            return
        table = self.table
        if table is None and encoder.hops == 0:
            size = table_bytes(graph, 0, summed=False)
            table = hop_table(graph, 0, folder=table_folder(size))
        if table is None:
            raise InputError("batch_norm needs hop_table = always where neighbours are drawn")
        spread = table.spread(encoder.hop_shares().detach().cpu())
        encoder.input_scale.copy_(torch.where(spread > 0, 1 / spread, 0))


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
            self._now = _on_device(found, self.device)
            self._epoch = epoch
        return self._now

    def release(self) -> None:
        """Give up what is read, until the next network is looked at."""
        if self._now is not None:  # with a table or without: what was chosen stays
            self._table = "never" if self._now.table is None else "always"
        self._now = None

    def sampler(self, *, evaluates: bool = False) -> BatchSampler:
        """Return what makes batches; later hops draw fewer neighbours, but two at least.

        Args:
            evaluates: Whether scores are wanted, which more neighbours make exact.
        """
        now, fan_out = self.now, self.settings.fan_out  # 0 for all neighbours at every hop
        first = fan_out * (_EVALUATED if evaluates else 1)
        hops = range(now.votes + now.drawn)
        return BatchSampler(
            now.graph,
            now.features,
            [max(2, first >> hop) if fan_out else 0 for hop in hops],
            propagates=now.drawn > 0,
            votes=now.votes > 0,
            variance=now.variance,
            along=now.along,
            vote_hops=now.votes,
        )


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


def _on_device(source: BatchInput, device: torch.device) -> BatchInput:
    """Move what batches are read from to a GPU if there is room for it.

    Args:
        source: Where batches are read from, in main memory or in mapped files.
        device: Where they are computed on.

    Returns:
        The same with all tensors on the device, or ``source`` itself.
    """
    if device.type == "cpu" or not _has_room(source, device):
        return source
    graph = source.graph.to(device)
    along = graph if source.along is source.graph else source.along.to(device)
    variance = None if source.variance is None else source.variance.to(device)
    table = None
    if source.table is not None:
        table = HopTable(source.table.hops.to(device))
        features = table.rows
    else:
        features = partial(feature_rows, _all_features(source.graph, device))
    if device.type == "cuda":
        torch.cuda.synchronize(device)  # another stream will read it
    return replace(
        source, graph=graph, along=along, table=table, variance=variance, features=features
    )


def _has_room(source: BatchInput, device: torch.device) -> bool:
    """Whether all of it takes little enough of the device's memory."""
    graphs = [source.graph] if source.along is source.graph else [source.graph, source.along]
    size, tensors = sum(graph.nbytes for graph in graphs), []
    if source.table is not None:
        tensors.append(source.table.hops)
    else:
        graph = source.graph
        if graph.features(torch.arange(min(1, graph.num_nodes))).layout != torch.strided:
            return False  # sparse features are read by the host
        # while they are put together there are two copies
        size += 2 * graph.num_nodes * graph.num_features * graph.dtype.itemsize
    if source.variance is not None:
        tensors.append(source.variance)
    size += sum(tensor.nbytes for tensor in tensors)
    return size < _SHARE * available_memory(device)


def _all_features(graph: GraphRows, device: torch.device) -> Tensor:
    """The scaled features of all nodes ``[N, F]``, read some rows at a time."""
    cuts = row_ranges(graph.row_ptr.numpy(), graph.num_features)
    rows = [graph.features(torch.arange(low, high)).to(device) for low, high in pairwise(cuts)]
    return torch.cat(rows)
