"""Packed graphs: what is written comes back, and nothing half-written or changed is read."""

import json
import os

import numpy as np
import pytest
import torch

from lgdgcn.data import load
from lgdgcn.data.packed import PackedGraph, PackedWriter, is_packed
from lgdgcn.data.packed.manifest import Manifest
from lgdgcn.data.packed.whole import write_arrays
from lgdgcn.data.validate import canonical, fingerprint
from lgdgcn.errors import InputError


def pack(data, target, **options):
    with PackedWriter(target, **options) as writer:
        writer.finish(write_arrays(data, writer))
    return PackedGraph.open(target, verify="hashes")


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    data = canonical(load("synthetic", nodes=200, factors=3, seed=3))
    data.node_ids = [f"ä {i}\n,\"'" for i in range(data.x.size(0))]
    folder = tmp_path_factory.mktemp("packed") / "graph.lgd"
    return data, pack(data, folder)


def test_a_packed_graph_is_the_graph(packed):
    data, graph = packed
    again = graph.to_data()
    assert fingerprint(again) == fingerprint(data)
    assert again.node_ids == data.node_ids
    assert torch.equal(again.y_factor, torch.as_tensor(data.y_factor))
    assert (graph.num_nodes, graph.num_edges) == (data.x.size(0), data.edge_index.size(1))
    for node in (0, 7, 199):
        start, end = graph.row_ptr[node : node + 2]
        expected = data.edge_index[1, data.edge_index[0] == node]
        assert graph.column[start:end].tolist() == expected.tolist()


def test_ids_are_found_and_named(packed):
    data, graph = packed
    some = [5, 0, 199, 5]
    assert graph.ids(some) == [data.node_ids[i] for i in some]
    assert graph.ids(slice(3, 5)) == data.node_ids[3:5]
    assert graph.ids(np.array([], int)) == []
    assert graph.find([data.node_ids[i] for i in some]).tolist() == some
    with pytest.raises(InputError, match="no node 'nobody' and 1 more"):
        graph.find([data.node_ids[1], "nobody", "nor this"])


def test_ids_that_are_row_numbers_take_no_file(tmp_path):
    data = canonical(load("synthetic", nodes=60, factors=2, seed=1))
    graph = pack(data, tmp_path / "g.lgd")
    assert not graph.has("ids")
    assert graph.ids([3, 59]) == ["3", "59"]
    assert graph.find(["59", "0"]).tolist() == [59, 0]
    for wrong in ("60", "-1", "007", "1.0", "²", ""):
        with pytest.raises(InputError, match="no node"):
            graph.find([wrong])


def test_rows_of_sparse_and_dense_features(tmp_path):
    generator = np.random.default_rng(0)
    dense = (generator.random((30, 7)) * (generator.random((30, 7)) < 0.3)).astype(np.float32)
    edges = torch.tensor([[0, 1], [1, 2]])
    for x in (torch.from_numpy(dense), torch.from_numpy(dense).to_sparse_csr()):
        data = canonical(torch_data(x, edges), require_labels=False)
        graph = pack(data, tmp_path / f"{x.layout}.lgd")
        for rows in (slice(3, 9), np.array([4, 4, 0, 29]), np.array([], int)):
            assert np.array_equal(graph.features(rows), dense[rows])
        assert fingerprint(graph.to_data(require_labels=False)) == fingerprint(data)


def torch_data(x, edges):
    from torch_geometric.data import Data

    return Data(x=x, edge_index=edges)


