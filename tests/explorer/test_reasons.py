"""What the page says of factors is what the model says when edges are really removed."""

import numpy as np
import pytest
import torch

from browser.fake import decoded
from lgdgcn.config import Settings
from lgdgcn.data.validate import canonical
from lgdgcn.errors import InputError
from lgdgcn.explorer.payload import payload
from lgdgcn.explorer.reasons import reason_payload
from lgdgcn.reasons import fit_graph
from lgdgcn.reasons.edges import Edges
from lgdgcn.reasons.explain import Explainer, without_pairs
from lgdgcn.reasons.explain_reasons import ReasonExplainer
from models.toy import toy_graph
from train.one_seed import train_seed


def test_more_reasons_than_the_page_can_hold_are_refused(monkeypatch):
    data = canonical(toy_graph())
    explained = ReasonExplainer(data, fit_graph(data, num_factors=2))
    assert reason_payload(explained, dataset="toy", scores={})["factors"] == 2
    monkeypatch.setattr("lgdgcn.explorer.reasons.MOST_REASONS", 1)
    with pytest.raises(InputError, match=r"2 reasons, too many for one page"):
        reason_payload(explained, dataset="toy", scores={})


@pytest.mark.parametrize("multi_label", [False, True], ids=["classes", "label sets"])
def test_predictions_without_a_factor_are_recomputed(multi_label):
    data = canonical(toy_graph(multi_label=multi_label))
    settings = Settings(factors=2, hidden_channels=8, k=3, epochs=20)
    first, second = (
        train_seed(data, settings, "lgdgcn", seed, torch.device("cpu"))[1] for seed in (0, 1)
    )
    content = payload(first, data, dataset="toy", others=[second])
    explainer = Explainer(first, data)
    ends = Edges.of_graph(data).ends
    assert np.array_equal(decoded(content["edges"]), ends)  # ranges are of the same edges
    assert content["fits"] == 2
    before = first.task.predict(first(data).logits)
    whole = [model.task.probabilities(model(data).logits) for model in (first, second)]
    chosen = before.bool() if multi_label else torch.nn.functional.one_hot(before, whole[0].size(1))
    count = chosen.sum(1).clamp(min=1)
    for m in range(2):
        winner = explainer.factors.argmax(1) == m
        cut = without_pairs(data, explainer.pairs, winner)
        assert cut.edge_index.size(1) == 2 * int((~winner).sum())
        logits = first(cut).logits
        expected = (first.task.probabilities(logits) * chosen).sum(1) / count
        found = decoded(content["without"]["probability"])[:, m] / 65535
        assert found == pytest.approx(expected.numpy(), abs=1e-4)
        after = first.task.predict(logits)
        if not multi_label:
            assert decoded(content["without"]["predicted"])[:, m].tolist() == after.tolist()
    own = np.stack([((one * chosen).sum(1) / count).numpy() for one in whole])
    assert decoded(content["without"]["low"]) / 65535 == pytest.approx(own.min(0), abs=1e-4)
    assert decoded(content["without"]["high"]) / 65535 == pytest.approx(own.max(0), abs=1e-4)
