"""What a training leaves behind when it is over: the model, a figure of its factors, and scores."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch_geometric.data import Data

from lgdgcn import tensor_file
from lgdgcn.metrics import headline
from lgdgcn.metrics.routing import factor_warnings
from lgdgcn.models import NodeOutput
from lgdgcn.runs.checkpoint import Checkpoint
from lgdgcn.runs.fit import SeedResult, summary
from lgdgcn.runs.folder import Run
from lgdgcn.train.trained import TrainedModel

__all__ = ["leave_results"]


def leave_results(
    run: Run,
    about: Mapping[str, Any],
    found: Mapping[str, Any],
    seeds: Sequence[SeedResult],
    trained: TrainedModel,
    data: Data,
    title: str,
) -> dict[str, Any]:
    """Save the model that is kept, measure and draw its factors, and write ``result.json``.

    Args:
        run: The run folder.
        about: What the result begins with: data set, model and variant.
        found: What was found before the training, such as the ranking of a race.
        seeds: The scores of every seed.
        trained: The model of the best seed.
        data: The graph of the first seed.
        title: Of the figure, without the number of factors.

    Returns:
        The content of ``result.json``.
    """
    run.files()  # refuses links that were made meanwhile
    trained.save(run.model)
    # of a graph that is not read whole, only the scores are known
    output = trained(data) if data.edge_index is not None else NodeOutput(torch.empty(0), [])
    factors: dict[str, float] = {}
    if output.layers:
        from lgdgcn.plots import plot_units

        last = output.layers[-1]
        plot_units(last.units, run.figure, f"{title}: {trained.settings.factors} factors")
        factors = headline(last, data.edge_index, data.get("y_factor"))
    result: dict[str, Any] = {
        **about,
        "metric": trained.task.metric,
        **summary(seeds),
        "factors": factors,
        **found,
        "model_sha256": tensor_file.digest(run.model),
    }
    if not run.reasons.is_file():  # else factors are not what says why edges are there
        result["warnings"] += factor_warnings(trained, output)
    run.write_result(result)
    Checkpoint(run.checkpoint).remove()
    return result
