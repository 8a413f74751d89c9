import os

import numpy as np
import pytest
import torch

from lgdgcn.kernels.cpu.threads import even_cuts, in_parallel


@pytest.fixture(params=[1, 2, 3])
def thread_count(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("cuts", [[0, 10], [0, 3, 3, 7, 10], [4, 10], [0, 0]])
def test_every_index_is_visited_once(thread_count, cuts):
    visits = np.zeros(10, np.int64)

    def work(low, high, step):
        visits[low:high] += step

    in_parallel(work, np.array(cuts), 2)
    assert visits.tolist() == [2 if cuts[0] <= i < cuts[-1] else 0 for i in range(10)]


@pytest.mark.parametrize("size", [0, 1, 7, 100, 1001])
def test_even_cuts_cover_everything_and_respect_the_grain(thread_count, size):
    cuts = even_cuts(size, 10)
    assert (cuts[0], cuts[-1]) == (0, size)
    widths = np.diff(cuts)
    assert len(widths) == 1 or widths.min() >= 10
    assert len(widths) == 1 or thread_count > 1
    assert widths.max() - widths.min() <= 1


def test_an_error_in_a_range_surfaces(thread_count):
    def work(low, high):
        if high == 10:
            raise ArithmeticError("broken range")

    with pytest.raises(ArithmeticError, match="broken range"):
        in_parallel(work, np.array([0, 2, 5, 10]))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_threads_work_again_after_a_fork():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        in_parallel(lambda low, high: None, np.array([0, 1, 2]))
        child = os.fork()
        if child == 0:
            in_parallel(lambda low, high: None, np.array([0, 1, 2]))
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    finally:
        torch.set_num_threads(before)
