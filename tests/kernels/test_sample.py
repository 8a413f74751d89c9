from itertools import combinations

import pytest
import torch
from scipy.stats import chisquare

from kernels.checks import same_with_one_thread
from lgdgcn import kernels
from lgdgcn.errors import InputError
from literal import sampling as literal
from literal.seeds import seeds

SEEDS = seeds(3)


def case(seed, nodes=400):
    """Rows of every length from none to a hub, and nodes in any order, some of them twice."""
    generator = torch.Generator().manual_seed(seed)
    degree = torch.randint(0, 12, (nodes,), generator=generator)
    degree[3], degree[5] = 0, 500
    row_ptr = torch.cat([torch.zeros(1, dtype=torch.long), degree.cumsum(0)])
    chosen = torch.randint(0, nodes, (nodes,), generator=generator)
    key = int(torch.randint(0, 2**62, (1,), generator=generator)) * 4 + 3
    return row_ptr, torch.cat([chosen, torch.tensor([3, 5, 5])]), key


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("fan_out", [0, 1, 5, 40, 600])
def test_equals_the_literal_loop(backend, seed, fan_out):
    row_ptr, nodes, key = case(seed)
    ptr, entry = kernels.sample(row_ptr, nodes, fan_out, key)
    found = [part.tolist() for part in entry.tensor_split(ptr[1:-1])]
    assert found == literal.sample(row_ptr.tolist(), nodes.tolist(), fan_out, key)


def test_all_subsets_are_as_probable(backend):
    row_ptr = torch.tensor([0, 6, 12, 18])
    keys = 4000
    counts = dict.fromkeys(combinations(range(6), 3), 0)
    for key in range(keys):
        _, entry = kernels.sample(
            row_ptr, torch.tensor([0, 2]), 3, key * 0x9E3779B97F4A7C15 % 2**64
        )
        counts[tuple(entry[:3].tolist())] += 1
        counts[tuple((entry[3:] - 12).tolist())] += 1
    assert chisquare(list(counts.values())).pvalue > 1e-6


def test_nodes_and_keys_draw_independently(backend):
    row_ptr = torch.arange(0, 5001 * 8, 8)
    nodes = torch.arange(5000)
    first, second = (kernels.sample(row_ptr, nodes, 1, key)[1] % 8 for key in (11, 11 + 2**32))
    table = torch.bincount(first * 8 + second, minlength=64)
    neighbours = torch.bincount(first[1:] * 8 + first[:-1], minlength=64)
    for counts in (table, neighbours):
        assert chisquare(counts.tolist()).pvalue > 1e-6


def test_results_do_not_depend_on_threads(backend, two_threads):
    row_ptr, nodes, key = case(SEEDS[0], nodes=3000)
    assert same_with_one_thread(lambda: kernels.sample(row_ptr, nodes, 4, key))


def test_wrong_arguments_are_refused():
    row_ptr, nodes, _ = case(0)
    for fan_out, key in ((-1, 0), (1, -1), (1, 2**64)):
        with pytest.raises(InputError, match="fan_out is"):
            kernels.sample(row_ptr, nodes, fan_out, key)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("sizes", [(0, 0), (5, 0), (0, 7), (50, 300)])
def test_ids_are_numbered_by_first_appearance(backend, seed, sizes):
    generator = torch.Generator().manual_seed(seed)
    known = torch.randperm(10**6, generator=generator)[: sizes[0]] * 2**33
    more = torch.randint(0, 100, (sizes[1],), generator=generator)
    more = torch.cat([more, known[: sizes[1] // 3]])
    ids, position = kernels.renumber(known, more)
    assert ids.tolist() == list(dict.fromkeys(known.tolist() + more.tolist()))
    assert torch.equal(ids[position], more)
