"""Bounds from the leading columns of full covariances, for many slots at a time.

Restricted to some of the columns, d can only be smaller. With Q leading columns it needs a Q × Q
Cholesky factor, which is computed here for many slots at once, entry by entry: each step is one
loop over the slots, which the compiler vectorises. The points are along their principal axes, so
these few columns decide most of the pairs that the distance of the means does not.

Fewer columns come first, because their factor takes a quarter of the time and decides many pairs.

These loops read the *scan features* of a cluster, stored by column: the leading Q × Q block of its
scatter, the log determinants of that block and of its first columns after smoothing, relative to
those of the smoothing alone, and an upper bound of the largest eigenvalue of the whole matrix.

Rounding errors. The computed factor is exact for a matrix whose entries are off by at most
γ√(aₖₖaₘₘ), γ = 1e-15. Let D be the diagonal and M = D^(−½)AD^(−½), whose trace is Q; its smallest
eigenvalue is at least det M / e. So if det M ≥ KEPT = 1e-8, neither δᵀA⁻¹δ nor det A^(1/Q) has a
relative error above 2eQγ/KEPT < 4e-6, and the error of the logarithm is below DOUBT = 1e-4. If
det M is smaller, this bound is not used.
"""

from __future__ import annotations

from fastrbhc._engine.geometry.contract import ROUNDING
from fastrbhc._engine.geometry.covariance_cache import LARGEST_EIGENVALUE
from fastrbhc._engine.geometry.float32_means import mirror_distances
from fastrbhc._engine.jit import fused_kernel, inlined_kernel, kernel
from fastrbhc._engine.math.fast_log import LOG_OFF, quick_log
from fastrbhc._engine.simd import at_most, broadcast, load, lowest_set_bit, store

# Number of leading columns. Of the pairs that the distance does not decide, 4 columns decide 59 %
# on MNIST digits and 89 % on blobs in 10 columns; 6 decide 76 % and 95 %.
LEADING = 6

# Number of columns that come first. Processor time of trees of 10,000 × 10 rows in 20 blobs, ridges
# 0.01 and 0.1: 5.1 and 2.3 s without them, 4.3 and 1.9 s with 2 or 3, 4.6 and 2.1 s with 4.
FIRST = 3

# Slots that are processed together: their memory fits into the L1 cache.
LANES = 64

_KEPT = 1e-8
_DOUBT = 1e-4


def n_scan_features(n_features: int) -> int:
    """The number of scan features of a cluster."""
    q = min(n_features, LEADING)
    return q * (q + 1) // 2 + 3


def lanes_size(n_features: int) -> int:
    """The number of intermediate values per slot."""
    q = min(n_features, LEADING)
    return q + q * (q - 1) // 2 + 2 * q + 6


@kernel
def update_scan_features(clusters, i, n_features):
    """Fill the scan features of slot i from its scatter and cached values."""
    features = clusters.scan_features
    if features.shape[0] == 0:
        return
    q = min(n_features, LEADING)
    size = q * (q + 1) // 2
    for entry in range(size):
        features[entry, i] = clusters.scatter[i, entry]
    features[size, i] = clusters.cached[i, q - 1]
    features[size + 1, i] = clusters.cached[i, min(q, FIRST) - 1]
    features[size + 2, i] = clusters.cached[i, n_features + LARGEST_EIGENVALUE]


@fused_kernel
def distance_bounds(clusters, i, start, stop, scratch):
    """Bounds from the distance of the means over the largest eigenvalues, to scratch.bounds."""
    factor, slack = mirror_distances(clusters, i, start, stop, scratch.sums)
    bounds, distances = scratch.bounds, scratch.sums
    weights, eigenvalues = clusters.weights[start:stop], clusters.scan_features[-1, start:stop]
    w0 = clusters.weights[i]
    eigenvalue0 = w0 * clusters.scan_features[-1, i]
    for s in range(stop - start):
        w1 = weights[s]
        distance = distances[s] * factor - slack
        distance = distance if distance > 0.0 else 0.0
        weight = w0 + w1
        # In this order: a product of two weights and a distance may overflow.
        ratio = w1 * (w0 * distance / (weight * (eigenvalue0 + w1 * eigenvalues[s])))
        near, far = 2.0 * ratio / (2.0 + ratio), quick_log(1.0 + ratio) - LOG_OFF
        bounds[s] = (0.5 * ROUNDING) * weight * (near if near > far else far)


@inlined_kernel
def leaf_bounds(clusters, i, start, n_features, cutoff, scratch):
    """The same for a leaf, from means in double precision; bit mask of those up to the cutoff."""
    means, residuals, bounds, ratios = (
        clusters.means,
        clusters.residuals,
        scratch.bounds,
        scratch.other_bounds,
    )
    distance = broadcast(0.0)
    for k in range(n_features):
        leading = load(means, (k, start)) - means[k, i]
        step = leading + (load(residuals, (k, start)) - residuals[k, i])
        distance = distance + step * step
    w0, w1 = clusters.weights[i], load(clusters.weights, (start,))
    weight = w0 + w1
    entry = n_features + LARGEST_EIGENVALUE
    eigenvalues = w0 * clusters.cached[i, entry] + w1 * load(clusters.cached.T, (entry, start))
    ratio = w1 * (w0 * distance / (weight * eigenvalues))
    quick = ROUNDING * weight * ratio / (2.0 + ratio)
    store(bounds, quick)
    near = at_most(quick, cutoff)
    if near:
        store(ratios, ratio)
    left = near
    while left:
        s = lowest_set_bit(left)
        left &= left - 1
        log = quick_log(1.0 + ratios[s]) - LOG_OFF
        bounds[s] = max(bounds[s], (0.5 * ROUNDING) * (w0 + clusters.weights[start + s]) * log)
        if bounds[s] > cutoff:
            near -= 1 << s
    return near


