"""A logarithm for bounds, without a call, so that loops over it become vector instructions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from fastrbhc._engine.jit import FUSED, instruction, overload
from fastrbhc._engine.simd import LANES, Float64x8

# What quick_log may be off by.
LOG_OFF = 2e-9

_LARGEST = 1.7976931348623157e308


def quick_log(x: Any) -> Any:
    """log(x), off by at most 1e-9, for normal x > 0; in kernels without a call, for vectors.

    Also of eight numbers at a time, see `simd`. That of infinity is at most log(2¹⁰²⁴).
    """
    return np.log(np.minimum(x, _LARGEST)) if np.ndim(x) else math.log(x)


@overload(quick_log, FUSED)
def _quick_log(x: Any) -> Any:
    return _series_log_of_eight if isinstance(x, Float64x8) else _series_log


def _series_log(x: float) -> float:
    # x = 2ᵉ·m with m from ¾ to 3/2, and log m = 2 artanh z with z = (m − 1)/(m + 1), |z| ≤ 1/5.
    bits = _bits(x) + np.uint64(0x0008000000000000)
    # The exponent as the low digits of a float, which vectors can convert.
    exponent = _float((bits >> np.uint64(52)) | np.uint64(0x4330000000000000)) - 4503599627371519.0
    m = _float(_bits(x) - ((bits & np.uint64(0x7FF0000000000000)) - np.uint64(0x3FF0000000000000)))
    z = (m - 1.0) / (m + 1.0)
    y = z * z
    series = 1.0 / 7.0 + y * (1.0 / 9.0 + y * (1.0 / 11.0))
    series = 1.0 + y * (1.0 / 3.0 + y * (1.0 / 5.0 + y * series))
    return exponent * 0.6931471805599453 + 2.0 * z * series


def _series_log_of_eight(x: Any) -> Any:
    exponent, m = _exponents(x) - 4503599627371519.0, _mantissas(x)
    z = (m - 1.0) / (m + 1.0)
    y = z * z
    series = y * (1.0 / 11.0) + 1.0 / 9.0
    series = (y * series + 1.0 / 7.0) * y + 1.0 / 5.0
    series = (y * series + 1.0 / 3.0) * y + 1.0
    return exponent * 0.6931471805599453 + 2.0 * z * series


def _bits(x: float) -> int:
    """A float's bits as an integer, in kernels."""
    raise NotImplementedError


def _float(bits: int) -> float:
    """The float that has these bits, in kernels."""
    raise NotImplementedError


@instruction(_bits)
def _define_bits(context: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.uint64))

    return types.uint64(types.float64), generate


@instruction(_float)
def _define_float(context: Any, bits: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.uint64), generate


def _exponents(x: Any) -> Any:
    """The exponents e of eight numbers x = 2ᵉ·m as above, and 4503599627371519 more."""
    raise NotImplementedError


def _mantissas(x: Any) -> Any:
    """The m of eight numbers x = 2ᵉ·m as above."""
    raise NotImplementedError


_WORDS = ir.VectorType(ir.IntType(64), LANES)


def _rounded_bits(builder: Any, x: Any) -> tuple[Any, Any, Any]:
    """The bits of eight numbers, the same rounded as above, and what makes eight of a constant."""

    def eight(bits: int) -> Any:
        return ir.Constant(_WORDS, [bits] * LANES)

    bits = builder.bitcast(x, _WORDS)
    return bits, builder.add(bits, eight(0x0008000000000000)), eight


@instruction(_exponents)
def _define_exponents(context: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, rounded, eight = _rounded_bits(builder, arguments[0])
        exponents = builder.or_(builder.lshr(rounded, eight(52)), eight(0x4330000000000000))
        return builder.bitcast(exponents, arguments[0].type)

    return x(x), generate


@instruction(_mantissas)
def _define_mantissas(context: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits, rounded, eight = _rounded_bits(builder, arguments[0])
        scale = builder.and_(rounded, eight(0x7FF0000000000000))
        scale = builder.sub(scale, eight(0x3FF0000000000000))
        return builder.bitcast(builder.sub(bits, scale), arguments[0].type)

    return x(x), generate
