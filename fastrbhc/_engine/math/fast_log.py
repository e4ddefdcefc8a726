"""A logarithm for bounds, without a function call, so that loops over it are vectorised."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from fastrbhc._engine.jit import FUSED, compiled_as, instruction

# The largest error of quick_log.
LOG_OFF = 2e-9


def bits_of(x: float) -> Any:
    """A float's bits as an integer."""
    return np.float64(x).view(np.uint64)


def _float(bits: Any) -> Any:
    """The float that has these bits."""
    return np.uint64(bits).view(np.float64)


@instruction(bits_of)
def _define_bits(context: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.uint64))

    return types.uint64(types.float64), generate


@instruction(_float)
def _define_float(context: Any, bits: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.uint64), generate


def _series_log(x: float) -> float:
    # x = 2ᵉ·m with m from ¾ to 3/2, and log m = 2 artanh z with z = (m − 1)/(m + 1), |z| ≤ 1/5.
    bits = bits_of(x) + np.uint64(0x0008000000000000)
    # The exponent as the low bits of a float, a conversion that vectorises.
    exponent = _float((bits >> np.uint64(52)) | np.uint64(0x4330000000000000)) - 4503599627371519.0
    m = _float(
        bits_of(x) - ((bits & np.uint64(0x7FF0000000000000)) - np.uint64(0x3FF0000000000000))
    )
    z = (m - 1.0) / (m + 1.0)
    y = z * z
    series = 1.0 / 7.0 + y * (1.0 / 9.0 + y * (1.0 / 11.0))
    series = 1.0 + y * (1.0 / 3.0 + y * (1.0 / 5.0 + y * series))
    return exponent * 0.6931471805599453 + 2.0 * z * series


@compiled_as(_series_log, FUSED)
def quick_log(x: float) -> float:
    """log(x), off by at most 1e-9, for normal x > 0; in kernels without a call, for vectors."""
    return math.log(x)


# The same for eight numbers at a time, as `simd` has them.


def _exponents(values: Any) -> Any:
    """The exponents e of x = 2ᵉ·m as above, and 4503599627371519 more, in kernels."""
    raise NotImplementedError


def _mantissas(values: Any) -> Any:
    """The m of x = 2ᵉ·m as above, in kernels."""
    raise NotImplementedError


def _rounded_bits(builder: Any, values: Any) -> tuple[Any, Any, Any]:
    """The bits of numbers, the same rounded as above, and what repeats a constant."""
    words = ir.VectorType(ir.IntType(64), values.type.count)

    def repeated(bits: int) -> Any:
        return ir.Constant(words, [bits] * words.count)

    bits = builder.bitcast(values, words)
    return bits, builder.add(bits, repeated(0x0008000000000000)), repeated


@instruction(_exponents)
def _define_exponents(context: Any, values: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, rounded, repeated = _rounded_bits(builder, arguments[0])
        exponents = builder.or_(builder.lshr(rounded, repeated(52)), repeated(0x4330000000000000))
        return builder.bitcast(exponents, arguments[0].type)

    return values(values), generate


@instruction(_mantissas)
def _define_mantissas(context: Any, values: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits, rounded, repeated = _rounded_bits(builder, arguments[0])
        scale = builder.and_(rounded, repeated(0x7FF0000000000000))
        scale = builder.sub(scale, repeated(0x3FF0000000000000))
        return builder.bitcast(builder.sub(bits, scale), arguments[0].type)

    return values(values), generate


def _series_logs(values: Any) -> Any:
    exponent, m = _exponents(values) - 4503599627371519.0, _mantissas(values)
    z = (m - 1.0) / (m + 1.0)
    y = z * z
    series = 1.0 / 7.0 + y * (1.0 / 9.0 + y * (1.0 / 11.0))
    series = 1.0 + y * (1.0 / 3.0 + y * (1.0 / 5.0 + y * series))
    return exponent * 0.6931471805599453 + 2.0 * z * series


@compiled_as(_series_logs, FUSED)
def quick_logs(values: Any) -> Any:
    """The logarithms of eight numbers, off by at most 1e-9; of infinity log(2¹⁰²⁴)."""
    return np.log(np.minimum(values, np.finfo(np.float64).max))
