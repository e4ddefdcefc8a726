"""Logarithms of rising factorials, Γ(a + s) / Γ(a), the terms of all marginal likelihoods."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.jit import kernel

# From here on, five terms of Stirling's series are accurate to the last digit.
_LARGE = 20.0


@kernel
def log_rising(a, s):
    """log Γ(a + s) − log Γ(a) for a > 0 and s ≥ 0.

    For a large a the two logarithms agree in many digits, so Stirling's series is subtracted term
    by term: (a − ½) log(1 + s/a) + s (log(a + s) − 1) and the rest of the series.
    """
    if s == 0.0:
        return 0.0
    if a < _LARGE:
        return math.lgamma(a + s) - math.lgamma(a)
    leading = (a - 0.5) * math.log1p(s / a) + s * (math.log(a + s) - 1.0)
    return leading + (_stirling(a + s) - _stirling(a))


@kernel
def _stirling(x):
    """log Γ(x) − (x − ½) log x + x − ½ log 2π for x ≥ 20."""
    y = 1.0 / (x * x)
    series = 1.0 / 12.0 - y * (
        1.0 / 360.0 - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y * (1.0 / 1188.0)))
    )
    return series / x


@kernel
def _fill(a, steps, out):
    for i in range(steps.size):
        out[i] = log_rising(a, steps[i])


def log_rising_table(a: float, steps: NDArray[np.float64]) -> NDArray[np.float64]:
    """`log_rising` for one a and many s."""
    out = np.empty(steps.size)
    _fill(float(a), np.ascontiguousarray(steps, np.float64), out)
    return out
