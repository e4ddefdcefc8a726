"""The geometry of families that sum one function of one variable over the columns.

One column of d, at the values y₀ and y₁ with the shares s₀ = n₀/n and s₁ = n₁/n, is

    n·(s₀·B(y₀, m) + s₁·B(y₁, m)),        m = s₀y₀ + s₁y₁.

**The bound of a column.** B(y₀, m) is the integral of φ″(x)·(x − y₀) from y₀ to m: the mean of φ″
under a weight that is a triangle of area (m − y₀)²/2 with its centroid at c₀ = (y₀ + 2m)/3. If φ″
is convex, its mean is at least its value at the mean (Jensen): B(y₀, m) ≥ (m − y₀)²·φ″(c₀)/2. The
same for y₁. With m − y₀ = s₁·step and V = 1/φ″, the variance function of the exponential family,

    d ≥ n·s₀s₁/2 · step²·(s₁/V(c₀) + s₀/V(c₁)) = n·s₀s₁/2 · step²·(s₁V(c₁) + s₀V(c₀))/(V(c₀)V(c₁)):

one division and no logarithm. Any V that is larger than 1/φ″ is as good for a bound.

**In single precision.** Scans look at coarse values first, the smoothed means between `_LOW` and
`_HIGH`. To move both values into an interval brings them nearer along the line on which they lie,
and d grows along every ray, so this never raises d. The columns that tell points apart best come
first, and a block of slots is given up when all its sums are past what the cutoff allows.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._jit import fused_kernel, kernel, open_contract
from fastrbhc.geometry import (
    ROUNDING,
    TILE,
    Clusters,
    Sizes,
    candidates_by_bounds,
    difference,
    dissimilarity,
    merge_exact_means,
    n_columns,
    suspects_one_by_one,
)
from fastrbhc.quadratic import Quadratic

# Coarse values lie between these, so that products of six of them keep all their digits.
_LOW, _HIGH = 2.0**-20, 2.0**30

# Slots and columns that are looked at together, before it is asked whether any slot is left.
_LANES, _CHUNK = 64, 32

# Added to products of variances, which may underflow: a larger denominator is a lower bound.
_TINY = 1e-300
_COARSE_TINY = np.float32(1e-37)
_THIRD = np.float32(1.0 / 3.0)


@open_contract
def divergence(family, value, mean, step):
    """Bregman divergence of one column, a method of every separable family."""


@open_contract
def divergence_bound(family, value, mean, step):
    """A quick lower bound of the divergence, a method of every separable family."""


@open_contract
def variance_function(family, mean):
    """At least 1/φ″, a method of every separable family; infinite if it is not known."""


@open_contract
def second_derivative(family, mean):
    """φ″ of one column, a method of every separable family."""


@open_contract
def pair_bound(family, value0, value1, step, share0, share1):
    """At most share0·B(value0, m) + share1·B(value1, m), a method that families are given."""


def unknown_variance(family, mean):
    """The variance of families that do not tell."""
    return np.inf


def pair_bound_by_divergences(family, value0, value1, step, share0, share1):
    """The pair_bound of families that do not know their variance."""
    mean = share0 * value0 + share1 * value1
    bound0 = divergence_bound(family, value0, mean, -share1 * step)
    bound1 = divergence_bound(family, value1, mean, share0 * step)
    return share0 * bound0 + share1 * bound1


def pair_bound_by_variance(family, value0, value1, step, share0, share1):
    """The pair_bound of families that do: see the top of this module."""
    twice = 2.0 * (share0 * value0 + share1 * value1)
    variance0 = variance_function(family, (value0 + twice) * (1.0 / 3.0))
    variance1 = variance_function(family, (value1 + twice) * (1.0 / 3.0))
    ratio = (share1 * variance1 + share0 * variance0) / (variance0 * variance1 + _TINY)
    return 0.5 * (share0 * step) * (share1 * step) * ratio


class Separable(NamedTuple):
    """d = Σⱼ n₀·B(t₀ⱼ, tⱼ) + n₁·B(t₁ⱼ, tⱼ) with the family's divergence B, smoothed."""

    family: Any
    scale: float
    offset: float

    def dissimilarity(geometry, clusters, i, j, cutoff, scratch):
        family, scale, offset = geometry.family, geometry.scale, geometry.offset
        w0, w1 = clusters.weights[i], clusters.weights[j]
        share0, share1 = w0 / (w0 + w1), w1 / (w0 + w1)
        total = 0.0
        for k in range(n_columns(clusters)):
            mean0, mean1 = clusters.means[k, i], clusters.means[k, j]
            step = scale * difference(clusters, i, j, k)
            if step == 0.0:  # most columns, where counts are sparse
                continue
            mean = scale * (share0 * mean0 + share1 * mean1) + offset
            value0, value1 = scale * mean0 + offset, scale * mean1 + offset
            total += w0 * divergence(family, value0, mean, -share1 * step) + w1 * divergence(
                family, value1, mean, share0 * step
            )
            if total > cutoff:  # terms are not negative: the sum cannot come back
                break
        return total

    def curvature(geometry, clusters, i, j, centre, scratch):
        scale = geometry.scale  # inside φ: its square comes out
        total = 0.0
        for k in range(n_columns(clusters)):
            step = scale * difference(clusters, i, j, k)
            if step != 0.0:  # else nothing, even where φ″ is infinite
                mean = scale * clusters.means[k, centre] + geometry.offset
                total += second_derivative(geometry.family, mean) * step * step
        return total

    def lower_bounds(geometry, clusters, i, start, stop, scratch):
        if clusters.coarse.shape[0]:
            _coarse_bounds(geometry, clusters, i, start, stop, scratch)
        else:
            _exact_bounds(geometry, clusters, i, start, stop, scratch)

    def candidates(geometry, clusters, i, start, stop, cutoff, scratch):
        if clusters.coarse.shape[0]:
            return _coarse_candidates(geometry, clusters, i, start, stop, cutoff, scratch)
        return candidates_by_bounds(geometry, clusters, i, start, stop, cutoff, scratch)

    def aim(geometry, clusters, queue, first, last, scratch):
        return

    def suspects(geometry, clusters, queue, first, last, start, stop, cutoffs, scratch):
        return suspects_one_by_one(
            geometry, clusters, queue, first, last, start, stop, cutoffs, scratch
        )

    def tile_values(geometry, clusters, i, start, cutoff, scratch):
        if clusters.coarse.shape[0]:
            count = _coarse_candidates(geometry, clusters, i, start, start + TILE, cutoff, scratch)
            scratch.bounds[:TILE] = np.nan
            for c in range(count):
                j = scratch.slots[c]
                value = dissimilarity(geometry, clusters, i, j, cutoff, scratch)
                scratch.bounds[j - start] = value
            return
        _exact_bounds(geometry, clusters, i, start, start + TILE, scratch)
        for s in range(TILE):
            if scratch.bounds[s] <= cutoff:
                value = dissimilarity(geometry, clusters, i, start + s, cutoff, scratch)
                scratch.bounds[s] = value

    def n_extents(geometry):
        return 0

    def extent(geometry, clusters, i, e):
        return 0.0

    def box_bound(geometry, clusters, i, boxes, node, cutoff):
        # d grows with either weight and along every ray from the mean of slot i, column by
        # column: its minimum over the box is at that mean, clamped into the box.
        family, scale, offset = geometry.family, geometry.scale, geometry.offset
        n_features = n_columns(clusters)
        w0, w1 = clusters.weights[i], boxes[node, 2 * n_features]
        if w1 == np.inf:
            return np.nan
        share0, share1 = w0 / (w0 + w1), w1 / (w0 + w1)
        total = 0.0
        for k in range(n_features):
            mean0 = clusters.means[k, i]
            mean1 = min(max(mean0, boxes[node, 2 * k]), boxes[node, 2 * k + 1])
            if mean1 != mean0:
                value0, value1 = scale * mean0 + offset, scale * mean1 + offset
                step = scale * (mean1 - mean0)
                total += pair_bound(family, value0, value1, step, share0, share1)
        return total * ((w0 + w1) * ROUNDING)

    def pull_bounds(geometry, clusters, a, b, start, stop, cutoff, scratch):
        bounds, others = scratch.bounds, scratch.pulls
        _pulled_towards(geometry, clusters, a, b, start, stop, scratch, bounds)
        found = np.int64(0)
        for s in range(stop - start):
            found |= np.int64(bounds[s] <= cutoff)
        if found:
            _pulled_towards(geometry, clusters, b, a, start, stop, scratch, others)
            for s in range(stop - start):
                bounds[s] = bounds[s] if bounds[s] > others[s] else others[s]

    def box_pull_bound(geometry, clusters, a, b, boxes, node, heaviest, cutoff, scratch):
        if boxes[node, 2 * n_columns(clusters)] == np.inf:
            return np.nan
        bound = _box_pulled_towards(geometry, clusters, a, b, boxes, node, heaviest)
        if bound > cutoff:
            return bound
        return max(bound, _box_pulled_towards(geometry, clusters, b, a, boxes, node, heaviest))

    def merge(geometry, clusters, i, j, scratch):
        merge_exact_means(clusters, i, j)
        for row in range(clusters.coarse.shape[0]):
            value = geometry.scale * clusters.means[clusters.order[row], i] + geometry.offset
            clusters.coarse[row, i] = min(max(value, _LOW), _HIGH)

    def refresh(geometry, clusters, i, scratch):
        return

    def with_coarse(self, clusters: Clusters) -> Clusters:
        n_features = clusters.means.shape[0]
        telling, hidden, relative = np.zeros(n_features), 0.0, 0.0
        for k in range(n_features):
            values = self._values(clusters, k)
            coarse = np.clip(values, _LOW, _HIGH)
            telling[k] = self._telling(coarse)
            hidden += self._telling(values) - telling[k]
            lowest, highest = np.fmin.reduce(coarse), np.fmax.reduce(coarse)
            relative += max(
                lowest**2 / variance_function(self.family, lowest),
                highest**2 / variance_function(self.family, highest),
            )
        if not hidden <= telling.sum():  # most of what tells points apart is out of range
            return clusters._replace(coarse=clusters.coarse[:0])
        clusters.order[:] = np.argsort(-telling, kind="stable")
        for row, k in enumerate(clusters.order):
            clusters.coarse[row] = np.clip(self._values(clusters, k), _LOW, _HIGH)
        clusters.slack[0] = 2.0**-43 * relative
        return clusters

    def _values(self, clusters: Clusters, k: int) -> NDArray[np.float64]:
        return self.scale * clusters.means[k] + self.offset

    def _telling(self, values: NDArray[np.float64]) -> float:
        """How much a column adds to d, on the average."""
        mean = np.nanmean(values)
        return (
            float(np.nanvar(values) / variance_function(self.family, mean)) if mean > 0.0 else 0.0
        )

    def sizes(self, n_features: int) -> Sizes:
        coarse = type(self.family).variance_function is not unknown_variance
        return Sizes(coarse=coarse, by_cluster=coarse)


