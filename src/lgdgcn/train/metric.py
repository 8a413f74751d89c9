"""Which score chooses the epoch to keep and is the headline, where nobody has named one."""

from typing import NamedTuple

from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.config import AUTO
from lgdgcn.data.labels import class_sizes, set_sizes
from lgdgcn.errors import InputError
from lgdgcn.train.scores import METRICS

__all__ = ["Choice", "choose_metric"]

_IMBALANCED = 2 / 3  # share of the most common class above which accuracy rewards naming it always
_OF_CLASSES_ONLY = ("accuracy", "balanced_accuracy")


class Choice(NamedTuple):
    """A score and, in a few words, why it was chosen."""

    metric: str
    reason: str

    def __str__(self) -> str:
        return f"metric: {METRICS[self.metric]}, {self.reason}"


def choose_metric(data: Data, metric: str = AUTO) -> Choice:
    """Return the score that is asked for, or else one that is fair to the labels.

    ========================================  =====================
    labels                                    score
    ========================================  =====================
    one class each                            ``accuracy``
    one of two, over 2/3 of the nodes in one  ``roc_auc``
    one of many, over 2/3 in one              ``macro_f1``
    as many labels for every node             ``micro_f1``
    label sets of different sizes             ``average_precision``
    ========================================  =====================

    Counted are the classes of the validation nodes (of the training nodes without any), and the
    labels of both. Those of the test nodes have no say in anything.

    Args:
        data: A canonical graph.
        metric: The setting: a key of :data:`~lgdgcn.train.scores.METRICS`, or ``"auto"``.

    Raises:
        InputError: Label sets have no such score.
    """
    y: Tensor = data.y
    if metric != AUTO:
        if y.dim() == 2 and metric in _OF_CLASSES_ONLY:
            known = ", ".join(name for name in METRICS if name not in _OF_CLASSES_ONLY)
            raise InputError(
                f"metric is {metric!r}, which sets of labels do not have; choose from {known}"
            )
        return Choice(metric, "as asked for")
    if y.dim() == 1:
        split = "validation" if data.val_mask.any() else "training"
        sizes = class_sizes(y, data.val_mask if data.val_mask.any() else data.train_mask)
        share = float(sizes.max()) / max(1, int(sizes.sum())) if len(sizes) else 0.0
        if share <= _IMBALANCED:
            return Choice("accuracy", "as every node has one class")
        common = f"as {100 * share:.1f} % of the {split} nodes have the same class"
        return Choice("roc_auc" if (sizes > 0).sum() <= 2 else "macro_f1", common)
    low, high = set_sizes(y, data.train_mask | data.val_mask)
    if low == high and low > 0:
        return Choice("micro_f1", f"as every node has {low} label{'s' * (low > 1)}")
    return Choice("average_precision", f"as nodes have {low} to {high} labels")
