"""Arithmetic on vectors in registers: sums, maximum, root, exponential, sorted insertion.

The first half works on packed rows of any shape (see `vectors`), the second on vectors of sixteen
numbers, whose comparisons give a bit mask: bit i of an integer belongs to lane i.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from lgdgcn.kernels.cpu.vectors import FAST_FLAGS, LANES, Vector, shuffle, splat

__all__ = [
    "all_between",
    "broadcast16",
    "count_bits",
    "exp",
    "insert_sorted",
    "less_equal",
    "load16",
    "lowest_bit",
    "max_factor",
    "maximum",
    "mul_add",
    "repeat_over_d",
    "sqrt",
    "sum_factors",
    "sum_over_d",
]


def _call(builder: Any, name: str, args: Sequence[Any]) -> Any:
    """Call LLVM's element-wise function of that name."""
    kind = args[0].type
    bits = 32 if isinstance(kind.element, ir.FloatType) else 64
    takes = ir.FunctionType(kind, [kind] * len(args))
    function = cgutils.get_or_insert_function(
        builder.module, takes, f"llvm.{name}.v{kind.count}f{bits}"
    )
    return builder.call(function, args)


@intrinsic
def sum_over_d(typing: Any, row: Any, shape: Any) -> Any:
    """Sum a packed row `[d', M']` over its first axis: one number per factor `[M']`."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        value, lanes = args[0], row.lanes
        while lanes > shape.padded_factors:  # add the upper half to the lower one
            lanes //= 2
            low = shuffle(builder, value, value, range(lanes))
            high = shuffle(builder, value, value, range(lanes, 2 * lanes))
            value = builder.fadd(low, high, flags=FAST_FLAGS)
        return value

    return Vector(row.element, shape.padded_factors)(row, shape), emit


@intrinsic
def repeat_over_d(typing: Any, numbers: Any, shape: Any) -> Any:
    """Repeat one number per factor `[M']` as a packed row `[d', M']`."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = [lane % numbers.lanes for lane in range(shape.lanes)]
        return shuffle(builder, args[0], args[0], lanes)

    return Vector(numbers.element, shape.lanes)(numbers, shape), emit


def _across_factors(combine: Callable[[Any, Any, Any], Any]) -> Any:
    """Reduce every M' neighbouring lanes by exchanging lanes 1, 2, 4, ... apart."""

    @intrinsic
    def across(typing: Any, vector: Any, shape: Any) -> Any:
        def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            value, step = args[0], 1
            while step < shape.padded_factors:
                lanes = [lane ^ step for lane in range(vector.lanes)]
                value = combine(builder, value, shuffle(builder, value, value, lanes))
                step *= 2
            return value

        return vector(vector, shape), emit

    return across


sum_factors = _across_factors(lambda builder, a, b: builder.fadd(a, b, flags=FAST_FLAGS))
"""Sum over the M' factors of each edge; all its lanes get the result."""
max_factor = _across_factors(
    lambda builder, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b)
)
"""Largest of the M' factors of each edge; all its lanes get the result."""


