"""Baselines average over neighbours with our kernel; torch_geometric's own layers say the same."""

import pytest
import torch
from torch_geometric.nn import APPNP, GCN2Conv, GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from lgdgcn.models.baselines import FastAPPNP, FastGCN2Conv, FastGCNConv
from lgdgcn.nn.propagation import average_neighbours, normalized_adjacency
from models.toy import toy_graph

KINDS = {
    "gcn": (GCNConv, FastGCNConv, (6, 4), {"normalize": False}),
    "gcnii": (GCN2Conv, FastGCN2Conv, (6, 0.1, 0.5, 2), {"normalize": False}),
    "appnp": (APPNP, FastAPPNP, (4, 0.2), {"normalize": False}),
}


def case(weighted):
    data = toy_graph(dtype=torch.float64)
    edges, nodes = data.edge_index, len(data.x)
    weight = torch.ones(edges.size(1), dtype=torch.float64)
    if weighted:  # the same in both directions
        weight = 0.5 + ((edges[0] * edges[1]) % 7).double()
    index, value = gcn_norm(edges, weight, num_nodes=nodes, dtype=torch.float64)
    return data.x[:, :6].contiguous(), index, value, normalized_adjacency(edges, nodes, weight)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_layers_say_what_their_own_propagation_says(kind, weighted):
    x, index, value, graph = case(weighted)
    theirs, ours, args, options = KINDS[kind]
    torch.manual_seed(0)
    one, other = theirs(*args, **options).double(), ours(*args, **options).double()
    other.load_state_dict(one.state_dict())
    found = []
    for layer, about in ((one, (index, value)), (other, (graph,))):
        inner = x.clone().requires_grad_()
        first = (inner, x) if kind == "gcnii" else (inner,)
        out = layer(*first, *about)
        out.square().sum().backward()
        found.append((out.detach(), inner.grad, *(p.grad for p in layer.parameters())))
    for wanted, got in zip(*found, strict=True):
        torch.testing.assert_close(got, wanted)


def test_members_of_a_population_are_averaged_in_one_pass():
    x, *_, graph = case(False)
    sets = torch.stack([x, 2 * x, x.flip(0)]).requires_grad_()
    together = torch.func.vmap(lambda h: average_neighbours(h, graph))(sets)
    alone = torch.stack([average_neighbours(h, graph) for h in sets])
    torch.testing.assert_close(together, alone)
    (gradient,) = torch.autograd.grad(together.square().sum(), sets)
    (wanted,) = torch.autograd.grad(alone.square().sum(), sets)
    torch.testing.assert_close(gradient, wanted)
