"""CUDA backend: Triton kernels for float32, bitwise repeatable and without waiting for the host.

With `TRITON_INTERPRET=1` the same kernels run on CPU tensors, which is slow and meant for tests.
"""

from lgdgcn.kernels.gpu.aggregate import aggregate, row_sums, symmetrize
from lgdgcn.kernels.gpu.gaussian import (
    covariance,
    diversity_loss,
    quadratic_forms,
    square_distances,
)
from lgdgcn.kernels.gpu.nearest import nearest
from lgdgcn.kernels.gpu.products import edge_agreement, matmul
from lgdgcn.kernels.gpu.route import route
from lgdgcn.kernels.gpu.units import adam, dropout, unit_length

__all__ = [
    "adam",
    "aggregate",
    "covariance",
    "diversity_loss",
    "dropout",
    "edge_agreement",
    "matmul",
    "nearest",
    "quadratic_forms",
    "route",
    "row_sums",
    "square_distances",
    "symmetrize",
    "unit_length",
]
