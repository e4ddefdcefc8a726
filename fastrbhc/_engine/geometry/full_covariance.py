"""The geometry of clusters with a mean and a scatter matrix: full covariances."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.record import Clusters, difference, precise_difference
from fastrbhc._engine.geometry.contract import (
    FEW_COLUMNS,
    ROUNDING,
    ScratchShapes,
    Storage,
    n_features,
    refresh,
    values_of_near,
)
from fastrbhc._engine.geometry.covariance_boxes import bounds_of_boxes
from fastrbhc._engine.geometry.covariance_cache import (
    LARGEST_EIGENVALUE,
    LOG_DET_ERROR,
    N_NAMED,
    NO_EXTENT,
    VOLUME,
)
from fastrbhc._engine.geometry.covariance_curvature import curvature_by_cholesky
from fastrbhc._engine.geometry.float32_means import merge_mirrored_means, with_centred_mirror
from fastrbhc._engine.geometry.leading_block import (
    FIRST,
    LANES,
    LEADING,
    distance_bounds,
    lanes_size,
    leading_bounds,
    leaf_bounds,
    n_scan_features,
    update_scan_features,
)
from fastrbhc._engine.geometry.projections import box_violation, slot_violation
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.math.cholesky import (
    EXCESS,
    LOSS,
    PANEL,
    RECIPROCAL_ROOT,
    SOLUTION,
    add_precise_product,
    add_scatter,
    factor_rows,
    factor_rows_precisely,
    factor_shape,
)
from fastrbhc._engine.math.double_double import add, product, quotient, two_sum
from fastrbhc._engine.math.jensen import jensen_gap
from fastrbhc._engine.simd import LANES as SIMD_LANES

# A log determinant is off by at most this times itself and the losses of its pivots.
_LOG_DET_ROUNDING = 5e-16

# Relative error of d above which the log determinants are not subtracted from each other.
_TOLERANCE = 5e-11

# Below this, log(1 + x) is x, and x may have lost digits.
_UNDERFLOW = 1e-280

# A product of pivots is not multiplied further above this, lest it overflow.
_LARGE = 1e100


class FullCovariance(NamedTuple):
    """The geometry of clusters with a mean and a scatter matrix.

    With Σ₀, Σ₁ the smoothed covariances, A = (n₀Σ₀ + n₁Σ₁)/n and δ the difference of the means,

        d = ½[n log det A − n₀ log det Σ₀ − n₁ log det Σ₁] + ½ n log(1 + (n₀n₁/n²) δᵀA⁻¹δ).

    Scatter: Σ(x−x̄)(x−x̄)ᵀ by rows of its lower triangle, in double-double; never
    X − xxᵀ, which cancels. `covariance_cache` lists the cached values.
    """

    ridge: float
    columns: tuple[int, ...] = ()

    def storage(self, n_features: int) -> Storage:
        return Storage(
            scatter=n_features * (n_features + 1),
            cached=n_features + N_NAMED,
            scan_features=n_scan_features(n_features),
            mirrored=True,
            principal=n_features > FEW_COLUMNS,
            box_features=(n_features + LARGEST_EIGENVALUE, n_features + VOLUME),
            points_alike=True,
        )

    def scratch_shapes(self, n_features: int) -> ScratchShapes:
        rows, columns = factor_shape(n_features)
        return ScratchShapes(
            matrix=(2 * rows, columns),  # as `jensen_gap` needs it
            lanes=(lanes_size(n_features), LANES),
        )

    def with_mirror(self, clusters: Clusters) -> Clusters:
        return with_centred_mirror(clusters)

    def put_covariances(
        self,
        clusters: Clusters,
        slots: NDArray[np.int64],
        covariances: NDArray[np.float64],
    ) -> None:
        rows, columns = np.tril_indices(covariances.shape[1])
        clusters.scatter[slots] = 0.0
        clusters.scatter[slots, : rows.size] = (
            clusters.weights[slots, None] * covariances[:, rows, columns]
        )

    def add_row(geometry, clusters, i, weight, values, residuals, scratch):
        entry = 0
        for k in range(values.size):
            high0, low0 = _step(clusters, i, values, residuals, k)
            for m in range(k + 1):
                high1, low1 = _step(clusters, i, values, residuals, m)
                add_precise_product(clusters.scatter, i, entry, weight, high0, low0, high1, low1)
                entry += 1

    def dissimilarity(geometry, clusters, i, j, cutoff, scratch):
        d = n_features(geometry, clusters)
        w0, w1 = clusters.weights[i], clusters.weights[j]
        weight = w0 + w1
        shares = (w0 / weight) * (w1 / weight)
        if clusters.cached[i, d + NO_EXTENT] + clusters.cached[j, d + NO_EXTENT] == 2.0:
            distance = 0.0  # two points: A = εI
            for k in range(d):
                step = difference(clusters, i, j, k)
                distance += step * step
            ratio = shares * distance / geometry.ridge
            if ratio > _UNDERFLOW:
                return 0.5 * weight * math.log1p(ratio)
            return 0.5 * weight * shares * (distance / geometry.ridge)
        value = _by_cholesky(geometry, clusters, i, j, cutoff, scratch.matrix, False)
        if np.isnan(value):
            value = _by_cholesky(geometry, clusters, i, j, cutoff, scratch.matrix, True)
        return value

    def curvature(geometry, clusters, i, j, centre, scratch):
        value = curvature_by_cholesky(geometry, clusters, i, j, centre, scratch.matrix, False)
        if np.isnan(value):
            value = curvature_by_cholesky(geometry, clusters, i, j, centre, scratch.matrix, True)
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
            min(n_features(geometry, clusters), LEADING),
            scratch.lanes,
            scratch.bounds,
        )

    def candidate_slots(geometry, clusters, i, start, stop, cutoff, scratch):
        slots, bounds = scratch.slots, scratch.bounds
        distance_bounds(clusters, i, start, stop, scratch)
        for s in range(stop - start):
            slots[s] = start + s
        count = _at_most(slots, bounds, stop - start, cutoff)
        leading = min(n_features(geometry, clusters), LEADING)
        for q in (min(leading, FIRST), leading):
            leading_bounds(geometry.ridge, clusters, i, slots, count, q, scratch.lanes, bounds)
            count = _at_most(slots, bounds, count, cutoff)
            if q == leading:
                break
        return count

    def leaf_values(geometry, clusters, i, start, cutoff, scratch):
        near = leaf_bounds(clusters, i, start, n_features(geometry, clusters), cutoff, scratch)
        return values_of_near(geometry, clusters, i, start, cutoff, near, scratch)

    def box_bounds(geometry, clusters, i, boxes, group, cutoff, scratch):
        return bounds_of_boxes(geometry, clusters, i, boxes, group, cutoff, scratch)

    def violation_bounds(geometry, clusters, a, b, start, stop, cutoff, scratch):
        d, direction = n_features(geometry, clusters), scratch.direction
        for s in range(stop - start):
            x, scratch.bounds[s] = start + s, np.nan
            if not np.isnan(clusters.weights[x]):
                scratch.bounds[s] = slot_violation(
                    geometry.ridge, clusters, d, a, b, x, cutoff, direction
                )

    def box_violation_bound(geometry, clusters, a, b, boxes, node, heaviest, cutoff, scratch):
        d = n_features(geometry, clusters)
        if boxes[node // SIMD_LANES, 2 * d, node % SIMD_LANES] == np.inf:
            return np.nan
        return box_violation(
            geometry.ridge, clusters, d, a, b, boxes, node, heaviest, cutoff, scratch.direction
        )

    def merge(geometry, clusters, i, j, scratch):
        w0, w1 = clusters.weights[i], clusters.weights[j]
        factor = w0 * w1 / (w0 + w1)
        add_scatter(clusters.scatter, i, j)
        entry = 0
        for k in range(n_features(geometry, clusters)):
            high0, low0 = precise_difference(clusters, i, j, k)
            for m in range(k + 1):
                high1, low1 = precise_difference(clusters, i, j, m)
                add_precise_product(clusters.scatter, i, entry, factor, high0, low0, high1, low1)
                entry += 1
        merge_mirrored_means(clusters, i, j)
        refresh(geometry, clusters, i, scratch)

    def refresh(geometry, clusters, i, scratch):
        if not _refresh_shape(geometry, clusters, i, scratch.matrix, False):
            _refresh_shape(geometry, clusters, i, scratch.matrix, True)
        update_scan_features(clusters, i, n_features(geometry, clusters))


@kernel
def _scaled_log1p(weight, share, ratio):
    """weight·log(1 + share·ratio), also where the product underflows before it is multiplied."""
    product = share * ratio
    return weight * math.log1p(product) if product > _UNDERFLOW else weight * share * ratio


@kernel
def _step(clusters, i, values, residuals, k):
    """A row's value in column k less the mean of slot i, in double-double."""
    high, low = two_sum(values[k], -clusters.means[k, i])
    return two_sum(high, low + (residuals[k] - clusters.residuals[k, i]))


