"""Row by row Cholesky factors of scatter matrices, in floats or in double-double.

The matrix is S_i + S_j + ridge·I (or S_i + ridge·I for j = −1), S being the scatter of a cluster:
rows of the lower triangle in clusters.moments, leading digits first, then as many further digits.

A cluster of few rows is flat in some directions, and there only the ridge is left after all that
was large has cancelled. In floats the result has lost a digit for each factor of ten in between;
the callers watch that factor and repeat the work in double-double where it is too large. Scatter
has to be kept in double-double for that, and only that: the differences of means may be floats,
since their own rounding tilts a flat cluster by 2⁻⁵³, which enters with its square.
"""

from __future__ import annotations

import math

from fastrbhc._double_double import add, multiply, two_product, two_sum
from fastrbhc._jit import kernel

# A pivot below this share of its diagonal entry has lost four digits: look again, precisely.
CANCELLED = 1e-4


@kernel
def add_product(moments, i, entry, weight, step0, step1):
    """Add weight·step0·step1 to one entry of the scatter of slot i."""
    half = moments.shape[1] // 2
    product, error = two_product(step0, step1)
    term, rest = multiply(weight, product, error)
    moments[i, entry], moments[i, half + entry] = add(
        moments[i, entry], moments[i, half + entry], term, rest
    )


@kernel
def add_scatter(moments, i, j):
    """Add the scatter of slot j to that of slot i."""
    half = moments.shape[1] // 2
    for entry in range(half):
        moments[i, entry], moments[i, half + entry] = add(
            moments[i, entry],
            moments[i, half + entry],
            moments[j, entry],
            moments[j, half + entry],
        )


@kernel
def factor_row(moments, i, j, k, ridge, factor):
    """Row k of the factor, after the rows before it; returns the pivot and the diagonal entry."""
    first = k * (k + 1) // 2
    diagonal, total = 0.0, 0.0
    for m in range(k + 1):
        total = moments[i, first + m]
        if j >= 0:
            total += moments[j, first + m]
        if m == k:
            total += ridge
            diagonal = total
        for column in range(m):
            total -= factor[k, column] * factor[m, column]
        if m < k:
            factor[k, m] = total / factor[m, m]
    pivot = max(total, ridge)  # as it is but for rounding
    factor[k, k] = math.sqrt(pivot)
    return pivot, diagonal


@kernel
def factor_row_precisely(moments, i, j, k, ridge, factor):
    """The same in double-double; the further digits are in the second half of the rows."""
    half, low = moments.shape[1] // 2, factor.shape[0] // 2
    first = k * (k + 1) // 2
    diagonal, total, rest = 0.0, 0.0, 0.0
    for m in range(k + 1):
        total, rest = moments[i, first + m], moments[i, half + first + m]
        if j >= 0:
            total, rest = add(total, rest, moments[j, first + m], moments[j, half + first + m])
        if m == k:
            total, rest = add(total, rest, ridge, 0.0)
            diagonal = total
        for column in range(m):
            high0, low0 = factor[k, column], factor[low + k, column]
            high1, low1 = factor[m, column], factor[low + m, column]
            product, error = two_product(high0, high1)
            total, rest = add(total, rest, -product, -(error + (high0 * low1 + low0 * high1)))
        if m < k:
            # One step of Newton's iteration, on the quotient and below on the root.
            quotient = total / factor[m, m]
            product, error = two_product(quotient, factor[m, m])
            remainder = ((total - product) - error) + (rest - quotient * factor[low + m, m])
            factor[k, m], factor[low + k, m] = two_sum(quotient, remainder / factor[m, m])
    if total < ridge:
        total, rest = ridge, 0.0
    root = math.sqrt(total)
    square, error = two_product(root, root)
    factor[k, k], factor[low + k, k] = two_sum(
        root, (((total - square) - error) + rest) / (2.0 * root)
    )
    return total, diagonal
