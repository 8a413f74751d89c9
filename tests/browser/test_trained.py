"""The page of a model that was really trained."""

from collections.abc import Callable

import pytest
import torch

from lgdgcn.config import Settings
from lgdgcn.data.validate import canonical
from lgdgcn.explorer.payload import payload
from lgdgcn.reasons import Explanation
from models.toy import toy_graph
from train.one_seed import train_seed

from .chromium import Page


@pytest.mark.parametrize("multi_label", [False, True], ids=["classes", "label sets"])
@pytest.mark.parametrize("variant", ["paper", "ours"])
def test_the_page_of_a_trained_model(
    open_page: Callable[..., Page], variant: str, multi_label: bool
) -> None:
    data = canonical(toy_graph(multi_label=multi_label))
    settings = Settings(variant=variant, factors=2, hidden_channels=8, k=3, epochs=3)
    trained = train_seed(data, settings, "lgdgcn", 0, torch.device("cpu"))[1]
    page = open_page(payload(Explanation.of_factors(trained, data), dataset="toy"), "n=0")
    for name in ("factors", "training", "correlation", "confusion", "measures", "details"):
        page.press(f"#tab-{name}")
    probability = trained.task.probabilities(trained(data).logits)[0]
    best = int(probability.argmax())
    first = page.text("#node-card .bars tr")
    assert first.startswith(str(trained.classes[best]))
    assert f"{100 * float(probability[best]):.1f} %" in first
