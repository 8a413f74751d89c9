"""The total loss, term by term (Eq. 7)."""

from collections.abc import Mapping

from torch import Tensor

from lgdgcn.models import NodeModel, NodeOutput
from lgdgcn.train.targets import Targets
from lgdgcn.train.task import Task

__all__ = ["objective"]


def objective(
    model: NodeModel,
    output: NodeOutput,
    task: Task,
    targets: Targets,
    edge_index: Tensor,
    weights: Mapping[str, Tensor],
) -> dict[str, Tensor]:
    r"""Return the terms of every member's loss and their sum, ``[R]`` each.

    The class scores are those of the target nodes alone, ``[R, n, C]``.

    .. math:: L_{total} = L_{cls} + \sum_l 10^{l-L} (\lambda_{space} L_{space}^{(l)}
        + \lambda_{div} L_{div}^{(l)} + \lambda_{edge} L_{edge}^{(l)})

    Args:
        model: The members' network.
        output: What it says.
        task: What is predicted.
        targets: The nodes that are trained on.
        edge_index: Edges. Shape ``[2, E]``.
        weights: The members' :math:`\lambda` of ``space``, ``diversity`` and ``edge``, each
            ``[R]``.

    Returns:
        ``classification``, the model's own losses (before their weights), and
        ``total``.
    """
    total = task.loss(output.logits, targets)
    terms = {"classification": total}
    terms |= model.losses(output, edge_index)
    for name, weight in weights.items():
        if name in terms:
            total = total + weight * terms[name]
    return {**terms, "total": total}
