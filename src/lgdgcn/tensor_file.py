"""Tensors with a description of them in one file that shows by itself whether it is whole.

A safetensors file whose header says what kind of file it is and describes it in JSON, behind the
sha256 of that description and of all tensors in the order of their names. Both are one text, as
safetensors writes several in any order, and equal content should be equal bytes. Nothing is
unpickled.
"""

import hashlib
import json
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lgdgcn.errors import CheckpointError, InputError
from lgdgcn.storage import atomic_write

__all__ = ["SCHEMA", "check_like", "digest", "load", "refuse_foreign", "save"]

SCHEMA = 2  # raise it when an older reader would misread the file
_MAX_HEADER = 16 << 20  # bytes; the names and shapes of some 100,000 tensors


def save(
    path: Path,
    tensors: Mapping[str, Tensor],
    meta: Mapping[str, Any],
    kind: str,
    keep: Path | None = None,
) -> None:
    """Write a file completely or not at all.

    Args:
        path: The file to make or replace.
        tensors: Copied to the CPU as they are, bit for bit.
        meta: The description: values JSON has (tuples come back as lists); NaN and inf are allowed.
        kind: What kind of file it is, such as ``model``.
        keep: The name that a file which is replaced gets.
    """
    from safetensors.torch import save as encode

    copies = {  # safetensors refuses views that share memory
        name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, tensor in tensors.items()
    }
    about = json.dumps({"kind": kind, "schema": SCHEMA, "meta": dict(meta)})
    header = {"lgdgcn": f"{_sha256(about, copies)} {about}"}
    atomic_write(path, encode(copies, metadata=header), keep)


def load(path: Path, kind: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read the tensors and the description that :func:`save` wrote.

    Raises:
        CheckpointError: The file is missing, damaged or of another kind.
    """
    from safetensors.torch import load as decode

    payload = _read(path)
    named, text = _header(path, payload)
    try:
        tensors = dict(decode(payload))
    except Exception as error:  # the library raises its own, KeyError, AssertionError and more
        cause = " ".join(str(error).split())[:200] or type(error).__name__
        raise CheckpointError(f"{path} holds tensors that cannot be read: {cause}") from error
    if _sha256(text, tensors) != named:
        raise CheckpointError(f"{path} is damaged or altered: its sha256 does not fit; restore it")
    about = _description(path, text)
    if about.get("kind") != kind:
        raise CheckpointError(f"{path} is of kind {about.get('kind')!r}, expected {kind!r}")
    if about.get("schema") != SCHEMA or not isinstance(about.get("meta"), dict):
        raise CheckpointError(
            f"{path} has schema {about.get('schema')!r}, this version of lgdgcn reads {SCHEMA}: "
            "train again, or use the version that wrote it"
        )
    return tensors, about["meta"]


def digest(path: Path) -> str:
    """The sha256 that a file names as its own, which :func:`load` has found or will find to fit.

    Raises:
        CheckpointError: The file is missing, or none of ours.
    """
    return _header(path, _read(path, header_only=True))[0]


def refuse_foreign(path: Path) -> None:
    """Refuse to replace a file that is none of ours; an empty one may go."""
    try:
        if not path.is_file() or not path.stat().st_size:
            return
        _header(path, _read(path, header_only=True))
    except (OSError, CheckpointError):
        raise InputError(
            f"{path} is no model of this version of lgdgcn, so it is not replaced: choose another "
            "name"
        ) from None


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


def _sha256(about: str, tensors: Mapping[str, Tensor]) -> str:
    result = hashlib.sha256(about.encode())
    for name, tensor in sorted(tensors.items()):
        result.update(f"\n{name} {_show(tensor)}\n".encode())
        result.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return result.hexdigest()


def _read(path: Path, header_only: bool = False) -> bytes:
    """The file's bytes, once it is known to be a safetensors file by its start."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for ever
            raise CheckpointError(f"{path} is not a regular file")
        with path.open("rb") as file:
            start = file.read(9)
            length = int.from_bytes(start[:8], "little")
            if len(start) == 9 and start[8:] == b"{" and length <= _MAX_HEADER:
                return start + file.read(length - 1 if header_only else -1)
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror or error}") from error
    if not start:
        raise CheckpointError(f"{path} is empty")
    if start.startswith(b"PK\x03\x04") or (start[:1] == b"\x80" and start[1:2] <= b"\x05"):
        raise CheckpointError(f"{path} is a pickle or torch.save file, which is never loaded")
    raise CheckpointError(f"{path} is not a safetensors file, or is cut short")


def _header(path: Path, payload: bytes) -> tuple[str, str]:
    """The sha256 and the description that :func:`save` put into the header."""
    length = int.from_bytes(payload[:8], "little")
    try:
        found = json.loads(payload[8 : 8 + length])["__metadata__"].get("lgdgcn")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{path} is damaged, or was not written by lgdgcn") from error
    named, blank, text = found.partition(" ") if isinstance(found, str) else ("", "", "")
    if not blank:
        raise CheckpointError(f"{path} was not written by this version of lgdgcn")
    return named, text


def _description(path: Path, text: str) -> dict[str, Any]:
    try:
        about = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} has a description that cannot be read") from error
    if not isinstance(about, dict):
        raise CheckpointError(f"{path} has a description that is no object")
    return about
