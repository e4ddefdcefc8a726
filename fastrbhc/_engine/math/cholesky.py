"""Row-by-row Cholesky factors of scatter matrices, in floats or in double-double.

The matrix is S_i + S_j + ridge·I (or S_i + ridge·I for j = −1), with S the scatter of a cluster.
clusters.scatter has the rows of the lower triangle: the leading digits, then the further digits.

A cluster of few rows is flat in some directions, where all large terms cancel and only the ridge
remains. In floats the result loses one digit per factor of ten between the two; the callers check
that factor, and repeat the work in double-double if it is too large. So scatter is kept in
double-double, and so are the differences of means that it is made of: their rounding would tilt a
flat cluster by 2⁻⁵³ of its length, which may be large against the ridge.

A factor of d columns is stored in an array of the shape `factor_shape(d)`. The columns after the
first d have names, as offsets from d.

Every pivot is the ridge plus an *excess* that is not negative. The excess is computed by itself:
where the scatter is small against the ridge, the pivot has lost its digits.
"""

from __future__ import annotations

import math

from fastrbhc._engine.jit import kernel
from fastrbhc._engine.math.double_double import add, multiply, product, two_product, two_sum

# Columns of a factor after the first d, as offsets from d.
SOLUTION = 0  # room for the solution of a system
PIVOT = 1
RECIPROCAL_ROOT = 2  # of the pivot
EXCESS = 3  # the pivot less the ridge
LOSS = 4  # the relative rounding error of the pivot, in units of the last place
_N_NAMED = 5

# Rows of a factor in floats that are computed at a time.
PANEL = 4

# A pivot below this share of its diagonal entry has lost four digits: repeat in double-double.
CANCELLED = 1e-4


def factor_shape(n_features: int) -> tuple[int, int]:
    """The shape of an array that holds a factor, in floats or in double-double."""
    return 2 * n_features, n_features + _N_NAMED


@kernel
def add_product(scatter, i, entry, weight, step0, step1):
    """Add weight·step0·step1 to one entry of the scatter of slot i."""
    half = scatter.shape[1] // 2
    leading, error = two_product(step0, step1)
    term, rest = multiply(weight, leading, error)
    scatter[i, entry], scatter[i, half + entry] = add(
        scatter[i, entry], scatter[i, half + entry], term, rest
    )


@kernel
def add_precise_product(scatter, i, entry, weight, high0, low0, high1, low1):
    """The same for steps in double-double."""
    half = scatter.shape[1] // 2
    leading, error = product(high0, low0, high1, low1)
    term, rest = multiply(weight, leading, error)
    scatter[i, entry], scatter[i, half + entry] = add(
        scatter[i, entry], scatter[i, half + entry], term, rest
    )


@kernel
def add_scatter(scatter, i, j):
    """Add the scatter of slot j to that of slot i."""
    half = scatter.shape[1] // 2
    for entry in range(half):
        scatter[i, entry], scatter[i, half + entry] = add(
            scatter[i, entry],
            scatter[i, half + entry],
            scatter[j, entry],
            scatter[j, half + entry],
        )


