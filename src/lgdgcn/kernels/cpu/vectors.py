"""Vectors in registers for numba, so that short rows are a few wide instructions.

The loops that use them must be given C-contiguous arrays.

A row holds M channels of d numbers. Arrays outside keep it as `[M, d]`; compiled loops pack it
channel last, `[d', M']` with both filled up with zeros to powers of two: sums over d then add
halves, and a factor per channel repeats, without moving numbers between lanes. The numbers M and
d are part of the type of a `Shape`, which loops take as an argument; numba compiles and caches
one version for each.
"""

import operator
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import (
    NativeValue,
    intrinsic,
    lower_builtin,
    models,
    register_model,
    unbox,
)

__all__ = [
    "FAST",
    "LANES",
    "Shape",
    "ShapeType",
    "Vector",
    "channels_of",
    "fill",
    "fill_channels",
    "lanes_of",
    "load",
    "load_channels",
    "load_edges",
    "load_outside",
    "pad_with",
    "repeat",
    "shape_of",
    "shuffle",
    "store",
    "store_outside",
    "wide_of",
]

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


# sums may be reordered for the vector units; NaN and infinity keep their meaning
FAST = ("reassoc", "contract", "nsz")
_INDEX = ir.IntType(32)


class Vector(types.Type):
    """Some numbers of one type, held in registers."""

    def __init__(self, element: Any, lanes: int) -> None:
        self.element, self.lanes = element, lanes
        super().__init__(f"Vector({element}, {lanes})")

    def llvm(self) -> ir.VectorType:
        """How LLVM calls it."""
        number = ir.FloatType() if self.element == types.float32 else ir.DoubleType()
        return ir.VectorType(number, self.lanes)


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, vector: Vector) -> None:
        super().__init__(manager, vector, vector.llvm())


def _define_operator(symbol: Any, instruction: str) -> None:
    @infer_global(symbol)
    class _Typing(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            if len(args) == 2 and isinstance(args[0], Vector) and args[0] == args[1]:
                return signature(args[0], *args)
            return None

    @lower_builtin(symbol, Vector, Vector)
    def _lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return getattr(builder, instruction)(*args, flags=FAST)


for _symbol, _instruction in {
    operator.add: "fadd",
    operator.sub: "fsub",
    operator.mul: "fmul",
    operator.truediv: "fdiv",
}.items():
    _define_operator(_symbol, _instruction)


def shuffle(builder: Any, a: Any, b: Any, lanes: Sequence[int]) -> Any:
    """Pick lanes of a, or of b by numbers from the length of a on."""
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_INDEX, len(lanes)), [*lanes]))


def repeat(builder: Any, number: Any, kind: ir.VectorType) -> Any:
    """Put one number into all lanes."""
    empty = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(empty, number, ir.Constant(_INDEX, 0))
    return shuffle(builder, first, empty, [0] * kind.count)


def _pointer(context: Any, builder: Any, array: Any, value: Any, at: Any, length: int) -> Any:
    assert array.layout == "C"
    data = cgutils.create_struct_proxy(array)(context, builder, value=value).data
    start = builder.gep(data, [builder.mul(at, ir.Constant(at.type, length))])
    number = context.get_value_type(array.dtype)
    return builder.bitcast(start, ir.VectorType(number, length).as_pointer())


def _loader(lanes: Callable[[Any], int]) -> Any:
    @intrinsic
    def load(typing: Any, array: Any, at: Any, shape: Any) -> Any:
        vector = Vector(array.dtype, lanes(shape))

        def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            start = _pointer(context, builder, array, args[0], args[1], vector.lanes)
            return builder.load(start, align=array.dtype.bitwidth // 8)

        return vector(array, types.intp, shape), emit

    return load


load = _loader(lambda shape: shape.lanes)
"""Packed row number `at` of a packed array."""
load_channels = _loader(lambda shape: shape.wide_channels)
"""One number per channel, at place `at` of an array of M' numbers each."""
load_edges = _loader(lambda shape: shape.group)
"""The numbers per channel of several neighbouring places at once."""


@intrinsic
def store(typing: Any, array: Any, at: Any, vector: Any) -> Any:
    """Write a vector where a load of the same length would read it."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        start = _pointer(context, builder, array, args[0], args[1], vector.lanes)
        builder.store(args[2], start, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), emit


def _outside(shape: ShapeType, lanes: int) -> tuple[list[int], list[int]]:
    """Which lane of `[M, d]` each packed lane takes, and back; `[M]` when d' is 1."""
    wide, size = shape.wide_channels, shape.size if lanes > shape.wide_channels else 1
    zero = shape.channels * size
    places = [divmod(lane, wide) for lane in range(lanes)]
    inward = [m * size + x if m < shape.channels and x < size else zero for x, m in places]
    return inward, [x * wide + m for m in range(shape.channels) for x in range(size)]


@intrinsic
def load_outside(typing: Any, array: Any, at: Any, like: Any, shape: Any) -> Any:
    """Row `at` of an array of rows `[M, d]`, or `[M]` when `like` has one number per channel."""
    inward, outward = _outside(shape, like.lanes)

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        start = _pointer(context, builder, array, args[0], args[1], len(outward))
        row = builder.load(start, align=array.dtype.bitwidth // 8)
        return shuffle(builder, row, ir.Constant(row.type, None), inward)

    return like(array, types.intp, like, shape), emit


@intrinsic
def store_outside(typing: Any, array: Any, at: Any, vector: Any, shape: Any) -> Any:
    """Write a packed row as `[M, d]`, or one number per channel as `[M]`."""
    _, outward = _outside(shape, vector.lanes)

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        start = _pointer(context, builder, array, args[0], args[1], len(outward))
        row = shuffle(builder, args[2], args[2], outward)
        builder.store(row, start, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, vector, shape), emit


def _filler(lanes: Callable[[Any], int]) -> Any:
    @intrinsic
    def fill(typing: Any, number: Any, shape: Any) -> Any:
        vector = Vector(number, lanes(shape))

        def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return repeat(builder, args[0], vector.llvm())

        return vector(number, shape), emit

    return fill


fill = _filler(lambda shape: shape.lanes)
"""A packed row of equal numbers."""
fill_channels = _filler(lambda shape: shape.wide_channels)
"""The same number for every channel."""


@intrinsic
def pad_with(typing: Any, vector: Any, number: Any, shape: Any) -> Any:
    """Replace what stands in the channels from M on of a vector with numbers per channel."""
    wide, channels = shape.wide_channels, shape.channels

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if wide == channels:
            return args[0]
        other = builder.insert_element(args[0], args[1], ir.Constant(_INDEX, 0))
        places = range(vector.lanes)
        lanes = [lane if lane % wide < channels else vector.lanes for lane in places]
        return shuffle(builder, args[0], other, lanes)

    return vector(vector, vector.element, shape), emit
