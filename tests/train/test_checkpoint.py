"""A checkpoint is whole or refused: killed writers, full disks, damaged and foreign files."""

import hashlib
import itertools
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save as encode

from lgdgcn import tensor_file
from lgdgcn.errors import CheckpointError, InputError, LGDWarning
from lgdgcn.tensor_file import check_like


def tensors(value: float = 1.0, size: int = 10) -> dict[str, torch.Tensor]:
    return {"w": torch.full((size,), float(value)), "n": torch.tensor(int(value))}


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def reseal(path: Path) -> None:
    """What someone does who forges a file and its sha256."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_name(path.name + ".sha256").write_text(f"{digest}  {path.name}\n")


def load_whole(path: Path):
    """Load and fail on any warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return checkpoint.load(path)


# Round trip and generations


def test_bitwise_round_trip(tmp_path):
    base = torch.randn(4, 6, dtype=torch.float64)
    saved = {
        "view": base.t(),
        "shared": base,
        "half": torch.randn(3).bfloat16(),
        "bits": torch.tensor([float("nan"), float("inf"), -0.0, 1e-45]),
        "scalar": torch.tensor(7),
        "bytes": torch.get_rng_state(),
        "flags": torch.tensor([True, False]),
        "none": torch.empty(0, 3),
        "parameter": torch.nn.Parameter(torch.ones(2)),
    }
    meta = {
        "epoch": 3,
        "best": -float("inf"),
        "lr": 0.1 + 0.2,
        "name": "ü\u2028",
        "deep": {"a": [1]},
    }
    checkpoint.save(tmp_path / "seed-0", saved, meta)
    loaded, found = load_whole(tmp_path / "seed-0")
    assert found == meta
    assert loaded.keys() == saved.keys()
    for name, tensor in saved.items():
        assert loaded[name].dtype == tensor.dtype
        assert loaded[name].shape == tensor.shape
        old = tensor.detach().contiguous().view(-1).view(torch.uint8)
        assert torch.equal(loaded[name].view(-1).view(torch.uint8), old)


def test_nothing_there(tmp_path):
    assert checkpoint.load(tmp_path / "seed-0") is None
    assert checkpoint.load(tmp_path / "absent" / "seed-0") is None
    checkpoint.remove(tmp_path / "seed-0")


def test_no_tensors_at_all(tmp_path):
    checkpoint.save(tmp_path / "seed-0", {}, {})
    assert load_whole(tmp_path / "seed-0") == ({}, {})


def test_the_newest_two_are_kept(tmp_path):
    path = tmp_path / "ünï [x] 1.5"
    for n in range(1, 6):
        file = checkpoint.save(path, tensors(n), {"n": n})
        assert load_whole(path)[1] == {"n": n}
    assert file.name == "ünï [x] 1.5-000005.safetensors"
    stems = [f"{path.name}-{n:06d}.safetensors" for n in (4, 5)]
    assert names(tmp_path) == sorted(stems + [stem + ".sha256" for stem in stems])


def test_the_seal_is_what_sha256sum_reads(tmp_path):
    file = checkpoint.save(tmp_path / "seed-0", tensors(), {})
    subprocess.run(["sha256sum", "-c", file.name + ".sha256"], cwd=tmp_path, check=True)


def test_neighbours_are_left_alone(tmp_path):
    others = ["seed-1", "seed-10", "seed-1-000001", "best"]
    for other in others:
        checkpoint.save(tmp_path / other, tensors(), {"name": other})
    for n in range(4):
        checkpoint.save(tmp_path / "seed-1", tensors(), {"n": n})
    assert checkpoint.load(tmp_path / "seed-1") is not None
    checkpoint.remove(tmp_path / "seed-1")
    assert checkpoint.load(tmp_path / "seed-1") is None
    for other in others[1:]:
        assert load_whole(tmp_path / other)[1] == {"name": other}


def test_an_orphan_seal_and_leftovers_do_no_harm(tmp_path):
    path = tmp_path / "seed-0"
    checkpoint.save(path, tensors(1), {"n": 1})
    (tmp_path / "seed-0-000002.safetensors.sha256").write_text("of a killed write")
    (tmp_path / ".seed-0-000002.safetensors.0123456789abcdef.tmp").write_text("half")
    assert load_whole(path)[1] == {"n": 1}
    checkpoint.save(path, tensors(2), {"n": 2})
    assert load_whole(path)[1] == {"n": 2}
    assert len(names(tmp_path)) == 4


