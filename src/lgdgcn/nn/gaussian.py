"""The numerics of the mixture's Gaussians: precision matrices and log-likelihoods."""

from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from lgdgcn import kernels
from lgdgcn.errors import InputError

__all__ = ["Precision", "log_likelihood", "precision_matrix"]

Precision = Literal["scaled", "exact", "released"]

SHRINKAGE = 1e-4  # share of the mean variance added to every variance
SMALLEST_VARIANCE = 1e-12  # stands in for the mean variance of identical units
LARGEST_EXPONENT = 80.0  # exp(80) still fits float32 (released variant only)


def precision_matrix(cov: Tensor, kind: Precision = "exact") -> Tensor:
    r"""Turn covariances into the matrices of the Mahalanobis distance.

    Args:
        cov: Covariances. Shape ``[*, M, d, d]``.
        kind: ``"exact"`` is :math:`\Sigma^{-1}`, regularised only by what rounding demands. It
            grows as units come together, since :math:`\Sigma` follows them, so its loss needs a
            small weight (``docs/paper.md``). ``"scaled"`` shrinks :math:`\Sigma` towards its mean
            variance and divides the inverse by its mean diagonal. ``"released"`` repeats the
            authors' code, which row-normalises :math:`\Sigma`, pseudo-inverts it and row-normalises
            again; the result is neither symmetric nor positive definite.

    Returns:
        Matrices of shape ``[*, M, d, d]``.
    """
    _check_kind(kind)
    if kind == "released":
        return _released_precision(cov)
    white = _whitening(cov, SHRINKAGE if kind == "scaled" else _rounding(cov))
    inverse = white.mT @ white
    return inverse if kind == "exact" else inverse / _mean_diagonal(inverse)


def _released_precision(cov: Tensor) -> Tensor:
    """Rows of the pseudo-inverse of the row-normalised covariance, again with unit length.

    Channels that never vary, as dead ReLUs leave them, have zero rows, which a pseudo-inverse
    passes over. The others are inverted: pinv(D S) = S^-1 D^-1 for diagonal D.
    """
    wide = cov.double()
    live = wide.diagonal(dim1=-2, dim2=-1) > 0  # [*, M, d]
    stand_in = torch.where(live, 0, _mean_diagonal(wide).squeeze(-1))
    white = _whitening(wide + torch.diag_embed(stand_in), _rounding(cov))
    inverse = (white.mT @ white) * torch.linalg.vector_norm(wide, dim=-1).unsqueeze(-2)
    return F.normalize(inverse * live.unsqueeze(-1), dim=-1).to(cov.dtype)


def log_likelihood(z: Tensor, mean: Tensor, cov: Tensor, kind: Precision = "exact") -> Tensor:
    """Log density of every unit under every component, without the common constant.

    Args:
        z: Units. Shape ``[*, N, M, d]``.
        mean: Means. Shape ``[*, M, d]``.
        cov: Covariances. Shape ``[*, M, d, d]``.
        kind: ``"scaled"`` and ``"exact"`` are the true density and differ in shrinkage only;
            ``"released"`` repeats the authors' exponent, which has the covariance where its
            inverse belongs and no normaliser.

    Returns:
        Shape ``[*, N, M, M]``; the last axis is the component.
    """
    _check_kind(kind)
    if kind == "released":
        root = _cholesky(cov, _rounding(cov)).mT  # (z - mu)^T S (z - mu) = |root (z - mu)|^2
        return (-0.5 * kernels.square_distances(z, mean, root)).clamp(max=LARGEST_EXPONENT)
    white = _whitening(cov, SHRINKAGE if kind == "scaled" else _rounding(cov))
    half_log_det = -white.diagonal(dim1=-2, dim2=-1).log().sum(-1)  # [*, M]
    return -0.5 * kernels.square_distances(z, mean, white) - half_log_det[..., None, None, :]


def _check_kind(kind: str) -> None:
    if kind not in get_args(Precision):
        choices = ", ".join(get_args(Precision))
        raise InputError(f"precision is {kind!r}; choose from {choices}")


def _rounding(cov: Tensor) -> float:
    """Share of the mean variance that rounding may have taken from the smallest one."""
    return 16 * torch.finfo(cov.dtype).eps


def _whitening(cov: Tensor, share: float) -> Tensor:
    """The map that turns the covariance into the identity: the inverse of its Cholesky factor."""
    lower = _cholesky(cov, share)
    eye = torch.eye(cov.size(-1), dtype=cov.dtype, device=cov.device).expand_as(cov)
    white: Tensor = torch.linalg.solve_triangular(lower, eye, upper=False)
    return white


def _cholesky(cov: Tensor, share: float) -> Tensor:
    """Factor of a covariance to which a share of its mean variance is added."""
    ridge = share * _mean_diagonal(cov).clamp_min(SMALLEST_VARIANCE)
    eye = torch.eye(cov.size(-1), dtype=cov.dtype, device=cov.device)
    lower, failed = torch.linalg.cholesky_ex(cov + ridge * eye)
    # NaN instead of an exception: the training loop names the loss it turns up in
    return torch.where(failed[..., None, None] == 0, lower, torch.nan)


def _mean_diagonal(matrices: Tensor) -> Tensor:
    return matrices.diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None]
