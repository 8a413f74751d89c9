"""What the reader makes of every recorded folder and data set.

=========  =================================================================
ugly       the folders in ``tests/data/ugly``
tables     tables with something special: ``records/reader-tables.jsonl``
drawn      valid folders of the attack's grammar
damaged    such folders with a damaged file
public     the data sets in ``$LGDGCN_DATA``
=========  =================================================================
"""

import base64
import contextlib
import gzip
import hashlib
import json
import os
import shutil
import tempfile
import tomllib
import warnings
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from golden.grammar import digest, write_damaged, write_drawn
from golden.outcome import Outcome, changes, outcome_of
from lgdgcn.data import load
from lgdgcn.data.catalogue import DATASETS
from lgdgcn.data.source import GraphSource
from lgdgcn.data.user_graph import read_graph

__all__ = ["KINDS", "differences", "names_of", "record", "show", "skipped", "write"]

KINDS = ("ugly", "tables", "drawn", "damaged", "public")
RECORDS = Path(__file__).parent / "records"
TABLES = RECORDS / "reader-tables.jsonl"
STORED = {  # which file has the outcomes of which kinds
    RECORDS / "reader.jsonl": ("ugly", "tables", "public"),
    RECORDS / "reader-grammar.jsonl.gz": ("drawn", "damaged"),
}
UGLY = Path(__file__).parents[1] / "data" / "ugly"
GRAMMAR = {"drawn": (write_drawn, 3500), "damaged": (write_damaged, 1500)}
PUBLIC: dict[str, dict[str, Any]] = {name: {} for name in DATASETS if name != "synthetic"}
PUBLIC |= {
    f"{name} split=random": {"split": "random", "seed": 1}
    for name in ("cora", "wisconsin", "karate_club", "lgd_syn_fac4")
}
PUBLIC |= {f"{name} seed=3": {"seed": 3} for name in ("chameleon_filtered", "amazon_photo")}
PUBLIC |= {f"{name} root=planetoid": {"root": "planetoid"} for name in ("cora", "citeseer")}


def record() -> None:
    """Write down what reading gives today; what has not changed stays as it is written."""
    for path, kinds in STORED.items():
        old = _stored(path)
        new = {name: outcome for kind in kinds for name, outcome in _found(names_of(kind))}
        new |= {name: old[name] for name in skipped() if name in old and "public" in kinds}
        for name in new.keys() & old.keys():
            if not changes(old[name], new[name]):
                new[name] = old[name]  # with the digits of the machine that it was computed on
        lines = [json.dumps({"case": name} | new[name], ensure_ascii=False) for name in sorted(new)]
        content = "".join(f"{line}\n" for line in lines).encode()
        if path.exists() and _unpacked(path) == content:
            continue  # another version packs the same to other bytes
        path.write_bytes(gzip.compress(content, 9, mtime=0) if path.suffix == ".gz" else content)


def differences(kinds: tuple[str, ...] = KINDS, every: int = 1) -> list[str]:
    """What reading gives today and is not as recorded, one line for each array or note.

    Args:
        kinds: Which cases.
        every: How many of those of the grammar there are for each that is compared.
    """
    found = []
    for path, some in STORED.items():
        stored = _stored(path)
        for kind in (kind for kind in some if kind in kinds):
            names = names_of(kind)
            for name, new in _found(names[::every] if kind in GRAMMAR else names):
                found += [f"{name}: {line}" for line in _compared(stored.get(name), new)]
            known = {*names, *skipped()}
            gone = [name for name in stored if name.startswith(f"{kind}/") and name not in known]
            found += [f"{name}: recorded, but there is no such case" for name in gone]
    return found


def skipped() -> list[str]:
    """The public data sets that are not there."""
    return sorted(name for name in (f"public/{name}" for name in PUBLIC) if not _files_of(name))


def show(name: str, folder: Path) -> list[str]:
    """Write the files of a case to a folder; returns what is recorded and what is read now."""
    paths = [path for path, kinds in STORED.items() if name.partition("/")[0] in kinds]
    if not paths or name not in names_of(name.partition("/")[0]):
        return [f"there is no case {name}; {', '.join(KINDS)} are in {RECORDS}"]
    if name.startswith("public/"):
        said = [f"{_files_of(name)[0]}: not copied"]
    else:
        folder.mkdir(parents=True)
        said = [f"read_graph with {write(name, folder) or 'nothing more'}"]
    for when, outcome in (("recorded", _stored(paths[0]).get(name, {})), ("now", _read(name))):
        said += [f"{when}: {key}: {value}" for key, value in outcome.items()]
    return said


