"""What a checkpoint holds besides weights: optimiser and random states, as plain tensors."""

import random
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from lgdgcn.errors import CheckpointError

__all__ = [
    "check_like",
    "load_optimizer_tensors",
    "optimizer_tensors",
    "random_state",
    "set_random_state",
]


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
        raise CheckpointError(
            f"{what} of another model: {'; '.join(sorted(causes)[:5])}{more}; use the settings "
            "it was saved with"
        )


def _show(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def optimizer_tensors(
    optimizer: torch.optim.Optimizer, prefix: str = "optimizer."
) -> dict[str, Tensor]:
    """The state of Adam (without amsgrad), by reference; its settings are the configuration's."""
    state = optimizer.state_dict()["state"]
    return {
        f"{prefix}{index}.{name}": torch.as_tensor(value)
        for index, values in state.items()
        for name, value in values.items()
    }


def load_optimizer_tensors(
    optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor], prefix: str = "optimizer."
) -> None:
    """Put back what :func:`optimizer_tensors` gave; learning rates and the like stay as they are.

    Raises:
        CheckpointError: The state does not fit the optimiser's parameters.
    """
    found = {k.removeprefix(prefix): t for k, t in tensors.items() if k.startswith(prefix)}
    stepped = {key.partition(".")[0] for key in found}  # the others never had a gradient
    expected: dict[str, Tensor] = {}
    for index, parameter in enumerate(p for g in optimizer.param_groups for p in g["params"]):
        if str(index) in stepped:
            expected[f"{index}.step"] = torch.tensor(0.0)
            expected[f"{index}.exp_avg"] = expected[f"{index}.exp_avg_sq"] = parameter
    check_like(found, expected, "optimiser state")
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in found.items():
        number, name = key.split(".")
        state.setdefault(int(number), {})[name] = tensor.clone()
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def random_state(prefix: str = "random.") -> dict[str, Tensor]:
    """The states of every random generator a run may draw from, as plain tensors."""
    _, key, position, has_gauss, gauss = cast(tuple[Any, ...], np.random.get_state(legacy=True))
    _, words, python_gauss = random.getstate()
    state = {
        "torch": torch.get_rng_state(),
        "numpy.words": torch.from_numpy(np.asarray(key, dtype=np.int64)),
        "numpy.place": torch.tensor([position, has_gauss]),
        "numpy.gauss": torch.tensor([gauss], dtype=torch.float64),
        "python.words": torch.tensor(words),
        "python.gauss": torch.tensor(
            [] if python_gauss is None else [python_gauss], dtype=torch.float64
        ),
    }
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        for device, tensor in enumerate(torch.cuda.get_rng_state_all()):
            state[f"cuda.{device}"] = tensor
    return {prefix + name: tensor for name, tensor in state.items()}


def set_random_state(tensors: Mapping[str, Tensor], prefix: str = "random.") -> None:
    """Put back what :func:`random_state` gave; states of devices not here are left out.

    Raises:
        CheckpointError: A state is missing or malformed.
    """
    try:
        torch.set_rng_state(tensors[prefix + "torch"])
        words = tensors[prefix + "numpy.words"].numpy().astype(np.uint32)
        position, has_gauss = tensors[prefix + "numpy.place"].tolist()
        (gauss,) = tensors[prefix + "numpy.gauss"].tolist()
        if not 0 <= position <= len(words):  # numpy would read beyond its state
            raise ValueError(f"position {position} in numpy's state")
        np.random.set_state(("MT19937", words, position, has_gauss, gauss))
        python_gauss = tensors[prefix + "python.gauss"].tolist()
        python_words = tuple(tensors[prefix + "python.words"].tolist())
        random.setstate((3, python_words, python_gauss[0] if python_gauss else None))
        if torch.cuda.is_available():
            for device in range(torch.cuda.device_count()):
                if f"{prefix}cuda.{device}" in tensors:
                    torch.cuda.set_rng_state(tensors[f"{prefix}cuda.{device}"], device)
    except (KeyError, ValueError, TypeError, RuntimeError, OverflowError) as error:
        raise CheckpointError(f"the saved random states are unusable: {error!r}") from error
