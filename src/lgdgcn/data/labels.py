"""Labels and splits in one form: classes counted from 0, three disjoint Boolean masks.

Labels may be integers with gaps, strings or a 0/1 matrix; splits may be masks or node indices.
What comes out is always the same, with the list of original labels beside it to map back.
"""

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lgdgcn.errors import InputError, LGDWarning

__all__ = [
    "IDENTIFIER",
    "SPLITS",
    "SPLIT_NAMES",
    "UntrainableError",
    "canonical_labels",
    "canonical_masks",
    "check_trainable",
    "class_sizes",
    "identifier_warning",
    "is_labelled",
    "label_pieces",
    "set_sizes",
    "split_number",
    "stratified_split",
]

SPLITS = ("train", "val", "test")
IDENTIFIER = "the label column looks like an identifier"  # begins the sentence
_NODES_OF_A_CLASS = 1.5  # on average; fewer are no classes
_ENTRIES = 1 << 20  # labels that are read at once
SPLIT_NAMES = {
    **dict.fromkeys(("train", "training"), 0),
    **dict.fromkeys(("val", "valid", "validation", "validate", "dev", "development"), 1),
    **dict.fromkeys(("test", "testing"), 2),
    "": -1,
}


def split_number(cell: str) -> int:
    """The number of the split that a cell names, in :data:`SPLITS`; -1 if it names none.

    Raises:
        InputError: It names another one.

    Example:
        >>> [split_number(cell) for cell in ("Training", " dev ", "")]
        [0, 1, -1]
    """
    number = SPLIT_NAMES.get(cell.strip().lower())
    if number is None:
        names = ", ".join(filter(None, SPLIT_NAMES))
        raise InputError(f"split is {cell[:50]!r}; use train, val, test or nothing (read: {names})")
    return number


class UntrainableError(InputError):
    """A graph is sound, but nothing can be learned from its labels or splits."""


def canonical_labels(
    y: Any, num_nodes: int, classes: list[Any] | None = None
) -> tuple[Tensor, list[Any]]:
    """Bring labels to one form.

    Args:
        y: ``None``, [N] integers (-1 unlabelled), whole floats (NaN unlabelled) or strings (empty
            or ``None`` unlabelled), or an [N, L] 0/1 matrix whose rows of NaN or -1 are unlabelled.
        num_nodes: N.
        classes: Original labels in class order if ``y`` already counts them, else found here.

    Returns:
        ``y`` as int64 [N] in 0..C-1 with -1 unlabelled, or float32 [N, L] with NaN rows
        unlabelled; and the original labels of the C classes or L columns.

    Example:
        >>> canonical_labels(["b", "a", ""], 3)
        (tensor([ 1,  0, -1]), ['a', 'b'])
    """
    classes = list(classes) if classes is not None and len(classes) else None
    if classes and len(set(map(str, classes))) < len(classes):
        twice = Counter(map(str, classes)).most_common(1)[0][0]
        raise InputError(f"`classes` names {twice[:50]!r} twice; give every class its own name")
    if y is None:
        return torch.full((num_nodes,), -1), classes or []
    values = _as_array(y)
    rows = values.shape[0] if values.ndim else 0
    if rows != num_nodes:
        raise InputError(f"y has {rows} rows but x has {num_nodes}; give one label per node")
    one_label = classes is not None and len(classes) == 1  # 0/1 of it, not classes 0 and 1
    if values.ndim == 2 and values.shape[1] == 1 and not one_label:
        values = values[:, 0]
    if values.ndim == 1 and values.dtype.kind == "O":
        return _from_names(values.tolist(), classes)
    if values.dtype.kind not in "biuf" or values.ndim > 2 or values.size == 0:
        raise InputError(
            f"y has shape {list(values.shape)} and type {values.dtype}; "
            "give [N] classes or an [N, L] 0/1 matrix"
        )
    return _from_integers(values, classes) if values.ndim == 1 else _from_matrix(values, classes)


