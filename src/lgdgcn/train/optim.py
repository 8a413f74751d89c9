"""Adam for many models at once."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from lgdgcn import kernels

__all__ = ["PopulationAdam"]


class PopulationAdam(torch.optim.Optimizer):
    """Adam (Kingma & Ba, 2015) on stacked parameters ``[R, ...]``, one setting per member.

    It is ``torch.optim.Adam`` with its default betas, member by member; one kernel updates a
    parameter of all members. It never synchronises with the host, so that a GPU can record it.

    Args:
        params: Parameters, whose first axis is that of the members.
        lr: Learning rates ``[R]``.
        weight_decay: L2 penalties ``[R]``.
        step: How many steps each member has made before ``[R]``; counted on in place.

    Attributes:
        moments: Names of the tensors like a parameter that its state holds; checkpoints save them.
    """

    moments = ("mean", "square")  # running means of the gradient and of its square

    def __init__(
        self, params: Iterable[Tensor], lr: Tensor, weight_decay: Tensor, step: Tensor
    ) -> None:
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "step": step})
        for parameter in self.param_groups[0]["params"]:
            self.state[parameter] = {name: torch.zeros_like(parameter) for name in self.moments}

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Make one step of every member along the gradients."""
        assert closure is None, "a closure would be run for all members at once"
        group: Mapping[str, Any] = self.param_groups[0]
        group["step"].add_(1)
        for parameter in group["params"]:
            if parameter.grad is not None:
                kernels.adam(
                    parameter.detach(),
                    parameter.grad.contiguous(),
                    self.state[parameter]["mean"],
                    self.state[parameter]["square"],
                    group["lr"],
                    group["weight_decay"],
                    group["step"],
                )