# Killed and full


SERVER = """
import os, signal, sys
from pathlib import Path
import torch
from lgdgcn import storage
from lgdgcn import tensor_file

def killed_before(number):
    # Every call that changes the disk counts; the one with this number never happens.
    count = 0
    def wrap(module, name):
        call = getattr(module, name)
        def counted(*args, **kwargs):
            nonlocal count
            if count == number:
                if name == "_fill":  # half of it does
                    args[0].write(args[1][: len(args[1]) // 2])
                    args[0].flush()
                os.kill(os.getpid(), signal.SIGKILL)
            count += 1
            return call(*args, **kwargs)
        setattr(module, name, counted)
    for name in ("open", "fsync", "replace", "unlink"):
        wrap(os, name)
    wrap(storage, "_fill")

def work(mode, folder, size, first, number):
    torch.set_num_threads(1)
    path = Path(folder) / "seed-0"
    if mode == "loop":
        n = first
        while True:
            checkpoint.save(path, {"w": torch.full((size,), float(n))}, {"n": n})
            os.write(1, f"{n}\\n".encode())
            n += 1
    killed_before(number)
    state = {"w": torch.full((size,), float(first))}
    if mode == "checkpoint":
        checkpoint.save(path, state, {"n": first})
    else:
        checkpoint.save_weights(Path(folder) / "model.safetensors", state, {"n": first})

for line in sys.stdin:
    mode, size, first, number, folder = line.rstrip("\\n").split(" ", 4)
    pid = os.fork()
    if pid == 0:
        work(mode, folder, int(size), int(first), int(number))
        os._exit(0)
    os.write(1, f"pid {pid}\\n".encode())
    _, status = os.waitpid(pid, 0)
    os.write(1, f"end {status}\\n".encode())
"""


@pytest.fixture
def server():
    """A process that has torch loaded and forks a writer on demand: a kill every few ms."""
    command = [sys.executable, "-c", SERVER]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    yield process
    process.stdin.close()
    process.wait(timeout=30)
    process.stdout.close()


def ask(server, mode: str, folder: Path, size=1000, first=1, number=-1) -> int:
    server.stdin.write(f"{mode} {size} {first} {number} {folder}\n")
    server.stdin.flush()
    word, pid = server.stdout.readline().split()
    assert word == "pid"
    return int(pid)


def acknowledged(server) -> tuple[list[int], int]:
    """Saves that returned, and how the writer ended."""
    lines: list[int] = []
    while (words := server.stdout.readline().split())[0] != "end":
        lines.append(int(words[0]))
    return lines, int(words[1])


def test_kill_at_random_moments(tmp_path, server):
    """40 kills of a process that does nothing but save; nothing acknowledged is ever lost."""
    rng = random.Random(0)
    path, last, inside = tmp_path / "seed-0", 0, 0
    for _ in range(40):
        pid = ask(server, "loop", tmp_path, rng.choice([1000, 50_000, 500_000]), last + 1)
        last = int(server.stdout.readline())  # its first save is done
        time.sleep(rng.uniform(0.0, 0.03))
        os.kill(pid, signal.SIGKILL)
        lines, status = acknowledged(server)
        assert os.WTERMSIG(status) == signal.SIGKILL
        inside += any(name.endswith(".tmp") for name in names(tmp_path))
        last = max([last, *lines])
        loaded, meta = load_whole(path)
        assert meta["n"] in (last, last + 1)  # the last may be on the disk and not yet reported
        assert torch.equal(loaded["w"], torch.full_like(loaded["w"], float(meta["n"])))
        last = meta["n"]
        # The generation before it is whole too.
        for file in tmp_path.glob("*.safetensors"):
            checkpoint._read(file, "lgdgcn-checkpoint")
    assert last >= 40
    assert inside  # some kills fell inside a write
    checkpoint.save(path, tensors(), {})
    assert len(names(tmp_path)) == 4


