"""The geometry of separable families for rows with missing cells.

A cluster has, for each column j, the weight nⱼ of its rows in which the column is observed, and the
mean tⱼ over these. With f(c) = Σⱼ nⱼ·φ(tⱼ), up to a constant the largest log likelihood of the
observed cells under one distribution,

    d(a, b) = f(a) + f(b) − f(a∪b) = Σⱼ [n_aⱼ·B(t_aⱼ, tⱼ) + n_bⱼ·B(t_bⱼ, tⱼ)],

where tⱼ is the mean of the union. A column that only one of the two has observed contributes 0, as
its mean does not change. So d is a sum of terms that are not negative, each a separable d of one
column with weights of its own.

**Bounds.** `separable_columns.pair_bound` is a bound of one column per unit of weight, whatever the
shares of the two are. With the shares n_aⱼ/(n_aⱼ+n_bⱼ) and n_bⱼ/(n_aⱼ+n_bⱼ), times n_aⱼ+n_bⱼ, it
bounds the term of column j. If n_bⱼ = 0, one share is 0 and so is the bound.

**Boxes.** A box knows the range of each tⱼ and the smallest nⱼ of its clusters. With everything
else fixed, the derivative of the term of column j

- by n_bⱼ is φ(t_bⱼ) − φ(tⱼ) − φ′(tⱼ)(t_bⱼ − tⱼ) = B(t_bⱼ, tⱼ), which is not negative;
- by t_bⱼ is n_bⱼ(φ′(t_bⱼ) − φ′(tⱼ)), of the sign of t_bⱼ − t_aⱼ, because tⱼ lies between the two.

So the term is smallest at the smallest weight and at the mean in the range that is nearest to
t_aⱼ, and these are attained independently of each other and of the other columns. If a cluster of
the box has not observed the column, the smallest weight is 0, and the bound is 0 too: the
placeholder that stands for its mean does not matter.

**Violations.** `fastrbhc.reducibility.audit` needs bounds of d(a∪x, b). Its identity holds for any
f of sets of rows, so it holds for this one. In column j the union a∪x has the weight n_aⱼ + n_xⱼ
and the mean t_aⱼ + s(t_xⱼ − t_aⱼ) with s = n_xⱼ/(n_aⱼ + n_xⱼ). So d(a∪x, b) is a sum over columns
as above, and so are its bounds; a column that b has not observed adds 0, and one that neither a nor
x has. A box also knows the largest nⱼ of its clusters. As s grows with n_xⱼ, it lies between its
values at the smallest and the largest, and the mean of the union in an interval. The bound takes
the mean in that interval that is nearest to t_bⱼ, and the weight n_aⱼ and the smallest of the box.
If a cluster of the box has not observed the column, s may be 0: then the interval contains t_aⱼ,
and again the placeholder does not matter. If a has not observed it either, the bound is 0.

**What does not hold.** Bounds with one weight per cluster (the mirror in single precision, the
screen of Ward's d) are not used. And d is not reducible, not even if
φ = x²/2. Let a have the means (−1, 0) and the weights (1, 10), b the means (1, 0) and the same
weights, and x the means (0, 1.2) and the weights (10, 1). Then d(a, b) = 1 is less than d(a, x) =
d(b, x) = 1.11, and the union is nearer to x than both: d(a∪b, x) = 0.69. The proof for Ward's d is
a recurrence whose coefficients are the weights. It holds in each column, but d(a, b) may be small
because of one column and d(a∪b, x) because of another.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastrbhc._engine.clusters.partly_observed import merge_columns
from fastrbhc._engine.clusters.record import LEAF_SIZE, difference
from fastrbhc._engine.clusters.strangers import SeparateColumns
from fastrbhc._engine.geometry.contract import FINITE, ROUNDING, values_of_near
from fastrbhc._engine.geometry.separable import shrink_by_rounding, variance_is_vectorizable
from fastrbhc._engine.geometry.separable_columns import divergence, pair_bound
from fastrbhc._engine.jit import inlined_kernel, kernel
from fastrbhc._engine.simd import LANES, at_most, broadcast, larger, load, smaller, store


class Quadratic(NamedTuple):
    """One column of a φ with a constant second derivative."""

    half_curvature: float

    def divergence(family, value, mean, step):
        return family.half_curvature * step * step

    def pair_bound(family, value0, value1, step, share0, share1):
        return family.half_curvature * (share0 * step) * (share1 * step)


class Observed(NamedTuple):
    """d = Σⱼ n₀ⱼ·B(t₀ⱼ, tⱼ) + n₁ⱼ·B(t₁ⱼ, tⱼ), over the columns that both clusters have observed.

    Clusters are stored as `partly_observed` says.
    """

    family: Any
    scale: float
    offset: float

    def dissimilarity(geometry, clusters, i, j, cutoff, scratch):
        family, scale, offset = geometry.family, geometry.scale, geometry.offset
        columns, total = clusters.means.shape[0] // 2, 0.0
        for k in range(columns):
            w0, w1 = clusters.means[columns + k, i], clusters.means[columns + k, j]
            if w0 == 0.0 or w1 == 0.0:
                continue
            step = scale * difference(clusters, i, j, k)
            if step == 0.0:
                continue
            share0, share1 = w0 / (w0 + w1), w1 / (w0 + w1)
            mean0, mean1 = clusters.means[k, i], clusters.means[k, j]
            mean = scale * (share0 * mean0 + share1 * mean1) + offset
            value0, value1 = scale * mean0 + offset, scale * mean1 + offset
            total += w0 * divergence(family, value0, mean, -share1 * step) + w1 * divergence(
                family, value1, mean, share0 * step
            )
            if total > cutoff:  # no term is negative: the sum stays above
                break
        return total

    def merge(geometry, clusters, i, j, scratch):
        merge_columns(clusters, i, j)

    def lower_bounds(geometry, clusters, i, start, stop, scratch):
        _bounds_of_run(geometry, clusters, i, start, stop, scratch)

    def leaf_values(geometry, clusters, i, start, cutoff, scratch):
        near = _near(geometry, clusters, i, start, cutoff, scratch)
        return values_of_near(geometry, clusters, i, start, cutoff, near, scratch)

    def violation_bounds(geometry, clusters, a, b, start, stop, cutoff, scratch):
        bounds, others = scratch.bounds, scratch.other_bounds
        _towards_bounds(geometry, clusters, a, b, start, stop, bounds)
        found = np.int64(0)
        for s in range(stop - start):
            found |= np.int64(bounds[s] <= cutoff)
        if found:
            _towards_bounds(geometry, clusters, b, a, start, stop, others)
            for s in range(stop - start):
                bounds[s] = bounds[s] if bounds[s] > others[s] else others[s]

    def box_violation_bound(geometry, clusters, a, b, boxes, node, heaviest, cutoff, scratch):
        if boxes[node // LANES, 2 * clusters.means.shape[0], node % LANES] == np.inf:
            return np.nan
        bound = _box_towards_bound(geometry, clusters, a, b, boxes, node)
        if bound > cutoff:
            return bound
        return max(bound, _box_towards_bound(geometry, clusters, b, a, boxes, node))

    def box_bounds(geometry, clusters, i, boxes, group, cutoff, scratch):
        family, scale, offset = geometry.family, geometry.scale, geometry.offset
        columns, total = clusters.means.shape[0] // 2, broadcast(0.0)
        for k in range(columns):
            w0, mean0 = clusters.means[columns + k, i], clusters.means[k, i]
            if w0 > 0.0:
                w1 = load(boxes, (group, 2 * (columns + k), 0))
                mean1 = larger(load(boxes, (group, 2 * k, 0)), mean0)
                mean1 = smaller(mean1, load(boxes, (group, 2 * k + 1, 0)))
                value0, value1 = scale * mean0 + offset, scale * mean1 + offset
                step, weight = scale * (mean1 - mean0), w0 + w1
                bound = pair_bound(family, value0, value1, step, w0 / weight, w1 / weight)
                total = total + larger(bound * weight, 0.0)
        return _store_bounds(total, load(boxes, (group, 4 * columns, 0)), cutoff, scratch)

    def separate_columns(self, start: int, stop: int, factor: float) -> list[SeparateColumns]:
        middle = (start + stop) // 2
        values, weights = slice(start, middle), slice(middle, stop)
        return [SeparateColumns(self.family, self.scale, self.offset, factor, values, weights)]


class ObservedOneByOne(Observed):
    """The same for families whose bounds do not accept vectors of eight."""

    def leaf_values(geometry, clusters, i, start, cutoff, scratch):
        _bounds_of_run(geometry, clusters, i, start, start + LEAF_SIZE, scratch)
        near = at_most(load(scratch.bounds, (0,)), cutoff)
        return values_of_near(geometry, clusters, i, start, cutoff, near, scratch)

    def box_bounds(geometry, clusters, i, boxes, group, cutoff, scratch):
        for s in range(LANES):
            scratch.bounds[s] = _box_bound(geometry, clusters, i, boxes, group, s)
        total = load(scratch.bounds, (0,))
        weights = load(boxes, (group, 2 * clusters.means.shape[0], 0))
        return _store_bounds(total, weights, cutoff, scratch)


def observed_geometry(family: Any, n_features: int) -> Observed:
    """The geometry of a separable family for rows with missing cells."""
    scale, offset = family.smoothing_map(n_features)
    if family.quadratic:
        # φ″/2 is the divergence of a unit step from any mean.
        return Observed(Quadratic(divergence(family, 1.0, 0.0, 1.0) * scale * scale), 1.0, 0.0)
    kind = Observed if variance_is_vectorizable(family) else ObservedOneByOne
    return kind(family, float(scale), float(offset))


@kernel
def _bounds_of_run(geometry, clusters, i, start, stop, scratch):
    """Lower bounds of d from slot i to a run of slots, NaN for free ones."""
    family, scale, offset = geometry.family, geometry.scale, geometry.offset
    columns, size, bounds = clusters.means.shape[0] // 2, stop - start, scratch.bounds
    for s in range(size):
        bounds[s] = 0.0
    for k in range(columns):
        w0, mean0 = clusters.means[columns + k, i], clusters.means[k, i]
        if w0 == 0.0:
            continue
        rest0, value0 = clusters.residuals[k, i], scale * mean0 + offset
        weights = clusters.means[columns + k, start:stop]
        means, rests = clusters.means[k, start:stop], clusters.residuals[k, start:stop]
        for s in range(size):
            step = scale * ((means[s] - mean0) + (rests[s] - rest0))
            value1, weight = scale * means[s] + offset, w0 + weights[s]
            bound = pair_bound(family, value0, value1, step, w0 / weight, weights[s] / weight)
            bound *= weight
            bounds[s] += bound if bound > 0.0 else 0.0  # 0 for NaN, if a variance overflows
    for s in range(size):
        bounds[s] = bounds[s] * ROUNDING + 0.0 * clusters.weights[start + s]


@inlined_kernel
def _near(geometry, clusters, i, start, cutoff, scratch):
    """Bit mask of the slots of a leaf with bounds of at most the cutoff."""
    family, scale, offset = geometry.family, geometry.scale, geometry.offset
    means, residuals = clusters.means, clusters.residuals
    columns, total = means.shape[0] // 2, broadcast(0.0)
    for k in range(columns):
        w0, mean0 = means[columns + k, i], means[k, i]
        if w0 > 0.0:
            w1, mean1 = load(means, (columns + k, start)), load(means, (k, start))
            step = scale * ((mean1 - mean0) + (load(residuals, (k, start)) - residuals[k, i]))
            value0, value1, weight = scale * mean0 + offset, scale * mean1 + offset, w0 + w1
            bound = pair_bound(family, value0, value1, step, w0 / weight, w1 / weight)
            total = total + larger(bound * weight, 0.0)
    return _store_bounds(total, load(clusters.weights, (start,)), cutoff, scratch)


@inlined_kernel
def _store_bounds(total, weights, cutoff, scratch):
    """Write eight bounds; returns a bit mask of those up to the cutoff, without free slots."""
    bounds = total * ROUNDING
    store(scratch.bounds, bounds)
    return at_most(bounds, cutoff) & at_most(weights, FINITE)


@kernel
def _box_bound(geometry, clusters, i, boxes, group, lane):
    """A lower bound of d from slot i to all clusters in one box; see the top of this module."""
    family, scale, offset = geometry.family, geometry.scale, geometry.offset
    columns, total = clusters.means.shape[0] // 2, 0.0
    for k in range(columns):
        w0, w1 = clusters.means[columns + k, i], boxes[group, 2 * (columns + k), lane]
        if w0 == 0.0 or not 0.0 < w1 <= FINITE:
            continue
        mean0 = clusters.means[k, i]
        mean1 = min(max(mean0, boxes[group, 2 * k, lane]), boxes[group, 2 * k + 1, lane])
        if mean1 != mean0:
            value0, value1 = scale * mean0 + offset, scale * mean1 + offset
            step, weight = scale * (mean1 - mean0), w0 + w1
            bound = pair_bound(family, value0, value1, step, w0 / weight, w1 / weight)
            total += max(bound * weight, 0.0)
    return total


@kernel
def _towards_bounds(geometry, clusters, a, b, start, stop, bounds):
    """Lower bounds of d(a∪x, b) for the slots x of a run, NaN for free ones."""
    family, scale, offset = geometry.family, geometry.scale, geometry.offset
    columns, size = clusters.means.shape[0] // 2, stop - start
    for s in range(size):
        bounds[s] = 0.0
    for k in range(columns):
        w_a, w_b = clusters.means[columns + k, a], clusters.means[columns + k, b]
        if w_b == 0.0:
            continue
        mean_a, mean_b = clusters.means[k, a], clusters.means[k, b]
        value_b = scale * mean_b + offset
        weights, means = clusters.means[columns + k, start:stop], clusters.means[k, start:stop]
        for s in range(size):
            joint = w_a + weights[s]
            mean = mean_a + weights[s] / joint * (means[s] - mean_a)
            step = shrink_by_rounding(
                scale * (mean_b - mean), scale * (abs(mean_a) + abs(means[s])), value_b
            )
            weight, value = joint + w_b, scale * mean + offset
            bound = pair_bound(family, value, value_b, step, joint / weight, w_b / weight)
            bound *= weight
            bounds[s] += bound if bound > 0.0 else 0.0  # 0 for NaN, if nobody has observed it
    for s in range(size):
        bounds[s] = bounds[s] * ROUNDING + 0.0 * clusters.weights[start + s]


@kernel
def _box_towards_bound(geometry, clusters, a, b, boxes, node):
    """A lower bound of d(a∪x, b) for all x in a box; see the top of this module."""
    family, scale, offset = geometry.family, geometry.scale, geometry.offset
    columns, group, lane = clusters.means.shape[0] // 2, node // LANES, node % LANES
    total = 0.0
    for k in range(columns):
        w_a, w_b = clusters.means[columns + k, a], clusters.means[columns + k, b]
        lightest = boxes[group, 2 * (columns + k), lane]
        heaviest = boxes[group, 2 * (columns + k) + 1, lane]
        if w_b == 0.0 or w_a + lightest == 0.0:
            continue
        mean_a, mean_b = clusters.means[k, a], clusters.means[k, b]
        lowest, highest = boxes[group, 2 * k, lane], boxes[group, 2 * k + 1, lane]
        least, most = lightest / (w_a + lightest), heaviest / (w_a + heaviest)
        low, high = lowest - mean_a, highest - mean_a
        low = mean_a + low * (most if low < 0.0 else least)
        high = mean_a + high * (most if high > 0.0 else least)
        mean = min(max(mean_b, low), high)
        size = abs(mean_a) + max(abs(lowest), abs(highest))
        value, value_b = scale * mean + offset, scale * mean_b + offset
        step = shrink_by_rounding(scale * (mean_b - mean), scale * size, value_b)
        joint = w_a + lightest
        weight = joint + w_b
        bound = pair_bound(family, value, value_b, step, joint / weight, w_b / weight) * weight
        total += max(bound, 0.0)
    return total * ROUNDING
