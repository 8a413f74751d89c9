"""The total loss, term by term (Eq. 7)."""

from torch import Tensor, nn

from lgdgcn.models import LGDGCN, LGDOutput
from lgdgcn.train.targets import Targets
from lgdgcn.train.task import Task

__all__ = ["objective"]


def objective(
    model: nn.Module,
    output: LGDOutput,
    task: Task,
    targets: Targets,
    lambda_space: Tensor,
    lambda_div: Tensor,
) -> dict[str, Tensor]:
    r"""Return the terms of every member's loss and their sum, ``[R]`` each.

    The class scores are those of the target nodes alone, ``[R, n, C]``.

    .. math:: L_{total} = L_{cls} + \sum_l 10^{l-L} (\lambda_{space} L_{space}^{(l)}
        + \lambda_{div} L_{div}^{(l)})

    Returns:
        ``classification``, for LGD-GCN ``space`` and ``diversity`` where they are on (before
        their weights), and ``total``.
    """
    total = task.loss(output.logits, targets)
    terms = {"classification": total}
    if isinstance(model, LGDGCN):
        terms |= model.regularization(output.layers)
    for name, weight in (("space", lambda_space), ("diversity", lambda_div)):
        if name in terms:
            total = total + weight * terms[name]
    return {**terms, "total": total}
