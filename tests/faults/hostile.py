"""Files that someone has forged."""

import hashlib
from pathlib import Path

__all__ = ["Payload", "sealed"]


class Payload:
    """Makes a file when unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = str(marker)

    def __reduce__(self):
        return open, (self.marker, "w")


def sealed(file: Path, payload: bytes) -> None:
    """Write a file with the sha256 that a forger would put beside it."""
    file.write_bytes(payload)
    digest = hashlib.sha256(payload).hexdigest()
    file.with_name(file.name + ".sha256").write_text(f"{digest}  {file.name}\n")
