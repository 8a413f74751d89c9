"""``LGDConv`` as a layer of your own PyTorch Geometric model, trained by your own loop."""

import torch
import torch.nn.functional as F
from torch_geometric.nn import GCNConv

from lgdgcn.data import synthetic_graph
from lgdgcn.nn import LGDConv


class MyModel(torch.nn.Module):
    """A disentangled layer between two you know."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.encode = torch.nn.Linear(in_channels, 32)
        self.disentangle = LGDConv(32, 32, factors=4, k=4)
        self.classify = GCNConv(32, out_channels)

    def forward(self, x, edge_index):
        """Return class scores and what the layer found out."""
        found = self.disentangle.disentangle(self.encode(x).relu(), edge_index)
        return self.classify(found.units.flatten(-2), edge_index), found


def main(epochs: int = 30) -> None:
    """Train with the layer's own losses and print which factors explain the first edges."""
    torch.manual_seed(0)
    data = synthetic_graph(factors=4, nodes=200, classes=4, average_degree=12)
    model = MyModel(data.x.size(1), data.y.size(1))
    layer = model.disentangle
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        logits, found = model(data.x, data.edge_index)
        if epoch == 0:  # means and covariances begin with the first units ...
            layer.update_statistics(found, "first_epoch")
        losses = layer.losses(found, data.edge_index)  # space and diversity
        loss = F.binary_cross_entropy_with_logits(logits[data.train_mask], data.y[data.train_mask])
        loss = loss + 0.1 * losses["space"] + 0.01 * losses["diversity"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():  # ... and follow the updated ones (Alg. 2)
            layer.update_statistics(model(data.x, data.edge_index)[1], "after_step")
        if epoch % 10 == 0:
            print(f"epoch {epoch}: loss {loss.item():.3f}")
    print("probability of each factor, first three edges:")
    print(found.edge_factors[:3].detach())


if __name__ == "__main__":
    main()
