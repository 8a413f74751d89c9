import torch

from lgdgcn.models import ClassUnitGCN
from lgdgcn.nn import ClassUnitConv
from models.toy import toy_graph


def test_the_first_factor_has_as_many_classes_as_it_is_told():
    data = toy_graph()
    torch.manual_seed(0)
    conv = ClassUnitConv(12, 24, factors=4, first_classes=3, latent_graph=False, iterations=2)
    units = conv.disentangle(data.x, data.edge_index).local_units
    assert (units[:, 0, 3:] == 0).all()
    assert (units[:, 0, :3] > 0).all()
    assert (units[:, 1:] > 0).all()
    torch.testing.assert_close(units.square().sum(-1), torch.ones(36, 4))
    units.pow(3).sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in conv.parameters())


def test_with_one_label_per_node_the_first_factor_has_a_class_for_each_label():
    data = toy_graph()
    torch.manual_seed(0)
    options = {"multi_label": False, "factors": 4, "encoder_channels": 8, "latent_graph": False}
    model = ClassUnitGCN(12, 24, 3, **options).eval()
    output = model.disentangle(data.x, data.edge_index)
    assert output.layers[0].units.shape == (36, 4, 6)
    own = output.layers[0].units[:, 0, :3].square()
    torch.testing.assert_close(output.logits.exp(), own)
    torch.testing.assert_close(own.sum(-1), torch.ones(36))
    narrow = ClassUnitGCN(12, 4, 3, **options).eval()
    assert narrow.disentangle(data.x, data.edge_index).layers[0].units.shape == (36, 4, 3)
