"""Logarithms and powers with about 31 digits, as double-doubles.

Families of transformed rows cluster log x or xᵏ. Two rows may agree to fifteen digits. Rounded to a
float, their logarithms would then have no correct digit of the difference in common.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from fastrbhc._engine.jit import kernel
from fastrbhc._engine.math.double_double import add, divide, multiply, product, quotient, two_sum

_LOG_2_HIGH, _LOG_2_LOW = 0.6931471805599453, 2.3190468138462996e-17
_LARGEST_EXPONENT = 1020
_ROOT_HALF = 0.7071067811865476

# Powers up to this are products, so that those of whole numbers are exact as long as they can be.
_LARGEST_PRODUCT = 64

# Terms of exp x for |x| ≤ log(2)/2, and of artanh(s)/s for |s| ≤ 3 − √8, up to 1e-33.
_TERMS_OF_EXP, _TERMS_OF_ARTANH = 25, 22


def _reciprocal(divisor: int) -> tuple[float, float]:
    """1/divisor as a double-double."""
    high = float(Fraction(1, divisor))
    return high, float(Fraction(1, divisor) - Fraction(high))


_ODD_RECIPROCALS = np.array([_reciprocal(2 * term + 1) for term in range(_TERMS_OF_ARTANH)])


@kernel
def log_digits(x):
    """log x of a positive number, as leading digits and further digits."""
    mantissa, exponent = math.frexp(x)
    if mantissa < _ROOT_HALF:
        mantissa, exponent = 2.0 * mantissa, exponent - 1
    # log m = 2·artanh(s) with s = (m − 1)/(m + 1).
    above, rest = two_sum(mantissa, 1.0)
    s, s_low = quotient(mantissa - 1.0, 0.0, above, rest)
    square, square_low = product(s, s_low, s, s_low)
    total, low = 0.0, 0.0
    for term in range(_TERMS_OF_ARTANH - 1, -1, -1):
        total, low = product(total, low, square, square_low)
        total, low = add(total, low, _ODD_RECIPROCALS[term, 0], _ODD_RECIPROCALS[term, 1])
    total, low = product(total, low, 2.0 * s, 2.0 * s_low)
    whole, whole_low = multiply(float(exponent), _LOG_2_HIGH, _LOG_2_LOW)
    return add(whole, whole_low, total, low)


@kernel
def exp_digits(high, low):
    """exp of a double-double, as leading digits and further digits."""
    exponent = round(high / _LOG_2_HIGH)
    if exponent > _LARGEST_EXPONENT:
        return np.inf, 0.0
    part, part_low = multiply(-float(exponent), _LOG_2_HIGH, _LOG_2_LOW)
    part, part_low = add(high, low, part, part_low)
    total, rest = 1.0, 0.0
    for term in range(_TERMS_OF_EXP, 0, -1):
        total, rest = product(total, rest, part, part_low)
        total, rest = divide(total, rest, float(term))
        total, rest = add(1.0, 0.0, total, rest)
    return math.ldexp(total, exponent), math.ldexp(rest, exponent)


@kernel
def power_digits(x, exponent):
    """xᵏ of a number that is not negative, for k > 0, as leading digits and further digits."""
    if x <= 0.0:
        return 0.0, 0.0
    if exponent <= _LARGEST_PRODUCT and exponent == math.floor(exponent):
        high, low = x, 0.0
        for _ in range(int(exponent) - 1):
            high, low = multiply(x, high, low)
        return high, low
    logarithm, rest = log_digits(x)
    logarithm, rest = multiply(exponent, logarithm, rest)
    return exp_digits(logarithm, rest)


@kernel
def fill_logarithms(X, unit, high, low):
    """log(x/unit) of every value."""
    log_unit, rest = log_digits(unit)
    for i in range(X.shape[0]):
        for k in range(X.shape[1]):
            value, error = log_digits(X[i, k])
            high[i, k], low[i, k] = add(value, error, -log_unit, -rest)


@kernel
def fill_powers(X, exponent, high, low):
    """xᵏ of every value."""
    for i in range(X.shape[0]):
        for k in range(X.shape[1]):
            high[i, k], low[i, k] = power_digits(X[i, k], exponent)
