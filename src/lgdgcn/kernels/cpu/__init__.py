"""CPU backend: numba loops over compressed rows, bitwise repeatable at any thread count."""

from lgdgcn.kernels.cpu.aggregate import aggregate, row_sums, symmetrize
from lgdgcn.kernels.cpu.gaussian import diversity_loss
from lgdgcn.kernels.cpu.nearest import nearest
from lgdgcn.kernels.cpu.products import edge_agreement, matmul
from lgdgcn.kernels.cpu.route import route
from lgdgcn.kernels.cpu.units import adam, dropout, unit_length

__all__ = [
    "adam",
    "aggregate",
    "diversity_loss",
    "dropout",
    "edge_agreement",
    "matmul",
    "nearest",
    "route",
    "row_sums",
    "symmetrize",
    "unit_length",
]
