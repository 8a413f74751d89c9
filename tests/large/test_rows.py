"""Rows of a graph in mapped files are those of the same graph in memory."""

import pytest
import torch

from large.graphs import NODES, graph_of, packed_from
from lgdgcn.data import node_arrays
from lgdgcn.data.node_arrays import new_array, nodes_of
from lgdgcn.data.validate import canonical, fingerprint
from lgdgcn.errors import InputError
from lgdgcn.large import rows
from lgdgcn.large.rows import GraphRows, mapped_graph, prepared_rows
from lgdgcn.train.prepared import attach_edge_weights


def canonical_graph(kind):
    data = graph_of(0, torch.float32)
    if kind == "weighted":
        data.edge_weight = (data.edge_index.sum(0) % 5 + 1).float()
    if kind == "sparse":
        data.x = (data.x * (data.x > 0.5)).to_sparse_csr()
    if kind == "label sets":
        data.y = torch.nn.functional.one_hot(data.y, 3).float()
        data.y[3] = torch.nan
    return canonical(data)


@pytest.mark.parametrize("kind", ["plain", "weighted", "sparse", "label sets"])
def test_a_mapped_graph_is_the_graph_in_memory(kind, tmp_path, monkeypatch):
    everything = [(rows, "_PIECE"), (rows, "_LOOKED_AT")]
    everything += [(node_arrays, "_PIECE"), (node_arrays, "_SMALL")]
    for module, name in everything:  # in pieces and in files
        monkeypatch.setattr(module, name, 13)
    whole = canonical_graph(kind)
    mapped = mapped_graph(packed_from(whole, tmp_path / "graph.lgd"))
    assert mapped.edge_index is None
    assert fingerprint(mapped) == fingerprint(whole)
    for key in ("y", "train_mask", "val_mask", "test_mask"):
        torch.testing.assert_close(mapped[key], whole[key], equal_nan=True)
    attach_edge_weights(whole)
    found, expected, everyone = mapped.rows, GraphRows.of(whole), torch.arange(NODES)
    assert found.row_ptr.tolist() == expected.row_ptr.tolist()
    assert found.column.tolist() == expected.column.tolist()
    torch.testing.assert_close(found.degrees(everyone), expected.degrees(everyone))
    torch.testing.assert_close(
        found.features(everyone).to_dense(), expected.features(everyone).to_dense()
    )
    assert torch.equal(
        torch.stack(found.edges(5, 20)), whole.edge_index[:, _begin_in(whole, 5, 20)]
    )


def _begin_in(data, low, high):
    return (data.edge_index[0] >= low) & (data.edge_index[0] < high)


def test_features_are_scaled_when_they_are_read(tmp_path):
    from lgdgcn.config import resolve

    settings, whole = resolve({"scaling": "standard"}), canonical_graph("plain")
    mapped = prepared_rows(mapped_graph(packed_from(whole, tmp_path / "graph.lgd")), settings)
    expected = prepared_rows(whole, settings).x
    torch.testing.assert_close(mapped.rows.features(torch.arange(NODES)), expected)


@pytest.mark.parametrize("every", [1, 2, 3, 7, 50])
@pytest.mark.parametrize("value", [True, False])
def test_nodes_of_a_mask_in_pieces(value, every, monkeypatch):
    monkeypatch.setattr(node_arrays, "_PIECE", 5)
    mask = torch.rand(33, generator=torch.Generator().manual_seed(every)) < 0.6
    found = nodes_of(mask, value, every)
    assert found.tolist() == [i for i in range(33) if mask[i] == value][::every]


def test_a_disk_without_room_is_said(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    assert new_array((3, 2), torch.int32, tmp_path).shape == (3, 2)
    monkeypatch.setattr("os.posix_fallocate", full)
    with pytest.raises(InputError, match=r"no room for \(No space left on device\).*TMPDIR"):
        new_array((3, 2), torch.int32, tmp_path)
    assert not list(tmp_path.iterdir())  # the files have no names