def test_kill_before_every_single_step_of_a_save(tmp_path, server):
    """The same without luck: the process dies before its 1st, 2nd, ... call to the system."""
    for number in itertools.count():
        folder = tmp_path / str(number)
        folder.mkdir()
        for n in (1, 2):
            checkpoint.save(folder / "seed-0", tensors(n), {"n": n})
        ask(server, "checkpoint", folder, first=3, number=number)
        _, status = acknowledged(server)
        assert load_whole(folder / "seed-0")[1]["n"] in ((2, 3) if status else (3,))
        file = checkpoint.save(folder / "seed-0", tensors(9), {"n": 9})
        assert load_whole(folder / "seed-0")[1]["n"] == 9
        assert len(names(folder)) == 4, file
        if status == 0:
            break
    assert number >= 10


def test_kill_before_every_single_step_of_saving_weights(tmp_path, server):
    for number in itertools.count():
        folder = tmp_path / str(number)
        folder.mkdir()
        model = folder / "model.safetensors"
        checkpoint.save_weights(model, tensors(1), {"n": 1})
        for n in (2, 3):  # twice: also a kill on top of what a kill has left
            ask(server, "weights", folder, first=n, number=number)
            _, status = acknowledged(server)
            found = tensor_file.load(model, "model")[1]["n"]
            assert found == n if status == 0 else found in range(1, n + 1)
        if status == 0:
            break
    assert number >= 12
    seal = model.with_name("model.safetensors.sha256")
    assert len(seal.read_text().splitlines()) == 1


def test_disk_full(tmp_path):
    """A checkpoint that does not fit leaves the generations before it and a clear error."""
    code = """
import resource, sys
from pathlib import Path
import torch
from lgdgcn.errors import InputError
from lgdgcn import tensor_file
folder = Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
big = {"w": torch.zeros(100_000)}
for save in (
    lambda: checkpoint.save(folder / "seed-0", big, {}),
    lambda: checkpoint.save_weights(folder / "model.safetensors", big, {}),
):
    try:
        save()
    except InputError as error:
        assert "File too large" in str(error) and str(folder) in str(error), error
    else:
        raise SystemExit("not refused")
"""
    for n in (1, 2):
        checkpoint.save(tmp_path / "seed-0", tensors(n), {"n": n})
    checkpoint.save_weights(tmp_path / "model.safetensors", tensors(1), {"n": 1})
    before = names(tmp_path)
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=60)
    assert names(tmp_path) == before
    assert load_whole(tmp_path / "seed-0")[1] == {"n": 2}
    assert tensor_file.load(tmp_path / "model.safetensors", "model")[1] == {"n": 1}


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(InputError, match=r"absent.*create the folder"):
        checkpoint.save(tmp_path / "absent" / "seed-0", tensors(), {})


# Damaged and foreign files


