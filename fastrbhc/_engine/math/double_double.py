"""Arithmetic on unevaluated sums of two floats, about 32 decimal digits.

The means of clusters are kept this way. The means of two large clusters may agree to ten digits;
their dissimilarity depends on the *difference*, of which floats would leave six digits. Every
operation gives the same bits when its operands are exchanged.

References: Dekker (1971), Numer. Math. 18; Knuth, TAOCP vol. 2, 4.2.2.
"""

from __future__ import annotations

import math
from typing import Any

from numba import types

from fastrbhc._engine.jit import instruction, kernel

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
    return product, _product_error(a, b, product)


def _product_error(a: float, b: float, product: float) -> float:
    """a·b − product, by Dekker's splitting; in kernels by one fused instruction, the same bits."""
    scaled = _SPLITTER * a
    a_high = scaled - (scaled - a)
    a_low = a - a_high
    scaled = _SPLITTER * b
    b_high = scaled - (scaled - b)
    b_low = b - b_high
    return ((a_high * b_high - product) + (a_high * b_low + a_low * b_high)) + a_low * b_low


@instruction(_product_error)
def _fused_product_error(context: Any, a: Any, b: Any, product: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(arguments[0], arguments[1], builder.fneg(arguments[2]))

    return types.float64(types.float64, types.float64, types.float64), code


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
def product(high0, low0, high1, low1):
    """The product of two double-doubles."""
    leading, error = two_product(high0, high1)
    return two_sum(leading, error + (high0 * low1 + low0 * high1))


@kernel
def square(high, low):
    """The square of a double-double."""
    leading, error = two_product(high, high)
    return two_sum(leading, error + 2.0 * high * low)


@kernel
def quotient(high0, low0, high1, low1):
    """A double-double divided by another."""
    leading = high0 / high1
    part, rest = multiply(leading, high1, low1)
    left, error = add(high0, low0, -part, -rest)
    return two_sum(leading, (left + error) / high1)


@kernel
def square_root(high, low):
    """The root of a double-double that is not negative."""
    if high <= 0.0:
        return 0.0, 0.0
    root = math.sqrt(high)
    leading, error = two_product(root, root)
    return two_sum(root, ((high - leading) - error + low) / (2.0 * root))


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
    # Multiplication by the reciprocal, which is the same for all columns: the quotient may be a
    # unit or two off in its last place, and the remainder corrects this.
    reciprocal = 1.0 / weight
    high = total * reciprocal
    product, error = two_product(high, weight)
    low = (((total - product) - error) + rest) * reciprocal
    return two_sum(high, low - high * (weight_error * reciprocal))
