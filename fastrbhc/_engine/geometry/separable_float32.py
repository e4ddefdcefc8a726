"""Bounds of separable families in single precision, for scans of many columns.

Scans first read mirrored values: the smoothed means, clamped between `LOW` and `HIGH`. Clamping
moves two values towards each other, and d grows along every ray, so this never raises d. The
columns that distinguish points best come first, and a block of slots is rejected as soon as all its
sums exceed the limit set by the cutoff.
"""

from __future__ import annotations

import numpy as np

from fastrbhc._engine.geometry.contract import ROUNDING
from fastrbhc._engine.geometry.separable_columns import variance_function
from fastrbhc._engine.jit import fused_kernel, kernel

# Mirrored values lie between these, so that products of six of them keep all their digits.
LOW, HIGH = 2.0**-20, 2.0**30

# Slots and columns that are processed together between two tests whether any slot remains.
_LANES, _CHUNK = 64, 32

# Added to products of variances, which may underflow: a larger denominator is a lower bound.
_TINY = np.float32(1e-37)
_THIRD = np.float32(1.0 / 3.0)


@kernel
def mirror_bounds(family, clusters, i, start, stop, scratch):
    """Lower bounds from the mirrored means."""
    size, n_features = stop - start, clusters.mirror.values.shape[0]
    bounds, sums = scratch.bounds, scratch.sums
    shares, others = scratch.float32_shares[0], scratch.float32_shares[1]
    factor, slack = _error_bound(clusters)
    _begin(clusters.weights[i], clusters.weights[start:stop], shares, others, sums)
    _add_terms(
        family, clusters.mirror.values, i, start, 0, size, 0, n_features, shares, others, sums
    )
    weight, weights = clusters.weights[i], clusters.weights[start:stop]
    for s in range(size):
        harmonic = weight * weights[s] / (weight + weights[s])
        bounds[s] = (sums[s] * factor - slack) * harmonic


@kernel
def mirror_candidates(family, clusters, i, start, stop, cutoff, scratch):
    """The slots whose bounds from mirrored means are at most the cutoff."""
    n_features = clusters.mirror.values.shape[0]
    sums, limits = scratch.sums, scratch.float32_shares[2]
    shares, others = scratch.float32_shares[0], scratch.float32_shares[1]
    factor, slack = _error_bound(clusters)
    weight, weights = clusters.weights[i], clusters.weights[start:stop]
    _begin(weight, weights, shares, others, sums)
    for s in range(stop - start):
        # (sum·factor − slack)·n₀n₁/n ≤ cutoff, rounded up.
        limit = (cutoff * (weight + weights[s]) / (weight * weights[s]) + slack) / factor
        limits[s] = min(limit * (1.0 + 1e-6), 1e38)
    count = 0
    for first in range(0, stop - start, _LANES):
        last = min(first + _LANES, stop - start)
        found = np.int64(1)
        for column in range(0, n_features, _CHUNK):
            end = min(column + _CHUNK, n_features)
            _add_terms(
                family,
                clusters.mirror.values,
                i,
                start,
                first,
                last,
                column,
                end,
                shares,
                others,
                sums,
            )
            found = np.int64(0)
            for s in range(first, last):
                found |= np.int64(sums[s] <= limits[s])
            if not found:
                break
        if found:
            for s in range(first, last):
                if sums[s] <= limits[s]:
                    harmonic = weight * weights[s] / (weight + weights[s])
                    scratch.slots[count] = start + s
                    scratch.bounds[count] = (sums[s] * factor - slack) * harmonic
                    count += 1
    return count


@kernel
def _begin(weight, weights, shares, others, sums):
    """Set the shares to two thirds of their values, as `_term` requires, and the sums to 0."""
    for s in range(weights.size):
        total = weight + weights[s]
        share, other = weight / total, weights[s] / total
        # A share near underflow has wrong digits; 0 gives a lower bound.
        shares[s] = share * (2.0 / 3.0) if not share < 1e-30 else 0.0
        others[s] = other * (2.0 / 3.0) if not other < 1e-30 else 0.0
        sums[s] = 0.0


@kernel
def _error_bound(clusters):
    """(factor, slack) such that (factor·sum − slack)·n₀n₁/n is at most d.

    Mirrored values have a relative error of 2⁻²⁴, so the mirrored step ã is within
    e = 2⁻²⁴(y₀ + y₁) of the true step a, and a² ≥ (1−θ)ã² − e²/θ for every θ in (0, 1). If one
    value is more than twice the other, e is at most 2⁻²² of the step, which θ covers. Otherwise c₀
    and c₁ are at least (y₀ + y₁)/3, and e²/V(c) ≤ 9·2⁻⁴⁸·c²/V(c), where c²/V(c) is largest at an
    end of the column's range. The slack is more than three times the sum of these terms over the
    columns, because V may have been rounded down. θ also covers the rounding of V, at most 2⁻²⁰,
    and of the sum of d terms.
    """
    theta = 1e-3 + clusters.mirror.values.shape[0] * 2.0**-23
    return 0.75 * (1.0 - theta) * ROUNDING, clusters.mirror.slack / theta


@fused_kernel
def _add_terms(family, mirrored, i, start, first, last, column, end, shares, others, sums):
    """Add the terms of some columns to the sums of the slots from start + first on."""
    size = last - first
    u, v, total = shares[first:last], others[first:last], sums[first:last]
    left, right = start + first, start + last
    whole = end - (end - column) % 4
    # Four columns at a time, for fewer loads and stores of the sums.
    for k in range(column, whole, 4):
        value0, value1, value2, value3 = (
            mirrored[k, i],
            mirrored[k + 1, i],
            mirrored[k + 2, i],
            mirrored[k + 3, i],
        )
        values0, values1 = mirrored[k, left:right], mirrored[k + 1, left:right]
        values2, values3 = mirrored[k + 2, left:right], mirrored[k + 3, left:right]
        for s in range(size):
            term0 = _term(family, value0, values0[s], u[s], v[s])
            term1 = _term(family, value1, values1[s], u[s], v[s])
            term2 = _term(family, value2, values2[s], u[s], v[s])
            term3 = _term(family, value3, values3[s], u[s], v[s])
            total[s] += (term0 + term1) + (term2 + term3)
    for k in range(whole, end):
        value, values = mirrored[k, i], mirrored[k, left:right]
        for s in range(size):
            total[s] += _term(family, value, values[s], u[s], v[s])


@fused_kernel
def _term(family, value0, value1, share0, share1):
    """Two thirds of step²·(s₁/V(c₀) + s₀/V(c₁)), from two thirds of the shares."""
    mean = share0 * value0 + share1 * value1
    variance0 = variance_function(family, value0 * _THIRD + mean)
    variance1 = variance_function(family, value1 * _THIRD + mean)
    step = value1 - value0
    ratio = share1 * variance1 + share0 * variance0
    return step * step * ratio / (variance0 * variance1 + _TINY)