@intrinsic
def mul_add(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a * b + c, rounded once where the machine can."""
    return a(a, a, a), lambda context, builder, sig, args: _call(builder, "fmuladd", args)


@intrinsic
def sqrt(typing: Any, vector: Any) -> Any:
    """Square root."""
    return vector(vector), lambda context, builder, sig, args: _call(builder, "sqrt", args)


@intrinsic
def all_between(typing: Any, vector: Any, low: Any, high: Any) -> Any:
    """Whether all numbers lie in low to high; NaN does not."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = args[0].type
        low, high = (splat(builder, bound, kind) for bound in args[1:])
        inside = builder.and_(
            builder.fcmp_ordered(">=", args[0], low), builder.fcmp_ordered("<=", args[0], high)
        )
        bits = ir.IntType(kind.count)
        return builder.icmp_unsigned("==", builder.bitcast(inside, bits), bits(2**kind.count - 1))

    return types.boolean(vector, vector.element, vector.element), emit


@intrinsic
def maximum(typing: Any, a: Any, b: Any) -> Any:
    """Larger of two numbers; b if either is NaN."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", *args), *args)

    return a(a, a), emit


class _FloatFormat(NamedTuple):
    """What `exp` needs to know about a floating point type."""

    mantissa: int  # bits
    bias: int  # of the exponent
    coarse: float  # log(2) without its last bits: times n it is exact
    fine: float  # the rest of log(2)
    terms: int  # of the Taylor series on |r| <= log(2) / 2
    lowest: float  # argument; the quotient of two results is not subnormal


_FLOAT_FORMATS = {
    32: _FloatFormat(23, 127, 0.693359375, -0.00021219444005469057, 8, -80.0),
    64: _FloatFormat(52, 1023, 0.6931471675634384, 1.2996506893889889e-08, 14, -650.0),
}


@intrinsic
def exp(typing: Any, vector: Any) -> Any:
    """Exponential of numbers that are at most 0, within two units in the last place.

    Arguments below -80 in float32, or -650 in float64, are taken as -80 or -650.
    """

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _exp(builder, args[0], vector.element.bitwidth)

    return vector(vector), emit


def _exp(builder: Any, x: Any, width: int) -> Any:
    """Write exp(x) as 2^n exp(r) with an integer n and a small r."""
    kind, form = x.type, _FLOAT_FORMATS[width]
    bits = ir.VectorType(ir.IntType(width), kind.count)
    rounded = np.float32 if width == 32 else np.float64

    def number(value: float) -> Any:
        return ir.Constant(kind, [float(rounded(value))] * kind.count)

    def integer(value: int) -> Any:
        return ir.Constant(bits, [value] * kind.count)

    def fused(a: Any, b: Any, c: Any) -> Any:
        return _call(builder, "fmuladd", [a, b, c])

    lowest = number(form.lowest)
    x = builder.select(builder.fcmp_ordered("<", x, lowest), lowest, x)
    # x = n log(2) + r: adding 1.5 * 2^mantissa rounds to the integer n, held by the low bits
    shifter = number(1.5 * 2.0**form.mantissa)
    shifted = fused(x, number(1 / math.log(2)), shifter)
    n = builder.fsub(shifted, shifter)
    r = fused(n, number(-form.coarse), x)
    r = fused(n, number(-form.fine), r)
    # Taylor series of exp(r), in pairs: a shorter chain than one term after the other
    terms, power = [number(1 / math.factorial(k)) for k in range(form.terms)], r
    while len(terms) > 1:
        even, odd = terms[::2], terms[1::2]
        terms = [fused(b, power, a) for a, b in zip(even, odd, strict=False)] + even[len(odd) :]
        power = builder.fmul(power, power)
    # 2^n: n as the exponent bits of a float
    exponent = builder.shl(builder.bitcast(shifted, bits), integer(form.mantissa))
    scale = builder.add(exponent, integer(form.bias << form.mantissa))
    return builder.fmul(terms[0], builder.bitcast(scale, kind))


# vectors of sixteen numbers, whatever the shape of the rows


class _Array:
    """A C-contiguous array inside generated code, read sixteen numbers at once."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        assert kind.layout == "C"
        self.builder, self.align = builder, kind.dtype.bitwidth // 8
        self.vector = ir.VectorType(context.get_value_type(kind.dtype), LANES)
        self.data = cgutils.create_struct_proxy(kind)(context, builder, value=value).data

    def number(self, at: Any) -> Any:
        return self.builder.load(self.builder.gep(self.data, [at]))

    def pointer(self, at: Any) -> Any:
        """Pointer to the sixteen numbers that begin at number `at`."""
        return self.builder.bitcast(self.builder.gep(self.data, [at]), self.vector.as_pointer())

    def load(self, at: Any) -> Any:
        return self.builder.load(self.pointer(at), align=self.align)

    def store(self, value: Any, at: Any) -> None:
        self.builder.store(value, self.pointer(at), align=self.align)


@intrinsic
def load16(typing: Any, array: Any, at: Any) -> Any:
    """The `at`-th sixteen numbers of an array, whatever its shape."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        start = builder.mul(args[1], args[1].type(LANES))
        return _Array(context, builder, array, args[0]).load(start)

    return Vector(array.dtype, LANES)(array, types.intp), emit


@intrinsic
def broadcast16(typing: Any, number: Any) -> Any:
    """One number in all sixteen lanes."""
    vector = Vector(number, LANES)
    return vector(number), lambda context, builder, sig, args: splat(
        builder, args[0], vector.llvm()
    )


@intrinsic
def less_equal(typing: Any, a: Any, b: Any) -> Any:
    """Bit mask of the lanes where a <= b; never where one is NaN."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        holds = builder.fcmp_ordered("<=", *args)
        return builder.zext(builder.bitcast(holds, ir.IntType(LANES)), ir.IntType(64))

    return types.int64(a, a), emit


@intrinsic
def lowest_bit(typing: Any, bits: Any) -> Any:
    """Position of the lowest bit that is set; undefined if there is none."""
    return types.int64(types.int64), lambda context, builder, sig, args: builder.cttz(
        args[0], ir.IntType(1)(1)
    )


@intrinsic
def count_bits(typing: Any, bits: Any) -> Any:
    """Number of bits that are set."""
    return types.int64(types.int64), lambda context, builder, sig, args: builder.ctpop(args[0])


@intrinsic
def insert_sorted(typing: Any, values: Any, indices: Any, at: Any, value: Any, index: Any) -> Any:
    """Insert a pair into the sixteen that begin at number `at`, sorted by value, then index.

    Pairs after the new one move up by a lane and the last one drops out. If the new pair belongs
    before these sixteen, the pair just before them moves into the first lane.
    """

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        value_array = _Array(context, builder, values, args[0])
        index_array = _Array(context, builder, indices, args[1])
        at, *new = args[2:]
        before = builder.sub(at, at.type(1))
        carry = value_array.number(before), index_array.number(before)
        old = value_array.load(at), index_array.load(at)
        wide = [splat(builder, new[i], old[i].type) for i in (0, 1)]
        shifted = [_shift(builder, carry[i], old[i]) for i in (0, 1)]
        later = _comes_later(builder, *old, *wide)  # lanes that move up
        pushed = _shift(builder, _comes_later(builder, *carry, *new), later)
        # a minimum, not a selection: that would become a masked store, slow to read back
        above = builder.fcmp_ordered(">", shifted[0], wide[0])
        raised = builder.select(above, shifted[0], wide[0])
        value_array.store(_minimum(builder, old[0], raised), at)
        moved = builder.select(pushed, shifted[1], wide[1])
        index_array.store(builder.select(later, moved, old[1]), at)
        return context.get_dummy_value()

    return types.void(values, indices, types.intp, values.dtype, indices.dtype), emit


def _comes_later(builder: Any, value: Any, index: Any, new_value: Any, new_index: Any) -> Any:
    tied = builder.fcmp_ordered("==", value, new_value)
    later = builder.icmp_signed(">", index, new_index)
    return builder.or_(builder.fcmp_ordered(">", value, new_value), builder.and_(tied, later))


def _shift(builder: Any, first: Any, vector: Any) -> Any:
    """Move every lane up by one and put a number into the first."""
    other = builder.insert_element(vector, first, ir.IntType(32)(0))
    return shuffle(builder, vector, other, [LANES, *range(LANES - 1)])


def _minimum(builder: Any, a: Any, b: Any) -> Any:
    bits = 32 if isinstance(a.type.element, ir.FloatType) else 64
    takes = ir.FunctionType(a.type, [a.type, a.type])
    name = f"llvm.minnum.v{LANES}f{bits}"
    function = cgutils.get_or_insert_function(builder.module, takes, name)
    return builder.call(function, [a, b], fastmath=("nnan",))
