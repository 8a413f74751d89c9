"""The data sets by name: ``load`` and ``get``."""

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from scipy import sparse
from torch_geometric.data import Data

from lgdgcn.data import download as _download
from lgdgcn.data.catalogue import DATASETS, DatasetInfo, info, locate, search_folders
from lgdgcn.data.edge_type_sets import EDGE_TYPE_SETS, download_edge_type_set
from lgdgcn.data.labels import is_labelled
from lgdgcn.data.planetoid import read_planetoid
from lgdgcn.data.spectral import SPECTRAL_NAMES, spectral_features
from lgdgcn.data.splits import (
    Masks,
    check_seed,
    fraction_split,
    random_split,
    sized_split,
    stored_split,
)
from lgdgcn.data.synthetic import adjacency_rows, synthetic_graph
from lgdgcn.data.tables import read_npz
from lgdgcn.data.validate import canonical
from lgdgcn.errors import InputError, LGDWarning

__all__ = ["get", "load"]

_NAMES = {"y_names": "classes", "node_names": "node_ids"}  # of arrays that hold names
_CSR = ("x_data", "x_indices", "x_indptr", "x_shape")


def load(
    name: str,
    root: str | os.PathLike[str] | None = None,
    *,
    split: str = "standard",
    seed: int = 0,
    download: bool = True,
    **generator: Any,
) -> Data:
    """Load a data set by name.

    Args:
        name: One of the names in :func:`available`.
        root: Folder to search first, before ``$LGDGCN_DATA`` and the user's cache.
        split: ``"standard"`` for the stored split, or ``"random"`` for a seeded one of the same
            sizes (single-label sets: with as many training nodes of each class).
        seed: Seed of a random split, of the split of a set that has none stored and of the
            generator; for chameleon_filtered, wisconsin, actor and tolokers, which of their ten
            stored splits (0 to 9).
        download: Whether the sets that can be downloaded may be when they are not found.
        **generator: For ``"synthetic"`` only: arguments of :func:`synthetic_graph`.

    Returns:
        Data with ``x`` (float32, sparse CSR for bags of words and adjacency rows),
        ``edge_index`` (both directions, sorted, no self loops), ``y`` (int64 [N] with -1 for no
        label, or 0/1 float32 [N, L]), ``train_mask``, ``val_mask``, ``test_mask``, ``name``, and
        ``y_factor`` where the latent factors are known. airlines and imdb_links have the known
        types of their edges: ``edge_type`` uint8 0/1 [E, T] and ``edge_type_names``.
    """
    name = info(name).name
    check_seed(seed)
    if split not in ("standard", "random"):
        raise InputError(f"split is {split!r}; choose 'standard' or 'random'")
    if name == "synthetic":
        try:
            data = synthetic_graph(**generator, seed=seed)
        except TypeError as error:
            raise InputError(f"the synthetic generator does not take this: {error}") from None
        return _random(data, seed) if split == "random" else data
    if generator:
        raise InputError(f"{', '.join(generator)}: only the set 'synthetic' takes such settings")
    path = locate(name, root)
    if path is None:
        if not download or name not in _download.DOWNLOADABLE:
            _missing(name, root)
        path = _fetch(name, root)
    arrays = read_planetoid(path, name) if path.is_dir() else read_npz(path)
    try:
        data = _to_data(name, arrays, split, seed)
    except (TypeError, ValueError, IndexError) as error:  # InputError is a ValueError
        raise InputError(f"{path}: {error}") from None
    _warn_of_another_size(path, data, DATASETS[name])
    return data


def get(name: str) -> Path:
    """Return where a data set is, after downloading it into the user's cache if need be."""
    name = info(name).name
    if name == "synthetic":
        raise InputError("'synthetic' is generated when it is loaded; there is nothing to get")
    path = locate(name)
    if path is None and name not in _download.DOWNLOADABLE:
        _missing(name)
    return path if path is not None else _fetch(name)


def _fetch(name: str, root: str | os.PathLike[str] | None = None) -> Path:
    try:
        if name in EDGE_TYPE_SETS:
            return download_edge_type_set(name)
        return _download.download_planetoid(name)
    except InputError as error:
        _missing(name, root, str(error))


def _missing(
    name: str, root: str | os.PathLike[str] | None = None, cause: str | None = None
) -> NoReturn:
    """Raise one line that names the set, where it was searched, and what to do."""
    folders = ", ".join(map(str, search_folders(root)))
    line = f"data set {name!r} is not in {folders}"
    if name in _download.DOWNLOADABLE:
        failed = f" and could not be downloaded ({cause})" if cause else ""
        fix = f"run 'lgdgcn data get {name}' on a connected machine and copy its files to a folder"
        raise InputError(f"{line}{failed}; {fix} named by $LGDGCN_DATA")
    raise InputError(
        f"{line}, and it has no verified download; put {name}.npz in one of these folders, "
        "or name its folder in $LGDGCN_DATA"
    )


