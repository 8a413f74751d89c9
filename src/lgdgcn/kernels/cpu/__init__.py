"""CPU backend: numba loops on vector registers, bitwise repeatable at any number of threads.

**Where to start.** Every function has the signature of its namesake in `reference`, which says in
plain torch what it computes. `unit_length` in `units.py` is the shortest example of how it is done:
a public function that leaves odd cases to the reference, an `autograd.Function` that allocates, and
compiled loops. Then `route_kernels.py` and `nearest.py`, the two hard ones; their docstrings list
the steps that the comments number.

    route.py, route_kernels.py     neighbourhood routing, forward and backward
    nearest.py, nearest_blocks.py  exact nearest neighbours: search, and the blocks it searches
    aggregate.py                   latent graph: union of neighbour lists, row sums, aggregation
    propagate.py                   K-hop averages
    products.py                    sparse features times weights, inner products along edges
    gaussian.py                    diversity loss
    hops.py                        sums of hops that were propagated ahead
    sample.py                      neighbours drawn for a batch of nodes
    units.py                       unit length, dropout, Adam
    vectors.py, vector_math.py     vector registers for numba: types, loads and stores, arithmetic
    threads.py                     threads, and how work is divided among them

**Memory layout.** Tensors are `[R, N, M, d]`: R members (models trained at once), N nodes, M
factors, d numbers, the last axis contiguous. The first two axes are read as one: node t of member r
is row r*N + t. Graphs are in compressed sparse rows (CSR): the in-edges of node t are the entries
`row_ptr[t]:row_ptr[t+1]`, sorted by target and shared by all members, so edge e of member r is
r*E + e. Loops over the vectors of a node copy them to packed rows `[d', M']`, transposed and padded
with zeros to powers of two, which a few wide instructions process (`vectors.py` says why). Nearest
neighbours instead put sixteen points side by side, `[d, 16]`, so that one instruction handles the
same coordinate of all of them.

**Compilation.** M and d are part of a type, `RowShape`, so a loop is compiled once for each pair it
meets, and numba caches the machine code on disk. Loops that are called from Python are marked
`nogil=True, cache=True`; helpers without these flags are compiled into their callers.

**Threads.** A loop takes a range `start, stop` of nodes (or rows, points, numbers) and writes only
their results. `threads.in_parallel` hands such ranges, of about equally many edges, to Python
threads, which run at once because compiled loops release the interpreter lock. There are as many
threads as torch uses.

**Determinism.** No two threads write the same number, so nothing is added atomically, and every sum
has a fixed order that does not depend on the ranges. Where a value is needed at the other end of an
edge, as in gradients, the loop writes one row per edge, and the receiving node then reads its rows
in order. Results are therefore the same to the bit at any number of threads. Vector instructions
may reorder the sum inside one row, but always in the same way.
"""

from lgdgcn.kernels.cpu.aggregate import aggregate, row_sums, symmetrize
from lgdgcn.kernels.cpu.gaussian import diversity_loss
from lgdgcn.kernels.cpu.hops import sum_hops
from lgdgcn.kernels.cpu.nearest import nearest
from lgdgcn.kernels.cpu.products import edge_agreement, matmul
from lgdgcn.kernels.cpu.propagate import propagate
from lgdgcn.kernels.cpu.route import route
from lgdgcn.kernels.cpu.sample import renumber, sample, transpose
from lgdgcn.kernels.cpu.units import adam, dropout, unit_length

__all__ = [
    "adam",
    "aggregate",
    "diversity_loss",
    "dropout",
    "edge_agreement",
    "matmul",
    "nearest",
    "propagate",
    "renumber",
    "route",
    "row_sums",
    "sample",
    "sum_hops",
    "symmetrize",
    "transpose",
    "unit_length",
]