@pytest.mark.parametrize("name", ["column", "x_value", "y", "ids"])
@pytest.mark.parametrize("fault", ["cut", "longer", "gone", "changed"])
def test_a_file_that_is_not_what_was_written(packed, tmp_path, name, fault):
    data, _ = packed
    graph = pack(data, tmp_path / "g.lgd")
    path = graph.folder / graph.manifest.files[name].file
    content = bytearray(path.read_bytes())
    if fault == "gone":
        path.unlink()
    elif fault == "changed":
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    else:
        path.write_bytes(content[:-1] if fault == "cut" else content + b"0")
    said = {"cut": "cut off", "longer": "was changed", "gone": "No such file", "changed": "hash is"}
    with pytest.raises(InputError, match=f"{path.name}.*{said[fault]}.*pack the graph again"):
        PackedGraph.open(graph.folder, verify="hashes")
    with pytest.raises(InputError, match="pack the graph again"):  # also without being asked
        PackedGraph.open(graph.folder).to_data()


def test_a_file_cut_off_after_opening(packed, tmp_path):
    graph = pack(packed[0], tmp_path / "g.lgd")
    os.truncate(graph.folder / "x_value.bin", 12)
    with pytest.raises(InputError, match="cut off"):
        graph.features([0])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 2}, "version 2 .* reads version 1"),
        ({"format": "other"}, "of another program"),
        ({"nodes": 5}, "rows instead of"),
        ({"nodes": -5}, "damaged"),
        ({"files": {}}, "no array row_ptr"),
        ({"files": {"x": {"file": "../x", "bytes": 1, "hash": "", "dtype": "", "shape": [1]}}},
         "no file of the folder"),
        ({"more": 1}, "damaged"),
    ],
)  # fmt: skip
def test_a_manifest_that_does_not_fit(packed, tmp_path, change, said):
    graph = pack(packed[0], tmp_path / "g.lgd")
    path = graph.folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError, match=said):
        PackedGraph.open(graph.folder)
    path.write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        PackedGraph.open(graph.folder)


def test_nothing_is_there_before_it_is_whole(tmp_path):
    target = tmp_path / "g.lgd"

    def write():
        with PackedWriter(target) as writer:
            with writer.array("row_ptr", np.int64) as array:
                array.append([0, 0])
            raise InputError("stop")

    with pytest.raises(InputError, match="stop"):
        write()
    assert list(tmp_path.iterdir()) == []


def test_a_finished_stage_is_not_done_again(tmp_path):
    target = tmp_path / "g.lgd"

    def attempt(inputs, fails):
        with PackedWriter(target, inputs) as writer:
            found = writer.facts("edges")
            if found is None:
                for name, values in (("row_ptr", [0, 1, 2]), ("column", [1, 0])):
                    with writer.array(name, np.int64) as array:
                        array.append(values)
                writer.complete("edges", {"edges": 2})
            if fails:
                raise KeyboardInterrupt
            writer.finish(Manifest("g", nodes=2, edges=2))
            return found

    with pytest.raises(KeyboardInterrupt):
        attempt("a", fails=True)
    assert not target.exists()
    with pytest.raises(KeyboardInterrupt):
        attempt("b", fails=True)  # other inputs: everything again
    assert attempt("b", fails=False) == {"edges": 2}
    assert [p.name for p in tmp_path.iterdir()] == ["g.lgd"]
    assert sorted(p.name for p in target.iterdir()) == [
        "column.bin",
        "manifest.json",
        "row_ptr.bin",
    ]
    graph = PackedGraph.open(target, verify="hashes")
    assert graph.column.tolist() == [1, 0]


def test_what_is_there_is_replaced_only_on_demand(packed, tmp_path):
    data, target = packed[0], tmp_path / "g.lgd"
    first = pack(data, target).manifest.fingerprint
    with pytest.raises(InputError, match="there already; use --overwrite"):
        pack(data, target)
    assert pack(data, target, overwrite=True).manifest.fingerprint == first
    (tmp_path / "other").mkdir()
    with pytest.raises(InputError, match="no packed graph"):
        pack(data, tmp_path / "other", overwrite=True)
    assert is_packed(target)
    assert not is_packed(tmp_path / "other")


def test_two_writers_of_one_graph(tmp_path):
    target = tmp_path / "g.lgd"
    with (
        PackedWriter(target),
        pytest.raises(InputError, match="another process"),
        PackedWriter(target),
    ):
        pass
