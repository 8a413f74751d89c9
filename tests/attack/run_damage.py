"""Damage to a run folder: what disks, users and enemies do to one."""

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import torch
from safetensors.torch import load, save

from attack.damage import flip
from faults.hostile import Payload, sealed

__all__ = ["DAMAGES", "Damage"]

JSON = ["", "{}", "[]", "null", "0", '{"runs": []}', '{"runs": [{}]}', '{"runs": 1}', "[" * 100_000]
LINKED = [
    "run.lock",
    "metrics.jsonl",
    "config.toml",
    "result.json",
    "model.safetensors",
    "checkpoint.safetensors",
    "units.png",
]


# Each takes the run folder, the random choices, a folder of someone else's files (another run among
# them) and returns the name of what it has changed.
Damage = Callable[[Path, Random, Path], str]


def _files(run: Path) -> list[Path]:
    return sorted(file for file in run.rglob("*") if file.is_file() and not file.is_symlink())


def spoil_bytes(run: Path, random: Random, others: Path) -> str:
    file = random.choice(_files(run))
    content = file.read_bytes()
    file.write_bytes(random.choice([flip(random, content), content[: len(content) // 2], b""]))
    return str(file.relative_to(run))


def remove_file(run: Path, random: Random, others: Path) -> str:
    file = random.choice(_files(run))
    file.unlink()
    return str(file.relative_to(run))


def replace_json(run: Path, random: Random, others: Path) -> str:
    name = random.choice(["result.json", "config.toml", "metrics.jsonl", "run.lock"])
    (run / name).write_text(random.choice(JSON))
    return name


def swap_file(run: Path, random: Random, others: Path) -> str:
    """Take a file of another run."""
    name = random.choice(["result.json", "config.toml", "model.safetensors", "metrics.jsonl"])
    shutil.copy(others / "run" / name, run / name)
    return name


def link_file(run: Path, random: Random, others: Path) -> str:
    """Put a link where a file of the run belongs: to someone else's file, to nothing, to itself."""
    name = random.choice(LINKED)
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(random.choice([others / "thesis.txt", others / "nothing", run / name]))
    return name


def replace_kind(run: Path, random: Random, others: Path) -> str:
    """Put a folder or a pipe where a file belongs."""
    name = random.choice(LINKED)
    (run / name).unlink(missing_ok=True)
    random.choice([os.mkdir, os.mkfifo])(run / name)
    return name


def hide_pickle(run: Path, random: Random, others: Path) -> str:
    """A pickle under one of our names."""
    payload = pickle.dumps(Payload(others / "marker"), protocol=random.choice([0, 2, 4]))
    files = [file for file in _files(run) if file.suffix in (".safetensors", ".json", ".toml")]
    file = random.choice(files)
    if random.random() < 0.3:
        torch.save({"x": Payload(others / "marker")}, file)
        return str(file.relative_to(run))
    file.write_bytes(payload)
    return str(file.relative_to(run))


def forge_weights(run: Path, random: Random, others: Path) -> str:
    """A model or checkpoint that is well formed and has the right sha256, but is hostile."""
    file = random.choice([file for file in _files(run) if file.suffix == ".safetensors"])
    payload = file.read_bytes()
    length = int.from_bytes(payload[:8], "little")
    text = json.loads(payload[8 : 8 + length])["__metadata__"]["lgdgcn"]
    head = json.loads(text.partition(" ")[2])
    tensors = load(payload)
    name = random.choice(sorted(tensors))
    kind = random.randrange(7)
    if kind == 0:
        tensors[name] = torch.full_like(tensors[name], float("nan") if _real(tensors[name]) else -1)
    elif kind == 1:
        tensors[name] = (
            tensors[name][..., :-1].contiguous() if tensors[name].dim() else torch.zeros(3)
        )
    elif kind == 2:
        del tensors[name]
    elif kind == 3:
        tensors["more"] = torch.zeros(3)
    elif kind == 4:
        tensors[name] = tensors[name].to(torch.float16 if _real(tensors[name]) else torch.int8)
    elif kind == 5:
        _forge(head, random)
    if kind == 6:  # a header that promises more than there is
        absurd = b'{"x":{"dtype":"F32","shape":[1099511627776],"data_offsets":[0,4398046511104]}}'
        sealed(file, len(absurd).to_bytes(8, "little") + absurd)
    else:
        sealed(file, save(tensors, metadata={"lgdgcn": f"0 {json.dumps(head)}"}))
    return str(file.relative_to(run))


def _real(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point()


def _forge(head: dict[str, Any], random: Random) -> None:
    """Change one value of a description to one of another type or size."""
    value = random.choice([None, -1, 0, 10**9, 10**30, 0.5, "x", [], {}, True, float("nan")])
    table = head
    while True:
        key = random.choice(sorted(table))
        if not isinstance(table[key], dict) or not table[key] or random.random() < 0.2:
            table[key] = value
            return
        table = table[key]


DAMAGES: dict[str, Damage] = {
    "bytes": spoil_bytes,
    "removed": remove_file,
    "json": replace_json,
    "swapped": swap_file,
    "link": link_file,
    "kind": replace_kind,
    "pickle": hide_pickle,
    "forged": forge_weights,
}
