"""Edges as no data set would have them."""

import torch


def ugly_edges(seed, nodes=9, hub_degree=0):
    """Random edges, some twice, self loops and perhaps a hub; the last node has none."""
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(nodes - 1, (2, 3 * nodes), generator=generator)
    loops = torch.tensor([0, 1]).expand(2, 2)
    hub = torch.stack([torch.arange(hub_degree) % (nodes - 1), torch.full((hub_degree,), 2)])
    edges = torch.cat([edges, edges[:, :5], loops, hub, hub.flip(0)], dim=1)
    return edges[:, torch.randperm(edges.size(1), generator=generator)]


NO_EDGES = torch.zeros(2, 0, dtype=torch.int64)
