"""Saved states that survive a kill at any moment: safetensors with a sha256 beside each file.

A checkpoint ``seed-0`` is a row of generations ``seed-0-000001.safetensors``, ``-000002`` and so
on, of which the newest two are kept. The sha256 file of a generation is on the disk before the
generation takes its name, and an old generation goes only after the new one is on the disk: at any
moment the newest generation that has a name is complete. Nothing is ever unpickled.
"""

import hashlib
import json
import os
import re
import stat
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lgdgcn.errors import CheckpointError, InputError, LGDWarning
from lgdgcn.storage import atomic_write, plain_file, remove_leftovers

__all__ = [
    "SCHEMA",
    "check_like",
    "go_back",
    "load",
    "load_weights",
    "refuse_foreign",
    "remove",
    "save",
    "save_weights",
    "weights_sha256",
]

SCHEMA = 1  # raise it when an older reader would misread the file
_CHECKPOINT, _WEIGHTS = "lgdgcn-checkpoint", "lgdgcn-weights"
_SUFFIX, _SEAL = ".safetensors", ".safetensors.sha256"
_MAX_HEADER = 16 << 20  # bytes; the names and shapes of some 100,000 tensors
_KEEP = 2


# Generations


def save(path: Path, tensors: Mapping[str, Tensor], meta: Mapping[str, Any]) -> Path:
    """Save the next generation and drop all but the newest two.

    Args:
        path: Folder and name of the checkpoint, such as ``checkpoints/seed-0``; one writer only.
        tensors: Copied to the CPU as they are, bit for bit.
        meta: Values JSON has (tuples come back as lists, keys as text); NaN and inf are allowed.

    Returns:
        The file of the new generation.
    """
    numbers = _generations(path)
    target = _file(path, numbers[0] + 1 if numbers else 1)
    plain_file(_seal(target))  # no link is followed
    try:
        _write(target, tensors, meta, _CHECKPOINT)
    finally:
        _prune(path, _KEEP)
    return target