def _as_array(y: Any) -> np.ndarray[Any, Any]:
    """Numbers as they are, anything with text in it as an object array."""
    if isinstance(y, Tensor):
        y = y.detach().cpu()
        return np.asarray((y.float() if y.dtype == torch.bfloat16 else y).numpy())
    if isinstance(y, np.ndarray) and y.dtype.kind not in "OU":
        return y
    try:
        values = np.asarray(y, dtype=object)
        if any(isinstance(value, str) for value in values.flat):
            return values
        return np.asarray([np.nan if v is None else v for v in values.flat]).reshape(values.shape)
    except (TypeError, ValueError) as error:
        raise InputError(f"y cannot be read as labels ({error}); give one label per node") from None


def _from_names(values: list[Any], classes: list[Any] | None) -> tuple[Tensor, list[Any]]:
    """Strings to class numbers; empty, ``None`` and NaN are unlabelled."""
    for row, value in enumerate(values):
        if not isinstance(value, str | int | float | np.generic | None):
            raise InputError(f"y[{row}] is a {type(value).__name__}; give a string or an integer")
    names = [None if v is None or v == "" or v != v else str(v) for v in values]
    classes = classes or sorted({name for name in names if name is not None})
    number: dict[str | None, int] = {str(name): i for i, name in enumerate(classes)}
    number[None] = -1
    for row, name in enumerate(names):
        if name not in number:
            raise InputError(
                f"y[{row}] is {_shown(name)}, not one of the {len(classes)} known classes "
                f"({', '.join(map(_shown, classes[:5]))}); correct the label or leave it empty"
            )
    return torch.tensor([number[name] for name in names], dtype=torch.int64), classes


def _shown(label: Any) -> str:
    """A label for a message, not the whole of a long one."""
    return repr(label)[:52]


def _from_integers(
    values: np.ndarray[Any, Any], classes: list[Any] | None
) -> tuple[Tensor, list[Any]]:
    """Whole numbers with any gaps to class numbers."""
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), -1, values)
        with np.errstate(invalid="ignore"):
            bad = ~np.isfinite(values) | (values != np.floor(values)) | (np.abs(values) > 2**53)
        if bad.any():
            row = int(bad.argmax())
            raise InputError(
                f"y is real-valued (y[{row}] = {values[row]}); "
                "labels must be classes: integers, strings or a 0/1 matrix"
            )
    if values.dtype != np.uint64:  # which holds codes that int64 does not
        values = values.astype(np.int64)
    if (values < -1).any():
        row = int((values < -1).argmax())
        raise InputError(f"y[{row}] is {values[row]}; classes are ≥ 0 and -1 means unlabelled")
    if classes:
        if (values >= len(classes)).any():
            row = int((values >= len(classes)).argmax())
            raise InputError(
                f"y[{row}] is {values[row]} but `classes` names {len(classes)} classes; "
                "name them all or remove `classes`"
            )
        return torch.from_numpy(values.astype(np.int64)), classes
    found = np.unique(values[values >= 0])
    numbers = np.where(values >= 0, np.searchsorted(found, values), -1).astype(np.int64)
    return torch.from_numpy(numbers), [int(label) for label in found]


def _from_matrix(
    values: np.ndarray[Any, Any], classes: list[Any] | None
) -> tuple[Tensor, list[Any]]:
    """A 0/1 matrix; a row without labels becomes NaN."""
    matrix = values.astype(np.float32)
    missing = np.isnan(matrix) | (matrix == -1)
    bad = (~missing & (matrix != 0) & (matrix != 1)) | (
        missing & ~missing.all(axis=1, keepdims=True)
    )
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        raise InputError(
            f"y[{row}, {column}] is {values[row, column]}; a label matrix holds 0 and 1, "
            "and a whole row of NaN or -1 for an unlabelled node"
        )
    width = matrix.shape[1]
    if classes and len(classes) != width:
        raise InputError(f"y has {width} columns but `classes` names {len(classes)}; name each one")
    matrix[missing] = np.nan
    return torch.from_numpy(matrix), classes or list(range(width))


