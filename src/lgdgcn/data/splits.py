"""Train, validation and test masks: stored, random of given sizes, or by fractions."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lgdgcn.data.labels import SPLITS
from lgdgcn.errors import InputError

__all__ = ["Masks", "check_seed", "fraction_split", "random_split", "sized_split", "stored_split"]

Masks = tuple[Tensor, Tensor, Tensor]


def check_seed(seed: int) -> int:
    """Return the seed, or raise InputError unless it is a whole number of at least 0."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InputError(f"seed is {seed!r}; give a whole number of at least 0")
    return int(seed)


def sized_split(labelled: Tensor, sizes: Sequence[int], seed: int = 0) -> Masks:
    """Draw disjoint train, validation and test nodes of given sizes.

    Args:
        labelled: Boolean mask [N] of the nodes to draw from.
        sizes: How many training, validation and test nodes.
        seed: The same seed gives the same split.

    Returns:
        Three boolean masks [N].
    """
    nodes = labelled.nonzero().view(-1).numpy()
    if min(sizes) < 0 or sum(sizes) > len(nodes):
        raise InputError(
            f"a split into {'/'.join(map(str, sizes))} nodes does not fit the {len(nodes)} "
            "labelled nodes; ask for fewer"
        )
    order = np.random.default_rng(check_seed(seed)).permutation(nodes)
    ends = np.cumsum(sizes)
    return _masks(len(labelled), np.split(order[: ends[-1]], ends[:-1]))


def random_split(
    y: Tensor,
    *,
    train_per_class: int | Sequence[int],
    num_val: int,
    num_test: int,
    seed: int = 0,
) -> Masks:
    """Draw a class-balanced training set, then validation and test nodes from the rest.

    Args:
        y: Labels [N]; -1 marks nodes without a label, which are never drawn.
        train_per_class: Training nodes of each class, or one number per class.
        num_val: Validation nodes, drawn uniformly from the other labelled nodes.
        num_test: Test nodes, drawn in the same way.
        seed: The same seed gives the same split.

    Returns:
        Three boolean masks [N].
    """
    labels = y.cpu().numpy()
    num_classes = int(labels.max(initial=-1)) + 1
    wanted = np.broadcast_to(np.asarray(train_per_class), (num_classes,))
    rng = np.random.default_rng(check_seed(seed))
    train = []
    for label, count in enumerate(wanted):
        members = np.flatnonzero(labels == label)
        if count > len(members):
            raise InputError(
                f"class {label} has {len(members)} nodes, but {count} training nodes were asked "
                "for; lower train_per_class"
            )
        train.append(rng.permutation(members)[:count])
    chosen = np.concatenate(train) if train else np.empty(0, np.int64)
    rest = np.setdiff1d(np.flatnonzero(labels >= 0), chosen)
    if min(num_val, num_test) < 0 or num_val + num_test > len(rest):
        raise InputError(
            f"{num_val} validation and {num_test} test nodes were asked for, but {len(rest)} "
            "labelled nodes are left after the training nodes; ask for fewer"
        )
    rest = rng.permutation(rest)
    return _masks(len(labels), [chosen, rest[:num_val], rest[num_val : num_val + num_test]])


def fraction_split(
    nodes: int | Tensor,
    fractions: tuple[float, float, float] = (0.6, 0.2, 0.2),
    seed: int = 0,
) -> Masks:
    """Split nodes at random by fractions.

    Args:
        nodes: The number of nodes N, or a boolean mask [N] of the labelled ones to split.
        fractions: Shares of train, validation and test; together at most 1.
        seed: The same seed gives the same split.

    Returns:
        Three boolean masks [N].
    """
    if not all(share > 0 for share in fractions) or sum(fractions) > 1 + 1e-9:
        raise InputError(f"split fractions {fractions} must be positive and sum to at most 1")
    labelled = torch.ones(nodes, dtype=torch.bool) if isinstance(nodes, int) else nodes
    count = int(labelled.sum())
    # Rounded ends, not rounded sizes: the parts of a full split always sum to the whole.
    ends = [round(sum(fractions[: i + 1]) * count) for i in range(3)]
    sizes = [ends[0], ends[1] - ends[0], ends[2] - ends[1]]
    if min(sizes) < 1:
        raise InputError(
            f"{count} labelled nodes are too few for a split into {fractions}: "
            "one part would be empty; label more nodes or change the fractions"
        )
    return sized_split(labelled, sizes, seed)


def stored_split(arrays: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Pick the split stored with a graph.

    Args:
        arrays: ``train_idx`` and so on [n], or ``train_masks`` and so on [S, N].
        seed: Which of the S stored masks to take; not used with index arrays.

    Returns:
        ``train_idx`` and so on, or ``train_mask`` and so on; empty when nothing is stored.
    """
    if all(f"{part}_idx" in arrays for part in SPLITS):
        return {f"{part}_idx": arrays[f"{part}_idx"] for part in SPLITS}
    if not all(f"{part}_masks" in arrays for part in SPLITS):
        return {}
    count = min(len(arrays[f"{part}_masks"]) for part in SPLITS)
    if check_seed(seed) >= count:
        raise InputError(f"seed {seed} picks no stored split; give a seed in 0..{count - 1}")
    return {f"{part}_mask": arrays[f"{part}_masks"][seed] for part in SPLITS}


def _masks(num_nodes: int, parts: Sequence[Any]) -> Masks:
    """Turn three index arrays into three boolean masks [N]."""
    train, val, test = (torch.zeros(num_nodes, dtype=torch.bool) for _ in range(3))
    for mask, index in zip((train, val, test), parts, strict=True):
        mask[torch.from_numpy(np.asarray(index, dtype=np.int64))] = True
    return train, val, test