@fused_kernel
def leading_bounds(ridge, clusters, i, slots, count, q, lanes, bounds):
    """Raise the bounds of some slots, given in order, by those from the leading q columns.

    There are FIRST of them, or as many as scan features are for.

    The steps refer to rows of ``lanes`` by number, because views of them would cost more than the
    arithmetic. While row k of the factor is computed, it is in the rows of lanes up to k. No loop
    has more than three or four arrays, or the compiler would not vectorise it.
    """
    means, residuals, features = clusters.means, clusters.residuals, clusters.scan_features
    size = q * (q + 1) // 2
    kept = min(means.shape[0], LEADING)
    own = kept * (kept + 1) // 2 + (0 if q == kept else 1)  # the feature with the log determinant
    factor, reciprocals = q, size
    solutions, weights = size + q, size + 2 * q
    inverses, volume, diagonals = weights + 1, weights + 2, weights + 3
    form, others = weights + 4, weights + 5
    w0, log_det0 = clusters.weights[i], features[own, i]
    for first in range(0, count, LANES):
        n = min(LANES, count - first)
        begin = slots[first]
        if slots[first + n - 1] - begin != n - 1:
            begin = -1  # not consecutive
        for s in range(n):
            lanes[others, s] = clusters.weights[slots[first + s]]
        for s in range(n):
            lanes[weights, s] = lanes[others, s] + w0
            lanes[inverses, s] = 1.0 / (ridge * lanes[weights, s])
        for s in range(n):
            lanes[volume, s] = 1.0
        for s in range(n):
            lanes[diagonals, s] = 1.0
        for s in range(n):
            lanes[form, s] = 0.0
        for k in range(q):
            below = factor + k * (k - 1) // 2
            for m in range(k + 1):
                entry = k * (k + 1) // 2 + m
                _take(features, entry, features[entry, i], slots, first, n, begin, lanes, m)
                for c in range(m if m < k else 0):
                    _subtract_product(lanes, m, c, factor + m * (m - 1) // 2 + c, n)
            for s in range(n):
                lanes[k, s] += ridge * lanes[weights, s]
            for s in range(n):
                lanes[diagonals, s] *= lanes[k, s] * lanes[inverses, s]
            for c in range(k):
                for s in range(n):
                    lanes[below + c, s] = lanes[c, s] * lanes[reciprocals + c, s]
                _subtract_product(lanes, k, c, below + c, n)
            solution, reciprocal = solutions + k, reciprocals + k
            _take(means, k, -means[k, i], slots, first, n, begin, lanes, solution)
            _take(residuals, k, -residuals[k, i], slots, first, n, begin, lanes, reciprocal)
            for s in range(n):
                lanes[solution, s] += lanes[reciprocal, s]
            for c in range(k):
                _subtract_product(lanes, solution, below + c, solutions + c, n)
            for s in range(n):
                least = ridge * lanes[weights, s]
                pivot = lanes[k, s]
                pivot = pivot if pivot > least else least
                lanes[k, s] = pivot
                lanes[reciprocal, s] = 1.0 / pivot
            for s in range(n):
                lanes[volume, s] *= lanes[k, s] * lanes[inverses, s]
            for s in range(n):
                lanes[form, s] += lanes[solution, s] * lanes[solution, s] * lanes[reciprocal, s]
        for s in range(n):
            w1 = lanes[others, s]
            form1 = 1.0 + w0 * w1 / lanes[weights, s] * lanes[form, s]
            lanes[form, s] = quick_log(lanes[volume, s] * form1) - (_DOUBT + LOG_OFF)
        _take(features, own, 0.0, slots, first, n, begin, lanes, 0)
        for s in range(n):
            parts = w0 * log_det0 + lanes[others, s] * lanes[0, s]
            lanes[form, s] = (0.5 * ROUNDING) * (lanes[weights, s] * lanes[form, s] - parts)
        for s in range(n):
            value = lanes[form, s] if lanes[volume, s] >= _KEPT * lanes[diagonals, s] else 0.0
            bounds[first + s] = value if value > bounds[first + s] else bounds[first + s]


@fused_kernel
def _take(columns, which, own, slots, first, n, begin, lanes, target):
    """Copy one column of n slots to row ``target`` of lanes, and add the cluster's own value."""
    if begin >= 0:
        for s in range(n):
            lanes[target, s] = columns[which, begin + s] + own
    else:
        for s in range(n):
            lanes[target, s] = columns[which, slots[first + s]] + own


@fused_kernel
def _subtract_product(lanes, target, left, right, n):
    for s in range(n):
        lanes[target, s] -= lanes[left, s] * lanes[right, s]