def is_labelled(y: Tensor) -> Tensor:
    """Which nodes have a label, for labels in canonical form: bool [N]."""
    return y >= 0 if y.dim() == 1 else ~y.isnan().any(dim=1)


def label_pieces(y: Tensor, mask: Tensor | None = None) -> Iterator[Tensor]:
    """The labels of labelled nodes, some at a time ``[n]`` or ``[n, L]``.

    Args:
        y: Labels in canonical form.
        mask: Which labelled nodes; all if ``None``.
    """
    step = max(1, _ENTRIES // max(1, y[:1].numel()))
    for low in range(0, len(y), step):
        piece = y[low : low + step]
        yield piece[is_labelled(piece) if mask is None else mask[low : low + step]]


def class_sizes(y: Tensor, mask: Tensor | None = None, classes: int = 0) -> Tensor:
    """How many labelled nodes each class has ``[C]``, or of label sets each label ``[L]``.

    Args:
        y: Labels in canonical form.
        mask: Which labelled nodes; all if ``None``.
        classes: C; one more than the largest class if that is more.

    Example:
        >>> class_sizes(torch.tensor([2, 0, -1, 2]))
        tensor([1, 0, 2])
    """
    largest = int(y.max()) if y.dim() == 1 and len(y) else -1
    count = y.size(1) if y.dim() == 2 else max(classes, largest + 1)
    sizes = torch.zeros(count, dtype=torch.long, device=y.device)
    for piece in label_pieces(y, mask):
        sizes += (piece > 0).sum(0) if y.dim() == 2 else piece.bincount(minlength=count)
    return sizes


def set_sizes(y: Tensor, mask: Tensor) -> tuple[int, int]:
    """The fewest and the most labels of a node of a mask ``[N]``; 0 if there are no nodes.

    Args:
        y: Label sets in canonical form ``[N, L]``.
        mask: Which labelled nodes.
    """
    sizes = [piece.sum(1).aminmax() for piece in label_pieces(y, mask) if len(piece)]
    if not sizes:
        return 0, 0
    return int(min(low for low, _ in sizes)), int(max(high for _, high in sizes))


def canonical_masks(values: Mapping[str, Any], num_nodes: int) -> dict[str, Tensor] | None:
    """The three splits as disjoint masks.

    Args:
        values: May hold ``train_mask`` or ``train_idx``, and the same for ``val`` and ``test``;
            each a mask [N] or a list of node indices.
        num_nodes: N.

    Returns:
        ``{"train_mask": bool [N], ...}`` (an absent split is empty), or ``None`` if none is given.
    """
    masks: dict[str, Tensor] = {}
    for split in SPLITS:
        given = [k for k in (f"{split}_mask", f"{split}_idx") if values.get(k) is not None]
        if len(given) == 2:
            raise InputError(f"both {given[0]} and {given[1]} are given; keep one")
        if given:
            masks[f"{split}_mask"] = _mask(given[0], values[given[0]], num_nodes)
    if not masks:
        return None
    masks = {f"{s}_mask": masks.get(f"{s}_mask", torch.zeros(num_nodes).bool()) for s in SPLITS}
    for first, second in (("train", "val"), ("train", "test"), ("val", "test")):
        shared = (masks[f"{first}_mask"] & masks[f"{second}_mask"]).nonzero()
        if len(shared):
            raise InputError(
                f"{first} and {second} splits share {len(shared)} nodes (first: {int(shared[0])}); "
                "a node may be in one split only"
            )
    return masks


def _mask(name: str, value: Any, num_nodes: int) -> Tensor:
    """One split as a new mask, from a mask or from indices."""
    try:
        value = value if isinstance(value, Tensor) else torch.from_numpy(np.array(value))
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} cannot be read ({error}); give a mask or indices") from None
    value = value.detach().cpu()
    if value.dim() != 1:
        raise InputError(
            f"{name} has shape {list(value.shape)}; give one split of shape [{num_nodes}], "
            "such as lgdgcn.data.one_split(graph, 0)"
        )
    if value.numel() and (value.is_floating_point() or value.is_complex()):
        raise InputError(f"{name} has type {value.dtype}; give a Boolean mask or integer indices")
    as_mask = value.dtype == torch.bool
    value = value.long()
    if name.endswith("_mask") and len(value) == num_nodes:
        as_mask |= bool(((value == 0) | (value == 1)).all())
    if as_mask:
        if len(value) != num_nodes:
            raise InputError(
                f"{name} has {len(value)} entries but x has {num_nodes} rows; "
                "give one entry per node, or node indices"
            )
        return torch.as_tensor(value.bool())
    bad = ((value < 0) | (value >= num_nodes)).nonzero()
    if len(bad):
        raise InputError(
            f"{name}[{int(bad[0])}] is {int(value[bad[0]])} but the graph has {num_nodes} nodes; "
            f"indices run from 0 to {num_nodes - 1}, a mask has {num_nodes} entries"
        )
    mask = torch.zeros(num_nodes, dtype=torch.bool)
    mask[value] = True
    return mask


