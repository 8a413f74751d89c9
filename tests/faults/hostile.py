"""Files that someone has forged."""

import json
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load, save

from lgdgcn import tensor_file

__all__ = ["Payload", "sealed"]


class Payload:
    """Makes a file when unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = str(marker)

    def __reduce__(self):
        return open, (self.marker, "w")


def sealed(file: Path, payload: bytes) -> None:
    """Write a file, with the sha256 in its header that a forger would put there."""
    file.write_bytes(payload)
    try:
        tensors = load(payload)
        header = json.loads(payload[8 : 8 + int.from_bytes(payload[:8], "little")])
        about = header["__metadata__"]["lgdgcn"].partition(" ")[2]
    except (SafetensorError, ValueError, LookupError):  # nothing that has a place for it
        return
    text = f"{tensor_file._sha256(about, tensors)} {about}"
    file.write_bytes(save(tensors, metadata={"lgdgcn": text}))