def separable_geometry(family: Any, n_features: int) -> Quadratic | Separable:
    """The geometry that every separable family gets."""
    scale, offset = family.smoothing_map(n_features)
    if family.quadratic:
        # φ″/2 is the divergence of a unit step, wherever it starts.
        return Quadratic(divergence(family, 1.0, 0.0, 1.0) * scale * scale)
    return Separable(family, float(scale), float(offset))


@kernel
def _exact_bounds(geometry, clusters, i, start, stop, scratch):
    """The lower bounds from the means themselves."""
    family, scale, offset = geometry.family, geometry.scale, geometry.offset
    size = stop - start
    bounds, shares, others = scratch.bounds, scratch.shares[0], scratch.shares[1]
    weight, weights = clusters.weights[i], clusters.weights[start:stop]
    for s in range(size):
        bounds[s] = 0.0
        shares[s] = weight / (weight + weights[s])
        others[s] = weights[s] / (weight + weights[s])
    for k in range(n_columns(clusters)):
        mean0, rest0 = clusters.means[k, i], clusters.residuals[k, i]
        means, rests = clusters.means[k, start:stop], clusters.residuals[k, start:stop]
        value0 = scale * mean0 + offset
        for s in range(size):
            step = scale * ((means[s] - mean0) + (rests[s] - rest0))
            value1 = scale * means[s] + offset
            bounds[s] += pair_bound(family, value0, value1, step, shares[s], others[s])
    for s in range(size):
        bounds[s] *= (weight + weights[s]) * ROUNDING


