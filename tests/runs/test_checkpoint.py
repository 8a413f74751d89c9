"""A checkpoint is whole or refused: killed writers, full disks, damaged and foreign files."""

import itertools
import json
import os
import pickle
import resource
import signal
import warnings
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save as encode

from faults.hostile import Payload, sealed
from lgdgcn import storage, tensor_file
from lgdgcn.errors import CheckpointError, InputError, LGDWarning
from lgdgcn.runs.checkpoint import Checkpoint, check_same, differences
from lgdgcn.train.population import TrainState

NAMES = ["run.previous.safetensors", "run.safetensors"]


def states(number: float = 1, size: int = 10) -> dict[int, TrainState]:
    weights = {"model.w": torch.full((size,), float(number))}
    return {0: TrainState(epoch=int(number), tensors=weights), 12: TrainState()}


def checkpoint(folder: Path) -> Checkpoint:
    return Checkpoint(folder / "run.safetensors")


def saved(folder: Path, *numbers: float) -> Checkpoint:
    found = checkpoint(folder)
    for number in numbers:
        found.save(states(number), {"n": number})
    return found


def epoch_of(folder: Path) -> int:
    """The epoch that a new process goes on from; fails on any warning, and on half a state."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, about = checkpoint(folder).load()
    weights = found[0].tensors["model.w"]
    assert torch.equal(weights, torch.full_like(weights, float(about["n"])))
    return found[0].epoch


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


# Round trip and the file before


def test_what_is_saved_comes_back_bit_for_bit(tmp_path):
    base = torch.randn(4, 6, dtype=torch.float64)
    tensors = {
        "view": base.t(),
        "shared": base,
        "half": torch.randn(3).bfloat16(),
        "bits": torch.tensor([float("nan"), float("inf"), -0.0, 1e-45]),
        "scalar": torch.tensor(7),
        "flags": torch.tensor([True, False]),
        "none": torch.empty(0, 3),
        "parameter.0": torch.nn.Parameter(torch.ones(2)),
    }
    about = {"config": {"lr": 0.1 + 0.2, "a": [1]}, "data": {"3": "ü\u2028"}, "x": float("inf")}
    state = TrainState(3, 2, 0.25, float("inf"), 1.5, None, 0.1, 0.2, tensors)
    checkpoint(tmp_path).save({3: state, 10: TrainState()}, about)
    found, said = checkpoint(tmp_path).load()
    assert said == about
    assert {seed: one.progress() for seed, one in found.items()} == {
        3: state.progress(),
        10: TrainState().progress(),
    }
    assert found[3].tensors.keys() == tensors.keys()
    for name, tensor in found[3].tensors.items():
        old = tensors[name].detach().contiguous()
        assert (tensor.dtype, tensor.shape) == (old.dtype, old.shape)
        assert torch.equal(tensor.view(-1).view(torch.uint8), old.view(-1).view(torch.uint8))


def test_the_same_content_is_the_same_bytes(tmp_path):
    assert len({(saved(tmp_path, 1), (tmp_path / NAMES[1]).read_bytes())[1] for _ in "12345"}) == 1


def test_nothing_there(tmp_path):
    for folder in (tmp_path, tmp_path / "absent"):
        assert checkpoint(folder).load() is None
        checkpoint(folder).remove()


def test_the_newest_two_are_kept_and_removed(tmp_path):
    other = tmp_path / "run.bak.safetensors"
    other.write_text("mine")
    saved(tmp_path, 1, 2, 3)
    assert epoch_of(tmp_path) == 3
    (tmp_path / NAMES[1]).unlink()  # as after a kill between the two renames
    assert epoch_of(tmp_path) == 2
    checkpoint(tmp_path).remove()
    assert names(tmp_path) == [other.name]


def test_a_damaged_file_never_takes_the_place_of_a_sound_one(tmp_path):
    saved(tmp_path, 1, 2)
    (tmp_path / NAMES[1]).write_bytes(b"")
    again = checkpoint(tmp_path)
    with pytest.warns(LGDWarning, match="is empty; going on from the one before"):
        assert again.load()[1] == {"n": 1}
    again.save(states(3), {"n": 3})
    assert epoch_of(tmp_path) == 3
    (tmp_path / NAMES[1]).unlink()
    assert epoch_of(tmp_path) == 1


@pytest.mark.parametrize("name", NAMES)
def test_links_pipes_and_folders_are_refused(tmp_path, name):
    (tmp_path / "thesis").write_text("years")
    (tmp_path / name).symlink_to(tmp_path / "thesis")
    for use in (Checkpoint.load, lambda one: one.save(states(), {})):
        with pytest.raises(InputError, match="is a link, which a run does not follow"):
            use(checkpoint(tmp_path))
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with pytest.raises(InputError, match="not a regular file"):  # and does not wait for a writer
        checkpoint(tmp_path).load()
    assert (tmp_path / "thesis").read_text() == "years"


# Killed and full


def die_before(number: int) -> None:
    """Kill this process before its next call but ``number`` that changes the disk."""
    calls = itertools.count()

    def dies(call):
        def counted(*args, **kwargs):
            if next(calls) == number:
                if call.__name__ == "_fill":  # half of it is written
                    args[0].write(args[1][: len(args[1]) // 2])
                    args[0].flush()
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **kwargs)

        return counted

    for module, name in [(os, "open"), (os, "fsync"), (os, "replace"), (storage, "_fill")]:
        setattr(module, name, dies(getattr(module, name)))


def save_and_die(folder: Path, number: int) -> bool:
    """Save in another process, which is killed on the way; returns whether it was."""
    pid = os.fork()
    if pid == 0:
        try:
            found = checkpoint(folder)
            found.load()
            die_before(number)
            found.save(states(3), {"n": 3})
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])


def test_kill_before_every_single_step_of_a_save(tmp_path):
    """The process dies before its 1st, 2nd, ... call to the system; nothing saved is ever lost."""
    for number in itertools.count():
        folder = tmp_path / str(number)
        folder.mkdir()
        saved(folder, 1, 2)
        is_killed = save_and_die(folder, number)
        assert epoch_of(folder) in ((2, 3) if is_killed else (3,))
        save_and_die(folder, number)  # on top of what a kill has left
        assert epoch_of(folder) in (2, 3)
        again = checkpoint(folder)
        again.load()
        again.save(states(9), {"n": 9})
        assert epoch_of(folder) == 9
        if not is_killed:
            break
    assert number >= 6


def test_a_full_disk_leaves_what_was_there(tmp_path):
    found = saved(tmp_path, 1, 2)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
    try:
        with pytest.raises(InputError, match=r"run\.safetensors: File too large; .*ulimit -f"):
            found.save(states(3, size=100_000), {"n": 3})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert names(tmp_path) == NAMES
    assert epoch_of(tmp_path) == 2
    with pytest.raises(InputError, match=r"absent.*create the folder"):
        checkpoint(tmp_path / "absent").save(states(), {})


# Damaged and foreign files


def forged(head: object) -> bytes:
    """A file whose description is any other text or value."""
    text = head if isinstance(head, str) else json.dumps(head)
    return encode({"0.model.w": torch.ones(10)}, metadata={"lgdgcn": f"0 {text}"})


def about(**changes: object) -> dict[str, object]:
    return {"kind": "checkpoint", "schema": tensor_file.SCHEMA, "meta": {}} | changes


def flipped(good: bytes, place: int) -> bytes:
    return good[:place] + bytes([good[place] ^ 4]) + good[place + 1 :]


DAMAGES = {
    "empty": (lambda good, marker: b"", "is empty"),
    "cut": (lambda good, marker: good[:-7], "cannot be read"),
    "one byte": (lambda good, marker: good[:1], "cut short"),
    "half a header": (lambda good, marker: good[:40], "damaged"),
    "flipped bit": (lambda good, marker: flipped(good, len(good) - 3), "sha256 does not fit"),
    "flipped epoch": (lambda good, marker: good.replace(b'ch\\": 2', b'ch\\": 3'), "sha256 does"),
    "longer": (lambda good, marker: good + b"x", "cannot be read"),
    "text": (lambda good, marker: b"hello, this is text", "not a safetensors"),
    "zeros": (lambda good, marker: bytes(1000), "not a safetensors"),
    "endless header": (
        lambda good, marker: (1 << 62).to_bytes(8, "little") + b"{}" * 50,
        "not a safetensors",
    ),
    "pickle": (lambda good, marker: pickle.dumps(Payload(marker)), "pickle"),
    "pickle 0": (lambda good, marker: pickle.dumps(Payload(marker), 0), "not a safe"),
    "torch.save": (lambda good, marker: b"PK\x03\x04" + bytes(100), "pickle or torch.save"),
    "type": (lambda good, marker: good.replace(b'"F32"', b'"F64"', 1), "cannot be read"),
    "shape": (lambda good, marker: good.replace(b"[10]", b"[99]", 1), "cannot be read"),
    "other program": (lambda good, marker: encode({}, metadata={"format": "pt"}), "not written"),
    "no digest": (lambda good, marker: encode({}, metadata={"lgdgcn": "{"}), "not written"),
    "no JSON": (lambda good, marker: forged("{"), "description that cannot be read"),
    "too deep": (lambda good, marker: forged("[" * 10**5), "cannot be read"),
    "a list": (lambda good, marker: forged([]), "no object"),
    "other kind": (lambda good, marker: forged(about(kind="model")), "kind 'model', expected"),
    "newer": (lambda good, marker: forged(about(schema=99)), "schema 99"),
    "meta a list": (lambda good, marker: forged(about(meta=[])), "has schema"),
    "no progress": (lambda good, marker: forged(about()), "does not say how far"),
    "odd progress": (
        lambda good, marker: forged(about(meta={"progress": {"0": {"epoch": "x"}}})),
        "does not say how far",
    ),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_damage_is_named_and_the_one_before_used(tmp_path, kind):
    change, cause = DAMAGES[kind]
    saved(tmp_path, 1, 2)
    newest, before = tmp_path / NAMES[1], tmp_path / NAMES[0]
    good = newest.read_bytes()
    damaged = change(good, tmp_path / "marker")
    assert damaged != good
    if kind in ("flipped bit", "flipped epoch", "no digest"):
        newest.write_bytes(damaged)
    else:
        sealed(newest, damaged)  # as a forger would
    with pytest.warns(LGDWarning, match=cause) as caught:
        found, said = checkpoint(tmp_path).load()
    assert (found[0].epoch, said) == (1, {"n": 1})
    assert str(newest) in str(caught[0].message)
    assert "\n" not in str(caught[0].message)
    before.write_bytes(b"")
    with pytest.raises(CheckpointError, match=f"{cause}.*{before.name} is empty") as refused:
        checkpoint(tmp_path).load()
    assert refused.value.exit_code == 2
    assert not (tmp_path / "marker").exists()


@settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_bytes_are_read_or_refused(tmp_path, data):
    """Whatever the bytes: what was saved, or a CheckpointError of one line."""
    file = tmp_path / NAMES[1]
    if not file.exists():
        saved(tmp_path, 3)
        (tmp_path / "good").write_bytes(file.read_bytes())
    good = (tmp_path / "good").read_bytes()
    changed = bytearray(good)
    header = int.from_bytes(good[:8], "little") + 8
    for _ in range(data.draw(st.integers(1, 4))):
        where = data.draw(st.integers(0, header if data.draw(st.booleans()) else len(changed)))
        kind = data.draw(st.sampled_from(["set", "cut", "insert", "delete"]))
        if kind == "set" and where < len(changed):
            changed[where] = data.draw(st.integers(0, 255))
        elif kind == "cut":
            del changed[where:]
        elif kind == "insert":
            changed[where:where] = data.draw(st.binary(max_size=9))
        elif kind == "delete":
            del changed[where : where + data.draw(st.integers(1, 9))]
    forge = data.draw(st.booleans())
    if forge:  # a length of the header and a digest that fit again
        changed[:8] = max(0, header - 8 + len(changed) - len(good)).to_bytes(8, "little")
        sealed(file, bytes(changed))
    else:
        file.write_bytes(changed)
    refused = ""
    try:
        found, said = checkpoint(tmp_path).load()
    except CheckpointError as error:
        refused = str(error)
    if refused:
        assert str(file) in refused
        assert "\n" not in refused
    else:
        assert forge or (said, found[0].epoch) == ({"n": 3}, 3)


def test_a_huge_file_of_zeros_is_not_read(tmp_path):
    with (tmp_path / NAMES[1]).open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(CheckpointError, match="not a safetensors"):
        checkpoint(tmp_path).load()


# What a run that goes on must share with the saved one


def test_differences():
    old = {"lr": 0.01, "model": {"k": 3, "dims": [1, 2]}, "gone": "x", "same": float("nan")}
    new = {"lr": 0.02, "model": {"k": 3, "dims": (1, 3)}, "new": None, "same": float("nan")}
    assert differences(old, new) == [
        "lr: 0.01 -> 0.02",
        "model.dims: [1, 2] -> [1, 3]",
        'gone: "x" -> (absent)',
        "new: (absent) -> null",
    ]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=3), VALUES))
def test_what_json_gives_back_does_not_differ(config):
    assert differences(json.loads(json.dumps(config)), config) == []


def test_check_same():
    old = {
        "config": {"lr": 0.01, "seed": 1},
        "data": "abc",
        "schema": 1,
        "versions": {"torch": "2.12"},
        "epoch": 17,
    }
    new = {key: old[key] for key in ("config", "data", "schema", "versions")}
    check_same(old, new)
    with pytest.warns(LGDWarning, match=r'versions\.torch: "2\.12" -> "2\.13"'):
        check_same(old, new | {"versions": {"torch": "2.13"}})
    other = {"config": {"lr": 0.02, "seed": 1}, "data": "def", "schema": 2, "versions": {}}
    with pytest.raises(CheckpointError) as caught:
        check_same(old, other)
    for part in ("config.lr: 0.01 -> 0.02", 'data: "abc" -> "def"', "schema: 1 -> 2", "--out"):
        assert part in str(caught.value)
    assert "seed" not in str(caught.value)
    assert "epoch" not in str(caught.value)


def test_check_same_misses_nothing():
    with pytest.raises(CheckpointError, match=r'data: \(absent\) -> "abc"'):
        check_same({"config": {}}, {"config": {}, "data": "abc"})