@kernel
def _at_most(slots, bounds, size, cutoff):
    """Keep the slots whose bounds are at most the cutoff; how many they are."""
    count = 0
    for s in range(size):
        slots[count], bounds[count] = slots[s], bounds[s]
        count += np.int64(bounds[s] <= cutoff)  # without a jump that no one can predict
    return count


@kernel
def _by_cholesky(geometry, clusters, i, j, cutoff, work, precise):
    """d by a Cholesky factorisation of nA that stops once the leading columns reach the cutoff.

    Restricted to the leading k columns d can only be smaller, so the rows so far give a lower
    bound of the whole. Rounding must not turn that into a wrong verdict: the bound has
    to pass the cutoff by more than the pivots and logarithms can be off. NaN if floats are not
    precise enough.

    Log determinants are relative to the ridge, so that none of their digits are lost where the
    scatter is small against it.
    """
    d = n_features(geometry, clusters)
    w0, w1 = clusters.weights[i], clusters.weights[j]
    weight = w0 + w1
    share = (w0 / weight) * (w1 / weight) * weight
    ridge = weight * geometry.ridge
    log_det, loss, mahalanobis, own, value = 0.0, 0.0, 0.0, 0.0, 0.0
    for first in range(0, d, PANEL):
        last = min(first + PANEL, d)
        if precise:
            factor_rows_precisely(clusters.scatter, i, j, d, first, ridge, work)
        elif not factor_rows(clusters.scatter, i, j, d, first, ridge, work):
            return np.nan
        growth = 0.0  # the product of (pivot / ridge), less 1
        for k in range(first, last):
            if precise:
                _solve_row_precisely(clusters, i, j, k, d, work)
            else:
                solution = difference(clusters, i, j, k)
                for m in range(k):
                    solution -= work[k, m] * work[m, d + SOLUTION]
                work[k, d + SOLUTION] = solution * work[k, d + RECIPROCAL_ROOT]
            mahalanobis += work[k, d + SOLUTION] * work[k, d + SOLUTION]
            if growth > _LARGE:
                log_det += math.log1p(growth)
                growth = 0.0
            ratio = work[k, d + EXCESS] / ridge
            growth += ratio + growth * ratio
            loss += work[k, d + LOSS]
        log_det += math.log1p(growth)
        own = w0 * clusters.cached[i, last - 1] + w1 * clusters.cached[j, last - 1]
        gap = max(weight * log_det - own, 0.0)
        value = 0.5 * (gap + _scaled_log1p(weight, share, mahalanobis))
        doubt = 1e-12 * log_det + 4e-12 * last * d
        if last < d and value * ROUNDING - doubt * weight > cutoff:
            return value
    errors = d + LOG_DET_ERROR
    error = weight * (_LOG_DET_ROUNDING * (log_det + loss))
    error += w0 * clusters.cached[i, errors] + w1 * clusters.cached[j, errors]
    if error > _TOLERANCE * value and value - error <= cutoff:
        gap = jensen_gap(clusters.scatter, i, j, w0, w1, d, ridge, work)
        return 0.5 * (gap + _scaled_log1p(weight, share, mahalanobis))
    return value


