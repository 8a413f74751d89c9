"""What was worked out of a tensor, kept for as long as that tensor lives unchanged."""

from collections.abc import Callable, Hashable, MutableMapping
from typing import Generic, TypeVar

from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

__all__ = ["Remembered"]

T = TypeVar("T")


class Remembered(Generic[T]):
    """One result per tensor, with what it was asked for.

    Changes through autograd-visible in-place operations are noticed; writes through `.data` or a
    NumPy view are not, because torch does not count them.
    """

    def __init__(self) -> None:
        self._known: MutableMapping[Tensor, tuple[int, Hashable, T]] = WeakTensorKeyDictionary()

    def __len__(self) -> int:
        return len(self._known)

    def get(self, tensor: Tensor, asked: Hashable, build: Callable[[], T]) -> T:
        """Return what `build` made of the tensor as it is now, for the same `asked`."""
        # inference tensors carry no version, so a change in them could not be seen
        version = -1 if tensor.is_inference() else tensor._version
        known = self._known.get(tensor)
        if known is not None and version >= 0 and known[:2] == (version, asked):
            return known[2]
        built = build()
        self._known[tensor] = (version, asked, built)
        return built
