"""``manifest.json`` of a packed graph: what is in it, and which bytes its files must have."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lgdgcn.errors import InputError

__all__ = [
    "MANIFEST",
    "FileEntry",
    "Manifest",
    "hash_file",
    "is_packed",
    "new_hash",
    "read_manifest",
]

MANIFEST = "manifest.json"
FORMAT = "lgdgcn-graph"
VERSION = 1
CHUNK = 1 << 22  # bytes that are hashed at a time
AGAIN = "pack the graph again (lgdgcn data pack)"


@dataclass(frozen=True)
class FileEntry:
    """What a file must be.

    Attributes:
        file: Its name in the folder.
        bytes: Its size.
        hash: Its BLAKE2b digest.
        dtype: Type of the array, such as ``<i4``; empty for an Arrow table.
        shape: Of the array; for a table, the number of rows.
    """

    file: str
    bytes: int
    hash: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Manifest:
    """What is known of a packed graph beside its arrays.

    Attributes:
        name: Of the graph.
        nodes: N.
        edges: E, every edge counted in both directions.
        features: F; 0 if the graph has none.
        classes: The original labels of the classes, or of the columns of ``y``.
        label: ``single``, ``multi``, or empty if there is no label.
        has_split: Whether a split was given; training makes one where none was.
        listed_once: Whether edges were listed in one direction only.
        feature_names: A name for each feature, if they have names.
        edge_type_names: The T names of the types of edges.
        text: Names of the columns that are kept as information.
        columns: Names of all columns in ``columns.arrow``: these, and features that were text.
        encoding: How columns became features (:class:`~lgdgcn.data.encoding.Encoding`).
        package: Version of the package that wrote it.
        files: Every file, by the name of its array or table.
    """

    name: str
    nodes: int
    edges: int
    features: int = 0
    classes: tuple[Any, ...] = ()
    label: str = ""
    has_split: bool = False
    listed_once: bool = False
    feature_names: tuple[str, ...] = ()
    edge_type_names: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    encoding: Mapping[str, Any] | None = None
    package: str = ""
    files: Mapping[str, FileEntry] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Plain values, for the file."""
        return {"format": FORMAT, "version": VERSION, **asdict(self)}

    @property
    def fingerprint(self) -> str:
        """A hash of all hashes: equal for equal graphs, whatever they are called."""
        parts = sorted((name, entry.hash) for name, entry in self.files.items())
        about = [parts, [repr(label) for label in self.classes], self.encoding]
        return new_hash(json.dumps(about, sort_keys=True).encode()).hexdigest()


def new_hash(data: bytes = b"") -> hashlib.blake2b:
    """The hash that guards files: BLAKE2b with 16 bytes, faster than SHA-256."""
    return hashlib.blake2b(data, digest_size=16)


def hash_file(path: Path) -> str:
    """The digest of a whole file, read piece by piece."""
    digest = new_hash()
    with open(path, "rb") as file:
        while piece := file.read(CHUNK):
            digest.update(piece)
    return digest.hexdigest()


def is_packed(folder: str | Path) -> bool:
    """Whether a folder is a packed graph rather than one of tables."""
    return os.path.isfile(os.path.join(folder, MANIFEST))


def read_manifest(folder: Path) -> Manifest:
    """Read what a packed graph holds.

    Raises:
        InputError: There is no manifest, it is damaged, or of another version.
    """
    path = folder / MANIFEST
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{folder} has no {MANIFEST}: it is no packed graph; {AGAIN}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read ({error}); {AGAIN}") from None
    if not isinstance(saved, dict) or saved.pop("format", None) != FORMAT:
        raise InputError(f"{path} is of another program, not of a packed graph; {AGAIN}")
    version = saved.pop("version", None)
    if version != VERSION:
        raise InputError(
            f"{path} has version {str(version)[:20]} of the format, this program reads version "
            f"{VERSION}; {AGAIN}"
        )
    try:
        return _checked(saved)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise InputError(f"{path} is damaged ({error}); {AGAIN}") from None


def _checked(saved: dict[str, Any]) -> Manifest:
    files = {}
    for name, entry in saved.pop("files").items():
        made = FileEntry(**{**entry, "shape": tuple(map(int, entry["shape"]))})
        if os.path.basename(made.file) != made.file or not isinstance(made.bytes, int):
            raise ValueError(f"{name} is no file of the folder")
        files[name] = made
    for key in ("classes", "feature_names", "edge_type_names", "text", "columns"):
        saved[key] = tuple(saved[key])
    for key in ("nodes", "edges", "features"):
        if type(saved[key]) is not int or saved[key] < 0:
            raise ValueError(f"{key} is {saved[key]!r}")
    return Manifest(**saved, files=files)