class Payload:
    """Runs a command when unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch '{self.marker}'",)


def foreign(folder: Path, head: object = None, **metadata: str) -> bytes:
    if head is not None:
        metadata["lgdgcn"] = head if isinstance(head, str) else json.dumps(head)
    return encode(tensors(), metadata=metadata or None)


def edit_header(payload: bytes, old: bytes, new: bytes) -> bytes:
    assert len(old) == len(new)
    assert payload.count(old)
    return payload.replace(old, new, 1)


def good_head(**changes: object) -> dict[str, object]:
    return {"kind": "lgdgcn-checkpoint", "schema": 1, "meta": {}} | changes


DAMAGES = {
    "empty": (lambda good, tmp: b"", "is empty", False),
    "truncated": (lambda good, tmp: good[:-7], "cut short", False),
    "one byte": (lambda good, tmp: good[:1], "cut short", False),
    "header only half": (lambda good, tmp: good[:40], "cut short", False),
    "bit flip": (lambda good, tmp: good[:-3] + bytes([good[-3] ^ 4]) + good[-2:], "damaged", False),
    "longer": (lambda good, tmp: good + b"x", "damaged", False),
    "text": (lambda good, tmp: b"hello, this is text", "not a safetensors", True),
    "zeros": (lambda good, tmp: bytes(1000), "not a safetensors", True),
    "huge header": (
        lambda good, tmp: (1 << 62).to_bytes(8, "little") + b"{}" * 50,
        "not a safetensors",
        True,
    ),
    "pickle": (lambda good, tmp: pickle.dumps(Payload(tmp / "marker")), "pickle", True),
    "pickle 2": (lambda good, tmp: pickle.dumps(Payload(tmp / "marker"), 2), "pickle", True),
    "pickle 0": (lambda good, tmp: pickle.dumps(Payload(tmp / "marker"), 0), "not a safe", True),
    "torch.save": (lambda good, tmp: b"PK\x03\x04" + bytes(100), "pickle or torch.save", True),
    "no head": (lambda good, tmp: foreign(tmp), "not written by lgdgcn", True),
    "other head": (lambda good, tmp: foreign(tmp, format="pt"), "not written by lgdgcn", True),
    "head no json": (lambda good, tmp: foreign(tmp, "{"), "not written by lgdgcn", True),
    "head too deep": (lambda good, tmp: foreign(tmp, "[" * 10**5), "not written by lgdgcn", True),
    "head a list": (lambda good, tmp: foreign(tmp, []), "no object", True),
    "other kind": (lambda good, tmp: foreign(tmp, good_head(kind="other")), "kind 'other'", True),
    "newer": (lambda good, tmp: foreign(tmp, good_head(schema=99)), "schema 99.*upgrade", True),
    "no schema": (lambda good, tmp: foreign(tmp, good_head(schema="1")), "no valid schema", True),
    "meta a list": (lambda good, tmp: foreign(tmp, good_head(meta=[])), "no valid schema", True),
    "other type": (lambda good, tmp: edit_header(good, b'"F32"', b'"F64"'), "cannot be read", True),
    "no type": (lambda good, tmp: edit_header(good, b'"F32"', b'"XXX"'), "cannot be read", True),
    "other shape": (lambda good, tmp: edit_header(good, b"[10]", b"[99]"), "cannot be read", True),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_named_and_the_previous_one_used(tmp_path, name):
    damage, cause, sealed = DAMAGES[name]
    path = tmp_path / "seed-0"
    checkpoint.save(path, tensors(1), {"n": 1})
    file = checkpoint.save(path, tensors(2), {"n": 2})
    file.write_bytes(damage(file.read_bytes(), tmp_path))
    if sealed:
        reseal(file)
    with pytest.warns(LGDWarning, match=cause) as caught:
        loaded, meta = checkpoint.load(path)
    assert meta == {"n": 1}
    assert torch.equal(loaded["w"], torch.ones(10))
    assert str(file) in str(caught[0].message)
    assert "\n" not in str(caught[0].message)
    with pytest.raises(CheckpointError, match=cause):
        checkpoint._read(file, "lgdgcn-checkpoint")
    assert not (tmp_path / "marker").exists()


def test_both_broken_lists_both_causes(tmp_path):
    path = tmp_path / "seed-0"
    first = checkpoint.save(path, tensors(1), {})
    second = checkpoint.save(path, tensors(2), {})
    first.write_bytes(b"")
    second.write_bytes(second.read_bytes()[:-1])
    with pytest.raises(CheckpointError) as caught:
        checkpoint.load(path)
    for part in (str(first), "is empty", str(second), "damaged"):
        assert part in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("content", [None, "", "garbage", "0" * 64])
def test_a_missing_or_broken_seal(tmp_path, content):
    file = checkpoint.save(tmp_path / "seed-0", tensors(), {})
    seal = file.with_name(file.name + ".sha256")
    seal.unlink() if content is None else seal.write_text(content)
    with pytest.raises(CheckpointError, match=r"no usable seed-0-000001\.safetensors\.sha256"):
        checkpoint.load(tmp_path / "seed-0")


def test_a_pipe_or_folder_in_its_place_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "seed-0-000002.safetensors")
    (tmp_path / "seed-0-000001.safetensors").mkdir()
    with pytest.raises(CheckpointError, match="not a regular file"):
        checkpoint.load(tmp_path / "seed-0")


def test_a_pipe_in_place_of_a_seal_does_not_hang(tmp_path):
    file = checkpoint.save(tmp_path / "seed-0", tensors(), {})
    seal = file.with_name(file.name + ".sha256")
    seal.unlink()
    os.mkfifo(seal)
    with pytest.raises(CheckpointError, match="no usable"):
        checkpoint.load(tmp_path / "seed-0")


def test_a_huge_file_of_zeros_is_not_read(tmp_path):
    file = tmp_path / "seed-0-000001.safetensors"
    with file.open("wb") as out:
        out.truncate(1 << 40)
    with pytest.raises(CheckpointError, match="not a safetensors"):
        checkpoint.load(tmp_path / "seed-0")


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    file = checkpoint.save(folder / "seed-0", tensors(3), {"n": 3, "config": {"lr": 0.01}})
    return file, file.read_bytes()


@settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_fuzz(sample, data):
    """Whatever the bytes, sealed or not: a valid load or a CheckpointError."""
    file, good = sample
    length = int.from_bytes(good[:8], "little") + 8
    changed = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        where = data.draw(st.integers(0, length if data.draw(st.booleans()) else len(changed)))
        kind = data.draw(st.sampled_from(["set", "cut", "insert", "delete", "number"]))
        if kind == "set" and where < len(changed):
            changed[where] = data.draw(st.integers(0, 255))
        elif kind == "cut":
            del changed[where:]
        elif kind == "insert":
            changed[where:where] = data.draw(st.binary(max_size=9))
        elif kind == "delete":
            del changed[where : where + data.draw(st.integers(1, 9))]
        elif kind == "number":
            digit = next((i for i in range(where, len(changed)) if 48 <= changed[i] <= 57), None)
            if digit is not None:
                changed[digit : digit + 1] = b"%d" % data.draw(st.integers(0, 2**64))
    if data.draw(st.booleans()):  # a header length that fits again
        changed[:8] = max(0, length - 8 + len(changed) - len(good)).to_bytes(8, "little")
    file.write_bytes(changed)
    if data.draw(st.booleans()):
        reseal(file)
    else:
        file.with_name(file.name + ".sha256").write_text(
            f"{hashlib.sha256(good).hexdigest()}  {file.name}\n"
        )
    message = ""
    try:
        loaded, meta = load_whole(file.parent / "seed-0")
    except CheckpointError as error:
        message = str(error)
    if message:
        assert str(file) in message
        assert "\n" not in message
    else:
        assert all(isinstance(tensor, torch.Tensor) for tensor in loaded.values())
        assert isinstance(meta, dict)


@settings(max_examples=100, deadline=None)
@given(content=st.binary(max_size=300))
def test_fuzz_any_bytes(tmp_path_factory, content):
    file = tmp_path_factory.mktemp("any") / "model.safetensors"
    file.write_bytes(content)
    reseal(file)
    with pytest.raises(CheckpointError):
        tensor_file.load(file, "model")


# Weights


def test_weights(tmp_path):
    path = tmp_path / "model.safetensors"
    with pytest.raises(CheckpointError, match=r"model\.safetensors: No such file"):
        tensor_file.load(path, "model")
    model = torch.nn.Linear(3, 2)
    checkpoint.save_weights(path, model.state_dict(), {"model": "lgdgcn"})
    state, meta = tensor_file.load(path, "model")
    assert meta == {"model": "lgdgcn"}
    check_like(state, model.state_dict(), "weights")
    assert torch.equal(state["weight"], model.weight)
    assert names(tmp_path) == ["model.safetensors", "model.safetensors.sha256"]
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    with pytest.raises(CheckpointError, match="damaged"):
        tensor_file.load(path, "model")
    checkpoint.save_weights(path, model.state_dict(), {})  # a damaged one is replaced
    assert tensor_file.load(path, "model")[1] == {}


def test_a_checkpoint_is_not_weights(tmp_path):
    file = checkpoint.save(tmp_path / "seed-0", tensors(), {})
    with pytest.raises(CheckpointError, match=r"lgdgcn-checkpoint.*expected 'lgdgcn-weights'"):
        tensor_file.load(file, "model")


def test_check_like_lists_what_differs():
    expected = {f"layer{i}": torch.zeros(2) for i in range(9)} | {"a": torch.zeros(3)}
    found = {"a": torch.zeros(4, dtype=torch.float64), "b": torch.zeros(1)}
    with pytest.raises(CheckpointError) as caught:
        check_like(found, expected, "weights")
    text = str(caught.value)
    assert "a is float64[4], expected float32[3]" in text
    assert "b is unknown" in text
    assert "layer0 is missing" in text
    assert "and 6 more" in text
