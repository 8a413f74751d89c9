"""How many factors: label groups give those of labels, held-out edges decide on free ones."""

import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.config import AUTO, Settings
from lgdgcn.data.features import features_without_edges
from lgdgcn.errors import DivergedError, InputError, LGDWarning
from lgdgcn.models import MODELS, ClassUnitGCN, settings_of
from lgdgcn.nn import ClassUnitConv, label_groups, number_of_groups
from lgdgcn.progress import long_work
from lgdgcn.runtime import StopRequest
from lgdgcn.search.race import followed
from lgdgcn.train.task import Task
from lgdgcn.training import Result, Training, run

__all__ = [
    "FOUND",
    "FoundFactors",
    "fewest_within_one_error",
    "find_factors",
    "hold_back_edges",
    "least_factors",
]

FREE = (0, 1, 2, 4)  # free factors that are tried
FOUND = ("factors", "hidden_channels", "free_share")  # settings that are found
MOST_GROUPS = 32  # of labels
LEAST_CLASSES = 4  # of a factor
LEAST_EDGES = 20  # fewer say nothing of free factors
HELD_BACK = 0.1  # share of the edges
EPOCHS = 100  # at most
RESTARTS = 3
BLOCKS = 64  # of held-out edges, for the standard error


@dataclass(frozen=True)
class FoundFactors:
    """What was found, and from what.

    Attributes:
        labelled: Factors that labels own.
        free: Factors without labels.
        channels: Classes of all factors together.
        tried: Numbers of factors that were tried; none if there are too few edges.
        edge_losses: The loss of the held-out edges with each of them, mean of the restarts.
        errors: Standard error of its difference from the lowest one.
        held_out_edges: How many edges were held back, both directions as one.
    """

    labelled: int
    free: int
    channels: int
    tried: tuple[int, ...] = ()
    edge_losses: tuple[float, ...] = ()
    errors: tuple[float, ...] = ()
    held_out_edges: int = 0

    @property
    def factors(self) -> int:
        """Number of all factors."""
        return self.labelled + self.free

    def __str__(self) -> str:
        if self.tried:
            reason = "held-out edge likelihood"
        else:
            reason = f"fewer than {LEAST_EDGES} edges say nothing of free ones"
        return (
            f"factors: {self.labelled} own labels, {self.free} free ({reason}); "
            f"{self.channels} channels"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return all of it by name, as plain numbers and lists."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}


def find_factors(
    settings: Settings,
    data: Data,
    model: str,
    seed: int,
    device: torch.device,
    stop: StopRequest | None = None,
) -> tuple[Settings, FoundFactors]:
    """Replace ``factors="auto"`` by a number.

    Labels that exclude each other share a factor. How many free factors explain edges that
    labels do not is tried on edges that training does not see. Labels of validation and test
    nodes have no part in it.

    Args:
        settings: Hyper-parameters of the run, without a number of factors.
        data: A canonical graph, on the CPU.
        model: A key of :data:`lgdgcn.models.MODELS`.
        seed: Chooses the held-out edges and begins the restarts.
        device: Where to train.
        stop: Becomes true when a signal asks to stop.

    Returns:
        Settings with those of :data:`FOUND`, and what was found.
    """
    known, classes = data.y[data.train_mask], Task.of(data).outputs
    is_single = known.dim() == 1
    with long_work("grouping labels"):
        least = 1 if is_single else number_of_groups(known, min(MOST_GROUPS, classes))

    def sized(factors: int) -> FoundFactors:
        labelled, size = (1, classes) if is_single else _labelled_factors(known, factors)
        channels = factors * max(LEAST_CLASSES, size)
        return FoundFactors(labelled, factors - labelled, channels)

    if data.edge_index.size(1) // 2 < LEAST_EDGES:
        chosen = sized(least)
    else:
        options = replace(settings, epochs=min(EPOCHS, settings.epochs))
        tried = [sized(least + free) for free in FREE]
        chosen = _best_on_held_out_edges(tried, options, data, model, seed, device, stop)
    return _with_sizes(settings, chosen), chosen


def least_factors(settings: Settings, model: str) -> Settings:
    """Return settings with one factor instead of ``"auto"``, for checks before the search.

    Raises:
        InputError: The model has no factors to find.
    """
    if settings.factors != AUTO:
        return settings
    if "factors" not in settings_of(model):
        raise InputError(f"factors is {AUTO!r}, but {MODELS[model].title} has none; leave it out")
    return replace(settings, factors=1)


def _best_on_held_out_edges(
    tried: Sequence[FoundFactors],
    settings: Settings,
    data: Data,
    model: str,
    seed: int,
    device: torch.device,
    stop: StopRequest | None,
) -> FoundFactors:
    """Train every number of factors a few times without some edges, and choose by these."""
    kept, held = hold_back_edges(data.edge_index, HELD_BACK, seed)
    graph = _without_edges(data, kept, held)
    blocks = _in_blocks(held)
    losses = []
    planned = len(tried) * RESTARTS * settings.epochs
    with (
        followed("finding the number of factors", planned, stop) as follow,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", LGDWarning)  # the training itself says them again
        for one in tried:
            settings = _with_sizes(settings, one)
            restarts = [
                Training(model, settings, (seed + i) % 2**64, graph) for i in range(RESTARTS)
            ]
            found = [_edge_loss(result, blocks) for result in run(restarts, device, follow)]
            # a restart may be stuck, which says nothing of the number of factors
            losses.append(min(found, key=lambda loss: float(loss.mean().nan_to_num(nan=torch.inf))))
    index, errors = fewest_within_one_error(torch.stack(losses))
    return replace(
        tried[index],
        tried=tuple(one.factors for one in tried),
        edge_losses=tuple(float(own.mean()) for own in losses),
        errors=tuple(errors.tolist()),
        held_out_edges=held.size(1) // 2,
    )


def hold_back_edges(edge_index: Tensor, share: float, seed: int) -> tuple[Tensor, Tensor]:
    """Part the edges of an undirected graph; both directions of an edge stay together.

    Args:
        edge_index: Edges, each in both directions. Shape ``[2, E]``.
        share: Of the edges to hold back, at least one.
        seed: Chooses them.

    Returns:
        Edges to train on, in their order, and held-out ones: first one direction of all of them
        in random order, then the other.

    Example:
        >>> path = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
        >>> kept, held = hold_back_edges(path, 0.3, seed=0)
        >>> kept.shape, held.shape
        (torch.Size([2, 4]), torch.Size([2, 2]))
    """
    nodes = int(edge_index.max()) + 1
    low, high = edge_index.min(0).values, edge_index.max(0).values
    key = low * nodes + high  # of both directions the same
    pairs = key[edge_index[0] < edge_index[1]]
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(pairs), generator=generator).to(pairs.device)
    chosen = pairs[order[: max(1, round(share * len(pairs)))]]
    one_way = torch.stack([chosen // nodes, chosen % nodes])
    return edge_index[:, ~torch.isin(key, chosen)], torch.cat([one_way, one_way.flip(0)], 1)


def fewest_within_one_error(losses: Tensor) -> tuple[int, Tensor]:
    """Return the first row whose mean is the lowest up to one standard error, and all errors.

    The error is that of the difference from the row of lowest mean, column by column, so what
    makes a column hard for all rows drops out. Rows that are not finite are out.

    Args:
        losses: Of the same edges under ever larger models. Shape ``[K, blocks]``.

    Returns:
        The number of the row and each row's error ``[K]``.

    Example:
        >>> losses = torch.tensor([[3.0, 4.0], [1.0, 2.2], [1.1, 2.0]])
        >>> fewest_within_one_error(losses)[0]
        1
    """
    means = losses.mean(1).nan_to_num(nan=torch.inf)
    best = int(means.argmin())
    difference = losses - losses[best]
    columns = losses.size(1)
    errors = difference.std(1, correction=1 if columns > 1 else 0) / columns**0.5
    near = means.isfinite() & (means - means[best] <= errors)
    return int(near.int().argmax()), errors.nan_to_num(nan=torch.inf)


@torch.no_grad()
def _edge_loss(trained: Result, blocks: Sequence[Tensor]) -> Tensor:
    """Loss of each block of held-out edges ``[blocks]``; nodes only see the other edges.

    It is infinite where the training has diverged.
    """
    if trained.error is not None:
        if not isinstance(trained.error, DivergedError):
            raise trained.error
        return torch.full((len(blocks),), torch.inf, dtype=torch.double)
    network = cast("ClassUnitGCN", trained.network("model")).eval()
    graph = trained.graph
    last = network.factors(graph.x, graph.edge_index)[-1]
    layer = cast("ClassUnitConv", network.layers[-1])
    own = [block.to(graph.x.device) for block in blocks]
    return torch.stack([layer.edge_loss(last, block) for block in own]).double().cpu()


def _in_blocks(held: Tensor) -> list[Tensor]:
    """Cut held-out edges into blocks of about one size, both directions into the same one."""
    one_way = held[:, : held.size(1) // 2]
    parts = one_way.tensor_split(min(BLOCKS, one_way.size(1)), 1)
    return [torch.cat([part, part.flip(0)], 1) for part in parts]


def _labelled_factors(y: Tensor, factors: int) -> tuple[int, int]:
    """Return how many factors labels own, and the classes that the largest group needs.

    These are its labels, and one more if training nodes have none of them.
    """
    group = label_groups(y, factors)
    members = [y[:, group == number] > 0 for number in set(group.tolist())]
    classes = max(own.size(1) + int(not own.any(1).all()) for own in members)
    return sum(bool(own.any()) for own in members), classes


def _with_sizes(settings: Settings, found: FoundFactors) -> Settings:
    sizes = replace(settings, factors=found.factors, hidden_channels=found.channels)
    if not found.free:
        return sizes
    # free factors are in doubt only where their number was not tried on other edges
    return replace(sizes, free_share=min(0.89, 0.95 * found.free / found.factors))


def _without_edges(data: Data, kept: Tensor, held: Tensor) -> Data:
    """The graph without held-out edges, and without the labels that training does not see."""
    graph = copy(data)
    graph.edge_index = kept
    for key in ("edge_weight", "edge_type"):
        if key in graph:
            del graph[key]  # the number of factors is found without
    graph.x = features_without_edges(data.x, data.edge_index, held)
    graph.val_mask = torch.zeros_like(data.val_mask)  # the last epoch is kept
    graph.test_mask = torch.zeros_like(data.test_mask)
    return graph
