"""Lower bounds of d from a cluster to boxes of clusters, for full covariances.

Both terms of d, see `full_covariance`, have a bound of their own: `_bound` derives them.
"""

from __future__ import annotations

import math

from fastrbhc._engine.geometry.contract import ROUNDING, n_features
from fastrbhc._engine.geometry.covariance_cache import LARGEST_EIGENVALUE, VOLUME
from fastrbhc._engine.geometry.ward import box_distances
from fastrbhc._engine.jit import inlined_kernel, kernel
from fastrbhc._engine.math.fast_log import LOG_OFF, quick_log
from fastrbhc._engine.simd import at_most, larger, load, lowest_set_bit, store


@inlined_kernel
def bounds_of_boxes(geometry, clusters, i, boxes, group, cutoff, scratch):
    """Lower bounds for a group of boxes; a mask of those that are at most the cutoff.

    The quick part of `_bound` comes first. What that leaves in doubt is looked at one by one.
    """
    d = n_features(geometry, clusters)
    distance = box_distances(clusters, i, boxes, group, d)
    k, w0 = 2 * d, clusters.weights[i]
    w1, eigenvalue1 = load(boxes, (group, k, 0)), load(boxes, (group, k + 2, 0))
    weight = w0 + w1
    largest = (w0 * clusters.cached[i, d + LARGEST_EIGENVALUE] + w1 * eigenvalue1) / weight
    ratio = (w0 / weight) * (w1 / weight) * distance / largest
    bounds = weight * ratio / (2.0 + ratio) * ROUNDING
    store(scratch.bounds, bounds)
    near = at_most(bounds, cutoff)
    if near == 0:
        return near
    volume0 = clusters.cached[i, d + VOLUME]
    low, high = load(boxes, (group, k + 3, 0)), load(boxes, (group, k + 4, 0))
    gap = larger(larger(low - volume0, volume0 - high), 0.0)
    most = 0.5 * weight * (ratio + (0.125 * d) * gap * gap)
    doubtful = near & ~at_most(most, cutoff)
    while doubtful:
        s = lowest_set_bit(doubtful)
        doubtful &= doubtful - 1
        bound = _box_bound(clusters, i, boxes, group, s, d, cutoff)
        scratch.bounds[s] = bound
        if bound > cutoff:
            near -= 1 << s
    return near


@kernel
def _box_bound(clusters, i, boxes, group, lane, d, cutoff):
    """Lower bound of d from slot i to whatever one box holds, which is not empty."""
    distance = 0.0
    for k in range(d):
        mean = clusters.means[k, i]
        low, high = boxes[group, 2 * k, lane], boxes[group, 2 * k + 1, lane]
        gap = max(max(low - mean, mean - high), 0.0)
        distance += gap * gap
    volume0, k = clusters.cached[i, d + VOLUME], 2 * d
    volume1 = min(max(volume0, boxes[group, k + 3, lane]), boxes[group, k + 4, lane])
    return _bound(
        d,
        cutoff,
        distance,
        clusters.weights[i],
        clusters.cached[i, d + LARGEST_EIGENVALUE],
        volume0,
        boxes[group, k, lane],
        boxes[group, k + 2, lane],
        volume1,
    )


@kernel
def _bound(d, cutoff, distance, w0, eigenvalue0, volume0, w1, eigenvalue1, volume1):
    """Lower bound of d from squared distance, weights, largest eigenvalues and mean log volumes.

    Of the means: δᵀA⁻¹δ ≥ ‖δ‖²/λmax(A), and λmax is convex. Of the shapes: by Minkowski's
    inequality the bracket is at least d·[n log((n₀g₀ + n₁g₁)/n) − n₀ log g₀ − n₁ log g₁], with
    g = det Σ^(1/d) and log g the volume. Both grow with either weight; the first falls with either
    eigenvalue, the second grows as the volumes part: so ends of intervals will do for a box.
    """
    weight = w0 + w1
    share0, share1 = w0 / weight, w1 / weight
    largest = share0 * eigenvalue0 + share1 * eigenvalue1
    ratio = share0 * share1 * distance / largest
    # log(1 + x) ≥ 2x/(2 + x) settles most boxes without a logarithm.
    quick = weight * ratio / (2.0 + ratio) * ROUNDING
    if quick > cutoff:
        return quick
    # The larger volume less the smaller one, so that no argument of a logarithm is near 0; and no
    # more than the exponential can take.
    gap = min(abs(volume1 - volume0), 600.0)
    # The part of the shapes is at most gap²/8, as its second derivative is at most a quarter: it
    # is worth its logarithms only where both parts together could pass the cutoff.
    most_by_shapes = d * 0.125 * gap * gap
    if 0.5 * weight * (ratio + most_by_shapes) <= cutoff:
        return quick
    parts = max(2.0 * ratio / (2.0 + ratio), quick_log(1.0 + ratio) - LOG_OFF)
    if gap != 0.0 and 0.5 * weight * parts * ROUNDING <= cutoff:
        share = share1 if volume1 > volume0 else share0  # of the larger one
        jensen = math.log1p(share * math.expm1(gap)) - share * gap
        doubt = 1e-12 * (abs(volume0) + abs(volume1)) + 4e-12 * d
        if jensen > doubt:
            parts += d * (jensen - doubt)
    return 0.5 * weight * parts * ROUNDING
