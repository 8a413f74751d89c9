"""A small graph that every model can learn."""

import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

VARIANTS = ("paper", "released", "ours")  # values of the setting


def toy_graph(nodes=36, classes=3, features=12, seed=0, dtype=torch.float32, multi_label=False):
    """Communities with noisy features that show the class; every fourth node validates."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(nodes) % classes
    x = torch.rand(nodes, features, generator=generator, dtype=dtype)
    x[torch.arange(nodes), y] += 1
    same = y[:, None] == y[None]
    chance = torch.rand(nodes, nodes, generator=generator)
    edges = (chance < torch.where(same, 0.25, 0.02)).fill_diagonal_(False).nonzero().t()
    part = torch.arange(nodes) // classes % 4
    data = Data(x=x, edge_index=to_undirected(edges, num_nodes=nodes), y=y)
    if multi_label:
        data.y = torch.nn.functional.one_hot(y, classes).float().repeat(1, 2)
    data.train_mask, data.val_mask, data.test_mask = part < 2, part == 2, part == 3
    return data
