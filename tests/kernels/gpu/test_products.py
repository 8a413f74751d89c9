import gc
from functools import partial

import pytest
import torch

from kernels.gpu.checks import DEVICE, check_gradient
from lgdgcn.kernels.gpu import matmul, products

# the interpreter computes what it then masks
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")


def sparse(rows, columns, share=0.2, index=torch.int64):
    """A random matrix with empty rows, empty columns and one full column."""
    dense = torch.randn(rows, columns) * (torch.rand(rows, columns) < share)
    dense[[0, rows // 2, -1]] = 0
    dense[:, [0, columns // 2, -1]] = 0
    dense[1:-1, columns // 3] = 1.5
    x = dense.to_sparse_csr()
    parts = x.crow_indices().to(index), x.col_indices().to(index), x.values()
    return torch.sparse_csr_tensor(*parts, dense.shape).to(DEVICE)


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
@pytest.mark.parametrize(("members", "width"), [(1, 64), (3, 7), (2, 70), (1, 1)])
def test_matmul(index, members, width):
    torch.manual_seed(width)
    x = sparse(23, 31, index=index)
    dense = x.to_dense().double()
    weight = torch.randn(members, 31, width)
    check_gradient(partial(matmul, x), partial(torch.matmul, dense), weight)


def test_matmul_of_long_and_missing_rows():
    torch.manual_seed(0)
    for x in (sparse(300, 9), torch.zeros(4, 9).to_sparse_csr().to(DEVICE)):
        dense = x.to_dense().double()
        check_gradient(partial(matmul, x), partial(torch.matmul, dense), torch.randn(2, 9, 5))


def test_matmul_takes_dense_features_and_strided_weights():
    x, weight = torch.randn(6, 5, device=DEVICE), torch.randn(2, 4, 5, device=DEVICE).mT
    torch.testing.assert_close(matmul(x, weight), matmul(x.to_sparse_csr(), weight))


def test_matmul_is_repeatable_and_sees_changes_of_its_matrix():
    x, weight = sparse(20, 11), torch.randn(2, 11, 8, device=DEVICE)
    once = matmul(x, weight)
    assert torch.equal(once, matmul(x, weight))
    x.values().mul_(2)
    assert torch.equal(2 * once, matmul(x, weight))


def test_matmul_frees_the_cache_of_a_matrix_that_is_gone():
    x = sparse(20, 11)
    before = len(products._cache)
    matmul(x, torch.randn(1, 11, 2, device=DEVICE))
    assert len(products._cache) == before + 1
    del x
    gc.collect()
    assert len(products._cache) == before


def test_matmul_with_own_values_of_every_member():
    x = (torch.rand(9, 7) * (torch.rand(9, 7) > 0.6)).to_sparse_csr().to(DEVICE)
    values = torch.randn(3, x.values().numel(), device=DEVICE)
    dense = torch.stack(
        [
            torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), own, x.shape).to_dense()
            for own in values
        ]
    )
    own = partial(matmul, x, values=values)
    check_gradient(own, partial(torch.matmul, dense.double()), torch.randn(3, 7, 5))
