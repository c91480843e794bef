# mypy: ignore-errors
# Types here are numba's, read at compile time; mypy cannot follow intrinsics and overloads.
"""The exponential of Gaussian kernels and its squares, written into the loops that call them.

Numbers near the end of the range of a float (denormal ones) take a hundred times as long on some
processors. So values below ``2 ** -100`` (in float64 ``2 ** -900``) become 0 here, and those whose
square would be below become 0 before they are squared.
"""

import numpy as np
from numba import types
from numba.extending import intrinsic, overload


@intrinsic
def _as_float(typing_context, bits):
    """Reinterpret integer bits as a float of the same size."""
    result = types.float32 if bits == types.int32 else types.float64

    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(signature.return_type))

    return result(bits), codegen


@intrinsic
def _as_bits(typing_context, number):
    """Reinterpret a float as integer bits of the same size."""
    result = types.int32 if number == types.float32 else types.int64

    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(signature.return_type))

    return result(number), codegen


@intrinsic
def keep_from(typing_context, value, size, least):
    """``value if size >= least else 0`` in one instruction: loops with branches stay scalar."""

    def codegen(context, builder, signature, arguments):
        value, size, least = arguments
        zero = context.get_constant(signature.return_type, 0.0)
        return builder.select(builder.fcmp_ordered(">=", size, least), value, zero)

    return value(value, size, least), codegen


def exp2_nonpositive(t):
    """``2 ** t`` for ``t <= 0`` without a branch, so that loops around it vectorise.

    The integer part goes into the exponent bits, the rest through a polynomial; relative error
    3e-7 (float32), 4e-16 (float64). Below ``2 ** -100`` (``2 ** -900``) it is 0.
    """
    return np.exp2(t)


@overload(exp2_nonpositive, inline="always")
def _exp2_nonpositive(t):
    if t == types.float32:

        def single(t):
            t = min(t, np.float32(0.0))
            shifted = t + np.float32(12582912.0)  # 1.5 * 2^23: rounds to an integer
            f = t - (shifted - np.float32(12582912.0))
            p = np.float32(1.5403530e-4)
            p = p * f + np.float32(1.3333558e-3)
            p = p * f + np.float32(9.6181291e-3)
            p = p * f + np.float32(5.5504109e-2)
            p = p * f + np.float32(2.4022651e-1)
            p = p * f + np.float32(6.9314718e-1)
            p = p * f + np.float32(1.0)
            bits = np.int32(np.int32(_as_bits(shifted) + np.int32(127)) << np.int32(23))
            return keep_from(p * _as_float(bits), t, np.float32(-100.0))

        return single

    def double(t):
        t = min(t, 0.0)
        shifted = t + 6755399441055744.0  # 1.5 * 2^52
        f = t - (shifted - 6755399441055744.0)
        p = 2.5678435993488206e-11  # ln(2)^k / k!, k = 12 .. 1
        p = p * f + 4.4455382718708116e-10
        p = p * f + 7.0549116208011234e-09
        p = p * f + 1.0178086009239699e-07
        p = p * f + 1.3215486790144309e-06
        p = p * f + 1.5252733804059841e-05
        p = p * f + 1.5403530393381610e-04
        p = p * f + 1.3333558146428443e-03
        p = p * f + 9.6181291076284772e-03
        p = p * f + 5.5504108664821580e-02
        p = p * f + 2.4022650695910072e-01
        p = p * f + 6.9314718055994531e-01
        p = p * f + 1.0
        return keep_from(p * _as_float((_as_bits(shifted) + 1023) << 52), t, -900.0)

    return double


def square(value):
    """``value ** 2`` of a Gaussian, 0 where it would be below ``2 ** -100`` (``2 ** -900``)."""
    return value * value


@overload(square, inline="always")
def _square(value):
    if value == types.float32:

        def single(value):
            value = keep_from(value, value, np.float32(2.0**-50))
            return value * value

        return single

    def double(value):
        value = keep_from(value, value, 2.0**-450)
        return value * value

    return double
