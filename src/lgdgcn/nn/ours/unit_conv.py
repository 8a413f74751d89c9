"""For comparison with class units: a layer whose units have length 1, as in the paper."""

from torch import Tensor

from lgdgcn.nn.lgd_conv import LGDConv
from lgdgcn.nn.routing import route

__all__ = ["UnitConv"]


class UnitConv(LGDConv):
    """Like :class:`~lgdgcn.nn.lgd_conv.LGDConv`, but may leave out routing (T = 0).

    Example:
        >>> import torch
        >>> conv = UnitConv(8, 6, factors=3, iterations=0, latent_graph=False)
        >>> x, edges = torch.rand(5, 8), torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
        >>> torch.equal(conv(x, edges), conv.project(x).flatten(-2))
        True
    """

    def route(self, z: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
        """Route the neighbours; without iterations only say which factors they would go to."""
        if self.iterations:
            return super().route(z, edge_index)
        return z, route(z.detach(), edge_index, 1, self.tau)[1]
