"""GPU backend: Triton kernels for float32, bitwise repeatable, never synchronised with the host.

With `TRITON_INTERPRET=1` the same kernels run on CPU tensors, which is slow and meant for tests.

**Where to start.** Every function has the signature of its namesake in `reference`, which says in
plain torch what it computes. `unit_length` in `units.py` is the shortest example of how it is done:
a public function, an `autograd.Function` that allocates and launches, and the kernels. Then
`route_kernels.py` (read `route_tile.py` beside it) and `nearest_kernels.py`, the two hard ones;
their docstrings list the steps that the comments number.

    route.py                       routing: which program takes which nodes, and the launches
    route_kernels.py               its kernels, forward and backward, for few and many in-edges
    route_tile.py                  the steps on tiles that these kernels share
    nearest.py, nearest_kernels.py exact nearest neighbours: sizes and launches, kernels
    aggregate.py                   latent graph: union of neighbour lists, row sums, aggregation
    propagate.py                   K-hop averages
    products.py                    sparse features times weights, inner products along edges
    gaussian.py                    distances, quadratic forms, covariance, diversity loss
    sample.py                      neighbours drawn for a batch of nodes
    units.py                       unit length, dropout, Adam

**Memory layout.** Tensors are `[R, N, M, d]`: R members (models trained at once), N nodes, M
factors, d numbers, contiguous. Graphs are in compressed sparse rows (CSR): the in-edges of node t
are the entries `row_ptr[t]:row_ptr[t+1]`, sorted by target and shared by all members; `order` says
where an entry stands in the caller's `edge_index`. A kernel adds the offset of its member to its
pointers first, in 64 bits, and then indexes as if there were one member.

**Programs.** A program is one Triton instance, a few warps that work on one tile of registers. The
first axis of the grid counts tiles of nodes, rows or points, the second one members (or factors of
members). Sizes inside a tile are powers of two, as Triton wants; padding is masked when loading and
storing. Sizes that shape the code (M, d, iterations, tiles) are `tl.constexpr`: Triton compiles a
version for each. Sizes of the graph are `do_not_specialize`: one version serves all of them.

**Determinism.** Each number is written by one program and no kernel uses atomics. Every sum has a
fixed order: inside a tile by Triton's reduction, over tiles by a loop. Where a gradient is needed
at the other end of an edge, one kernel writes a row per edge, into slots that are sorted by the
receiving node, and a second one sums each node's rows in order.

**CUDA graphs.** Training records an epoch as a CUDA graph. That needs shapes that do not depend on
values, and no reads by the host: what depends on the graph only is computed once and cached
(`kernels.graph`), and where the number of results varies, as in `symmetrize`, there is padding.
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
from lgdgcn.kernels.gpu.propagate import propagate
from lgdgcn.kernels.gpu.route import route
from lgdgcn.kernels.gpu.sample import sample
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
    "propagate",
    "quadratic_forms",
    "route",
    "row_sums",
    "sample",
    "square_distances",
    "symmetrize",
    "unit_length",
]
