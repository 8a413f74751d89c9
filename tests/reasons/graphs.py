"""Small random graphs with types, in canonical form."""

import numpy as np
import torch
from torch_geometric.data import Data

from lgdgcn.data.validate import canonical


def random_graph(seed=0, nodes=30, edges=90, types=3):
    rng = np.random.default_rng(seed)
    listed = rng.integers(0, nodes, (2, edges))
    several = rng.random((edges, types)) < 0.2
    several[np.arange(edges), rng.integers(0, types, edges)] = True
    both = np.concatenate([listed, listed[::-1]], axis=1)
    data = Data(x=torch.eye(nodes), edge_index=both, edge_type=np.tile(several, (2, 1)))
    return canonical(data, require_labels=False)


def planted_graph(seed=0, nodes=60, types=2):
    """Each type joins nodes of a group of its own, densely; a few nodes are in two groups."""
    rng = np.random.default_rng(seed)
    group = [set(range(t * nodes // types, (t + 1) * nodes // types + 3)) for t in range(types)]
    listed, kind = [], []
    for t, members in enumerate(group):
        inside = [node for node in sorted(members) if node < nodes]
        for i, a in enumerate(inside):
            for b in inside[i + 1 :]:
                if rng.random() < 0.4:
                    listed += [(a, b), (b, a)]
                    kind += [np.eye(types)[t]] * 2
    data = Data(x=torch.eye(nodes), edge_index=np.array(listed).T, edge_type=np.array(kind))
    return canonical(data, require_labels=False)
