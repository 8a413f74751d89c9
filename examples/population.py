"""Many settings in one pass: a population, every member as it would be alone."""

from lgdgcn.config import Settings
from lgdgcn.data import synthetic_graph
from lgdgcn.train.population import Training
from lgdgcn.train.trainer import Trainer


def main(epochs: int = 40) -> None:
    """Train nine models at once and print which settings did best on validation."""
    graph = synthetic_graph(factors=2, nodes=200, classes=4, average_degree=12)
    shared = {"factors": 2, "hidden_channels": 32, "iterations": 2, "epochs": epochs}
    trainings = [
        Training("lgdgcn", Settings(**shared, lr=lr, lambda_space=weight), 0, graph)
        for lr in (0.003, 0.01, 0.03)
        for weight in (0.0, 1e-5, 1e-3)
    ]
    trainer = Trainer(trainings)
    while not trainer.finished:
        for report in trainer.epoch():
            if report.finished:
                own = report.training.settings
                print(
                    f"lr {own.lr:<5} lambda_space {own.lambda_space:<5} "
                    f"best validation score {report.state.best_score:.3f} "
                    f"in epoch {report.state.best_epoch}"
                )
    best = max(range(len(trainings)), key=lambda index: trainer.states[index].best_score)
    model = trainer.model(best).eval()
    print(f"the best is member {best}: {model(graph.x, graph.edge_index).shape[0]} nodes scored")


if __name__ == "__main__":
    main()
