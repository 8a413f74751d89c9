"""A loss term of your own, in a model of your own: both work with every command.

Here the model also pays for edge factors that are nearly uniform (high routing entropy).
"""

from torch import Tensor

from lgdgcn.config import Settings
from lgdgcn.data import synthetic_graph
from lgdgcn.models import LGDGCN, MODELS, ModelSpec, NodeOutput
from lgdgcn.train.population import Training
from lgdgcn.train.trainer import Trainer


def routing_entropy(edge_factors: Tensor) -> Tensor:
    """Mean entropy of the edges' factor probabilities ``[*, E, M] -> [*]``."""
    return -(edge_factors * edge_factors.clamp_min(1e-9).log()).sum(-1).mean(-1)


class DecidedLGDGCN(LGDGCN):
    """LGD-GCN that is paid for deciding which factor explains an edge."""

    def losses(self, output: NodeOutput, edge_index: Tensor) -> dict[str, Tensor]:
        """Return the paper's losses and the new one."""
        entropy = sum(routing_entropy(layer.edge_factors) for layer in output.layers)
        return {**super().losses(output, edge_index), "entropy": entropy}


def main(epochs: int = 40) -> None:
    """Train LGD-GCN with and without the new loss and compare the entropy of their routing."""
    MODELS["decided"] = ModelSpec("LGD-GCN, decided", DecidedLGDGCN)
    graph = synthetic_graph(factors=4, nodes=200, classes=4, average_degree=16)
    settings = Settings(hidden_channels=32, iterations=2, tau=0.2, lambda_space=1e-5, epochs=epochs)
    for name in ("lgdgcn", "decided"):
        trainer = Trainer([Training(name, settings, 0, graph)])
        trainer.train()
        # the present weights, not those of the best epoch
        output = trainer.model(0, "model").eval().disentangle(graph.x, graph.edge_index)
        entropy = routing_entropy(output.layers[-1].edge_factors).item()
        print(f"{MODELS[name].title}: routing entropy {entropy:.3f}")


if __name__ == "__main__":
    main()
