"""All tensors inside named tuples, as if they were one."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from torch import Tensor

__all__ = ["map_tensors", "tensors_of"]

T = TypeVar("T")


def tensors_of(value: Any) -> Iterator[Tensor]:
    """Every tensor in a tuple, and in the tuples inside it.

    Example:
        >>> import torch
        >>> [len(tensor) for tensor in tensors_of((torch.zeros(2), (torch.zeros(3), 7)))]
        [2, 3]
    """
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from tensors_of(part)


def map_tensors(value: T, function: Callable[[Tensor], Tensor]) -> T:
    """The same tuple with other tensors; what is no tensor stays.

    Args:
        value: A tensor, or a tuple or named tuple of tensors, tuples and anything else.
        function: Called with every tensor.
    """
    result: Any = value
    if isinstance(value, Tensor):
        result = function(value)
    elif isinstance(value, tuple):
        parts = [map_tensors(part, function) for part in value]
        result = type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return result  # type: ignore[no-any-return]