@kernel
def _pulled_towards(geometry, clusters, a, b, start, stop, scratch, bounds):
    """Lower bounds of d(a∪x, b) for the slots x of a run."""
    family, scale, offset = geometry.family, geometry.scale, geometry.offset
    shares, others = scratch.shares[0], scratch.shares[1]
    n_a, n_b, weights = clusters.weights[a], clusters.weights[b], clusters.weights[start:stop]
    for s in range(stop - start):
        bounds[s] = 0.0
        shares[s] = weights[s] / (n_a + weights[s])  # of x in a∪x
        others[s] = n_b / (n_a + weights[s] + n_b)  # of b in all three
    for k in range(n_columns(clusters)):
        mean_a, mean_b = clusters.means[k, a], clusters.means[k, b]
        value_b, means = scale * mean_b + offset, clusters.means[k, start:stop]
        for s in range(stop - start):
            mean = mean_a + shares[s] * (means[s] - mean_a)
            value = scale * mean + offset
            step = _surely(scale * (mean_b - mean), scale * (abs(mean_a) + abs(means[s])), value_b)
            bounds[s] += pair_bound(family, value, value_b, step, 1.0 - others[s], others[s])
    for s in range(stop - start):
        bounds[s] *= (n_a + weights[s] + n_b) * ROUNDING


