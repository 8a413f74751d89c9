"""Vectors in registers: the types, and how they are read from and written to arrays.

numba has no vector type, so this file adds two types. A `RowShape` carries the sizes M and d of a
row in its type: a loop that takes one is compiled, and cached, once for each pair (M, d). A
`Vector` is a fixed number of floats in registers; `+ - * /` on two of them are one instruction
each. The arithmetic beyond that is in `vector_math`.

A row has M factors of d numbers. Arrays outside the loops hold it as `[M, d]` ("unpacked"). Inside
it is "packed": transposed to `[d', M']`, where d' and M' are d and M rounded up to powers of two
and the padding is zero. With the factors last, a sum over d adds the two halves of the vector again
and again, and a number per factor is repeated d' times; neither has to shuffle single lanes.

All functions need C-contiguous arrays and take a position `at` that counts whole rows.
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
    "FAST_FLAGS",
    "LANES",
    "RowShape",
    "Vector",
    "broadcast",
    "broadcast_factors",
    "factors_of",
    "fill_padding",
    "lanes_of",
    "load",
    "load_edges",
    "load_factors",
    "load_unpacked",
    "padded_factors_of",
    "row_shape",
    "shuffle",
    "splat",
    "store",
    "store_unpacked",
]

LANES = 16  # numbers in a vector whose length does not depend on M and d: one AVX-512 register

# sums may be reordered for the vector units; NaN and infinity keep their meaning
FAST_FLAGS = ("reassoc", "contract", "nsz")
_INDEX = ir.IntType(32)


class _RowShapeType(types.Type):
    """The numba type of a `RowShape`: M and d, and what follows from them."""

    def __init__(self, factors: int, size: int) -> None:
        self.factors, self.size = factors, size
        self.padded_factors = 1 << (factors - 1).bit_length()  # M'
        self.lanes = self.padded_factors << (size - 1).bit_length()  # M' * d'
        self.edge_lanes = max(LANES, self.padded_factors)  # a softmax takes 16 / M' edges at once
        super().__init__(f"RowShape({factors}, {size})")


register_model(_RowShapeType)(models.OpaqueModel)


class RowShape:
    """The sizes M and d of a row, as a type that numba compiles for."""

    def __init__(self, factors: int, size: int) -> None:
        self._numba_type_ = _RowShapeType(factors, size)

    @property
    def lanes(self) -> int:
        """Numbers in a packed row, M' * d'."""
        lanes: int = self._numba_type_.lanes
        return lanes

    @property
    def padded_factors(self) -> int:
        """Factors in a packed row, M'."""
        padded: int = self._numba_type_.padded_factors
        return padded


@cache
def row_shape(factors: int, size: int) -> RowShape:
    """The shape of rows `[M, d]`; both at least 1."""
    return RowShape(factors, size)


@unbox(_RowShapeType)
def _unbox_row_shape(shape: Any, value: Any, context: Any) -> NativeValue:
    return NativeValue(context.context.get_dummy_value())  # all it says is in its type


def _constant(number: Callable[[Any], int]) -> Any:
    @intrinsic
    def constant(typing: Any, shape: Any) -> Any:
        def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return context.get_constant(types.intp, number(shape))

        return types.intp(shape), emit

    return constant


factors_of = _constant(lambda shape: shape.factors)
"""The number M of factors."""
padded_factors_of = _constant(lambda shape: shape.padded_factors)
"""The number M' of factors in a packed row."""
lanes_of = _constant(lambda shape: shape.lanes)
"""The length M' * d' of a packed row."""


class Vector(types.Type):
    """The numba type of some numbers of one type in registers."""

    def __init__(self, element: Any, lanes: int) -> None:
        self.element, self.lanes = element, lanes
        super().__init__(f"Vector({element}, {lanes})")

    def llvm(self) -> ir.VectorType:
        """The LLVM type."""
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
        return getattr(builder, instruction)(*args, flags=FAST_FLAGS)


for _symbol, _instruction in {
    operator.add: "fadd",
    operator.sub: "fsub",
    operator.mul: "fmul",
    operator.truediv: "fdiv",
}.items():
    _define_operator(_symbol, _instruction)


