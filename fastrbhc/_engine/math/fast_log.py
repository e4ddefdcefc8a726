"""A logarithm for bounds, without a function call, so that loops over it are vectorised."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from fastrbhc._engine.jit import FUSED, compiled_as, instruction

# The largest errors of quick_log and of rough_logs.
LOG_OFF, ROUGH_LOG_OFF = 2e-9, 3e-7


def bits_of(x: float) -> Any:
    """A float's bits as an integer."""
    return np.float64(x).view(np.uint64)


@instruction(bits_of)
def _define_bits(context: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.uint64))

    return types.uint64(types.float64), generate


# x = 2ᵉ·m with m from ¾ to 3/2, for one number or for eight at a time, as `simd` has them.


def _exponent(x: Any) -> Any:
    """e + 4503599627371519, in kernels."""
    raise NotImplementedError


def _mantissa(x: Any) -> Any:
    """m, in kernels."""
    raise NotImplementedError


def _rounded_bits(builder: Any, x: Any) -> tuple[Any, Any, Any]:
    """The bits of x, the same with the exponent e, and what makes constants of their type."""
    several = isinstance(x.type, ir.VectorType)
    words = ir.VectorType(ir.IntType(64), x.type.count) if several else ir.IntType(64)

    def constant(bits: int) -> Any:
        return ir.Constant(words, [bits] * words.count if several else bits)

    bits = builder.bitcast(x, words)
    return bits, builder.add(bits, constant(0x0008000000000000)), constant


def _kind(x: Any) -> Any:
    return types.float64 if isinstance(x, types.Number) else x


@instruction(_exponent)
def _define_exponent(context: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # The exponent as the low bits of a float, a conversion that vectorises.
        _, rounded, constant = _rounded_bits(builder, arguments[0])
        exponent = builder.or_(builder.lshr(rounded, constant(52)), constant(0x4330000000000000))
        return builder.bitcast(exponent, arguments[0].type)

    return _kind(x)(_kind(x)), generate


@instruction(_mantissa)
def _define_mantissa(context: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits, rounded, constant = _rounded_bits(builder, arguments[0])
        scale = builder.and_(rounded, constant(0x7FF0000000000000))
        scale = builder.sub(scale, constant(0x3FF0000000000000))
        return builder.bitcast(builder.sub(bits, scale), arguments[0].type)

    return _kind(x)(_kind(x)), generate


def _series_log(x: Any) -> Any:
    # log m = 2 artanh z with z = (m − 1)/(m + 1), |z| ≤ 1/5.
    exponent, m = _exponent(x) - 4503599627371519.0, _mantissa(x)
    z = (m - 1.0) / (m + 1.0)
    y = z * z
    series = 1.0 / 7.0 + y * (1.0 / 9.0 + y * (1.0 / 11.0))
    series = 1.0 + y * (1.0 / 3.0 + y * (1.0 / 5.0 + y * series))
    return exponent * 0.6931471805599453 + 2.0 * z * series


@compiled_as(_series_log, FUSED)
def quick_log(x: float) -> float:
    """log(x), off by at most 1e-9, for normal x > 0; in kernels without a call, for vectors."""
    return math.log(x)


@compiled_as(_series_log, FUSED)
def quick_logs(values: Any) -> Any:
    """The logarithms of eight numbers, off by at most 1e-9; of infinity log(2¹⁰²⁴)."""
    return np.log(np.minimum(values, np.finfo(np.float64).max))


def _polynomial_log(x: Any) -> Any:
    # log(1 + t) for −¼ ≤ t ≤ ½, off by at most 2.2e-7: coefficients for the smallest such error.
    exponent, t = _exponent(x) - 4503599627371519.0, _mantissa(x) - 1.0
    square = t * t
    low = 1.0000023515502405 + t * -0.4999735559594818
    middle = 0.3330718986081137 + t * -0.25092635484397896
    high = 0.20778192504278964 + t * -0.1668390966384427 + square * 0.07937607372006154
    return exponent * 0.6931471805599453 + t * (low + square * (middle + square * high))


@compiled_as(_polynomial_log, FUSED)
def rough_logs(values: Any) -> Any:
    """The logarithms of eight numbers, off by at most 3e-7, without a division."""
    return np.log(np.minimum(values, np.finfo(np.float64).max))