def load(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """Load the newest generation that is sound, or ``None`` when there is none at all.

    Raises:
        CheckpointError: There are generations and every one is unusable; names each cause.
    """
    causes: list[str] = []
    for number in _generations(path):
        try:
            state = _read(_file(path, number), _CHECKPOINT)
        except CheckpointError as error:
            causes.append(str(error))
            continue
        if causes:
            text = f"{'; '.join(causes)}; going on from the one before, {_file(path, number)}"
            warnings.warn(text, LGDWarning, stacklevel=2)
        return state
    if not causes:
        return None
    raise CheckpointError(
        f"no usable checkpoint: {'; '.join(causes)}; restore one of them or start again elsewhere"
    )


def go_back(
    path: Path, is_wanted: Callable[[Mapping[str, Any]], bool]
) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """Load the newest sound generation whose description is wanted, and remove newer ones.

    ``None``, and nothing is removed, where there is no such generation.
    """
    for number in (numbers := _generations(path)):
        with suppress(CheckpointError):
            state = _read(_file(path, number), _CHECKPOINT)
            if is_wanted(state[1]):
                for newer in (other for other in numbers if other > number):
                    _remove(path, newer)
                return state
    return None


def remove(path: Path) -> None:
    """Remove every generation of this checkpoint."""
    _prune(path, 0)


def _name(path: Path) -> str:
    return path.name.removesuffix(_SUFFIX)


def _file(path: Path, number: int) -> Path:
    return path.with_name(f"{_name(path)}-{number:06d}{_SUFFIX}")


def _numbers(path: Path, suffix: str) -> list[int]:
    """Numbers of the files ``NAME-NUMBER`` + suffix, newest first."""
    pattern = re.compile(re.escape(_name(path)) + "-([0-9]{6,12})" + re.escape(suffix))
    try:
        entries = os.listdir(path.parent)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CheckpointError(f"cannot list {path.parent}: {error.strerror}") from error
    found = (pattern.fullmatch(entry) for entry in entries)
    return sorted((int(match[1]) for match in found if match), reverse=True)


def _generations(path: Path) -> list[int]:
    return _numbers(path, _SUFFIX)


def _prune(path: Path, keep: int) -> None:
    known = {*_numbers(path, _SUFFIX), *_numbers(path, _SEAL)}
    for number in known.difference(_generations(path)[:keep]):
        _remove(path, number)
    remove_leftovers(path.parent, _name(path) + "-")


def _remove(path: Path, number: int) -> None:
    for suffix in (_SUFFIX, _SEAL):  # the seal last: a file without one would look damaged
        with suppress(OSError):
            _file(path, number).with_suffix(suffix).unlink()


# Weights: one file under a fixed name


def save_weights(path: Path, state_dict: Mapping[str, Tensor], meta: Mapping[str, Any]) -> None:
    """Save a model's weights under exactly this name, its sha256 beside it."""
    _write(path, state_dict, meta, _WEIGHTS)


def load_weights(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Load what :func:`save_weights` wrote.

    Raises:
        CheckpointError: The file is missing, damaged or of another kind.
    """
    return _read(path, _WEIGHTS)


def weights_sha256(path: Path) -> str:
    """The sha256 of a file of weights."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def refuse_foreign(path: Path) -> None:
    """Refuse to replace a file that is not a saved state of this package; an empty one may go."""
    try:
        if not path.is_file() or not path.stat().st_size:
            return
        with path.open("rb") as file:
            length = file.read(8)
            header = file.read(min(int.from_bytes(length, "little"), _MAX_HEADER))
        _head(path, length + header)
    except (OSError, CheckpointError):
        raise InputError(
            f"{path} is no model of lgdgcn, so it is not replaced: choose another name"
        ) from None


# One file


def _seal(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _sealed(path: Path) -> list[str]:
    """The hashes the file beside ``path`` accepts."""
    if not _seal(path).is_file():  # opening a pipe would wait for ever
        return []
    try:
        with _seal(path).open("rb") as file:
            lines = file.read(4096).decode("ascii", "replace").splitlines()
    except OSError:
        return []
    return [line[:64] for line in lines if re.match("[0-9a-f]{64} ", line)]


def _write(path: Path, tensors: Mapping[str, Tensor], meta: Mapping[str, Any], kind: str) -> None:
    from safetensors.torch import save as encode

    copies = {  # safetensors refuses views that share memory
        name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, tensor in tensors.items()
    }
    head = json.dumps({"kind": kind, "schema": SCHEMA, "meta": dict(meta)})
    payload = encode(copies, metadata={"lgdgcn": head})
    lines = [hashlib.sha256(payload).hexdigest()]
    if path.is_file():  # until the new file is in place its seal must fit the old one too
        with path.open("rb") as file:
            old = hashlib.file_digest(file, "sha256").hexdigest()
        lines += [old] if old in _sealed(path) else []
    text = "".join(f"{line}  {path.name}\n" for line in lines)
    atomic_write(_seal(path), text.encode())
    atomic_write(path, payload)
    if len(lines) > 1:
        atomic_write(_seal(path), text.splitlines(keepends=True)[0].encode())


def _read(path: Path, kind: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    payload = _verified(path)
    head = _head(path, payload)
    if head.get("kind") != kind:
        raise CheckpointError(f"{path} is of kind {head.get('kind')!r}, expected {kind!r}")
    schema, meta = head.get("schema"), head.get("meta")
    if type(schema) is not int or schema < 1 or not isinstance(meta, dict):
        raise CheckpointError(f"{path} has no valid schema and meta: save it again")
    if schema > SCHEMA:
        raise CheckpointError(
            f"{path} has schema {schema}, this version reads up to {SCHEMA}: upgrade lgdgcn"
        )
    return _decode(path, payload), meta


def _verified(path: Path) -> bytes:
    """The file's bytes, read only once its sha256 is known to fit."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for ever
            raise CheckpointError(f"{path} is not a regular file")
        with path.open("rb") as file:
            _check_start(path, file.read(9), os.fstat(file.fileno()).st_size)
            sealed = _sealed(path)
            if not sealed:
                raise CheckpointError(
                    f"{path} has no usable {_seal(path).name} beside it: copy both files"
                )
            file.seek(0)
            found = hashlib.file_digest(file, "sha256").hexdigest()
            if found not in sealed:
                raise CheckpointError(
                    f"{path} is damaged, cut short or altered: its sha256 is {found[:12]}..., "
                    f"the file beside it says {sealed[0][:12]}..."
                )
            file.seek(0)
            return file.read()
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror or error}") from error


def _check_start(path: Path, start: bytes, size: int) -> None:
    """Refuse what cannot be a safetensors file: 8 bytes of header length, then JSON."""
    if size == 0:
        raise CheckpointError(f"{path} is empty")
    length = int.from_bytes(start[:8], "little")
    if len(start) == 9 and start[8:] == b"{" and length <= _MAX_HEADER:
        if 8 + length <= size:
            return
        raise CheckpointError(f"{path} is cut short: {size} bytes, its header alone has {length}")
    if start.startswith(b"PK\x03\x04") or (start[:1] == b"\x80" and start[1:2] <= b"\x05"):
        raise CheckpointError(f"{path} is a pickle or torch.save file, which is never loaded")
    raise CheckpointError(f"{path} is not a safetensors file, or is cut short ({size} bytes)")


def _head(path: Path, payload: bytes) -> dict[str, Any]:
    length = int.from_bytes(payload[:8], "little")
    try:
        head = json.loads(json.loads(payload[8 : 8 + length])["__metadata__"]["lgdgcn"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise CheckpointError(f"{path} was not written by lgdgcn: no description in it") from error
    if not isinstance(head, dict):
        raise CheckpointError(f"{path} was not written by lgdgcn: its description is no object")
    return head


def _decode(path: Path, payload: bytes) -> dict[str, Tensor]:
    from safetensors.torch import load as decode

    try:
        return dict(decode(payload))
    except Exception as error:  # the library raises its own, KeyError, AssertionError and more
        cause = " ".join(str(error).split())[:200] or type(error).__name__
        raise CheckpointError(f"{path} holds tensors that cannot be read: {cause}") from error


def check_like(found: Mapping[str, Tensor], expected: Mapping[str, Tensor], what: str) -> None:
    """Refuse tensors that differ from the expected ones in name, shape or type.

    Args:
        found: Loaded tensors.
        expected: The tensors they are meant for, such as ``model.state_dict()``.
        what: What they are, for the message.
    """
    causes = [f"{name} is missing" for name in expected.keys() - found.keys()]
    causes += [f"{name} is unknown" for name in found.keys() - expected.keys()]
    for name in expected.keys() & found.keys():
        old, new = found[name], expected[name]
        if old.shape != new.shape or old.dtype != new.dtype:
            causes.append(f"{name} is {_show(old)}, expected {_show(new)}")
    if causes:
        more = f" and {len(causes) - 5} more" if len(causes) > 5 else ""
        shown = "; ".join(cause[:100] for cause in sorted(causes)[:5])
        raise CheckpointError(
            f"{what} of another model: {shown}{more}; use the settings it was saved with"
        )


def _show(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
