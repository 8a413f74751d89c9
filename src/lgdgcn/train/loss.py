"""The total loss, term by term (Eq. 7)."""

from collections.abc import Mapping

from torch import Tensor

from lgdgcn.models import NodeModel, NodeOutput
from lgdgcn.train.targets import Targets
from lgdgcn.train.task import Task

__all__ = ["loss_terms"]


def loss_terms(
    model: NodeModel,
    output: NodeOutput,
    task: Task,
    targets: Targets,
    edge_index: Tensor,
    weights: Mapping[str, Tensor],
) -> dict[str, Tensor]:
    r"""Return the terms of every member's loss and their sum, ``[R]`` each.

    .. math:: L_{total} = L_{cls} + \sum_l 10^{l-L} (\lambda_{space} L_{space}^{(l)}
        + \lambda_{div} L_{div}^{(l)} + \lambda_{edge} L_{edge}^{(l)})

    Args:
        model: The members' network.
        output: What it says of the target nodes; its class scores are ``[R, n, C]``.
        task: What is predicted.
        targets: The nodes that are trained on.
        edge_index: Edges. Shape ``[2, E]``.
        weights: The members' weights :math:`\lambda` by the name of the loss, ``[R]`` each. A
            loss of the model that has none counts once.

    Returns:
        ``classification``, the model's own losses (before their weights) and ``total``.
    """
    total = task.loss(output.logits, targets.repeated(model.views))
    own = model.losses(output, edge_index)
    terms = {"classification": total, **own}
    for name in dict.fromkeys([*weights, *own]):
        if name in own:
            total = total + (weights[name] * own[name] if name in weights else own[name])
    return {**terms, "total": total}
