"""What several tests of the kernels share."""

import numpy as np
import torch

NODES = 23  # of `ugly_graph`


def gradient(function, x, *arguments):
    """Result and gradient for fixed random weights of the result."""
    x = x.detach().clone().requires_grad_()
    out = function(x, *arguments)
    weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(0), dtype=out.dtype)
    return out.detach(), torch.autograd.grad((out * weights).sum(), x)[0]


def same_with_one_thread(run):
    """Whether results repeat, and do not depend on the number of threads, to the bit."""
    many, again = run(), run()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    one = run()
    torch.set_num_threads(before)
    return all(
        torch.equal(a, b) and torch.equal(a, c) for a, b, c in zip(many, again, one, strict=True)
    )


def ugly_graph(seed, width, members=3, dtype=torch.float32):
    """Vectors, one of them zero, and directed, doubled and mutual edges, self loops and a hub."""
    torch.manual_seed(seed)
    q = torch.randn(members, NODES, width, dtype=dtype)
    q[:, 4] = 0
    edges = torch.randint(1, NODES - 2, (2, 40))  # the last two nodes have none
    hub = torch.stack([torch.arange(NODES - 2), torch.zeros(NODES - 2, dtype=torch.long)])
    edges = torch.cat([edges, edges[:, :7], edges[:, 5:9].flip(0), hub, hub.new_ones(2, 2)], dim=1)
    return q, edges[:, torch.randperm(edges.size(1))]


def mix(x):
    x = x ^ (x >> np.uint32(16))
    x = x * np.uint32(0x7FEB352D)
    x = x ^ (x >> np.uint32(15))
    x = x * np.uint32(0x846CA68B)
    return x ^ (x >> np.uint32(16))


def random_numbers(seed, epoch, call, elements):
    """What dropout draws for these elements of a member, in wrapping 32-bit arithmetic."""

    def low(number):
        return np.array([number & 0xFFFFFFFF], dtype=np.uint32)

    a = mix(low(seed) + low(0x9E3779B9 * (call + 1)))
    b = mix(mix(low(epoch) + a) ^ low(seed >> 32))
    return mix(mix(np.asarray(elements, dtype=np.uint32) ^ a) + b)
