"""Sixteen numbers at once: read them, compare them, keep them sorted."""

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from lgdgcn.kernels.numba_vectors import Vector, repeat, shuffle

__all__ = ["LANES", "at_most", "count_bits", "everywhere", "insert", "lanes", "lowest_bit"]

LANES = 16


class _Array:
    """A C-contiguous array inside generated code."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        assert kind.layout == "C"
        self.builder, self.align = builder, kind.dtype.bitwidth // 8
        self.vector = ir.VectorType(context.get_value_type(kind.dtype), LANES)
        self.data = cgutils.create_struct_proxy(kind)(context, builder, value=value).data

    def number(self, at: Any) -> Any:
        return self.builder.load(self.builder.gep(self.data, [at]))

    def lanes(self, at: Any) -> Any:
        """Pointer to the sixteen numbers that begin at number `at`."""
        return self.builder.bitcast(self.builder.gep(self.data, [at]), self.vector.as_pointer())

    def load(self, at: Any) -> Any:
        return self.builder.load(self.lanes(at), align=self.align)

    def store(self, value: Any, at: Any) -> None:
        self.builder.store(value, self.lanes(at), align=self.align)


@intrinsic
def lanes(typing: Any, array: Any, at: Any) -> Any:
    """The `at`-th sixteen numbers of an array, whatever its shape."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        start = builder.mul(args[1], args[1].type(LANES))
        return _Array(context, builder, array, args[0]).load(start)

    return Vector(array.dtype, LANES)(array, types.intp), emit


@intrinsic
def everywhere(typing: Any, number: Any) -> Any:
    """One number in all lanes."""
    vector = Vector(number, LANES)
    return vector(number), lambda context, builder, sig, args: repeat(
        builder, args[0], vector.llvm()
    )


@intrinsic
def at_most(typing: Any, a: Any, b: Any) -> Any:
    """Bits of the lanes where a <= b."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        holds = builder.fcmp_ordered("<=", *args)
        return builder.zext(builder.bitcast(holds, ir.IntType(LANES)), ir.IntType(64))

    return types.int64(a, a), emit


@intrinsic
def lowest_bit(typing: Any, bits: Any) -> Any:
    """Position of the lowest bit; undefined where there is none."""
    return types.int64(types.int64), lambda context, builder, sig, args: builder.cttz(
        args[0], ir.IntType(1)(1)
    )


@intrinsic
def count_bits(typing: Any, bits: Any) -> Any:
    """Number of bits that are set."""
    return types.int64(types.int64), lambda context, builder, sig, args: builder.ctpop(args[0])


@intrinsic
def insert(typing: Any, values: Any, places: Any, at: Any, value: Any, place: Any) -> Any:
    """Insert a pair into the sixteen that begin at number `at`, sorted by value, then place.

    What stands before them takes part: its last pair moves in when the new one goes further up.
    """

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        value_array = _Array(context, builder, values, args[0])
        place_array = _Array(context, builder, places, args[1])
        at, *new = args[2:]
        before = builder.sub(at, at.type(1))
        carry = value_array.number(before), place_array.number(before)
        old = value_array.load(at), place_array.load(at)
        wide = [repeat(builder, new[part], old[part].type) for part in (0, 1)]
        shifted = [_shift(builder, carry[part], old[part]) for part in (0, 1)]
        later = _comes_later(builder, *old, *wide)
        pushed = _shift(builder, _comes_later(builder, *carry, *new), later)
        # a minimum, not a selection: that would become a masked store, slow to read back
        above = builder.fcmp_ordered(">", shifted[0], wide[0])
        raised = builder.select(above, shifted[0], wide[0])
        value_array.store(_smaller(builder, old[0], raised), at)
        moved = builder.select(pushed, shifted[1], wide[1])
        place_array.store(builder.select(later, moved, old[1]), at)
        return context.get_dummy_value()

    return types.void(values, places, types.intp, values.dtype, places.dtype), emit


def _comes_later(builder: Any, value: Any, place: Any, new_value: Any, new_place: Any) -> Any:
    tied = builder.fcmp_ordered("==", value, new_value)
    later = builder.icmp_signed(">", place, new_place)
    return builder.or_(builder.fcmp_ordered(">", value, new_value), builder.and_(tied, later))


def _shift(builder: Any, first: Any, vector: Any) -> Any:
    """Move every lane up by one and put a number into the first."""
    other = builder.insert_element(vector, first, ir.IntType(32)(0))
    return shuffle(builder, vector, other, [LANES, *range(LANES - 1)])


def _smaller(builder: Any, a: Any, b: Any) -> Any:
    bits = 32 if isinstance(a.type.element, ir.FloatType) else 64
    takes = ir.FunctionType(a.type, [a.type, a.type])
    name = f"llvm.minnum.v{LANES}f{bits}"
    function = cgutils.get_or_insert_function(builder.module, takes, name)
    return builder.call(function, [a, b], fastmath=("nnan",))