def shuffle(builder: Any, a: Any, b: Any, lanes: Sequence[int]) -> Any:
    """Make a vector of chosen lanes; numbers from the length of `a` on choose lanes of `b`."""
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_INDEX, len(lanes)), [*lanes]))


def splat(builder: Any, number: Any, kind: ir.VectorType) -> Any:
    """Put one number into all lanes."""
    empty = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(empty, number, ir.Constant(_INDEX, 0))
    return shuffle(builder, first, empty, [0] * kind.count)


def _pointer(context: Any, builder: Any, array: Any, value: Any, at: Any, length: int) -> Any:
    """Pointer to row `at` of an array that is read as rows of `length` numbers."""
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
"""Row `at` of an array of packed rows."""
load_factors = _loader(lambda shape: shape.padded_factors)
"""Row `at` of an array `[..., M']` with one number per factor."""
load_edges = _loader(lambda shape: shape.edge_lanes)
"""Several neighbouring rows of an array `[..., M']`, sixteen numbers or one row at once."""


@intrinsic
def store(typing: Any, array: Any, at: Any, vector: Any) -> Any:
    """Write a vector where a load of the same length would read it."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        start = _pointer(context, builder, array, args[0], args[1], vector.lanes)
        builder.store(args[2], start, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), emit


def _permutation(shape: _RowShapeType, lanes: int) -> tuple[list[int], list[int]]:
    """Which lane of `[M, d]` each packed lane takes, and the reverse; `[M]` when d' is 1."""
    wide, size = shape.padded_factors, shape.size if lanes > shape.padded_factors else 1
    zero = shape.factors * size  # the first lane of a vector of zeros
    packed = [divmod(lane, wide) for lane in range(lanes)]  # (coordinate, factor)
    pack = [m * size + x if m < shape.factors and x < size else zero for x, m in packed]
    return pack, [x * wide + m for m in range(shape.factors) for x in range(size)]


@intrinsic
def load_unpacked(typing: Any, array: Any, at: Any, like: Any, shape: Any) -> Any:
    """Pack row `at` of an array of rows `[M, d]`, or `[M]` if `like` has one number per factor."""
    pack, unpack = _permutation(shape, like.lanes)

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        start = _pointer(context, builder, array, args[0], args[1], len(unpack))
        row = builder.load(start, align=array.dtype.bitwidth // 8)
        return shuffle(builder, row, ir.Constant(row.type, None), pack)

    return like(array, types.intp, like, shape), emit


@intrinsic
def store_unpacked(typing: Any, array: Any, at: Any, vector: Any, shape: Any) -> Any:
    """Write a packed row as `[M, d]`, or a vector with one number per factor as `[M]`."""
    _, unpack = _permutation(shape, vector.lanes)

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        start = _pointer(context, builder, array, args[0], args[1], len(unpack))
        row = shuffle(builder, args[2], args[2], unpack)
        builder.store(row, start, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, vector, shape), emit


def _broadcaster(lanes: Callable[[Any], int]) -> Any:
    @intrinsic
    def broadcast(typing: Any, number: Any, shape: Any) -> Any:
        vector = Vector(number, lanes(shape))

        def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return splat(builder, args[0], vector.llvm())

        return vector(number, shape), emit

    return broadcast


broadcast = _broadcaster(lambda shape: shape.lanes)
"""A packed row of equal numbers."""
broadcast_factors = _broadcaster(lambda shape: shape.padded_factors)
"""The same number for every factor."""


@intrinsic
def fill_padding(typing: Any, vector: Any, number: Any, shape: Any) -> Any:
    """Set the padded factors, from M on, of a vector with numbers per factor."""
    wide, factors = shape.padded_factors, shape.factors

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if wide == factors:
            return args[0]
        other = builder.insert_element(args[0], args[1], ir.Constant(_INDEX, 0))
        lanes = range(vector.lanes)
        chosen = [lane if lane % wide < factors else vector.lanes for lane in lanes]
        return shuffle(builder, args[0], other, chosen)

    return vector(vector, vector.element, shape), emit
