"""Arithmetic on unevaluated sums of two floats, about 32 decimal digits.

The means of clusters are kept this way. Two large clusters may have means that agree in
ten digits; their dissimilarity needs the *difference*, of which a single float would
leave six. Every operation here gives the same bits when its operands are exchanged.

References: Dekker (1971), Numer. Math. 18; Knuth, TAOCP vol. 2, 4.2.2.
"""

from __future__ import annotations

from fastrbhc._jit import kernel

_SPLITTER = 134217729.0  # 2**27 + 1


@kernel
def two_sum(a, b):
    """The float sum of a and b, and its rounding error, exactly."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


@kernel
def two_product(a, b):
    """The float product of a and b, and its rounding error, exactly (|a|, |b| < 1e290)."""
    product = a * b
    scaled = _SPLITTER * a
    a_high = scaled - (scaled - a)
    a_low = a - a_high
    scaled = _SPLITTER * b
    b_high = scaled - (scaled - b)
    b_low = b - b_high
    error = ((a_high * b_high - product) + (a_high * b_low + a_low * b_high)) + a_low * b_low
    return product, error


@kernel
def multiply(factor, high, low):
    """A float times a double-double."""
    product, error = two_product(factor, high)
    return two_sum(product, error + factor * low)


@kernel
def add(high0, low0, high1, low1):
    """The sum of two double-doubles."""
    total, error = two_sum(high0, high1)
    return two_sum(total, error + (low0 + low1))


@kernel
def divide(high, low, divisor):
    """A double-double divided by a float."""
    quotient = high / divisor
    product, error = two_product(quotient, divisor)
    return two_sum(quotient, ((high - product) - error + low) / divisor)


@kernel
def weighted_mean(weight0, high0, low0, weight1, high1, low1):
    """The mean of two double-doubles under two weights; exactly their value if they agree."""
    if high0 == high1 and low0 == low1:
        return high0, low0
    part0, rest0 = multiply(weight0, high0, low0)
    part1, rest1 = multiply(weight1, high1, low1)
    total, rest = add(part0, rest0, part1, rest1)
    # The total weight of two clusters may itself round (0.1 + 0.2); its error is passed on.
    weight, weight_error = two_sum(weight0, weight1)
    high, low = divide(total, rest, weight)
    return two_sum(high, low - high * (weight_error / weight))
