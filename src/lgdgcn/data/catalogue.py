"""Which data sets there are and where they are found, known without reading any of them.

This module imports nothing heavy, so that ``lgdgcn data list`` answers at once.
"""

import dataclasses
import difflib
import os
from pathlib import Path

from lgdgcn.data import download as _download
from lgdgcn.data.download import DOWNLOADABLE, PLANETOID, file_names
from lgdgcn.errors import InputError

__all__ = [
    "DATASETS",
    "DatasetInfo",
    "available",
    "has_label_sets",
    "info",
    "is_available",
    "is_known",
    "locate",
    "search_folders",
]


@dataclasses.dataclass(frozen=True)
class DatasetInfo:
    """What is known about a data set; ``edges`` counts each undirected edge once."""

    name: str
    nodes: int
    edges: int
    features: int
    classes: int
    kind: str
    where_found: str | None = None


DATASETS = {
    row[0]: DatasetInfo(*row)
    for row in (
        ("cora", 2708, 5278, 1433, 7, "single-label"),
        ("citeseer", 3327, 4552, 3703, 6, "single-label"),
        ("pubmed", 19717, 44324, 500, 3, "single-label"),
        ("blogcatalog", 5196, 171743, 8189, 6, "single-label"),
        ("flickr", 7575, 239738, 12047, 9, "single-label"),
        ("chameleon_filtered", 890, 8854, 2325, 5, "single-label"),
        ("wisconsin", 251, 450, 1703, 5, "single-label"),
        ("actor", 7600, 26659, 932, 5, "single-label"),
        ("tolokers", 11758, 519000, 10, 2, "single-label"),
        ("amazon_photo", 7650, 119081, 745, 8, "single-label"),
        ("dblp_full", 17716, 52867, 1639, 4, "single-label"),
        ("ppi_multilabel", 3890, 37845, 33, 50, "multi-label"),
        ("karate_club", 34, 78, 34, 4, "single-label"),
        ("airlines", 352, 3017, 33, 4, "single-label"),
        ("imdb_links", 4661, 50196, 1256, 3, "single-label"),
        ("lgd_syn_fac4", 1000, 20026, 1000, 64, "multi-label"),
        ("lgd_syn_fac6", 1000, 20115, 1000, 96, "multi-label"),
        ("lgd_syn_fac8", 1000, 19962, 1000, 128, "multi-label"),
        ("lgd_syn_fac10", 1000, 19946, 1000, 160, "multi-label"),
        ("lgd_syn_fac12", 1000, 20173, 1000, 192, "multi-label"),
        ("synthetic", 1000, 20000, 1000, 64, "multi-label"),
    )
}


def is_known(name: str) -> bool:
    """Whether this is the name of a data set."""
    return name.lower() in DATASETS


def info(name: str) -> DatasetInfo:
    """Describe one data set; ``where_found`` is the file or folder it would be read from."""
    known = DATASETS.get(name.lower()) if isinstance(name, str) else None
    if known is None:
        close = difflib.get_close_matches(str(name)[:64], DATASETS, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        names = ", ".join(DATASETS)
        raise InputError(f"no data set or folder {str(name)[:64]!r}; {hint}data sets: {names}")
    where = "generated" if known.name == "synthetic" else locate(known.name)
    return dataclasses.replace(known, where_found=None if where is None else str(where))


def has_label_sets(address: str) -> bool:
    """Whether nodes of a data set, such as ``synthetic:factors=8``, have sets of labels.

    Example:
        >>> has_label_sets("synthetic:factors=8"), has_label_sets("cora"), has_label_sets("mine")
        (True, False, False)
    """
    known = DATASETS.get(address.partition(":")[0].lower())
    return known is not None and known.kind == "multi-label"


def available() -> list[DatasetInfo]:
    """Describe every data set, found or not."""
    return [info(name) for name in DATASETS]


def search_folders(root: str | os.PathLike[str] | None = None) -> list[Path]:
    """Return the folders searched for data: root, ``$LGDGCN_DATA``, the user's cache."""
    if root is not None and not os.path.isdir(root):
        raise InputError(f"root {os.fspath(root)!r} is not a folder; create it or leave root out")
    env = os.environ.get("LGDGCN_DATA")
    return [Path(folder) for folder in (root, env, _download.cache_dir()) if folder]


def locate(name: str, root: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the first ``NAME.npz``, or folder with all raw planetoid files, that is found."""
    for folder in search_folders(root):
        if os.path.isfile(folder / f"{name}.npz"):
            return folder / f"{name}.npz"
        for raw in (folder, folder / "planetoid"):
            if name in PLANETOID and all(os.path.isfile(raw / f) for f in file_names(name)):
                return raw
    return None


def is_available(address: str, root: str | os.PathLike[str] | None = None) -> bool:
    """Whether a data set can be had: generated, downloaded, or from one of the folders.

    Args:
        address: Its name, for generated ones with settings behind a colon.
        root: Folder to look in first.
    """
    name = info(address.partition(":")[0]).name
    return name == "synthetic" or name in DOWNLOADABLE or locate(name, root) is not None
