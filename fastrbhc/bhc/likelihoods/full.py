"""The likelihood of measurements with full covariance: determinants of scatter matrices.

Rows are measured in units of the prior: z = L⁻¹(x − c), LLᵀ = Ψ, with c the middle of the data. A
cluster has its number of rows n, the mean z̄ and the scatter S about it, and with m the prior mean

    ℓ = by_size(n) − ½(ν + n) log det(I + C),      C = S + κn/(κ + n)·(z̄ − m)(z̄ − m)ᵀ.

C never shrinks as rows are added, since S + κn/(κ + n)(…)(…)ᵀ is the smallest of all
Σ(z − μ)(z − μ)ᵀ + κ(μ − m)(μ − m)ᵀ. From that come two bounds for the union of i and j:

- log det(I + C) is at least that of either part. So is the product of the factor's pivots from any
  row on, and a factorisation stops as soon as its pivots so far and the remaining pivots of one
  part reach the limit;
- without the scatter of j, the matrix of the union is that of i plus one term. With κ_i = κ + n_i,
  μ_i the posterior mean of i, and R the inverse of its factor,
  log det(I + C) ≥ log det(I + C_i) + log(1 + κ_i n_j/(κ_i + n_j)·‖R(z̄_j − μ_i)‖²).
  This is the exact value if j is a single row.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.record import difference, merge_means
from fastrbhc._engine.geometry.contract import ScratchShapes, Storage
from fastrbhc._engine.jit import fused_kernel, kernel, loose_kernel
from fastrbhc._engine.math.cholesky import (
    PANEL,
    add_product,
    add_scatter,
    factor_rows_precisely,
)
from fastrbhc._engine.math.fast_log import LOG_OFF, quick_log
from fastrbhc._engine.records import record
from fastrbhc.bhc._interface import OWN_CACHED, OWN_FEATURES
from fastrbhc.bhc.likelihoods.unions import LARGE_PRODUCT, steps_of_union, weights_of_union

# A pivot below this share of its diagonal entry has lost five digits: repeat in double-double.
_CANCELLED = 1e-5

# The largest relative errors of the squared length of R·δ, if no pivot was as small as that, and of
# sums of logarithms, as a share of their terms.
_OFF, _ROUNDING = 1e-6, 1e-12

# Rows of R that a scan uses: 3,000 × 49 MNIST digits took 4.3 s with 4 or 8, 3.5 to 4.0 s with
# 16, 3.7 to 3.9 s with 24 (one thread of a busy machine).
LEADING = 16

# Cached: first the log determinants of the leading blocks; that of the last is a scan feature too.
_BLOCKS, _FEATURE_LOG_DET = OWN_CACHED, OWN_FEATURES


@record
class Scatter:
    """The likelihood; scatter is in double-double, as for the Gaussian family."""

    centre: NDArray[np.float64]  # (d,), c
    factor: NDArray[np.float64]  # (d, d), L
    axes: NDArray[np.float64]  # (d, d), principal axes of the rows; (0, 0) if not used
    prior_mean: NDArray[np.float64]  # (d,), m in units of the prior
    strength: float  # κ
    degrees: float  # ν
    by_size: NDArray[np.float64]  # (n + 2,)
    reach: float  # the farthest that a row or the prior mean lies from c, in one column

    def observe(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return in_units_of_prior(X, self.centre, self.factor, self.axes)

    def for_new_rows(self, new: NDArray[np.float64]) -> Scatter:
        return self

    def storage(self, n_columns: int) -> Storage:
        triangle = n_columns * (n_columns + 1) // 2
        return Storage(
            scatter=2 * triangle,
            cached=2 * n_columns + triangle,  # blocks, posterior mean, inverse factor
            scan_features=1,
        )

    def scratch_shapes(self, n_columns: int) -> ScratchShapes:
        return ScratchShapes(
            matrix=(2 * n_columns, n_columns + 3),  # a factor
            lanes=(1, n_columns * (n_columns + 1)),  # the scatter of a union
        )

    def join(likelihood, clusters, i, j):
        w0, w1 = clusters.weights[i], clusters.weights[j]
        factor = w0 * w1 / (w0 + w1)
        add_scatter(clusters.scatter, i, j)
        entry = 0
        for k in range(clusters.means.shape[0]):
            step = difference(clusters, i, j, k)
            for m in range(k + 1):
                add_product(clusters.scatter, i, entry, factor, step, difference(clusters, i, j, m))
                entry += 1
        merge_means(clusters, i, j)

    def summarise(likelihood, clusters, i, scratch):
        n_features, cached, work = clusters.means.shape[0], clusters.cached, scratch.matrix
        weight = clusters.weights[i]
        strength = likelihood.strength + weight
        log_det = _log_det(likelihood, clusters, i, -1, np.inf, scratch)
        cached[i, _BLOCKS + n_features - 1] = log_det
        clusters.scan_features[_FEATURE_LOG_DET, i] = log_det
        mean, triangle = _BLOCKS + n_features, _BLOCKS + 2 * n_features
        for k in range(n_features):
            prior = likelihood.strength / strength * likelihood.prior_mean[k]
            cached[i, mean + k] = prior + weight / strength * clusters.means[k, i]
        exact = work[0, n_features + 1] == 1.0
        for k in range(n_features):
            if exact:
                cached[i, _BLOCKS + k] = work[k, n_features + 2]
            # R row by row: R_km = −(Σ_t L_kt R_tm) / L_kk for m < k, t from m to k − 1.
            row = triangle + k * (k + 1) // 2
            for m in range(k):
                value = 0.0
                for t in range(m, k):
                    value -= work[k, t] * cached[i, triangle + t * (t + 1) // 2 + m]
                cached[i, row + m] = value * work[k, n_features] if exact else 0.0
            cached[i, row + k] = work[k, n_features] if exact else 0.0
        if not exact:  # bounds are then those of the whole determinant alone
            for k in range(n_features - 1):
                cached[i, _BLOCKS + k] = log_det
        half = 0.5 * (likelihood.degrees + weight)
        return likelihood.by_size[np.int64(weight)] - half * log_det

    def log_marginal(likelihood, clusters, i, j, floor, scratch):
        size = clusters.weights[i] + clusters.weights[j]
        half, rest = 0.5 * (likelihood.degrees + size), likelihood.by_size[np.int64(size)]
        # The log det beyond which the union is abandoned, with slack for rounding.
        enough = (rest - floor) / half + _ROUNDING * (abs(rest) + abs(floor)) / half
        # The larger cluster gives the tighter bound.
        first, second = (i, j) if clusters.weights[i] >= clusters.weights[j] else (j, i)
        least = _log_det_bound(likelihood, clusters, first, second, enough, scratch.direction)
        if least > enough:
            return rest - half * least
        return rest - half * _log_det(likelihood, clusters, i, j, enough, scratch)

    def upper_bounds(likelihood, clusters, i, start, stop, scratch):
        _bounds(likelihood, clusters, i, start, stop, scratch)


@fused_kernel
def _bounds(likelihood, clusters, i, start, stop, scratch):
    n_features, cached = clusters.means.shape[0], clusters.cached
    bounds, lengths, sums = scratch.bounds, scratch.shares[0], scratch.shares[1]
    size, mean = stop - start, _BLOCKS + n_features
    for s in range(size):
        lengths[s] = 0.0
    entry = _BLOCKS + 2 * n_features
    for k in range(min(n_features, LEADING)):
        for s in range(size):
            sums[s] = 0.0
        for m in range(k + 1):
            weight, own = cached[i, entry], cached[i, mean + m]
            means = clusters.means[m, start:stop]
            for s in range(size):
                sums[s] += weight * (means[s] - own)
            entry += 1
        for s in range(size):
            lengths[s] += sums[s] * sums[s]
    off = _step_off(likelihood, n_features, 1.0)
    weight, log_det = clusters.weights[i], clusters.scan_features[_FEATURE_LOG_DET, i]
    strength = likelihood.strength + weight
    others = clusters.weights[start:stop]
    log_dets = clusters.scan_features[_FEATURE_LOG_DET, start:stop]
    for s in range(size):
        factor = strength * others[s] / (strength + others[s])
        grown = (1.0 - _OFF) * factor * lengths[s]
        near, far = 2.0 * grown / (2.0 + grown), quick_log(1.0 + grown) - LOG_OFF
        least = log_det + (near if near > far else far) - off * math.sqrt(factor)
        sums[s] = least if least > log_dets[s] else log_dets[s]
    for s in range(size):
        if np.isnan(others[s]):
            bounds[s] = np.nan
        else:
            together = weight + others[s]
            rest = likelihood.by_size[np.int64(together)]
            half = 0.5 * (likelihood.degrees + together)
            bounds[s] = rest - half * sums[s] + _ROUNDING * (abs(rest) + half * (1.0 + sums[s]))


@loose_kernel
def _log_det_bound(likelihood, clusters, i, j, enough, steps):
    """A bound of log det(I + C) of the union from all rows of R, or as many as suffice."""
    n_features, cached = clusters.means.shape[0], clusters.cached
    if n_features <= LEADING:
        return -np.inf  # it has been looked at
    other, strength = clusters.weights[j], likelihood.strength + clusters.weights[i]
    factor = strength * other / (strength + other)
    own = cached[i, _BLOCKS + n_features - 1] - _step_off(likelihood, n_features, factor)
    # Beyond this length it is enough.
    limit = math.expm1(min(enough - own + 1e-9 * (1.0 + abs(enough)), 600.0))
    limit /= (1.0 - _OFF) * factor
    for m in range(n_features):
        steps[m] = clusters.means[m, j] - cached[i, _BLOCKS + n_features + m]
    entry, length = _BLOCKS + 2 * n_features, 0.0
    for k in range(n_features):
        value = 0.0
        for m in range(k + 1):
            value += cached[i, entry + m] * steps[m]
        length += value * value
        entry += k + 1
        if length > limit:
            break
    return own + math.log1p((1.0 - _OFF) * factor * length)


@kernel
def _step_off(likelihood, n_features, factor):
    """The largest error of log(1 + c‖Rδ‖²) due to the rounding of the means.

    R does not lengthen vectors, and log(1 + cx²) changes by at most √c per unit of x.
    """
    return 2e-15 * math.sqrt(n_features * factor) * likelihood.reach


@kernel
def _log_det(likelihood, clusters, i, j, enough, scratch):
    """log det(I + C) of the union of slots i and j, or of slot i for j = −1.

    If it is above ``enough``, any value above that may be returned. Leaves the factor in
    scratch.matrix: next to row k, 1/L_kk and the log determinant of the block up to k; and next to
    row 0, whether floats were precise enough.
    """
    n_features, work, moments = clusters.means.shape[0], scratch.matrix, clusters.scatter
    between, from_prior, share0, share1 = weights_of_union(likelihood, clusters, i, j)
    log_det, product = 0.0, 0.0  # of the pivots, less 1
    last = n_features - 1
    for k in range(n_features):
        # Steps between the two means, and from the prior to their mean, stand below the factor.
        step, away = steps_of_union(likelihood, clusters, i, j, k, share0, share1)
        work[n_features + k, 0], work[n_features + k, 1] = step, away
        first, diagonal, pivot = k * (k + 1) // 2, 0.0, 0.0
        for m in range(k + 1):
            value = moments[i, first + m]
            if j >= 0:
                value += moments[j, first + m]
            value += between * (step * work[n_features + m, 0])
            value += from_prior * (away * work[n_features + m, 1])
            if m == k:
                diagonal = 1.0 + value
            for t in range(m):
                value -= work[k, t] * work[m, t]
            if m < k:
                work[k, m] = value * work[m, n_features]
            else:
                pivot = max(value, 0.0)  # less 1; as it is but for rounding
        if 1.0 + pivot < _CANCELLED * diagonal:
            work[0, n_features + 1] = 0.0
            return _log_det_precisely(likelihood, clusters, i, j, scratch)
        work[k, k] = math.sqrt(1.0 + pivot)
        work[k, n_features] = 1.0 / work[k, k]
        product += pivot + product * pivot
        if product > LARGE_PRODUCT:
            log_det += math.log1p(product)
            product = 0.0
        if j < 0:
            work[k, n_features + 2] = log_det + math.log1p(product)
        elif k % PANEL == PANEL - 1 and k < last:
            so_far, cached = log_det + math.log1p(product), clusters.cached
            left0 = cached[i, _BLOCKS + last] - cached[i, _BLOCKS + k]
            left1 = cached[j, _BLOCKS + last] - cached[j, _BLOCKS + k]
            least = so_far + max(left0, left1)
            if least - 1e-9 * (1.0 + least) > enough:
                return least
    work[0, n_features + 1] = 1.0
    return log_det + math.log1p(product)


@kernel
def _log_det_precisely(likelihood, clusters, i, j, scratch):
    """The same in double-double, for clusters that are flat apart from the prior."""
    n_features, work, moments, union = (
        clusters.means.shape[0],
        scratch.matrix,
        clusters.scatter,
        scratch.lanes,
    )
    between, from_prior, share0, share1 = weights_of_union(likelihood, clusters, i, j)
    for entry in range(moments.shape[1]):
        union[0, entry] = moments[i, entry]
    entry = 0
    for k in range(n_features):
        step0, away0 = steps_of_union(likelihood, clusters, i, j, k, share0, share1)
        for m in range(k + 1):
            step1, away1 = steps_of_union(likelihood, clusters, i, j, m, share0, share1)
            if j >= 0:
                _add_entry(union, moments, j, entry)
                add_product(union, 0, entry, between, step0, step1)
            add_product(union, 0, entry, from_prior, away0, away1)
            entry += 1
    log_det = 0.0
    for first in range(0, n_features, PANEL):
        factor_rows_precisely(union, 0, -1, n_features, first, 1.0, work)
        for k in range(first, min(first + PANEL, n_features)):
            log_det += math.log(work[k, n_features + 1])
    work[0, n_features + 1] = 0.0  # where the first pivot was
    return log_det


@kernel
def _add_entry(union, moments, j, entry):
    """Add one entry of the scatter of slot j."""
    half = moments.shape[1] // 2
    add_product(union, 0, entry, 1.0, moments[j, entry], 1.0)
    add_product(union, 0, entry, 1.0, moments[j, half + entry], 1.0)


def in_units_of_prior(
    X: NDArray[np.float64],
    centre: NDArray[np.float64],
    factor: NDArray[np.float64],
    axes: NDArray[np.float64],
) -> NDArray[np.float64]:
    """L⁻¹(x − c) of every row, along the axes. A kernel: BLAS rounding depends on threads."""
    steps = np.ascontiguousarray(X - centre)
    _solve_rows(factor, steps)
    if not axes.size:
        return steps
    turned = np.empty_like(steps)
    _turn_rows(steps, axes, turned)
    return turned


@kernel
def _solve_rows(factor: Any, rows: Any) -> None:
    for row in range(rows.shape[0]):
        for k in range(rows.shape[1]):
            value = rows[row, k]
            for m in range(k):
                value -= factor[k, m] * rows[row, m]
            rows[row, k] = value / factor[k, k]


@kernel
def _turn_rows(rows: Any, axes: Any, turned: Any) -> None:
    for row in range(rows.shape[0]):
        for k in range(rows.shape[1]):
            value = 0.0
            for m in range(rows.shape[1]):
                value += rows[row, m] * axes[m, k]
            turned[row, k] = value
