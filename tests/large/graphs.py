"""Small graphs with what is hard about large ones, in memory and packed, and settings for them."""

import torch
from torch_geometric.data import Data

from lgdgcn.config import Settings
from lgdgcn.data.packed import PackedGraph, PackedWriter
from lgdgcn.data.packed.whole import write_arrays
from lgdgcn.data.validate import canonical
from lgdgcn.kernels.graph import set_edge_weights
from lgdgcn.models import build

NODES = 48
VOTES = Settings(
    variant="ours", space=False, diversity=False, latent_graph=False,
    hidden_channels=12, iterations=2, batch_size=20, fan_out=0,
)  # fmt: skip


def changed(settings, **values):
    return Settings(**{**settings.as_dict(), **values})


ENCODER = changed(VOTES, iterations=0, encoder_channels=8, hops=2, hop_weights="learned")
BATCH_NORM = changed(ENCODER, batch_norm=True, encoder_layers=2)
STRUCTURE = changed(
    BATCH_NORM, iterations=1, structure="both", structure_neighbours=3, refresh_every=2
)


def graph_of(seed, dtype=torch.float64, weighted=False):
    """A graph with a hub and nodes without edges, some of its nodes labelled."""
    generator = torch.Generator().manual_seed(seed)
    ends = torch.randint(2, NODES, (2, 60), generator=generator)
    hub = torch.stack([torch.zeros(20, dtype=torch.long), torch.arange(5, 25)])
    ends = torch.cat([ends, hub], 1)
    ends = ends[:, ends[0] != ends[1]]
    edges = torch.unique(torch.cat([ends, ends.flip(0)], 1), dim=1)
    part = torch.arange(NODES) % 4
    masks = {"train_mask": part == 0, "val_mask": part == 1, "test_mask": part > 1}
    y = torch.randint(0, 3, (NODES,), generator=generator)
    x = torch.rand(NODES, 6, generator=generator, dtype=dtype)
    if weighted:
        set_edge_weights(edges, (edges.sum(0) % 5 + 1).to(dtype))  # the same in both directions
    return Data(x=x, edge_index=edges, y=y, classes=[0, 1, 2], **masks)


def chain_graph(seed, weighted):
    """A long chain, of which the nodes that have a part in a score are few."""
    nodes, generator = 200, torch.Generator().manual_seed(seed)
    first = torch.arange(nodes - 2)
    ends = torch.cat([torch.stack([first, first + 1]), torch.stack([first, first + 2])], 1)
    x = torch.rand(nodes, 5, generator=generator)
    data = Data(x=x, edge_index=torch.cat([ends, ends.flip(0)], 1), y=torch.arange(nodes) % 2)
    for number, name in enumerate(("train", "val", "test")):
        data[f"{name}_mask"] = torch.arange(nodes) // 2 % 3 == number
    if weighted:
        data.edge_weight = 0.5 + (data.edge_index.prod(0) % 7) / 3.0
    return canonical(data)


def packed_from(data, folder):
    with PackedWriter(folder) as writer:
        writer.finish(write_arrays(data, writer))
    return PackedGraph.open(folder)


def model_of(settings, features=6, multi_label=False):
    """A network whose batch norms and shares are not 0 and 1, in float64."""
    torch.manual_seed(5)
    model = build("lgdgcn", settings.as_dict(), features, 3, multi_label=multi_label)
    for tensor in model.double().eval().state_dict().values():
        if tensor.is_floating_point():
            tensor.add_(0.1 * torch.rand(tensor.shape, dtype=tensor.dtype))
    return model
