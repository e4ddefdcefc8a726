"""Measurements whose clusters each have a shape of their own."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.observations import column_ranges
from fastrbhc._engine.geometry.contract import (
    ROUNDING,
    Clusters,
    Sizes,
    box_bound,
    difference,
    n_columns,
    refresh,
    suspects_one_by_one,
    values_of_near,
)
from fastrbhc._engine.geometry.float32_means import merge_means, with_centred_coarse
from fastrbhc._engine.geometry.leading_block import (
    LANES,
    LOG_OFF,
    distance_bounds,
    draw_outline,
    lanes_size,
    leading_bounds,
    outline_size,
    quick_log,
    tile_bounds,
)
from fastrbhc._engine.geometry.projections import box_pull, slot_pull
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.math.cholesky import (
    PANEL,
    add_product,
    add_scatter,
    factor_rows,
    factor_rows_precisely,
)
from fastrbhc._engine.simd import EIGHT, at_most, larger, load, lowest, spread, store
from fastrbhc.families._interface import Domain, family
from fastrbhc.families._smoothing import Smoothing, shift

# Up to so many columns the kd-tree is at work, which has little use for principal axes.
_FEW_COLUMNS = 8

# Variance over smoothing: beyond this even double-double cannot tell flat clusters apart.
_HOPELESS = 1e20


@family("gaussian", separable=False, reducible=False, domain=Domain())
class Gaussian(NamedTuple):
    """Gaussian with full covariance: φ(x, X) = −½ log det(X − xxᵀ + εI).

    With Σ₀, Σ₁ the smoothed covariances, A = (n₀Σ₀ + n₁Σ₁)/n and δ the difference of the means,

        d = ½[n log det A − n₀ log det Σ₀ − n₁ log det Σ₁] + ½ n log(1 + (n₀n₁/n²) δᵀA⁻¹δ).

    Not reducible: a third cluster may fill the gap that makes two others dissimilar.

    Parameters
    ----------
    smoothing : float, default=0.01
        ε, added to the covariance (the paper's φ₁: a shift along the identity, which stays
        inside the cone of covariances). It is in the squared unit of the data: scale the columns
        first, so that it means the same in each of them.

    Examples
    --------
    >>> from fastrbhc import dissimilarity
    >>> round(dissimilarity([[0.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 1.0]], "gaussian"), 6)
    6.516193
    """

    smoothing: float = 0.01

    def check(self) -> None:
        if not 0.0 < self.smoothing <= 1e245:
            raise ValueError(
                f"smoothing has to be positive and at most 1e245, got {self.smoothing}: "
                "without it a single point has no covariance"
            )

    def check_rows(self, X: NDArray[np.float64]) -> None:
        lowest, highest = column_ranges(X)
        widths = highest - lowest
        column = int(np.argmax(widths))
        excess = (0.5 * widths[column]) ** 2 / self.smoothing
        if X.shape[1] > 1 and excess > _HOPELESS:
            raise ValueError(
                f"Column {column} is {widths[column]:.3g} wide: its variance may exceed the "
                f"smoothing {self.smoothing:g} by a factor of {excess:.1g}, and the determinants "
                "of small clusters cannot be told from 0. Scale the columns first "
                "(sklearn.preprocessing.StandardScaler does) or choose a larger smoothing."
            )

    def smoothing_map(self, n_features: int) -> Smoothing:
        return shift(self.smoothing)

    def n_parameters(self, n_features: int) -> int:
        return n_features * (n_features + 3) // 2  # a mean, and a triangle of covariances

    def geometry(self, n_features: int) -> FullCovariance:
        return FullCovariance(self.smoothing_map(n_features).offset)


class FullCovariance(NamedTuple):
    """The geometry of clusters with a mean and a scatter matrix.

    Moments: the scatter Σ(x−x̄)(x−x̄)ᵀ by rows of its lower triangle, in double-double; never
    X − xxᵀ, which cancels. Cached: the log determinants of the leading k×k blocks of the smoothed
    covariance, k = 1…d, a bound of its largest eigenvalue (the spread), 1 for a cluster without
    extent, and log det / d (the volume).
    """

    ridge: float

    def sizes(self, n_features: int) -> Sizes:
        return Sizes(
            moments=n_features * (n_features + 1),
            cached=n_features + 3,
            coarse=True,
            outline=outline_size(n_features),
            lanes=(lanes_size(n_features), LANES),
            principal=n_features > _FEW_COLUMNS,
            matrix=(2 * n_features, n_features + 3),  # a Cholesky factor and a solution
        )

    def with_coarse(self, clusters: Clusters) -> Clusters:
        return with_centred_coarse(clusters)

    def dissimilarity(geometry, clusters, i, j, cutoff, scratch):
        n_features = n_columns(clusters)
        w0, w1 = clusters.weights[i], clusters.weights[j]
        weight = w0 + w1
        product = (w0 / weight) * (w1 / weight)
        if clusters.cached[i, n_features + 1] + clusters.cached[j, n_features + 1] == 2.0:
            distance = 0.0  # two points: A = εI
            for k in range(n_features):
                step = difference(clusters, i, j, k)
                distance += step * step
            return 0.5 * weight * math.log1p(product * distance / geometry.ridge)
        value = _of_shapes(geometry, clusters, i, j, cutoff, scratch.matrix, False)
        if np.isnan(value):
            value = _of_shapes(geometry, clusters, i, j, cutoff, scratch.matrix, True)
        return value

    def curvature(geometry, clusters, i, j, centre, scratch):
        value = _curvature(geometry, clusters, i, j, centre, scratch.matrix, False)
        if np.isnan(value):
            value = _curvature(geometry, clusters, i, j, centre, scratch.matrix, True)
        return value

    def lower_bounds(geometry, clusters, i, start, stop, scratch):
        distance_bounds(clusters, i, start, stop, scratch)
        for s in range(stop - start):
            scratch.slots[s] = start + s
        leading_bounds(
            geometry.ridge,
            clusters,
            i,
            scratch.slots,
            stop - start,
            scratch.lanes,
            scratch.bounds,
        )

    def candidates(geometry, clusters, i, start, stop, cutoff, scratch):
        slots, bounds = scratch.slots, scratch.bounds
        distance_bounds(clusters, i, start, stop, scratch)
        for s in range(stop - start):
            slots[s] = start + s
        count = _at_most(slots, bounds, stop - start, cutoff)
        leading_bounds(geometry.ridge, clusters, i, slots, count, scratch.lanes, bounds)
        return _at_most(slots, bounds, count, cutoff)

    def aim(geometry, clusters, queue, first, last, scratch):
        return

    def suspects(geometry, clusters, queue, first, last, start, stop, cutoffs, scratch):
        return suspects_one_by_one(
            geometry, clusters, queue, first, last, start, stop, cutoffs, scratch
        )

    def tile_values(geometry, clusters, i, start, cutoff, scratch):
        near = tile_bounds(clusters, i, start, n_columns(clusters), cutoff, scratch)
        return values_of_near(geometry, clusters, i, start, cutoff, near, scratch)

    def n_extents(geometry):
        return 2

    def extent(geometry, clusters, i, e):
        return clusters.cached[i, n_columns(clusters) + 2 * e]  # spread and volume

    def box_bound(geometry, clusters, i, boxes, node, cutoff):
        n_features, group, lane = n_columns(clusters), node // EIGHT, node % EIGHT
        if boxes[group, 2 * n_features, lane] == np.inf:
            return np.nan
        distance = 0.0
        for k in range(n_features):
            mean = clusters.means[k, i]
            low, high = boxes[group, 2 * k, lane], boxes[group, 2 * k + 1, lane]
            gap = max(max(low - mean, mean - high), 0.0)
            distance += gap * gap
        volume0, k = clusters.cached[i, n_features + 2], 2 * n_features
        volume1 = min(max(volume0, boxes[group, k + 3, lane]), boxes[group, k + 4, lane])
        return _bound(
            n_features,
            cutoff,
            distance,
            clusters.weights[i],
            clusters.cached[i, n_features],
            volume0,
            boxes[group, k, lane],
            boxes[group, k + 2, lane],
            volume1,
        )

    def box_bounds(geometry, clusters, i, boxes, group, cutoff, scratch):
        # The quick part of `_bound`; what that leaves in doubt is looked at one by one.
        n_features = n_columns(clusters)
        distance = spread(0.0)
        for k in range(n_features):
            mean = clusters.means[k, i]
            low, high = load(boxes, (group, 2 * k, 0)), load(boxes, (group, 2 * k + 1, 0))
            gap = larger(larger(low - mean, mean - high), 0.0)
            distance = distance + gap * gap
        k, w0 = 2 * n_features, clusters.weights[i]
        w1, spread1 = load(boxes, (group, k, 0)), load(boxes, (group, k + 2, 0))
        weight = w0 + w1
        largest = (w0 * clusters.cached[i, n_features] + w1 * spread1) / weight
        ratio = (w0 / weight) * (w1 / weight) * distance / largest
        bounds = weight * ratio / (2.0 + ratio) * ROUNDING
        store(scratch.bounds, bounds)
        near = at_most(bounds, cutoff)
        if near == 0:
            return near
        volume0 = clusters.cached[i, n_features + 2]
        low, high = load(boxes, (group, k + 3, 0)), load(boxes, (group, k + 4, 0))
        gap = larger(larger(low - volume0, volume0 - high), 0.0)
        most = 0.5 * weight * (ratio + (0.125 * n_features) * gap * gap)
        doubtful = near & ~at_most(most, cutoff)
        while doubtful:
            s = lowest(doubtful)
            doubtful &= doubtful - 1
            bound = box_bound(geometry, clusters, i, boxes, EIGHT * group + s, cutoff)
            scratch.bounds[s] = bound
            if bound > cutoff:
                near -= 1 << s
        return near

    def pull_bounds(geometry, clusters, a, b, start, stop, cutoff, scratch):
        direction = scratch.direction
        for s in range(stop - start):
            x, scratch.bounds[s] = start + s, np.nan
            if not np.isnan(clusters.weights[x]):
                scratch.bounds[s] = slot_pull(geometry.ridge, clusters, a, b, x, cutoff, direction)

    def box_pull_bound(geometry, clusters, a, b, boxes, node, heaviest, cutoff, scratch):
        if boxes[node // EIGHT, 2 * n_columns(clusters), node % EIGHT] == np.inf:
            return np.nan
        return box_pull(
            geometry.ridge, clusters, a, b, boxes, node, heaviest, cutoff, scratch.direction
        )

    def merge(geometry, clusters, i, j, scratch):
        w0, w1 = clusters.weights[i], clusters.weights[j]
        factor = w0 * w1 / (w0 + w1)
        add_scatter(clusters.moments, i, j)
        entry = 0
        for k in range(n_columns(clusters)):
            step = difference(clusters, i, j, k)
            for m in range(k + 1):
                add_product(clusters.moments, i, entry, factor, step, difference(clusters, i, j, m))
                entry += 1
        merge_means(clusters, i, j)
        refresh(geometry, clusters, i, scratch)

    def refresh(geometry, clusters, i, scratch):
        if not _refresh_shape(geometry, clusters, i, scratch.matrix, False):
            _refresh_shape(geometry, clusters, i, scratch.matrix, True)
        draw_outline(geometry.ridge, clusters, i, n_columns(clusters))


@kernel
def _at_most(slots, bounds, size, cutoff):
    """Keep the slots whose bounds are at most the cutoff; how many they are."""
    count = 0
    for s in range(size):
        slots[count], bounds[count] = slots[s], bounds[s]
        count += np.int64(bounds[s] <= cutoff)  # without a jump that no one can predict
    return count


@kernel
def _bound(n_features, cutoff, distance, w0, spread0, volume0, w1, spread1, volume1):
    """Lower bound of d from squared distance, weights, largest eigenvalues and mean log volumes.

    Of the means: δᵀA⁻¹δ ≥ ‖δ‖²/λmax(A), and λmax is convex. Of the shapes: by Minkowski's
    inequality the bracket is at least d·[n log((n₀g₀ + n₁g₁)/n) − n₀ log g₀ − n₁ log g₁], with
    g = det Σ^(1/d) and log g the volume. Both grow with either weight; the first falls with either
    spread, the second grows as the volumes part: so ends of intervals will do for a box.
    """
    weight = w0 + w1
    share0, share1 = w0 / weight, w1 / weight
    largest = share0 * spread0 + share1 * spread1
    ratio = share0 * share1 * distance / largest
    # log(1 + x) ≥ 2x/(2 + x) settles most boxes without a logarithm.
    quick = weight * ratio / (2.0 + ratio) * ROUNDING
    if quick > cutoff:
        return quick
    gap = min(volume1 - volume0, 600.0)  # before the exponential overflows
    # The part of the shapes is at most gap²/8, as its second derivative is at most a quarter: it
    # is worth its logarithms only where both parts together could pass the cutoff.
    most_of_shapes = n_features * 0.125 * gap * gap
    if 0.5 * weight * (ratio + most_of_shapes) <= cutoff:
        return quick
    parts = max(2.0 * ratio / (2.0 + ratio), quick_log(1.0 + ratio) - LOG_OFF)
    if gap != 0.0 and 0.5 * weight * parts * ROUNDING <= cutoff:
        jensen = math.log1p(share1 * math.expm1(gap)) - share1 * gap
        doubt = 1e-12 * (abs(volume0) + abs(volume1)) + 4e-12 * n_features
        if jensen > doubt:
            parts += n_features * (jensen - doubt)
    return 0.5 * weight * parts * ROUNDING


@kernel
def _of_shapes(geometry, clusters, i, j, cutoff, work, precise):
    """d by a Cholesky factorisation of nA that stops once the leading columns reach the cutoff.

    Restricted to the leading k columns d can only be smaller, so the rows so far give a lower
    bound of the whole. Rounding must not turn that into a wrong verdict: the bound has
    to pass the cutoff by more than the pivots and logarithms can be off. NaN if floats are not
    precise enough.
    """
    n_features = n_columns(clusters)
    w0, w1 = clusters.weights[i], clusters.weights[j]
    weight = w0 + w1
    share = (w0 / weight) * (w1 / weight) * weight
    ridge = weight * geometry.ridge
    log_det, magnitude, mahalanobis, value = 0.0, 0.0, 0.0, 0.0
    for first in range(0, n_features, PANEL):
        last = min(first + PANEL, n_features)
        if precise:
            factor_rows_precisely(clusters.moments, i, j, n_features, first, ridge, work)
        elif not factor_rows(clusters.moments, i, j, n_features, first, ridge, work):
            return np.nan
        for k in range(first, last):
            solution = difference(clusters, i, j, k)
            for m in range(k):
                solution -= work[k, m] * work[m, n_features]
            solution *= work[k, n_features + 2]
            work[k, n_features] = solution
            mahalanobis += solution * solution
            log_pivot = math.log(work[k, n_features + 1] / weight)
            log_det += log_pivot
            magnitude += abs(log_pivot)
        own = w0 * clusters.cached[i, last - 1] + w1 * clusters.cached[j, last - 1]
        bracket = max(weight * log_det - own, 0.0)
        value = 0.5 * (bracket + weight * math.log1p(share * mahalanobis))
        doubt = 1e-12 * magnitude + 4e-12 * last * n_features
        if last < n_features and value * ROUNDING - doubt * weight > cutoff:
            return value
    return value


@kernel
def _curvature(geometry, clusters, i, j, centre, work, precise):
    """φ″ along (u, U), the difference of mean and second moment: uᵀM⁻¹u + ½ tr((M⁻¹M′)²).

    M = Σ + εI and the mean x are those of the centre, and M′ = U − uxᵀ − xuᵀ. With a and b the
    means of the two as seen from x, that is Σ₁ − Σ₀ + ½(u(a+b)ᵀ + (a+b)uᵀ), where nothing large
    cancels. The trace is the sum of squares of L⁻¹M′L⁻ᵀ, LLᵀ = M. NaN if floats are not precise
    enough for L.
    """
    n_features, moments = n_columns(clusters), clusters.moments
    w0, w1, weight = clusters.weights[i], clusters.weights[j], clusters.weights[centre]
    ridge = weight * geometry.ridge
    for first in range(0, n_features, PANEL):  # of weight·M, as scatter is not divided
        if precise:
            factor_rows_precisely(moments, centre, -1, n_features, first, ridge, work)
        elif not factor_rows(moments, centre, -1, n_features, first, ridge, work):
            return np.nan
    matrix = work[n_features:]  # what stood there was for the factor alone
    for k in range(n_features):
        step = difference(clusters, i, j, k)
        both = difference(clusters, centre, i, k) + difference(clusters, centre, j, k)
        work[k, n_features], work[k, n_features + 1] = step, both
        for m in range(k + 1):
            entry = k * (k + 1) // 2 + m
            of_means = 0.5 * (step * work[m, n_features + 1] + both * work[m, n_features])
            matrix[k, m] = (moments[j, entry] / w1 - moments[i, entry] / w0) + of_means
            matrix[m, k] = matrix[k, m]
    mahalanobis, squares = 0.0, 0.0
    for k in range(n_features):
        for m in range(k):
            work[k, n_features] -= work[k, m] * work[m, n_features]
            for column in range(n_features):
                matrix[k, column] -= work[k, m] * matrix[m, column]
        work[k, n_features] *= work[k, n_features + 2]
        mahalanobis += work[k, n_features] * work[k, n_features]
        for column in range(n_features):
            matrix[k, column] *= work[k, n_features + 2]
    for row in range(n_features):
        for k in range(n_features):
            value = matrix[row, k]
            for m in range(k):
                value -= work[k, m] * matrix[row, m]
            matrix[row, k] = value * work[k, n_features + 2]
            squares += matrix[row, k] * matrix[row, k]
    return weight * mahalanobis + 0.5 * (weight * weight) * squares


@kernel
def _refresh_shape(geometry, clusters, i, work, precise):
    """Cached values of slot i from its scatter; False if floats are not precise enough."""
    n_features = n_columns(clusters)
    weight = clusters.weights[i]
    ridge = weight * geometry.ridge
    log_det, trace, squares = 0.0, 0.0, 0.0
    for first in range(0, n_features, PANEL):
        if precise:
            factor_rows_precisely(clusters.moments, i, -1, n_features, first, ridge, work)
        elif not factor_rows(clusters.moments, i, -1, n_features, first, ridge, work):
            return False
        for k in range(first, min(first + PANEL, n_features)):
            log_det += math.log(work[k, n_features + 1] / weight)
            clusters.cached[i, k] = log_det
            trace += clusters.moments[i, k * (k + 3) // 2] / weight
    for k in range(n_features):
        for m in range(k + 1):
            # Relative to the trace, as fourth powers may overflow.
            share = clusters.moments[i, k * (k + 1) // 2 + m] / weight / max(trace, 1e-300)
            squares += share * share * (1.0 if m == k else 2.0)
    # Largest eigenvalue from trace and Frobenius norm: Wolkowicz & Styan (1980). The added
    # term covers what cancels in the deviation.
    deviation = max(squares / n_features - 1.0 / n_features**2, 0.0) + 1e-14
    largest = trace * (1.0 / n_features + math.sqrt((n_features - 1) * deviation))
    clusters.cached[i, n_features] = largest * (1.0 + 1e-9) + geometry.ridge
    clusters.cached[i, n_features + 1] = 1.0 if trace == 0.0 else 0.0
    clusters.cached[i, n_features + 2] = log_det / n_features
    return True