def _compared(old: Outcome | None, new: Outcome) -> list[str]:
    if old is None:
        return ["not recorded"]
    if old.get("files") != new.get("files"):
        return ["the files here are not those that were recorded"]
    return changes(old, new)


def names_of(kind: str) -> list[str]:
    """The cases of a kind that can be read here."""
    if kind in GRAMMAR:
        return [f"{kind}/{number:04}" for number in range(GRAMMAR[kind][1])]
    if kind == "public":
        return sorted({f"public/{name}" for name in PUBLIC} - {*skipped()})
    names = [path.name for path in UGLY.iterdir()] if kind == "ugly" else _tables()
    return sorted(f"{kind}/{name}" for name in names)


def _found(names: list[str]) -> Iterator[tuple[str, Outcome]]:
    for name in names:
        yield name, _read(name)


def _read(name: str) -> Outcome:
    """What reading a case gives."""
    kind, _, rest = name.partition("/")
    if kind == "public":
        options = {"root": ".", "download": False} | PUBLIC[rest]
        files = hashlib.sha256(b"".join(path.read_bytes() for path in _files_of(name)))
        with contextlib.chdir(os.environ["LGDGCN_DATA"]):  # messages name no folder of a machine
            outcome = outcome_of(partial(load, rest.partition(" ")[0], **options))
            return {"files": files.hexdigest()[:8]} | outcome
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        folder = Path("graph")
        folder.mkdir()
        options = write(name, folder)
        outcome: Outcome = {"files": digest(folder)} if kind in GRAMMAR else {}
        made = options.get("features") in ("degree", "spectral")
        return outcome | outcome_of(partial(read_graph, folder, **options), made)


def write(name: str, folder: Path) -> dict[str, Any]:
    """Write the files of a case; returns the arguments of ``read_graph`` beside the folder."""
    kind, _, rest = name.partition("/")
    if kind in GRAMMAR:
        return GRAMMAR[kind][0](int(rest), folder)
    if kind == "ugly":
        return _write_ugly(UGLY / rest, folder)
    case = _tables()[rest]
    options = case.get("options", {})
    for path, content in case["files"].items():
        _write_file(folder / path, content)
    if like := options.get("like"):
        with tempfile.TemporaryDirectory() as other, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # which has an outcome of its own
            graph = read_graph(other, **write(f"tables/{like}", Path(other)))
        options = {key: value for key, value in options.items() if key != "like"}
        options["encoding"] = graph.encoding
    return options


def _write_ugly(source: Path, folder: Path) -> dict[str, Any]:
    shutil.copytree(source, folder, dirs_exist_ok=True)
    expected = tomllib.loads((folder / "expected.toml").read_text(encoding="utf-8"))
    (folder / "expected.toml").unlink()
    roles = GraphSource(f"{folder}/", **expected.get("options", {})).roles
    return {"require_labels": False, "roles": roles}


def _write_file(path: Path, content: str | dict[str, Any]) -> None:
    """Write a file: text, ``base64``, a ``link`` to another file, or a ``folder``."""
    if isinstance(content, str):
        path.write_bytes(content.encode())
    elif "base64" in content:
        path.write_bytes(base64.b64decode(content["base64"]))
    elif "link" in content:
        path.symlink_to(content["link"])
    else:
        path.mkdir()


@cache
def _tables() -> dict[str, Any]:
    """The tables with something special, by name."""
    return {case["case"]: case for case in _lines(TABLES)}


def _stored(path: Path) -> dict[str, Outcome]:
    """The outcomes of a file by case."""
    lines = _lines(path) if path.exists() else []
    return {outcome.pop("case"): outcome for outcome in lines}


def _lines(path: Path) -> list[dict[str, Any]]:
    lines = _unpacked(path).decode().split("\n")  # other ends of lines are in strings
    return [json.loads(line) for line in lines if line]


def _unpacked(path: Path) -> bytes:
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content


def _files_of(name: str) -> list[Path]:
    """The files of a case such as ``public/cora split=random``, if they are there."""
    stem = name.removeprefix("public/").partition(" ")[0]
    pattern = f"planetoid/ind.{stem}.*" if name.endswith("root=planetoid") else f"{stem}.npz"
    folder = os.environ.get("LGDGCN_DATA")
    return sorted(Path(folder).glob(pattern)) if folder else []