def stratified_split(y: Tensor, seed: int = 0) -> dict[str, Tensor]:
    """Split the labelled nodes 60/20/20, class by class (multi-label: all nodes as one class).

    Args:
        y: Labels in canonical form.
        seed: The split is a function of ``y`` and this number.
    """
    generator = torch.Generator().manual_seed(seed)
    masks = {f"{split}_mask": torch.zeros(len(y), dtype=torch.bool) for split in SPLITS}
    group = y if y.dim() == 1 else is_labelled(y).long() - 1
    for label in class_sizes(group).nonzero():
        nodes = (group == label).nonzero().view(-1)
        nodes = nodes[torch.randperm(len(nodes), generator=generator)]
        train = max(1, round(0.6 * len(nodes)))
        bounds = [train, train + max(1, round(0.2 * len(nodes)))]  # a small class: no test
        for mask, part in zip(masks.values(), nodes.tensor_split(bounds), strict=True):
            mask[part] = True
    return masks


def identifier_warning(y: Tensor) -> str | None:
    """Say in one sentence that labels look like an identifier: nearly every node has its own.

    Args:
        y: Labels in canonical form.

    Example:
        >>> identifier_warning(torch.tensor([0, 1, 2, 3, -1]))
        'the label column looks like an identifier: 4 labelled nodes have 4 classes; choose \
another column as the label'
        >>> identifier_warning(torch.tensor([0, 1, 1, 0]))
    """
    if y.dim() != 1:
        return None
    sizes = class_sizes(y)
    nodes, classes = int(sizes.sum()), int(sizes.count_nonzero())
    if nodes >= _NODES_OF_A_CLASS * classes:
        return None
    return (
        f"{IDENTIFIER}: {nodes:,} labelled nodes have {classes:,} classes; "
        "choose another column as the label"
    )


def check_trainable(y: Tensor, classes: list[Any], masks: Mapping[str, Tensor]) -> None:
    """Refuse labels and splits nothing can be learned from, warn about doubtful ones."""
    train = masks["train_mask"]
    if y.dim() == 1 and len(found := class_sizes(y).nonzero()) < 2:
        raise UntrainableError(
            f"y holds a single class ({_shown(classes[int(found[0])])}); "
            "classification needs at least two, and -1 means unlabelled"
        )
    if (identifier := identifier_warning(y)) is not None:
        warnings.warn(identifier, LGDWarning, stacklevel=3)
    if not train.any():
        raise UntrainableError(
            "the train split has no labelled node; put labelled nodes into train_mask"
        )
    if not masks["val_mask"].any():
        warnings.warn(
            "the validation split is empty: no early stop, the last epoch is kept",
            LGDWarning,
            stacklevel=3,
        )
    count = class_sizes(y, train, len(classes))
    absent = [classes[int(i)] for i in (count == 0).nonzero()]
    if absent:
        names = ", ".join(map(_shown, absent[:5])) + (", …" if len(absent) > 5 else "")
        warnings.warn(
            f"{len(absent)} of {len(classes)} classes have no node in the train split ({names}) "
            "and cannot be learned",
            LGDWarning,
            stacklevel=3,
        )
