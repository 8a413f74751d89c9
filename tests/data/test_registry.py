import io
import warnings
import zipfile

import numpy as np
import pytest
import torch

from lgdgcn import data as lgd_data
from lgdgcn.data import available, get, info, load
from lgdgcn.errors import InputError, LGDWarning

NAMES = [entry.name for entry in available()]
STORED = [name for name in NAMES if name != "synthetic"]
MASKS = ("train_mask", "val_mask", "test_mask")


@pytest.fixture(autouse=True)
def no_user_data(monkeypatch, tmp_path_factory):
    """Keep the tests away from the user's own data, cache and network."""
    monkeypatch.delenv("LGDGCN_DATA", raising=False)
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setattr("lgdgcn.data.download.cache_dir", lambda: cache)
    return cache


def small_graph(**changes):
    arrays = {
        "edge_index": np.array([[0, 1, 2, 3], [1, 2, 3, 3]]),
        "y": np.array([0, 1, 2, 3, 0, 1, -1]),
        "x": np.eye(7),
    }
    return {key: value for key, value in {**arrays, **changes}.items() if value is not None}


def sizes(data):
    return [int(data[mask].sum()) for mask in MASKS]


@pytest.mark.parametrize("name", STORED)
def test_load_gives_the_documented_form(name, shared_data):
    data, entry = load(name, shared_data), info(name)
    assert data.name == name
    assert data.num_nodes == entry.nodes
    assert data.x.shape == (entry.nodes, entry.features)
    dense = name in ("airlines", "tolokers", "ppi_multilabel")  # a few numbers for every node
    assert data.x.layout == (torch.strided if dense else torch.sparse_csr)
    assert data.x.dtype == torch.float32
    source, target = data.edge_index
    key = source * data.num_nodes + target
    assert len(key) == 2 * entry.edges
    assert (key[1:] > key[:-1]).all()
    assert (target * data.num_nodes + source).sort().values.equal(key)
    assert (source != target).all()
    if entry.kind == "single-label":
        assert data.y.dtype == torch.int64
        assert int(data.y.max()) + 1 == entry.classes
    else:
        assert data.y.dtype == torch.float32
        assert data.y.shape == (entry.nodes, entry.classes)
    if name.startswith("lgd_syn"):
        hot = torch.nn.functional.one_hot(data.y_factor, 16).flatten(1)
        assert data.y.equal(hot.float())
        assert data.x.col_indices().equal(target)  # features are adjacency rows
    masks = torch.stack([data[mask] for mask in MASKS])
    assert masks.dtype == torch.bool
    assert masks.sum(0).max() == 1


@pytest.mark.parametrize("name", ["cora", "citeseer", "blogcatalog", "lgd_syn_fac4", "karate_club"])
def test_random_split_has_the_sizes_of_the_standard_one(name, shared_data):
    standard = load(name, shared_data)
    first, same, other = (load(name, shared_data, split="random", seed=s) for s in (1, 1, 2))
    assert sizes(first) == sizes(standard)
    assert first.train_mask.equal(same.train_mask)
    assert not first.train_mask.equal(other.train_mask)
    if standard.y.dim() == 1 and name != "karate_club":
        counts = [torch.bincount(data.y[data.train_mask]) for data in (standard, first)]
        assert counts[0].equal(counts[1])
        assert (first.y[first.train_mask | first.val_mask | first.test_mask] >= 0).all()


@pytest.mark.parametrize("name", ["wisconsin", "actor", "tolokers"])
def test_a_seed_is_one_of_ten_stored_splits(shared_data, name):
    stored = np.load(shared_data / f"{name}.npz")
    data = load(name, shared_data, seed=3)
    for part in ("train", "val", "test"):
        assert np.array_equal(data[f"{part}_mask"].numpy(), stored[f"{part}_masks"][3])
    with pytest.raises(InputError):
        load(name, shared_data, seed=10)


