"""Whether tensors read from a file are those that are expected."""

from collections.abc import Mapping

from torch import Tensor

from lgdgcn.errors import CheckpointError

__all__ = ["check_like"]


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
