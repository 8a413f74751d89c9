"""The numerics of the mixture's Gaussians: precision matrices and log-likelihoods."""

from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from lgdgcn.errors import InputError

__all__ = ["Precision", "log_determinant", "log_likelihood", "precision_matrix"]

Precision = Literal["scaled", "exact", "released"]

SHRINKAGE = 1e-4  # share of the mean variance added to every variance
SMALLEST_VARIANCE = 1e-12  # stands in for the mean variance of identical units
LARGEST_EXPONENT = 80.0  # exp(80) still fits float32 (released variant only)


def precision_matrix(cov: Tensor, kind: Precision = "scaled") -> Tensor:
    r"""Turn covariances into the matrices of the Mahalanobis distance.

    Args:
        cov: Covariances. Shape ``[M, d, d]``.
        kind: ``"exact"`` is :math:`\Sigma^{-1}`, regularised only by what rounding demands.
            ``"scaled"`` shrinks :math:`\Sigma` towards its mean variance and divides the inverse
            by its mean diagonal: units are short and their covariance is tiny, so the literal
            inverse swamps every other loss term. ``"released"`` repeats the authors' code, which
            row-normalises :math:`\Sigma`, pseudo-inverts it and row-normalises again; the result
            is neither symmetric nor positive definite.

    Returns:
        Matrices of shape ``[M, d, d]``.
    """
    _check_kind(kind)
    if kind == "released":
        rows = F.normalize(cov, dim=-1).nan_to_num()  # pinv raises on NaN; the loss shall name it
        return F.normalize(torch.linalg.pinv(rows), dim=-1)
    inverse = torch.cholesky_inverse(_cholesky(cov, kind))
    if kind == "exact":
        return inverse
    return inverse / _mean_diagonal(inverse)


def log_likelihood(z: Tensor, mean: Tensor, cov: Tensor, kind: Precision = "scaled") -> Tensor:
    """Log density of every unit under every component, without the common constant.

    Args:
        z: Units. Shape ``[N, M, d]``.
        mean: Means. Shape ``[M, d]``.
        cov: Covariances. Shape ``[M, d, d]``.
        kind: ``"scaled"`` and ``"exact"`` are the true density and differ in shrinkage only;
            ``"released"`` repeats the authors' exponent, which has the covariance where its
            inverse belongs and no normaliser.

    Returns:
        Shape ``[N, M, M]``; the last axis is the component.
    """
    _check_kind(kind)
    diff = z.unsqueeze(2) - mean  # [N, M, M, d]
    if kind == "released":
        exponent = -0.5 * torch.einsum("nmec,ecb,nmeb->nme", diff, cov, diff)
        return exponent.clamp(max=LARGEST_EXPONENT)
    lower = _cholesky(cov, kind)
    eye = torch.eye(cov.size(-1), dtype=cov.dtype, device=cov.device).expand_as(cov)
    whitening = torch.linalg.solve_triangular(lower, eye, upper=False)
    white = torch.einsum("ecb,nmeb->nmec", whitening, diff)
    half_log_det = lower.diagonal(dim1=-2, dim2=-1).log().sum(-1)  # [M]
    return -0.5 * white.square().sum(-1) - half_log_det


def log_determinant(matrices: Tensor) -> Tensor:
    """Log-determinant of many small positive definite matrices, ``[N, M, M] -> [N]``.

    Plain elimination: M vectorised steps over all matrices beat a library call that visits
    thousands of tiny ones in turn.
    """
    log_det = matrices.new_zeros(matrices.size(0))
    while matrices.size(-1):
        pivot = matrices[:, :1, :1]
        log_det = log_det + pivot[:, 0, 0].log()
        matrices = matrices[:, 1:, 1:] - matrices[:, 1:, :1] * matrices[:, :1, 1:] / pivot
    return log_det


def _check_kind(kind: str) -> None:
    if kind not in get_args(Precision):
        choices = ", ".join(get_args(Precision))
        raise InputError(f"precision is {kind!r}; choose from {choices}")


def _cholesky(cov: Tensor, kind: Precision) -> Tensor:
    share = SHRINKAGE if kind == "scaled" else 16 * torch.finfo(cov.dtype).eps
    ridge = share * _mean_diagonal(cov).clamp_min(SMALLEST_VARIANCE)
    eye = torch.eye(cov.size(-1), dtype=cov.dtype, device=cov.device)
    lower, failed = torch.linalg.cholesky_ex(cov + ridge * eye)
    # NaN instead of an exception: the training loop names the loss it turns up in
    return torch.where(failed[..., None, None] == 0, lower, torch.nan)


def _mean_diagonal(matrices: Tensor) -> Tensor:
    return matrices.diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None]
