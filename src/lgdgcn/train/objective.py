"""The total loss, term by term (Eq. 7)."""

from torch import Tensor, nn
from torch_geometric.data import Data

from lgdgcn.config import Settings
from lgdgcn.models import LGDGCN
from lgdgcn.train.task import Task

__all__ = ["objective"]


def objective(model: nn.Module, data: Data, task: Task, settings: Settings) -> dict[str, Tensor]:
    r"""Run the network once and return the terms of its loss and their sum.

    .. math:: L_{total} = L_{cls} + \sum_l 10^{l-L} (\lambda_{space} L_{space}^{(l)}
        + \lambda_{div} L_{div}^{(l)})

    Returns:
        ``classification``, for LGD-GCN ``space`` and ``diversity`` where they are on (before
        their weights), and ``total``.
    """
    if not isinstance(model, LGDGCN):
        loss = task.loss(model(data.x, data.edge_index), data.y, data.train_mask)
        return {"classification": loss, "total": loss}
    output = model.disentangle(data.x, data.edge_index)
    model.before_loss(output.layers)
    loss = task.loss(output.logits, data.y, data.train_mask)
    terms = {"classification": loss, **model.regularization(output.layers)}
    weights = {
        "classification": 1.0,
        "space": settings.lambda_space,
        "diversity": settings.lambda_div,
    }
    total = sum((weights[name] * term for name, term in terms.items()), start=loss.new_zeros(()))
    return {**terms, "total": total}