@pytest.mark.parametrize("name", ["amazon_photo", "dblp_full"])
def test_sets_without_a_split_have_one_drawn_with_few_labels(shared_data, name):
    first, again, other = (load(name, shared_data, seed=seed) for seed in (1, 1, 2))
    classes = int(first.y.max()) + 1
    assert sizes(first)[:2] == [20 * classes, 30 * classes]
    assert sum(sizes(first)) == len(first.y)
    assert torch.equal(first.train_mask, again.train_mask)
    assert not torch.equal(first.train_mask, other.train_mask)


def test_label_sets_are_split_by_shares_and_get_spectral_features(shared_data):
    data = load("ppi_multilabel", shared_data, seed=0)
    total = len(data.y)
    assert [round(size / total, 1) for size in sizes(data)] == [0.5, 0.1, 0.4]
    assert data.x.shape[0] == total
    assert data.x.shape[1] > 8


def test_chameleon_has_ten_stored_splits(shared_data):
    stored = np.load(shared_data / "chameleon_filtered.npz")
    for seed in (0, 9):
        data = load("chameleon_filtered", shared_data, seed=seed)
        assert data.test_mask.equal(torch.from_numpy(stored["test_masks"][seed]))
    with pytest.raises(InputError, match=r"0\.\.9"):
        load("chameleon_filtered", shared_data, seed=10)
    assert sum(sizes(load("chameleon_filtered", shared_data, split="random", seed=10))) == 890


def test_karate_club_is_split_by_seed(shared_data):
    first, second = (load("karate_club", shared_data, seed=seed) for seed in (0, 1))
    assert sizes(first) == [20, 7, 7]
    assert not first.test_mask.equal(second.test_mask)
    assert first.x.to_dense().equal(torch.eye(34))


def test_synthetic_passes_settings_through():
    data = load("synthetic", factors=2, nodes=200, classes=4, average_degree=10, seed=3)
    assert data.y_factor.shape == (200, 2)
    direct = lgd_data.synthetic_graph(2, 200, 4, average_degree=10, seed=3)
    assert data.edge_index.equal(direct.edge_index)
    other = load("synthetic", factors=2, nodes=200, classes=4, seed=3, split="random")
    assert sizes(other) == [120, 40, 40]
    with pytest.raises(InputError, match="colour"):
        load("synthetic", colour=3)
    with pytest.raises(InputError, match="only the set 'synthetic'"):
        load("cora", factors=3)


@pytest.mark.filterwarnings("ignore::lgdgcn.errors.LGDWarning")
def test_search_order_is_root_environment_cache(tmp_path, monkeypatch, no_user_data):
    folders = [tmp_path / "root", tmp_path / "env", no_user_data]
    for number, folder in enumerate(folders):
        folder.mkdir(exist_ok=True)
        np.savez(folder / "karate_club.npz", **small_graph(x=np.full((7, 1), number)))
    monkeypatch.setenv("LGDGCN_DATA", str(folders[1]))
    assert load("karate_club", folders[0]).x[0] == 0
    assert load("karate_club").x[0] == 1
    monkeypatch.setenv("LGDGCN_DATA", str(tmp_path / "absent"))
    assert load("karate_club").x[0] == 2
    assert info("karate_club").where_found == str(no_user_data / "karate_club.npz")
    assert get("karate_club") == no_user_data / "karate_club.npz"


