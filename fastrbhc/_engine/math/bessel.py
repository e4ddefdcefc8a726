"""The logarithm of a Bessel function without its leading power, for any order and argument.

With I_ν the modified Bessel function of the first kind,

    L(ν, x) = log [Γ(ν + 1)·(2/x)^ν·I_ν(x)] = log ₀F₁(ν + 1; x²/4),

which is 0 at x = 0 and grows with x. It is the normalising constant of distributions of directions.
For orders from `_LARGE` on it comes from Debye's expansion, uniform in x, in which Stirling's
series for Γ cancels all large terms. Lower orders follow by the recurrence of ₀F₁ towards lower
orders, a sum of positive terms.

Reference: Abramowitz & Stegun (1964), 9.6.10, 9.6.26 and 9.7.7.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from fastrbhc._engine.jit import kernel

# Orders from here on are expanded, with so many terms.
_LARGE, _TERMS = 24.0, 9
# Products of factors above 1 are kept below this.
_LARGE_PRODUCT = 1e200


def _debye_polynomials(count: int) -> NDArray[np.float64]:
    """The coefficients of u₁, …: u_{k+1} = ½t²(1 − t²)u_k′ + ⅛∫(1 − 5t²)u_k."""
    found, u = np.zeros((count, 3 * count + 1)), Polynomial([1.0])
    square = Polynomial([0.0, 0.0, 0.5, 0.0, -0.5])
    for k in range(count):
        u = square * u.deriv() + (Polynomial([0.125, 0.0, -0.625]) * u).integ()
        found[k, : len(u.coef)] = u.coef
    return found


_DEBYE = _debye_polynomials(_TERMS)
_AT_ZERO = _DEBYE.sum(axis=1)  # at t = 1


@kernel
def log_bessel(order, x):
    """L(ν, x) for ν ≥ −½ and x ≥ 0, to 13 digits."""
    if x == 0.0:
        return 0.0
    steps = max(math.ceil(_LARGE - order), 0)
    top = order + steps
    value = _expanded(top, x)
    if steps == 0:
        return value
    ratio = math.exp(_expanded(top + 1.0, x) - value)  # of ₀F₁ at the order above
    quarter, product = 0.25 * x * x, 1.0
    for _ in range(steps):
        rise = quarter / (top * (top + 1.0)) * ratio
        product *= 1.0 + rise
        ratio = 1.0 / (1.0 + rise)
        top -= 1.0
        if product > _LARGE_PRODUCT:
            value, product = value + math.log(product), 1.0
    return value + math.log(product)


@kernel
def _expanded(order, x):
    """L by Debye's expansion, for large orders."""
    z = x / order
    root = math.hypot(1.0, z)
    t, rise = 1.0 / root, z * (z / (1.0 + root))  # √(1 + z²) − 1
    # At x = 0 the series is the reciprocal of that of Γ. The difference is 0 there.
    series, of_gamma = 0.0, 0.0
    for k in range(_TERMS - 1, -1, -1):
        here = 0.0
        for power in range(3 * k + 3, k, -1):
            here = here * t + _DEBYE[k, power]
        series = (series + here * t ** (k + 1)) / order
        of_gamma = (of_gamma + _AT_ZERO[k]) / order
    leading = order * (rise - math.log1p(0.5 * rise)) - 0.5 * math.log(root)
    return leading + (math.log1p(series) - math.log1p(of_gamma))
