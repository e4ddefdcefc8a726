"""A logarithm for bounds, without a function call, so that loops over it are vectorised."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
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