@kernel
def _solve_row_precisely(clusters, i, j, k, d, work):
    """Row k of L⁻¹δ in double-double: across a flat cluster, large terms cancel here too."""
    column = d + SOLUTION
    high, low = precise_difference(clusters, i, j, k)
    for m in range(k):
        term, error = product(work[k, m], work[d + k, m], work[m, column], work[d + m, column])
        high, low = add(high, low, -term, -error)
    high, low = quotient(high, low, work[k, k], work[d + k, k])
    work[k, column], work[d + k, column] = high, low


@kernel
def _refresh_shape(geometry, clusters, i, work, precise):
    """Cached values of slot i from its scatter; False if floats are not precise enough."""
    d = n_features(geometry, clusters)
    weight = clusters.weights[i]
    ridge = weight * geometry.ridge
    log_det, loss, trace, squares = 0.0, 0.0, 0.0, 0.0
    for first in range(0, d, PANEL):
        if precise:
            factor_rows_precisely(clusters.scatter, i, -1, d, first, ridge, work)
        elif not factor_rows(clusters.scatter, i, -1, d, first, ridge, work):
            return False
        for k in range(first, min(first + PANEL, d)):
            log_det += math.log1p(work[k, d + EXCESS] / ridge)
            loss += work[k, d + LOSS]
            clusters.cached[i, k] = log_det
            trace += clusters.scatter[i, k * (k + 3) // 2] / weight
    for k in range(d):
        for m in range(k + 1):
            # Relative to the trace, as fourth powers may overflow.
            share = clusters.scatter[i, k * (k + 1) // 2 + m] / weight / max(trace, 1e-300)
            squares += share * share * (1.0 if m == k else 2.0)
    # Largest eigenvalue from trace and Frobenius norm: Wolkowicz & Styan (1980). The added
    # term covers what cancels in the deviation.
    deviation = max(squares / d - 1.0 / d**2, 0.0) + 1e-14
    largest = trace * (1.0 / d + math.sqrt((d - 1) * deviation))
    clusters.cached[i, d + LARGEST_EIGENVALUE] = largest * (1.0 + 1e-9) + geometry.ridge
    clusters.cached[i, d + NO_EXTENT] = 1.0 if trace == 0.0 else 0.0
    clusters.cached[i, d + VOLUME] = log_det / d
    clusters.cached[i, d + LOG_DET_ERROR] = _LOG_DET_ROUNDING * (log_det + loss)
    return True
