"""What the page says of factors is what the model says when edges are really removed."""

import numpy as np
import pytest
import torch

from browser.fake import decoded
from lgdgcn.config import Settings
from lgdgcn.data.validate import canonical
from lgdgcn.errors import InputError
from lgdgcn.explorer.payload import payload
from lgdgcn.reasons import Edges, Explanation, fit_graph
from lgdgcn.reasons.explanation import without_edges
from models.toy import toy_graph
from train.one_seed import train_seed


def test_more_reasons_than_the_page_can_hold_are_refused(monkeypatch):
    data = canonical(toy_graph())
    explanation = Explanation(data, fit_graph(data, num_factors=2))
    assert payload(explanation, dataset="toy")["factors"] == 2
    monkeypatch.setattr("lgdgcn.explorer.payload.MOST_REASONS", 1)
    with pytest.raises(InputError, match=r"2 reasons, too many for one page"):
        payload(explanation, dataset="toy")


@pytest.mark.parametrize("multi_label", [False, True], ids=["classes", "label sets"])
def test_predictions_without_a_factor_are_recomputed(multi_label):
    data = canonical(toy_graph(multi_label=multi_label))
    settings = Settings(factors=2, hidden_channels=8, k=3, epochs=20)
    first, second = (
        train_seed(data, settings, "lgdgcn", seed, torch.device("cpu"))[1] for seed in (0, 1)
    )
    explanation = Explanation.of_factors(first, data, [second])
    content = payload(explanation, dataset="toy")
    ends = Edges.of_graph(data).ends
    assert np.array_equal(decoded(content["edges"]), ends)  # ranges are of the same edges
    assert content["fits"] == 2
    before = first.task.predict(first(data).logits)
    whole = [model.task.probabilities(model(data).logits) for model in (first, second)]
    chosen = before.bool() if multi_label else torch.nn.functional.one_hot(before, whole[0].size(1))
    count = chosen.sum(1).clamp(min=1)
    for m in range(2):
        winner = explanation.reason_of_edge == m
        cut = without_edges(data, explanation.edges, winner)
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


def test_reasons_of_edges_and_predictions_stand_on_one_page():
    data = canonical(toy_graph())
    settings = Settings(hidden_channels=8, epochs=3)
    model = train_seed(data, settings, "gcn", 0, torch.device("cpu"))[1]
    explanation = Explanation(data, fit_graph(data, num_factors=2), model)
    content = payload(explanation, dataset="toy")
    assert (content["noun"], content["channels"], content["factors"]) == ("reason", 0, 2)
    shares = decoded(content["edgeFactors"]) / 65535
    assert shares == pytest.approx(explanation.reasons.probability, abs=1e-4)
    predicted = decoded(content["predicted"])[:, 0]
    assert predicted.tolist() == model(data).logits.argmax(1).tolist()
    kept = without_edges(data, explanation.edges, explanation.reason_of_edge == 1)
    assert decoded(content["without"]["predicted"])[:, 1].tolist() == (
        model(kept).logits.argmax(1).tolist()
    )
