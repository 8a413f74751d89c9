"""Generated graphs of any size: symmetric, with the factors they promise, the same for a seed."""

import graphs
import numpy as np
import pytest
from graphs import clustered_graph, write_scale_graph

from lgdgcn.data.packed import PackedGraph
from lgdgcn.data.validate import canonical, fingerprint
from lgdgcn.errors import InputError


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:  # several chunks and blocks
        patch.setattr(graphs, "CHUNK", 5000)
        patch.setattr(graphs, "BLOCK", 3000)
        folder = tmp_path_factory.mktemp("scale") / "g.lgd"
        return write_scale_graph(folder, 3000, 20_000, classes=5, features=8, seed=1)


def ends(graph):
    return np.repeat(np.arange(graph.num_nodes), np.diff(graph.row_ptr)), np.array(graph.column)


def test_it_is_a_canonical_graph(graph):
    graph.check_hashes()
    source, target = ends(graph)
    key = source * graph.num_nodes + target
    assert (np.diff(key) > 0).all()  # sorted, each once
    assert (source != target).all()
    assert np.array_equal(np.sort(target.astype(np.int64) * graph.num_nodes + source), key)
    assert 0.9 * 40_000 < graph.num_edges <= 40_000
    data = graph.to_data()
    assert data.edge_index.tolist() == [source.tolist(), target.tolist()]
    assert data.y_factor.tolist() == graph.array("y_factor").tolist()
    assert data.y.tolist() == data.y_factor[:, 0].tolist()
    shares = [float(data[f"{name}_mask"].float().mean()) for name in ("train", "val", "test")]
    assert shares == pytest.approx([0.6, 0.2, 0.2], abs=0.03)


def test_every_edge_is_explained_by_a_factor(graph):
    source, target = ends(graph)
    groups = graph.array("y_factor")
    same = groups[source] == groups[target]  # [E, factors]
    assert same.any(1).all()
    assert np.bincount(groups[:, 2]).tolist() == [600] * 5
    assert same.mean(0) == pytest.approx([1 / 4 + 3 / 4 / 5] * 4, abs=0.03)


def test_degrees_follow_a_power_law(graph):
    """Ranks r are drawn with weight r^(-1/2): degrees have a tail of exponent 3."""
    degree = np.diff(graph.row_ptr)
    assert degree.max() > 5 * degree.mean()
    tail = np.sort(degree)[-300:].astype(float)
    exponent = 1 + 1 / np.log(tail / tail[0]).mean()  # Hill's estimate
    assert 2 < exponent < 4.5


def test_features_tell_of_classes(graph):
    x, groups = graph.features(slice(None)), graph.array("y_factor")
    for factor in range(4):
        own = np.arange(8) % 4 == factor
        centre = np.stack([x[groups[:, factor] == g].mean(0) for g in range(5)])
        assert centre[:, own].std(0).mean() > 3 * centre[:, ~own].std(0).mean()


def test_a_seed_gives_the_same_graph(graph, tmp_path):
    fingerprints = [
        write_scale_graph(
            tmp_path / f"{i}.lgd", 500, 2000, classes=4, seed=seed
        ).manifest.fingerprint
        for i, seed in enumerate((7, 7, 8))
    ]
    assert fingerprints[0] == fingerprints[1] != fingerprints[2]


def test_what_makes_no_graph(tmp_path):
    for options in ({"classes": 1}, {"classes": 300}, {"factors": 0}, {"features": 2}):
        with pytest.raises(InputError, match="make no graph"):
            write_scale_graph(tmp_path / "g.lgd", 1000, 100, **options)
    assert not list(tmp_path.iterdir())
    assert PackedGraph.open(write_scale_graph(tmp_path / "g.lgd", 2, 1, classes=2).folder)


def test_graphs_in_memory_are_canonical_and_repeatable():
    data = clustered_graph(500, degree=6)
    assert fingerprint(canonical(data.clone())) == fingerprint(data)
    assert fingerprint(clustered_graph(500, degree=6)) == fingerprint(data)
    assert 5 < data.edge_index.size(1) / 500 <= 6
    same = data.y[data.edge_index[0]] == data.y[data.edge_index[1]]
    assert same.float().mean() > 0.7
