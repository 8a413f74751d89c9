import gc
import sys
import weakref

import pytest
import torch

from lgdgcn import kernels
from lgdgcn.errors import InputError
from lgdgcn.kernels import dispatch
from literal import neighbours as literal
from literal.seeds import seeds

SEEDS = seeds(3)


def test_rows_and_their_transpose():
    edge_index = torch.tensor([[3, 0, 1, 0, 3], [1, 2, 1, 1, 1]])
    rows = kernels.neighbours(edge_index, 4)
    assert rows.row_ptr.tolist() == [0, 0, 4, 5, 5]
    assert rows.source.tolist() == [3, 1, 0, 3, 0]
    assert rows.order.tolist() == [0, 2, 3, 4, 1]
    assert rows.out_ptr.tolist() == [0, 2, 3, 3, 5]
    assert rows.out_entry.tolist() == [2, 4, 1, 0, 3]


def test_remembered_until_the_edges_change(backend):
    z = torch.randn(4, 2, 3)
    edge_index = torch.tensor([[0, 1, 2], [1, 2, 3]])
    rows = kernels.neighbours(edge_index, 4)
    assert kernels.neighbours(edge_index, 4) is rows
    assert kernels.neighbours(edge_index, 5) is not rows
    before = kernels.route(z, edge_index)[0]
    edge_index[1, 0] = 3
    after = kernels.route(z, edge_index)[0]
    assert kernels.neighbours(edge_index, 4).row_ptr.tolist() == [0, 0, 0, 1, 3]
    assert not torch.equal(before, after)
    torch.testing.assert_close(after, kernels.route(z, edge_index.clone())[0])


def test_forgotten_with_the_edges():
    edge_index = torch.tensor([[0], [1]])
    watch = weakref.ref(kernels.neighbours(edge_index, 2).source)
    del edge_index
    gc.collect()
    assert watch() is None


def test_inference_edges_are_never_remembered():
    with torch.inference_mode():
        edge_index = torch.tensor([[0], [1]])
        kernels.neighbours(edge_index, 3)
        edge_index[1, 0] = 2
        assert kernels.neighbours(edge_index, 3).row_ptr.tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("drop", [False, True])
def test_union_equals_the_literal_loop(backend, seed, drop):
    torch.manual_seed(seed)
    index = torch.randint(0, 11, (3, 11, 4))  # with self loops and repeated entries
    keep = torch.rand(index.shape) < 0.5 if drop else None
    found = kernels.symmetrize(index, keep)
    row_ptr, source, mutual = literal.symmetrize(index, keep)
    assert found.row_ptr.tolist() == row_ptr
    assert found.source.tolist() == source
    assert found.ends.tolist() == [2 if both else 1 for both in mutual]
    assert found.source.dtype == found.row_ptr.dtype == torch.int64
    assert found.ends.dtype == torch.uint8


@pytest.mark.parametrize("seed", SEEDS)
def test_backends_agree_on_the_union(monkeypatch, seed):
    pytest.importorskip("numba")
    torch.manual_seed(seed)
    index = torch.rand(3, 300, 299).topk(9).indices
    index += index >= torch.arange(300).view(1, -1, 1)  # never the node itself
    keep = torch.rand(index.shape) < 0.7
    results = []
    for name in ("torch", "numba"):
        monkeypatch.setenv("LGDGCN_BACKEND", name)
        results.append(kernels.symmetrize(index, keep))
    for a, b in zip(*results, strict=True):
        assert torch.equal(a, b)


def test_union_of_nothing(backend):
    index = torch.tensor([[[1], [0], [0]]])
    found = kernels.symmetrize(index, torch.zeros_like(index, dtype=torch.bool))
    assert found.row_ptr.tolist() == [0, 0, 0, 0]
    assert found.source.numel() == found.ends.numel() == 0


def test_unknown_backend(monkeypatch):
    monkeypatch.setenv("LGDGCN_BACKEND", "fortran")
    with pytest.raises(InputError, match=r"'fortran'.*torch, numba"):
        kernels.nearest(torch.randn(1, 3, 2), 1)


def test_without_numba(monkeypatch):
    for name in ("numba", "lgdgcn.kernels.cpu"):
        monkeypatch.setitem(sys.modules, name, None)
    dispatch.compiled.cache_clear()
    try:
        monkeypatch.delenv("LGDGCN_BACKEND", raising=False)
        assert kernels.nearest(torch.randn(1, 3, 2), 1)[0].shape == (1, 3, 1)
        monkeypatch.setenv("LGDGCN_BACKEND", "numba")
        with pytest.raises(InputError, match=r"numba.*choose torch"):
            kernels.nearest(torch.randn(1, 3, 2), 1)
    finally:
        dispatch.compiled.cache_clear()
