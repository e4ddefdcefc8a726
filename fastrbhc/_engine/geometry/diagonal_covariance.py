"""The geometry of clusters that each have their own variance in every column."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.record import Clusters, difference, merge_means
from fastrbhc._engine.clusters.scratch import BLOCK
from fastrbhc._engine.geometry.contract import (
    ROUNDING,
    ScratchShapes,
    Storage,
    n_features,
    refresh,
    values_of_near,
)
from fastrbhc._engine.geometry.projections import towards_bound
from fastrbhc._engine.geometry.ward import box_distances
from fastrbhc._engine.jit import fused_kernel, inlined_kernel, kernel
from fastrbhc._engine.math import double_double as dd
from fastrbhc._engine.math.entropy import log_excess
from fastrbhc._engine.math.fast_log import LOG_OFF, quick_log, quick_logs
from fastrbhc._engine.simd import LANES, at_most, broadcast, larger, load, smaller, store

# Number of columns per logarithm of a product: in exact values, and in bounds.
_COLUMNS_PER_LOG, _COLUMNS_PER_QUICK_LOG = 8, 4
_LARGEST_VOLUME = 1e300

# Covers the relative rounding error of sums of logarithms.
_SUM_OFF = 1e-13


class DiagonalCovariance(NamedTuple):
    """The geometry of clusters with a mean and a variance per column.

    Scatter: the variances in double-double, leading digits first; never E x² − (E x)², which
    cancels. Cached: v/ε for every column, the sum of the logarithms, and the largest v/ε.

    **Exact values.** Let e₀ = v₀/A − 1 and e₁ = v₁/A − 1. As n₀e₀ + n₁e₁ = 0, the bracket of a
    column is n₀(e₀ − log(1 + e₀)) + n₁(e₁ − log(1 + e₁)). Neither term is negative, and both are
    computed from v₁ − v₀ without cancellation, as in the exponential family.

    **Bounds.** With v = A + (n₀n₁/n²)δ², a column adds ½[n log v − n₀ log v₀ − n₁ log v₁]. Sums of
    logarithms are logarithms of products, so several columns need only one logarithm. The term
    grows with |δ| and with either weight. As a function of v₁ its slope is ½n₁(1/v − 1/v₁): it
    falls up to v₁ = v, which is v₁ = v₀ + (n₁/n)δ², and rises from there. A box stores the range of
    the variances. So over a box the term is smallest at the nearest mean, the smallest weight and
    that v₁ clamped into its range. If d is too small for the precision of such logarithms, the
    distance of the means over the largest variance is a bound too, because
    Σ log(1 + xⱼ) ≥ log(1 + Σ xⱼ) ≥ 2Σxⱼ/(2 + Σxⱼ).
    """

    smoothing: float
    columns: tuple[int, ...] = ()

    def storage(self, n_features: int) -> Storage:
        return Storage(
            scatter=2 * n_features,
            cached=n_features + 2,
            scan_features=n_features + 2,
            box_features=(*range(n_features), n_features + 1),
            points_alike=True,
        )

    def scratch_shapes(self, n_features: int) -> ScratchShapes:
        return ScratchShapes(lanes=(2, BLOCK))

    def put_covariances(
        self, clusters: Clusters, slots: NDArray[np.int64], covariances: NDArray[np.float64]
    ) -> None:
        clusters.scatter[slots] = 0.0
        clusters.scatter[slots, : covariances.shape[1]] = covariances

    def add_row(geometry, clusters, i, weight, values, residuals, scratch):
        for k in range(values.size):
            step, rest = dd.add(
                values[k], residuals[k], -clusters.means[k, i], -clusters.residuals[k, i]
            )
            part, error = dd.multiply(weight, *dd.square(step, rest))
            _add_variance(clusters, i, k, *dd.divide(part, error, clusters.weights[i]))

    def dissimilarity(geometry, clusters, i, j, cutoff, scratch):
        d, scatter, smoothing = n_features(geometry, clusters), clusters.scatter, geometry.smoothing
        weight = clusters.weights[i] + clusters.weights[j]
        share0, share1 = clusters.weights[i] / weight, clusters.weights[j] / weight
        logs, excess = 0.0, 0.0
        for k in range(d):
            value0, value1 = scatter[i, k] + smoothing, scatter[j, k] + smoothing
            inverse = 1.0 / (share0 * value0 + share1 * value1)
            step = difference(clusters, i, j, k)
            # 1 + excess is the product of all 1 + gain.
            gain = share0 * share1 * (step * step * inverse)
            excess += gain + excess * gain
            gap = (scatter[j, k] - scatter[i, k]) + (scatter[j, d + k] - scatter[i, d + k])
            if gap != 0.0:
                gap *= inverse
                logs += share0 * log_excess(value0 * inverse, -share1 * gap) + share1 * log_excess(
                    value1 * inverse, share0 * gap
                )
            if k % _COLUMNS_PER_LOG == _COLUMNS_PER_LOG - 1 or excess > 1e30:
                logs += math.log1p(excess)
                excess = 0.0
                if 0.5 * weight * logs > cutoff:  # no term is negative: the sum stays above
                    break
        return 0.5 * weight * (logs + math.log1p(excess))

    def curvature(geometry, clusters, i, j, centre, scratch):
        # As for a full covariance, column by column: see `FullCovariance.curvature`.
        d, scatter, total = n_features(geometry, clusters), clusters.scatter, 0.0
        for k in range(d):
            inverse = 1.0 / (scatter[centre, k] + geometry.smoothing)
            step = difference(clusters, i, j, k)
            both = difference(clusters, centre, i, k) + difference(clusters, centre, j, k)
            gap = (scatter[j, k] - scatter[i, k]) + (scatter[j, d + k] - scatter[i, d + k])
            slope = (gap + step * both) * inverse
            total += step * step * inverse + 0.5 * (slope * slope)
        return total

    def merge(geometry, clusters, i, j, scratch):
        d, scatter = n_features(geometry, clusters), clusters.scatter
        w0, w1 = clusters.weights[i], clusters.weights[j]
        weight, weight_error = dd.two_sum(w0, w1)
        for k in range(d):
            means, residuals = clusters.means[k], clusters.residuals[k]
            step, rest = dd.add(means[j], residuals[j], -means[i], -residuals[i])
            # (n₀n₁/n²)δ², in the same order of operations whichever slot is the first.
            part, error = dd.multiply(max(w0, w1), *dd.square(step, rest))
            part, error = dd.multiply(min(w0, w1), *dd.divide(part, error, weight))
            part, error = dd.divide(part, error, weight)
            error -= 2.0 * part * (weight_error / weight)
            scatter[i, k], scatter[i, d + k] = dd.weighted_mean(
                w0, scatter[i, k], scatter[i, d + k], w1, scatter[j, k], scatter[j, d + k]
            )
            _add_variance(clusters, i, k, part, error)
        merge_means(clusters, i, j)
        refresh(geometry, clusters, i, scratch)

    def refresh(geometry, clusters, i, scratch):
        d, cached, features = (
            n_features(geometry, clusters),
            clusters.cached,
            clusters.scan_features,
        )
        logs, largest = 0.0, 1.0
        for k in range(d):
            ratio = clusters.scatter[i, k] / geometry.smoothing
            logs += math.log1p(ratio)
            largest = max(largest, 1.0 + ratio)
            cached[i, k] = 1.0 + ratio
        cached[i, d], cached[i, d + 1] = logs, largest
        for row in range(features.shape[0]):
            features[row, i] = cached[i, row]

    def lower_bounds(geometry, clusters, i, start, stop, scratch):
        _scan(geometry.smoothing, clusters, i, start, stop, scratch)

    def leaf_values(geometry, clusters, i, start, cutoff, scratch):
        d, cached, features = n_features(geometry, clusters), clusters.cached, clusters.cached.T
        means, residuals = clusters.means, clusters.residuals
        w0, w1 = clusters.weights[i], load(clusters.weights, (start,))
        share0, share1 = w0 / (w0 + w1), w1 / (w0 + w1)
        distance, volume, logs = broadcast(0.0), broadcast(1.0), broadcast(0.0)
        per_smoothing = 1.0 / geometry.smoothing
        for k in range(d):
            leading = load(means, (k, start)) - means[k, i]
            step = leading + (load(residuals, (k, start)) - residuals[k, i])
            squared = step * step * per_smoothing
            distance = distance + squared
            value = share0 * cached[i, k] + share1 * load(features, (k, start))
            volume = volume * (value + share0 * share1 * squared)
            if k % _COLUMNS_PER_QUICK_LOG == _COLUMNS_PER_QUICK_LOG - 1:
                logs, volume = logs + quick_logs(volume), broadcast(1.0)
        logs = logs + quick_logs(volume)
        largest = share0 * cached[i, d + 1] + share1 * load(features, (d + 1, start))
        quick = _by_distance(w0 + w1, share0 * share1 * distance, largest)
        own = share0 * cached[i, d] + share1 * load(features, (d, start))
        bounds = larger(_by_logs(w0 + w1, logs, own, d), quick)
        near = at_most(bounds, cutoff)
        return values_of_near(geometry, clusters, i, start, cutoff, near, scratch)

    def box_bounds(geometry, clusters, i, boxes, group, cutoff, scratch):
        d, cached = n_features(geometry, clusters), clusters.cached
        w0, w1 = clusters.weights[i], load(boxes, (group, 2 * d, 0))
        share0, share1 = w0 / (w0 + w1), w1 / (w0 + w1)  # NaN if the box is empty
        per_smoothing = 1.0 / geometry.smoothing
        distance = box_distances(clusters, i, boxes, group, d) * per_smoothing
        largest = share0 * cached[i, d + 1] + share1 * load(boxes, (group, 4 * d + 2, 0))
        bounds = _by_distance(w0 + w1, share0 * share1 * distance, largest)
        store(scratch.bounds, bounds)
        near = at_most(bounds, cutoff)
        if near == 0:
            return near
        volume, others = broadcast(1.0), broadcast(1.0)
        logs, own, overflow = broadcast(0.0), broadcast(0.0), broadcast(0.0)
        for k in range(d):
            mean, value0 = clusters.means[k, i], cached[i, k]
            low, high = load(boxes, (group, 2 * k, 0)), load(boxes, (group, 2 * k + 1, 0))
            gap = larger(larger(low - mean, mean - high), 0.0)
            squared = gap * gap * per_smoothing
            value1 = larger(value0 + share1 * squared, load(boxes, (group, 2 * d + 1 + 2 * k, 0)))
            value1 = smaller(value1, load(boxes, (group, 2 * d + 2 + 2 * k, 0)))
            volume = volume * (share0 * value0 + share1 * value1 + share0 * share1 * squared)
            others = others * value1
            if k % _COLUMNS_PER_QUICK_LOG == _COLUMNS_PER_QUICK_LOG - 1:
                logs, volume = logs + quick_logs(volume), broadcast(1.0)
                overflow = overflow + (others - others)  # NaN once a product is infinite
                own, others = own + quick_logs(others), broadcast(1.0)
        overflow = overflow + (others - others)
        own = share0 * cached[i, d] + share1 * (own + quick_logs(others))
        bounds = larger(_by_logs(w0 + w1, logs + quick_logs(volume), own, 2 * d) + overflow, bounds)
        store(scratch.bounds, bounds)
        return at_most(bounds, cutoff)

    def violation_bounds(geometry, clusters, a, b, start, stop, cutoff, scratch):
        for s in range(stop - start):
            x, scratch.bounds[s] = start + s, np.nan
            if not np.isnan(clusters.weights[x]):
                bound = _slot_violation(geometry, clusters, a, b, x, cutoff)
                if bound <= cutoff:
                    bound = max(bound, _slot_violation(geometry, clusters, b, a, x, cutoff))
                scratch.bounds[s] = bound

    def box_violation_bound(geometry, clusters, a, b, boxes, node, heaviest, cutoff, scratch):
        if boxes[node // LANES, 2 * n_features(geometry, clusters), node % LANES] == np.inf:
            return np.nan
        bound = _box_violation(geometry, clusters, a, b, boxes, node, heaviest, cutoff)
        if bound > cutoff:
            return bound
        return max(bound, _box_violation(geometry, clusters, b, a, boxes, node, heaviest, cutoff))


@kernel
def _add_variance(clusters, i, k, high, low):
    """Add a double-double to the variance of slot i in column k."""
    scatter, rest = clusters.scatter, clusters.means.shape[0] + k
    scatter[i, k], scatter[i, rest] = dd.add(scatter[i, k], scatter[i, rest], high, low)


@inlined_kernel
def _by_distance(weight, distance, largest):
    """The bound from (n₀n₁/n²)‖δ‖² and the largest variance, for scalars or vectors."""
    return weight * distance / (2.0 * largest + distance) * ROUNDING


@inlined_kernel
def _by_logs(weight, logs, own, n_columns):
    """The bound from the sum of log v, and the weighted mean of the parts' sums of logarithms."""
    doubt = 2.0 * LOG_OFF * (1 + n_columns // _COLUMNS_PER_QUICK_LOG)
    return (0.5 * ROUNDING) * weight * (logs * (1.0 - _SUM_OFF) - own * (1.0 + _SUM_OFF) - doubt)


@fused_kernel
def _scan(smoothing, clusters, i, start, stop, scratch):
    """Both bounds for a run of slots. Loops of three or four arrays become vector instructions."""
    size, d, features = stop - start, clusters.means.shape[0], clusters.scan_features
    logs, volumes, weights = scratch.bounds, scratch.other_bounds, clusters.weights[start:stop]
    shares0, shares1 = scratch.shares[0], scratch.shares[1]
    squares, distances = scratch.lanes[0], scratch.lanes[1]
    w0, per_smoothing = clusters.weights[i], 1.0 / smoothing
    for s in range(size):
        shares0[s], shares1[s] = w0 / (w0 + weights[s]), weights[s] / (w0 + weights[s])
    for s in range(size):
        distances[s] = 0.0
    for s in range(size):
        volumes[s], logs[s] = 1.0, 0.0
    for k in range(d):
        mean, rest, value = clusters.means[k, i], clusters.residuals[k, i], features[k, i]
        means, rests = clusters.means[k, start:stop], clusters.residuals[k, start:stop]
        values = features[k, start:stop]
        for s in range(size):
            step = (means[s] - mean) + (rests[s] - rest)
            squares[s] = step * step * per_smoothing
            distances[s] += squares[s]
        for s in range(size):
            share0, share1 = shares0[s], shares1[s]
            volumes[s] *= share0 * value + share1 * (values[s] + share0 * squares[s])
        if k % _COLUMNS_PER_QUICK_LOG == _COLUMNS_PER_QUICK_LOG - 1 or k == d - 1:
            for s in range(size):
                # Where the product overflows, a smaller one is a lower bound too.
                volume = volumes[s] if not volumes[s] > _LARGEST_VOLUME else _LARGEST_VOLUME
                logs[s] += quick_log(volume)
                volumes[s] = 1.0
    own, largest = features[d, i], features[d + 1, i]
    others, largest_others = features[d, start:stop], features[d + 1, start:stop]
    for s in range(size):
        distances[s] *= shares0[s] * shares1[s]
    for s in range(size):
        logs[s] = _by_logs(w0 + weights[s], logs[s], shares0[s] * own + shares1[s] * others[s], d)
    for s in range(size):
        most = shares0[s] * largest + shares1[s] * largest_others[s]
        quick = _by_distance(w0 + weights[s], distances[s], most)
        logs[s] = quick if not logs[s] > quick else logs[s]


@kernel
def _slot_violation(geometry, clusters, a, b, x, cutoff):
    """Lower bound of d(a∪x, b), or anything above the cutoff."""
    total, weight = 0.0, clusters.weights[x]
    for k in range(n_features(geometry, clusters)):
        place, variance = difference(clusters, a, x, k), clusters.scatter[x, k]
        total += _column_violation(
            geometry, clusters, a, b, k, weight, weight, place, place, variance
        )
        if total > cutoff:
            break
    return total


@kernel
def _box_violation(geometry, clusters, a, b, boxes, node, heaviest, cutoff):
    """The same for all x in a box."""
    total, d, group, lane = 0.0, n_features(geometry, clusters), node // LANES, node % LANES
    for k in range(d):
        mean = clusters.means[k, a]
        low, high = boxes[group, 2 * k, lane] - mean, boxes[group, 2 * k + 1, lane] - mean
        variance = (boxes[group, 2 * d + 1 + 2 * k, lane] - 1.0) * geometry.smoothing
        total += _column_violation(
            geometry, clusters, a, b, k, boxes[group, 2 * d, lane], heaviest, low, high, variance
        )
        if total > cutoff:
            break
    return total


@kernel
def _column_violation(geometry, clusters, a, b, k, lightest, heaviest, low, high, variance):
    """The term of one column, for x between low and high relative to a; see `projections`."""
    smoothing, step = geometry.smoothing, difference(clusters, a, b, k)
    variance_a = (clusters.scatter[a, k] + smoothing) * (1.0 - _SUM_OFF)
    variance_b = (clusters.scatter[b, k] + smoothing) * (1.0 + _SUM_OFF)
    variance = (variance + smoothing) * (1.0 - _SUM_OFF)
    slack = 1e-14 * (max(abs(low), abs(high)) + abs(step))
    bound = towards_bound(
        clusters.weights[a], 0.0, variance_a, clusters.weights[b], step, variance_b,
        lightest, heaviest, low, high, variance, slack, 0.0,
    )  # fmt: skip
    return max(bound, 0.0)
