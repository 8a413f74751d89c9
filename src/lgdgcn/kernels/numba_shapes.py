"""Sizes of rows as types for numba.

A row holds M channels of d numbers. Arrays outside keep it as `[M, d]`; compiled loops pack it
channel last, `[d', M']` with both filled up with zeros to powers of two: sums over d then add
halves, and a factor per channel repeats, without moving numbers between lanes. The numbers M and
d are part of the type of a `Shape`, which loops take as an argument; numba compiles and caches
one version for each.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from numba import types
from numba.extending import NativeValue, intrinsic, models, register_model, unbox

__all__ = ["LANES", "Shape", "ShapeType", "channels_of", "lanes_of", "shape_of", "wide_of"]

LANES = 16  # numbers that a softmax works on at once: as many edges as fit, at least one


class ShapeType(types.Type):
    """What numba knows of a `Shape`."""

    def __init__(self, channels: int, size: int) -> None:
        self.channels, self.size = channels, size
        self.wide_channels = 1 << (channels - 1).bit_length()
        self.lanes = self.wide_channels << (size - 1).bit_length()
        self.group = max(LANES, self.wide_channels)
        super().__init__(f"Shape({channels}, {size})")


register_model(ShapeType)(models.OpaqueModel)


class Shape:
    """The sizes M and d of a row, as a type."""

    def __init__(self, channels: int, size: int) -> None:
        self._numba_type_ = ShapeType(channels, size)

    @property
    def lanes(self) -> int:
        """Numbers in a packed row."""
        lanes: int = self._numba_type_.lanes
        return lanes

    @property
    def wide_channels(self) -> int:
        """Channels in a packed row."""
        wide: int = self._numba_type_.wide_channels
        return wide


@cache
def shape_of(channels: int, size: int) -> Shape:
    """The shape of rows `[M, d]`; both at least 1."""
    return Shape(channels, size)


@unbox(ShapeType)
def _unbox_shape(shape: Any, value: Any, context: Any) -> NativeValue:
    return NativeValue(context.context.get_dummy_value())


def _constant(number: Callable[[Any], int]) -> Any:
    @intrinsic
    def constant(typing: Any, shape: Any) -> Any:
        def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return context.get_constant(types.intp, number(shape))

        return types.intp(shape), emit

    return constant


channels_of = _constant(lambda shape: shape.channels)
"""The number M."""
wide_of = _constant(lambda shape: shape.wide_channels)
"""The number M' of channels in a packed row."""
lanes_of = _constant(lambda shape: shape.lanes)
"""The number of numbers in a packed row."""