@kernel
def factor_rows(scatter, i, j, n_features, first, ridge, work):
    """The next PANEL rows of the factor, from row ``first`` on; False if floats are too imprecise.

    The rows are computed in parallel, which hides the latency of each sum: up to four times as
    fast as row by row.
    """
    last = min(first + PANEL, n_features)
    panel = work[n_features:]  # where the further digits of double-doubles would be
    row1, row2, row3 = min(first + 1, last - 1), min(first + 2, last - 1), last - 1
    start0, start1 = first * (first + 1) // 2, row1 * (row1 + 1) // 2
    start2, start3 = row2 * (row2 + 1) // 2, row3 * (row3 + 1) // 2
    for m in range(first):
        total0, total1 = _sum(scatter, i, j, start0 + m), _sum(scatter, i, j, start1 + m)
        total2, total3 = _sum(scatter, i, j, start2 + m), _sum(scatter, i, j, start3 + m)
        for column in range(m):
            entry = work[m, column]
            total0 -= entry * panel[column, 0]
            total1 -= entry * panel[column, 1]
            total2 -= entry * panel[column, 2]
            total3 -= entry * panel[column, 3]
        scale = work[m, n_features + RECIPROCAL_ROOT]
        panel[m, 0], panel[m, 1] = total0 * scale, total1 * scale
        panel[m, 2], panel[m, 3] = total2 * scale, total3 * scale
    for k in range(first, last):
        total0, total1, total2, total3 = 0.0, 0.0, 0.0, 0.0
        for column in range(first):
            entry = panel[column, k - first]
            work[k, column] = entry
            total0 += entry * panel[column, 0]
            total1 += entry * panel[column, 1]
            total2 += entry * panel[column, 2]
            total3 += entry * panel[column, 3]
        work[k, first] = total0
        if k > first:
            work[k, row1] = total1
        if k > first + 1:
            work[k, row2] = total2
        if k > first + 2:
            work[k, row3] = total3
        for m in range(first, k + 1):
            entry = _sum(scatter, i, j, k * (k + 1) // 2 + m)
            total = entry - work[k, m]
            for column in range(first, m):
                total -= work[k, column] * work[m, column]
            if m < k:
                work[k, m] = total * work[m, n_features + RECIPROCAL_ROOT]
            else:
                excess = max(total, 0.0)  # holds but for rounding
                pivot = excess + ridge
                work[k, k] = math.sqrt(pivot)
                work[k, n_features + PIVOT] = pivot
                work[k, n_features + RECIPROCAL_ROOT] = 1.0 / work[k, k]
                work[k, n_features + EXCESS] = excess
                work[k, n_features + LOSS] = entry / pivot
                if pivot < CANCELLED * (entry + ridge):
                    return False
    return True


@kernel
def _sum(scatter, i, j, entry):
    """An entry of the scatter of slot i, or of the sum of slots i and j."""
    return scatter[i, entry] + scatter[j, entry] if j >= 0 else scatter[i, entry]


@kernel
def factor_rows_precisely(scatter, i, j, n_features, first, ridge, factor):
    """The same in double-double; the further digits are in the second half of the rows."""
    for k in range(first, min(first + PANEL, n_features)):
        _factor_row(scatter, i, j, n_features, k, ridge, factor)


@kernel
def _factor_row(scatter, i, j, low, k, ridge, factor):
    half = scatter.shape[1] // 2
    first = k * (k + 1) // 2
    total, rest = 0.0, 0.0
    for m in range(k + 1):
        total, rest = scatter[i, first + m], scatter[i, half + first + m]
        if j >= 0:
            total, rest = add(total, rest, scatter[j, first + m], scatter[j, half + first + m])
        for column in range(m):
            high0, low0 = factor[k, column], factor[low + k, column]
            high1, low1 = factor[m, column], factor[low + m, column]
            part, error = two_product(high0, high1)
            total, rest = add(total, rest, -part, -(error + (high0 * low1 + low0 * high1)))
        if m < k:
            # One step of Newton's iteration, on the quotient and below on the root.
            quotient = total / factor[m, m]
            part, error = two_product(quotient, factor[m, m])
            remainder = ((total - part) - error) + (rest - quotient * factor[low + m, m])
            factor[k, m], factor[low + k, m] = two_sum(quotient, remainder / factor[m, m])
    if total < 0.0:
        total, rest = 0.0, 0.0
    factor[k, low + EXCESS], factor[k, low + LOSS] = total, 0.0
    total, rest = add(total, rest, ridge, 0.0)
    root = math.sqrt(total)
    square, error = two_product(root, root)
    factor[k, k], factor[low + k, k] = two_sum(
        root, (((total - square) - error) + rest) / (2.0 * root)
    )
    factor[k, low + PIVOT], factor[k, low + RECIPROCAL_ROOT] = total, 1.0 / factor[k, k]