@kernel
def _box_pulled_towards(geometry, clusters, a, b, boxes, node, heaviest):
    """Lower bound of d(a∪x, b) for whatever x a box may hold.

    The mean of a∪x is that of a, moved a share of its way to the mean of x; the share is that of
    the weight of x, which is bounded either way. So it lies in an interval, column by column, and
    d is smallest at the mean of b clamped into it, with the least weight that a∪x may have.
    """
    family, scale, offset = geometry.family, geometry.scale, geometry.offset
    n_features = n_columns(clusters)
    n_a, n_b, lightest = clusters.weights[a], clusters.weights[b], boxes[node, 2 * n_features]
    least, most = lightest / (n_a + lightest), heaviest / (n_a + heaviest)
    weight = n_a + lightest + n_b
    share_b, total = n_b / weight, 0.0
    for k in range(n_features):
        mean_a, mean_b = clusters.means[k, a], clusters.means[k, b]
        low, high = boxes[node, 2 * k] - mean_a, boxes[node, 2 * k + 1] - mean_a
        low = mean_a + low * (most if low < 0.0 else least)
        high = mean_a + high * (most if high > 0.0 else least)
        mean = min(max(mean_b, low), high)
        size = abs(mean_a) + max(abs(boxes[node, 2 * k]), abs(boxes[node, 2 * k + 1]))
        value, value_b = scale * mean + offset, scale * mean_b + offset
        step = _surely(scale * (mean_b - mean), scale * size, value_b)
        total += pair_bound(family, value, value_b, step, 1.0 - share_b, share_b)
    return total * weight * ROUNDING


@kernel
def _surely(step, size, value):
    """A step that rounding has not made longer, from the size of what it is a difference of."""
    return math.copysign(max(abs(step) - 2e-15 * (size + abs(value)), 0.0), step)


