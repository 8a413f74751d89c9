import pytest
import torch

from lgdgcn.config import Settings
from lgdgcn.models import GRAND
from lgdgcn.models.population import stack
from lgdgcn.nn import RandomStreams
from literal import propagation as literal
from literal.consistency import consistency_loss
from models.toy import toy_graph
from train.single import Member, trainer_of


def test_scores_are_a_hidden_layer_on_the_average_of_hops():
    data = toy_graph(dtype=torch.float64)
    model = GRAND(12, 8, 3, hops=3, drop_nodes=0.4).double().eval()
    matrix = literal.normalized(data.edge_index.T.tolist(), 36)
    average = torch.tensor(literal.average(matrix, data.x.tolist(), [0.25] * 4)).double()
    encoder = model.encoder
    hidden = (0.6 * average @ encoder.weight + encoder.bias).relu()
    want = hidden @ model.weight + model.bias
    torch.testing.assert_close(model(data.x, data.edge_index), want)


@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize("sure", [0.0, 0.52])
def test_the_loss_is_the_literal_one(multi_label, sure):
    data = toy_graph(multi_label=multi_label)
    settings = Settings(
        hidden_channels=8, hops=2, views=3, dropout=0.0, sharpening=0.4, confidence=sure
    )
    model = trainer_of(data, [Member(settings, 0)], "grand").new_model(0).train()
    streams = RandomStreams(torch.tensor([3]), torch.tensor([1]), torch.tensor([0.0]))
    stacked = stack([model]).train()
    with streams.active():
        output = stacked.disentangle(
            data.x, data.edge_index, pick=lambda scores: scores[..., :5, :]
        )
    assert output.logits.shape[:2] == (1, 15)  # five nodes in three views
    found = stacked.losses(output, data.edge_index)["consistency"]
    scores = torch.cat(output.views).double()  # [3, 36, C]
    if multi_label:
        yes = scores.sigmoid()
        labels = [torch.stack([yes[..., c], 1 - yes[..., c]], -1) for c in range(6)]
        want = sum(consistency_loss(label.tolist(), 0.4, sure) for label in labels) / 6
    else:
        want = consistency_loss(scores.softmax(-1).tolist(), 0.4, sure)
    torch.testing.assert_close(found, torch.tensor([want]), check_dtype=False)
