"""Where the trainings of a run stand, in one file for all of its seeds.

``checkpoint.safetensors`` is of one moment of the whole run. The one before is kept beside it as
``checkpoint.previous.safetensors``, should the newest be damaged. A kill between two renames may
leave the previous one alone, which is then the newest.
"""

import json
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from torch import Tensor

from lgdgcn import tensor_file
from lgdgcn.errors import CheckpointError, LGDWarning
from lgdgcn.storage import plain_file
from lgdgcn.train.population import TrainState

__all__ = ["Checkpoint", "check_same", "differences"]

CHECKPOINT = "checkpoint"  # the kind of file


class Checkpoint:
    """The newest two saved states of a run, by the path of the newest; one process writes them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.previous = path.with_name(f"{path.stem}.previous{path.suffix}")
        self._is_sound = False  # whether the newest file is known to be whole

    def save(self, states: Mapping[int, TrainState], about: Mapping[str, Any]) -> None:
        """Save where every seed stands.

        Args:
            states: By seed; seeds that have not begun have none.
            about: What must be the same in a run that goes on.
        """
        tensors = {
            f"{seed}.{name}": tensor
            for seed, state in states.items()
            for name, tensor in state.tensors.items()
        }
        progress = {str(seed): state.progress() for seed, state in states.items()}
        for file in (self.path, self.previous):
            plain_file(file)  # no link is followed
        # a file that may be damaged never takes the place of one that is not
        keep = self.previous if self._is_sound else None
        tensor_file.save(self.path, tensors, {**about, "progress": progress}, CHECKPOINT, keep)
        self._is_sound = True

    def load(self) -> tuple[dict[int, TrainState], dict[str, Any]] | None:
        """Read the newest states that are sound, by seed, and what they are of.

        Returns:
            ``None`` where nothing was saved.

        Raises:
            CheckpointError: Both files are unusable; names each cause.
        """
        causes: list[str] = []
        for file in (self.path, self.previous):
            if not plain_file(file):
                continue
            try:
                tensors, meta = tensor_file.load(file, CHECKPOINT)
                states = _states(file, tensors, meta.pop("progress", None))
            except CheckpointError as error:
                causes.append(str(error))
                continue
            if causes:
                text = f"{causes[0]}; going on from the one before, {file}"
                warnings.warn(text, LGDWarning, stacklevel=2)
            self._is_sound = file == self.path
            return states, meta
        if not causes:
            return None
        raise CheckpointError(
            f"no usable checkpoint: {'; '.join(causes)}; restore one of them, or train again with "
            "--overwrite"
        )

    def remove(self) -> None:
        """Remove both files."""
        for file in (self.path, self.previous):
            with suppress(OSError):
                file.unlink(missing_ok=True)


def _states(file: Path, tensors: Mapping[str, Tensor], progress: Any) -> dict[int, TrainState]:
    """Bring tensors and numbers together; a file that is whole may still say anything."""
    try:
        states = {int(seed): _state(numbers) for seed, numbers in progress.items()}
        for name, tensor in tensors.items():
            seed, _, own = name.partition(".")
            states[int(seed)].tensors[own] = tensor
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        raise CheckpointError(f"{file} does not say how far it is") from None
    return states


def _state(numbers: Mapping[str, Any]) -> TrainState:
    """Where one training stands; a loss of no epoch at all is ``None``."""
    saved: dict[str, Any] = {
        name: int(numbers[name]) if "epoch" in name else float(numbers[name])
        for name in ("epoch", "best_epoch", "best_score", "best_loss", "seconds")
    }
    for name in ("lowest_score", "first_loss", "last_loss"):
        saved[name] = None if numbers[name] is None else float(numbers[name])
    return TrainState(**saved)


def differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> list[str]:
    """What differs between two nested settings, one line each; lists equal tuples, NaN equals NaN.

    Example:
        >>> differences({"lr": 0.01, "model": {"k": 3}}, {"lr": 0.02, "model": {"k": 3}})
        ['lr: 0.01 -> 0.02']
    """
    found: list[str] = []
    for key in dict.fromkeys([*old, *new]):
        a, b = old.get(key, _ABSENT), new.get(key, _ABSENT)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            found += differences(a, b, f"{prefix}{key}.")
        elif _show(a) != _show(b) and a != b:
            found.append(f"{prefix}{key}: {_show(a)} -> {_show(b)}")
    return found


_ABSENT = object()


def _show(value: object) -> str:
    return "(absent)" if value is _ABSENT else json.dumps(value, ensure_ascii=False, default=str)


def check_same(old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Refuse to resume a state that belongs to another configuration or other data.

    Args:
        old: What the saved run says; keys that ``new`` does not have are not compared.
        new: What this run would say. Under ``versions`` the libraries, where a difference is only
            a warning.

    Raises:
        CheckpointError: Lists everything that differs.
    """
    compared = {key: old[key] for key in new if key in old and key != "versions"}
    if found := differences(compared, {k: v for k, v in new.items() if k != "versions"}):
        raise CheckpointError(
            f"the checkpoint is of another run: {'; '.join(found)}; resume with the same settings "
            "and data, or choose another --out"
        )
    if found := differences(old.get("versions", {}), new.get("versions", {}), "versions."):
        text = f"the checkpoint was written with other versions: {'; '.join(found)}; "
        warnings.warn(text + "the result may differ in the last digits", LGDWarning, stacklevel=2)