@kernel
def _coarse_bounds(geometry, clusters, i, start, stop, scratch):
    """The lower bounds from the coarse means."""
    size, n_features = stop - start, clusters.coarse.shape[0]
    bounds, sums = scratch.bounds, scratch.coarse
    shares, others = scratch.coarse_shares[0], scratch.coarse_shares[1]
    factor, slack = _worth(clusters)
    _begin(clusters.weights[i], clusters.weights[start:stop], shares, others, sums)
    _add_terms(
        geometry.family, clusters.coarse, i, start, 0, size, 0, n_features, shares, others, sums
    )
    weight, weights = clusters.weights[i], clusters.weights[start:stop]
    for s in range(size):
        harmonic = weight * weights[s] / (weight + weights[s])
        bounds[s] = (sums[s] * factor - slack) * harmonic


@kernel
def _coarse_candidates(geometry, clusters, i, start, stop, cutoff, scratch):
    """The slots whose bounds from coarse means are at most the cutoff."""
    n_features = clusters.coarse.shape[0]
    sums, limits = scratch.coarse, scratch.coarse_shares[2]
    shares, others = scratch.coarse_shares[0], scratch.coarse_shares[1]
    factor, slack = _worth(clusters)
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
                geometry.family,
                clusters.coarse,
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
    """Two thirds of the shares, as `_term` wants them, and sums of nothing."""
    for s in range(weights.size):
        total = weight + weights[s]
        share, other = weight / total, weights[s] / total
        # Of digits that underflow would spoil, better none: a lower bound.
        shares[s] = share * (2.0 / 3.0) if not share < 1e-30 else 0.0
        others[s] = other * (2.0 / 3.0) if not other < 1e-30 else 0.0
        sums[s] = 0.0


@kernel
def _worth(clusters):
    """(factor, slack) such that (factor·sum − slack)·n₀n₁/n is at most d.

    Coarse values are within 2⁻²⁴ of themselves, so the coarse step is within e = 2⁻²⁴(y₀ + y₁) of
    the true one, and a² ≥ (1−θ)ã² − e²/θ for every θ in (0, 1). If one value is more than twice the
    other, e is within 2⁻²² of the step: θ pays. If not, c₀ and c₁ are at least (y₀ + y₁)/3, and
    e²/V(c) ≤ 9·2⁻⁴⁸·c²/V(c), where c²/V(c) is largest at an end of the column's range. The sum of
    those over the columns is the slack; it is taken threefold, for V that rounding made
    smaller. θ also pays for the rounding of V, by 2⁻²⁰ at most, and of the sum of d terms.
    """
    theta = 1e-3 + clusters.coarse.shape[0] * 2.0**-23
    return 0.75 * (1.0 - theta) * ROUNDING, clusters.slack[0] / theta


@fused_kernel
def _add_terms(family, coarse, i, start, first, last, column, end, shares, others, sums):
    """Add the terms of some columns to the sums of the slots from start + first on."""
    size = last - first
    u, v, total = shares[first:last], others[first:last], sums[first:last]
    left, right = start + first, start + last
    whole = end - (end - column) % 4
    # Four columns at a time, for less traffic on the sums.
    for k in range(column, whole, 4):
        value0, value1, value2, value3 = (
            coarse[k, i],
            coarse[k + 1, i],
            coarse[k + 2, i],
            coarse[k + 3, i],
        )
        values0, values1 = coarse[k, left:right], coarse[k + 1, left:right]
        values2, values3 = coarse[k + 2, left:right], coarse[k + 3, left:right]
        for s in range(size):
            term0 = _term(family, value0, values0[s], u[s], v[s])
            term1 = _term(family, value1, values1[s], u[s], v[s])
            term2 = _term(family, value2, values2[s], u[s], v[s])
            term3 = _term(family, value3, values3[s], u[s], v[s])
            total[s] += (term0 + term1) + (term2 + term3)
    for k in range(whole, end):
        value, values = coarse[k, i], coarse[k, left:right]
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
    return step * step * ratio / (variance0 * variance1 + _COARSE_TINY)
