"""Features that are standardised by the training nodes, when every seed has its own split."""

import torch

from lgdgcn.config import resolve
from lgdgcn.data import synthetic_graph
from lgdgcn.data.validate import canonical
from lgdgcn.runs.fit import fit
from train.one_seed import train_seed

CPU = torch.device("cpu")


def graph(seed):
    """Real-valued features, and a split that the seed draws."""
    data = canonical(synthetic_graph(factors=2, nodes=60, classes=3, average_degree=10))
    data.x = torch.randn(60, 5, generator=torch.manual_seed(0)) * 3 + 1
    mask = torch.rand(60, generator=torch.manual_seed(seed))
    data.train_mask, data.val_mask, data.test_mask = (
        mask < 0.5,
        (mask > 0.5) & (mask < 0.75),
        mask > 0.75,
    )
    return data


def test_a_seed_is_the_same_whoever_is_trained_beside_it():
    settings = resolve({"scaling": "auto", "epochs": 5})
    results, best = fit(graph, settings, "mlp", [0, 1, 2], CPU)
    assert [result.seed for result in results] == [0, 1, 2]
    alone = [train_seed(graph(seed), settings, "mlp", seed, CPU) for seed in range(3)]
    assert [result.scores for result in results] == [result.scores for result, _ in alone]
    assert len({trained.scaling.mean for _, trained in alone}) == 3
    assert best.scaling in [trained.scaling for _, trained in alone]