def _to_data(name: str, arrays: Mapping[str, Any], split: str, seed: int) -> Data:
    """Turn the arrays of a graph into a checked Data with its masks."""
    needed = {"edge_index", "y", *(_CSR if "x_indptr" in arrays else ())}
    if not needed <= arrays.keys():
        absent = ", ".join(sorted(needed - arrays.keys()))
        raise InputError(f"lacks the arrays {absent}; found {', '.join(arrays) or 'none'}")
    x = _features(arrays)
    # A random split copies the sizes of the stored one; of several stored ones, of the first.
    stored = stored_split(arrays, 0 if split == "random" else seed)
    known = ("edge_type", "edge_type_names", "classes", "node_ids")
    renamed = {_NAMES.get(key, key): value for key, value in arrays.items()}
    data = Data(
        x=sparse.identity(len(arrays["y"]), np.float32) if x is None else x,
        edge_index=arrays["edge_index"],
        y=arrays["y"],
        **{key: _plain(renamed[key]) for key in known if key in renamed},
        **stored,
    )
    data = canonical(data, require_labels=False)
    data.name = name
    if "y_factor" in arrays:
        data.y_factor = torch.from_numpy(arrays["y_factor"]).long()
        if data.y_factor.dim() != 2 or len(data.y_factor) != data.num_nodes:
            shape = list(data.y_factor.shape)
            raise InputError(f"y_factor has shape {shape}; give a class for each node and factor")
    if x is None and name.startswith("lgd_syn"):
        data.x = adjacency_rows(data.edge_index, data.num_nodes)
    if x is None and (name in EDGE_TYPE_SETS or name == "ppi_multilabel"):
        data.x = spectral_features(data.edge_index, data.num_nodes)
        data.feature_names = list(SPECTRAL_NAMES)
    if not stored:
        data.train_mask, data.val_mask, data.test_mask = _usual_split(data, seed)
    return _random(data, seed) if split == "random" and stored else data


def _usual_split(data: Data, seed: int) -> Masks:
    """Draw a split as others do for a set without one: few labels, or a share of label sets."""
    if data.y.dim() == 2:
        return fraction_split(is_labelled(data.y), (0.5, 0.1, 0.4), seed)
    count = data.y[is_labelled(data.y)].bincount()
    if int(count.min()) <= 50:  # too small for 20 nodes of each class, and 30 more
        return fraction_split(is_labelled(data.y), seed=seed)
    classes = len(count)
    rest = int(is_labelled(data.y).sum()) - 50 * classes
    return random_split(data.y, train_per_class=20, num_val=30 * classes, num_test=rest, seed=seed)


def _plain(array: Any) -> Any:
    """Text as a list, numbers as they are."""
    return array.tolist() if array.dtype.kind == "U" else array


def _warn_of_another_size(path: Path, data: Data, known: DatasetInfo) -> None:
    """Say so if a file has the name of a data set, but is another graph."""
    classes = data.y.size(1) if data.y.dim() == 2 else int(data.y.max()) + 1
    found = (data.num_nodes, data.edge_index.size(1) // 2, data.x.size(1), classes)
    wanted = (known.nodes, known.edges, known.features, known.classes)
    if found != wanted:
        here, there = (f"{n:,}/{e:,}/{f:,}/{c:,}" for n, e, f, c in (found, wanted))
        warnings.warn(
            f"{path} is not {known.name} as it is known: {here} nodes/edges/features/classes "
            f"instead of {there}; it is used as it is",
            LGDWarning,
            stacklevel=3,
        )


def _features(arrays: Mapping[str, Any]) -> Any:
    """Return the stored features, sparse or dense, as float32, or None."""
    if "x" in arrays:
        return torch.from_numpy(arrays["x"]).float()
    if "x_indptr" not in arrays:
        return None
    data, indices, indptr, shape = (arrays[key] for key in _CSR)
    return sparse.csr_matrix((data, indices, indptr), shape=tuple(shape), dtype=np.float32)


def _random(data: Data, seed: int) -> Data:
    """Replace the masks by random ones of the same sizes."""
    sizes = [int(mask.sum()) for mask in (data.train_mask, data.val_mask, data.test_mask)]
    if data.y.dim() == 2:
        masks = sized_split(is_labelled(data.y), sizes, seed)
    else:
        train_labels = data.y[data.train_mask]
        counts = torch.bincount(train_labels, minlength=int(data.y.max()) + 1).tolist()
        masks = random_split(
            data.y, train_per_class=counts, num_val=sizes[1], num_test=sizes[2], seed=seed
        )
    data.train_mask, data.val_mask, data.test_mask = masks
    return data
