"""Arithmetic on vectors in registers: sums over d and over channels, exponential, root."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from lgdgcn.kernels.numba_vectors import FAST, Vector, repeat, shuffle

__all__ = [
    "between",
    "exp",
    "fold",
    "larger",
    "mul_add",
    "root",
    "spread",
    "sum_channels",
    "top_channel",
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
def fold(typing: Any, row: Any, shape: Any) -> Any:
    """Sum a packed row over d."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        value, lanes = args[0], row.lanes
        while lanes > shape.wide_channels:
            lanes //= 2
            low = shuffle(builder, value, value, range(lanes))
            high = shuffle(builder, value, value, range(lanes, 2 * lanes))
            value = builder.fadd(low, high, flags=FAST)
        return value

    return Vector(row.element, shape.wide_channels)(row, shape), emit


@intrinsic
def spread(typing: Any, channels: Any, shape: Any) -> Any:
    """Repeat one number per channel over d."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = [lane % channels.lanes for lane in range(shape.lanes)]
        return shuffle(builder, args[0], args[0], lanes)

    return Vector(channels.element, shape.lanes)(channels, shape), emit


def _combiner(combine: Callable[[Any, Any, Any], Any]) -> Any:
    @intrinsic
    def across(typing: Any, vector: Any, shape: Any) -> Any:
        def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            value, step = args[0], 1
            while step < shape.wide_channels:
                lanes = [lane ^ step for lane in range(vector.lanes)]
                value = combine(builder, value, shuffle(builder, value, value, lanes))
                step *= 2
            return value

        return vector(vector, shape), emit

    return across


sum_channels = _combiner(lambda builder, a, b: builder.fadd(a, b, flags=FAST))
"""Sum over the M' channels of each place, in every one of its lanes."""
top_channel = _combiner(lambda builder, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))
"""Largest of the M' channels of each place, in every one of its lanes."""


@intrinsic
def mul_add(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a * b + c, rounded once where the machine can."""
    return a(a, a, a), lambda context, builder, sig, args: _call(builder, "fmuladd", args)


@intrinsic
def root(typing: Any, vector: Any) -> Any:
    """Square root."""
    return vector(vector), lambda context, builder, sig, args: _call(builder, "sqrt", args)


@intrinsic
def between(typing: Any, vector: Any, low: Any, high: Any) -> Any:
    """Whether all numbers lie in low to high; NaN does not."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = args[0].type
        low, high = (repeat(builder, bound, kind) for bound in args[1:])
        inside = builder.and_(
            builder.fcmp_ordered(">=", args[0], low), builder.fcmp_ordered("<=", args[0], high)
        )
        bits = ir.IntType(kind.count)
        return builder.icmp_unsigned("==", builder.bitcast(inside, bits), bits(2**kind.count - 1))

    return types.boolean(vector, vector.element, vector.element), emit


@intrinsic
def larger(typing: Any, a: Any, b: Any) -> Any:
    """Larger of two numbers; of NaN and a number either."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", *args), *args)

    return a(a, a), emit


class _Format(NamedTuple):
    """How `exp` sees a floating point type."""

    mantissa: int  # bits
    bias: int  # of the exponent
    coarse: float  # log(2) without its last bits: times n it is exact
    fine: float  # the rest of log(2)
    terms: int  # of the Taylor series on |r| <= log(2) / 2
    lowest: float  # argument; the quotient of two results is not subnormal


_FORMATS = {
    32: _Format(23, 127, 0.693359375, -0.00021219444005469057, 8, -80.0),
    64: _Format(52, 1023, 0.6931471675634384, 1.2996506893889889e-08, 14, -650.0),
}


@intrinsic
def exp(typing: Any, vector: Any) -> Any:
    """Exponential of numbers that are at most 0, within two units in the last place.

    Below -80 in float32 and -650 in float64 it stays what it is there.
    """

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _exp(builder, args[0], vector.element.bitwidth)

    return vector(vector), emit


def _exp(builder: Any, x: Any, width: int) -> Any:
    kind, form = x.type, _FORMATS[width]
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
    terms, power = [number(1 / math.factorial(k)) for k in range(form.terms)], r
    while len(terms) > 1:  # pairs at a time: a shorter chain than one term after the other
        even, odd = terms[::2], terms[1::2]
        terms = [fused(b, power, a) for a, b in zip(even, odd, strict=False)] + even[len(odd) :]
        power = builder.fmul(power, power)
    exponent = builder.shl(builder.bitcast(shifted, bits), integer(form.mantissa))
    scale = builder.add(exponent, integer(form.bias << form.mantissa))
    return builder.fmul(terms[0], builder.bitcast(scale, kind))