@pytest.mark.filterwarnings("ignore:.*is not karate_club as it is known")
def test_a_users_own_file_is_brought_into_form(tmp_path):
    edges = np.array([[0, 1, 1, 2], [1, 0, 2, 3]])
    np.savez(tmp_path / "karate_club.npz", **small_graph(edge_index=edges))
    with pytest.warns(UserWarning, match="directed"):
        data = load("karate_club", tmp_path)
    assert data.edge_index.tolist() == [[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]
    assert data.x.dtype == torch.float32
    assert sizes(data) == [4, 1, 1]  # of the six labelled nodes


@pytest.mark.parametrize(
    "changes",
    [
        {"edge_index": None},
        {"y": None},
        {"y": np.array(3)},
        {"edge_index": np.array([[0], [9]])},
        {"edge_index": np.array([[0.5], [1.0]])},
        {"y": np.array([0.5] * 7)},
        {"x": np.full((7, 2), np.nan)},
        {"x": np.eye(5)},
        {"x": np.array(["a"] * 7)},
        {"x": None, "x_indptr": np.arange(8)},
        {
            "x": None,
            "x_indptr": np.arange(8),
            "x_indices": np.full(7, 99),
            "x_data": np.ones(7),
            "x_shape": np.array([7, 3]),
        },
        {"y_factor": np.zeros((3, 2), dtype=int)},
        {f"{part}_idx": np.array([0]) for part in ("train", "val", "test")},
        {f"{part}_idx": np.array([77]) for part in ("train", "val", "test")},
    ],
)
@pytest.mark.filterwarnings("ignore:edge_index was directed")
def test_bad_arrays_give_one_line_with_the_file(changes, tmp_path):
    np.savez(tmp_path / "karate_club.npz", **small_graph(**changes))
    with pytest.raises(InputError, match=r"karate_club\.npz") as caught:
        load("karate_club", tmp_path)
    assert "\n" not in str(caught.value)


def test_a_header_cannot_claim_memory(tmp_path):
    member = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        member, {"descr": "<f8", "fortran_order": False, "shape": (10**13,)}
    )
    with zipfile.ZipFile(tmp_path / "karate_club.npz", "w") as archive:
        archive.writestr("y.npy", member.getvalue())
    with pytest.raises(InputError, match="cannot be read"):
        load("karate_club", tmp_path)


@pytest.mark.parametrize("keep", [0, 1, 100, 400, -30])
def test_truncated_npz(keep, tmp_path):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **small_graph())
    (tmp_path / "karate_club.npz").write_bytes(buffer.getvalue()[:keep])
    with pytest.raises(InputError, match=r"karate_club\.npz cannot be read"):
        load("karate_club", tmp_path)


@pytest.mark.parametrize("name", ["flickr", "lgd_syn_fac8"])
def test_absent_without_a_download_says_where_to_put_the_file(name, tmp_path, no_user_data):
    for call in (lambda: load(name, tmp_path), lambda: get(name)):
        with pytest.raises(InputError, match=rf"put {name}\.npz .*LGDGCN_DATA") as caught:
            call()
        assert str(no_user_data) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_absent_and_not_to_be_downloaded(tmp_path, no_user_data):
    with pytest.raises(InputError, match="lgdgcn data get cora") as caught:
        load("cora", tmp_path, download=False)
    assert str(tmp_path) in str(caught.value)
    assert not list(no_user_data.iterdir())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: load("corra"), "did you mean 'cora'"),
        (lambda: load("../../etc/passwd"), "data sets: cora"),
        (lambda: load(None), "data sets: cora"),
        (lambda: load("cora", split="best"), "split is 'best'"),
        (lambda: load("cora", "/no/such/folder"), "is not a folder"),
        (lambda: get("synthetic"), "nothing to get"),
        (lambda: load("synthetic", seed=-3), "seed is -3"),
        (lambda: load("cora", seed="one"), "seed is 'one'"),
    ],
)
def test_bad_requests(call, words):
    with pytest.raises(InputError, match=words):
        call()


def test_every_set_is_listed():
    assert NAMES[:3] == ["cora", "citeseer", "pubmed"]
    assert len(NAMES) == 21
    assert info("Cora").name == "cora"
    assert info("synthetic").where_found == "generated"
    assert info("cora").where_found is None


@pytest.mark.filterwarnings("ignore:edge_index was directed")
def test_a_file_of_another_size_is_named(tmp_path, shared_data):
    np.savez(tmp_path / "cora.npz", **small_graph())
    words = (
        r"cora\.npz is not cora as it is known: 7/3/7/4 nodes/edges/features/classes "
        r"instead of 2,708/5,278/1,433/7"
    )
    with pytest.warns(LGDWarning, match=words):
        load("cora", tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load("cora", shared_data)
