"""CUDA backend: Triton kernels for float32, bitwise repeatable and without waiting for the host.

With `TRITON_INTERPRET=1` the same kernels run on CPU tensors, which is slow and meant for tests.
"""

from lgdgcn.kernels.triton_agreement import edge_agreement
from lgdgcn.kernels.triton_diversity import diversity_loss
from lgdgcn.kernels.triton_gaussian import covariance, quadratic_forms, square_distances
from lgdgcn.kernels.triton_graph import aggregate, row_sums, symmetrize
from lgdgcn.kernels.triton_matmul import matmul
from lgdgcn.kernels.triton_nearest import nearest
from lgdgcn.kernels.triton_route import route
from lgdgcn.kernels.triton_units import adam, dropout, unit_length

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
