"""Eq. 2, 3, 5 and 6: the units as a Gaussian mixture with one component per factor."""

from collections.abc import Callable
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn

from lgdgcn import kernels
from lgdgcn.nn.gaussian import Precision, log_likelihood, precision_matrix

__all__ = ["LatentSpace", "diversity", "diversity_loss", "space_loss"]

JITTER = 1e-6  # keeps the log-determinant finite where two likelihood rows coincide


def space_loss(z: Tensor, mean: Tensor, cov: Tensor, precision: Precision = "exact") -> Tensor:
    r"""Squared Mahalanobis distance of the units to their own component (Eq. 3, 6).

    .. math:: L_{space}^i = \frac1M \sum_m (z_{i,m} - \mu_m)^T \Sigma_m^{-1} (z_{i,m} - \mu_m)

    Args:
        z: Units. Shape ``[*, N, M, d]``.
        mean: Means. Shape ``[*, M, d]``.
        cov: Covariances. Shape ``[*, M, d, d]``.
        precision: What stands for the inverse covariance; see
            :func:`~lgdgcn.nn.gaussian.precision_matrix`.

    Returns:
        One loss per node. Shape ``[*, N]``.

    Example:
        >>> z = torch.tensor([[[1.0, 2.0]]], dtype=torch.float64)  # one node, one factor
        >>> cov = 4 * torch.eye(2, dtype=torch.float64)[None]
        >>> round(space_loss(z, z.new_zeros(1, 2), cov).item(), 6)
        1.25
    """
    z, mean, cov = _working_precision(z, mean, cov)
    return kernels.quadratic_forms(z, mean, precision_matrix(cov, precision)).mean(dim=-1)


def diversity(z: Tensor, mean: Tensor, cov: Tensor, precision: Precision = "exact") -> Tensor:
    r"""Volume spanned by the M unit-length likelihood rows of each node (Eq. 5).

    .. math:: DD_i = \det(\hat F_i^T \hat F_i), \quad
        \hat F_i = \langle L_{i,1} / \|L_{i,1}\|, \dots, L_{i,M} / \|L_{i,M}\| \rangle, \quad
        L_{i,m} = \langle N(z_{i,m}; \mu_e, \Sigma_e) \rangle_{e=1..M}

    Args:
        z: Units. Shape ``[*, N, M, d]``.
        mean: Means. Shape ``[*, M, d]``.
        cov: Covariances. Shape ``[*, M, d, d]``.
        precision: Which likelihood; see :func:`~lgdgcn.nn.gaussian.log_likelihood`.

    Returns:
        One determinant per node, between 0 and 1 up to rounding. Shape ``[*, N]``.

    Example:
        >>> mean = torch.tensor([[0.0, 9.0], [9.0, 0.0]])  # two factors, far apart
        >>> cov = torch.eye(2).expand(2, 2, 2)
        >>> units = torch.stack([mean, mean[:1].expand(2, 2)])  # separated, then coinciding
        >>> diversity(units, mean, cov).round().tolist()
        [1.0, 0.0]
    """
    log_rows = log_likelihood(*_working_precision(z, mean, cov), precision)  # [*, N, M, M]
    log_norm = 0.5 * torch.logsumexp(2 * log_rows, dim=-1, keepdim=True)
    rows = (log_rows - log_norm).exp()
    volume: Tensor = torch.linalg.det(rows @ rows.mT)
    return volume


def diversity_loss(z: Tensor, mean: Tensor, cov: Tensor, precision: Precision = "exact") -> Tensor:
    """Negative logarithm of :func:`diversity`, finite where the determinant is 0 (Eq. 6).

    Returns:
        One loss per node, at least 0. Shape ``[*, N]``.
    """
    log_rows = log_likelihood(*_working_precision(z, mean, cov), precision)
    return kernels.diversity_loss(log_rows, JITTER)


class LatentSpace(nn.Module):
    r"""Running mean and covariance of every factor's units (Alg. 2).

    Args:
        factors: Number of factors M.
        channels: Size d of a unit.
        update_rate: Share :math:`U_r` of the new statistics in an update.
        precision: What stands for the inverse covariance in the losses.
        centre: Mean the new covariance is taken around: ``"old"`` as Alg. 2 says, or ``"new"``
            as the authors' code does.
    """

    update_rate: Tensor
    mean: Tensor
    cov: Tensor
    updates: Tensor

    def __init__(
        self,
        factors: int,
        channels: int,
        update_rate: float = 0.5,
        precision: Precision = "exact",
        centre: Literal["old", "new"] = "old",
    ) -> None:
        super().__init__()
        self.precision: Precision = precision
        self.centre = centre
        # a buffer, so that the members of a population can have one each
        rate = torch.tensor(update_rate, dtype=torch.float64)
        self.register_buffer("update_rate", rate, persistent=False)
        self.register_buffer("mean", torch.empty(factors, channels))
        self.register_buffer("cov", torch.empty(factors, channels, channels))
        self.register_buffer("updates", torch.empty((), dtype=torch.int64))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Forget the statistics; the next units initialise them."""
        self.mean.zero_()
        self.cov.copy_(torch.eye(self.cov.size(-1)))
        self.updates.zero_()

    def update(self, units: Tensor) -> None:
        """Move the statistics towards those of ``units [*, N, M, d]``; the first call sets them."""
        self._move(units, torch.where(self.updates == 0, 1.0, self.update_rate))

    def initialize(self, units: Tensor) -> None:
        """Set the statistics to those of ``units [*, N, M, d]`` unless they were set before."""
        self._move(units, (self.updates == 0).to(self.mean.dtype))

    @torch.no_grad()
    def _move(self, units: Tensor, rate: Tensor) -> None:
        units = units.to(self.mean.dtype)
        rate = rate.to(self.mean.dtype)[..., None, None]
        new_mean = units.mean(dim=-3)  # [*, M, d]
        centre = new_mean
        if self.centre == "old":
            centre = torch.where((self.updates == 0)[..., None, None], new_mean, self.mean)
        new_cov = kernels.covariance(units, centre)
        self.mean.lerp_(new_mean, rate)
        self.cov.lerp_(new_cov, rate.unsqueeze(-1))
        self.updates += (rate[..., 0, 0] > 0).to(self.updates.dtype)

    def space_loss(self, units: Tensor) -> Tensor:
        """Mean of :func:`space_loss` over the nodes, ``[*]``."""
        return space_loss(units, self.mean, self.cov, self.precision).mean(-1)

    def diversity_loss(self, units: Tensor) -> Tensor:
        """Mean of :func:`diversity_loss` over the nodes, ``[*]``."""
        return diversity_loss(units, self.mean, self.cov, self.precision).mean(-1)

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Self:
        """Move to another device or type, but keep the statistics out of half precision."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        dtype = torch.promote_types(self.mean.dtype, torch.float32)
        self.mean, self.cov = self.mean.to(dtype), self.cov.to(dtype)
        return self

    def __repr__(self) -> str:
        factors, channels = self.mean.shape[-2:]
        return f"{type(self).__name__}(M={factors}, d={channels}, precision={self.precision!r})"


def _working_precision(z: Tensor, mean: Tensor, cov: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Statistics are never computed in half precision."""
    dtype = torch.promote_types(z.dtype, torch.float32)
    return z.to(dtype), mean.to(dtype), cov.to(dtype)
