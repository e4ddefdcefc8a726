"""The geometry of families whose φ has a constant second derivative: Ward's cost."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fastrbhc._engine.geometry.contract import (
    BLOCK,
    ROUNDING,
    Clusters,
    Sizes,
    candidates,
    difference,
    n_columns,
)
from fastrbhc._engine.geometry.float32_means import (
    coarse_distances,
    coarse_scale,
    merge_means,
    with_centred_coarse,
)
from fastrbhc._engine.geometry.float32_screen import (
    FOUR,
    STRIP,
    fill_tile,
    screen,
    set_limit,
    take_aim,
)
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.simd import EIGHT, at_most, larger, load, spread, store

# With more suspects in a block than this, a closer look at all of its slots is worth its while.
_MANY_SUSPECTS = 8


class Quadratic(NamedTuple):
    """d = n₀n₁/(n₀+n₁) · curvature/2 · ‖t₀ − t₁‖², for φ with a constant second derivative."""

    half_curvature: float

    def dissimilarity(geometry, clusters, i, j, cutoff, scratch):
        w0, w1 = clusters.weights[i], clusters.weights[j]
        total = 0.0
        for k in range(n_columns(clusters)):
            step = difference(clusters, i, j, k)
            total += step * step
        return total * (w0 * w1 / (w0 + w1)) * geometry.half_curvature

    def curvature(geometry, clusters, i, j, centre, scratch):
        total = 0.0
        for k in range(n_columns(clusters)):
            step = difference(clusters, i, j, k)
            total += step * step
        return 2.0 * geometry.half_curvature * total

    def lower_bounds(geometry, clusters, i, start, stop, scratch):
        factor, slack = coarse_distances(clusters, i, start, stop, scratch.coarse)
        distances, bounds = scratch.coarse, scratch.bounds
        weight, weights = clusters.weights[i], clusters.weights[start:stop]
        constant = geometry.half_curvature * ROUNDING
        for s in range(stop - start):
            share = weight * weights[s] / (weight + weights[s])
            bounds[s] = (distances[s] * factor - slack) * share * constant

    def candidates(geometry, clusters, i, start, stop, cutoff, scratch):
        # The bound above, D·w₀w₁/(w₀+w₁) ≤ c, without its division: w₁(D·w₀ − c) ≤ c·w₀.
        factor, slack = coarse_distances(clusters, i, start, stop, scratch.coarse)
        distances, size = scratch.coarse, stop - start
        weight, weights = clusters.weights[i], clusters.weights[start:stop]
        limit = cutoff / (geometry.half_curvature * ROUNDING * ROUNDING)
        if limit == np.inf:
            limit = 1e300
        # Near the ends of double precision digits are missing on one side or the other.
        if not (1e-120 < clusters.radius[0] < 1e120 and limit * min(weight, 1.0) > 1e-250):
            return _all_alive(weights, start, scratch)
        factor *= weight
        rest, right = slack * weight + limit, limit * weight
        found = np.int64(0)
        for s in range(size):
            found |= np.int64((distances[s] * factor - rest) * weights[s] <= right)
        count = 0
        if found:
            for s in range(size):
                if (distances[s] * factor - rest) * weights[s] <= right:
                    scratch.slots[count], scratch.bounds[count] = start + s, 0.0
                    count += 1
        return count

    def aim(geometry, clusters, queue, first, last, scratch):
        take_aim(clusters.coarse, clusters.weights, queue, first, last, scratch.aims)

    def suspects(geometry, clusters, queue, first, last, start, stop, cutoffs, scratch):
        per_cutoff, slack = coarse_scale(clusters, geometry.half_curvature)
        for q in range(first, last):
            # The term beside the cutoff is for values so small that digits are missing.
            cutoff = cutoffs[np.int64(queue[q])] + 1e-290 * (1.0 + geometry.half_curvature)
            set_limit(scratch.aims, q - first, cutoff * per_cutoff, slack)
        fill_tile(clusters.coarse, clusters.weights, start, stop, scratch.tile)
        screen(scratch.tile, stop - start, scratch.aims, last - first, scratch.bits)
        count = 0
        for q in range(last - first):
            more = _unpack(scratch.bits, q, stop - start, scratch.suspects[count:])
            # Where the scale is NaN, double precision has no digits to spare either.
            if more > _MANY_SUSPECTS and not np.isnan(per_cutoff):
                i = np.int64(queue[first + q])
                more = candidates(geometry, clusters, i, start, stop, cutoffs[i], scratch)
                for c in range(more):
                    scratch.suspects[count + c] = q * BLOCK + scratch.slots[c] - start
            count += more
        scratch.suspect_bounds[:count] = 0.0  # d costs as little as a bound
        return count

    def tile_values(geometry, clusters, i, start, cutoff, scratch):
        # As in ``dissimilarity``, operation for operation.
        means, residuals = clusters.means, clusters.residuals
        total = spread(0.0)
        for k in range(n_columns(clusters)):
            leading = load(means, (k, start)) - means[k, i]
            step = leading + (load(residuals, (k, start)) - residuals[k, i])
            total = total + step * step
        w0, w1 = clusters.weights[i], load(clusters.weights, (start,))
        values = total * (w0 * w1 / (w0 + w1)) * geometry.half_curvature
        store(scratch.bounds, values)
        return at_most(values, cutoff)

    def n_extents(geometry):
        return 0

    def extent(geometry, clusters, i, e):
        return 0.0

    def box_bound(geometry, clusters, i, boxes, node, cutoff):
        n_features, group, lane = n_columns(clusters), node // EIGHT, node % EIGHT
        total = 0.0
        for k in range(n_features):
            mean = clusters.means[k, i]
            low, high = boxes[group, 2 * k, lane], boxes[group, 2 * k + 1, lane]
            gap = max(max(low - mean, mean - high), 0.0)
            total += gap * gap
        w0, w1 = clusters.weights[i], boxes[group, 2 * n_features, lane]
        if w1 == np.inf:
            return np.nan
        return total * (w0 * w1 / (w0 + w1)) * (geometry.half_curvature * ROUNDING)

    def box_bounds(geometry, clusters, i, boxes, group, cutoff, scratch):
        n_features = n_columns(clusters)
        total = spread(0.0)
        for k in range(n_features):
            mean = clusters.means[k, i]
            low, high = load(boxes, (group, 2 * k, 0)), load(boxes, (group, 2 * k + 1, 0))
            gap = larger(larger(low - mean, mean - high), 0.0)
            total = total + gap * gap
        # An infinite weight makes this NaN.
        w0, w1 = clusters.weights[i], load(boxes, (group, 2 * n_features, 0))
        bounds = total * (w0 * w1 / (w0 + w1)) * (geometry.half_curvature * ROUNDING)
        store(scratch.bounds, bounds)
        return at_most(bounds, cutoff)

    def pull_bounds(geometry, clusters, a, b, start, stop, cutoff, scratch):
        n_a, n_b = clusters.weights[a], clusters.weights[b]
        for s in range(stop - start):
            weight = clusters.weights[start + s]
            to_b, to_a = 0.0, 0.0
            for k in range(n_columns(clusters)):
                gap = clusters.means[k, b] - clusters.means[k, a]
                step = clusters.means[k, start + s] - clusters.means[k, a]
                # From a∪x to b, and from b∪x to a.
                to_b += (gap - weight / (n_a + weight) * step) ** 2
                to_a += (gap + weight / (n_b + weight) * (step - gap)) ** 2
            total = n_a + n_b + weight
            to_b *= (n_a + weight) * n_b / total
            to_a *= (n_b + weight) * n_a / total
            scratch.bounds[s] = max(to_a, to_b) * (geometry.half_curvature * ROUNDING)

    def box_pull_bound(geometry, clusters, a, b, boxes, node, heaviest, cutoff, scratch):
        return 0.0  # quadratic d are reducible, and not searched

    def merge(geometry, clusters, i, j, scratch):
        merge_means(clusters, i, j)

    def refresh(geometry, clusters, i, scratch):
        return

    def with_coarse(self, clusters: Clusters) -> Clusters:
        return with_centred_coarse(clusters)

    def sizes(self, n_features: int) -> Sizes:
        return Sizes(coarse=True, by_cluster=True)


@kernel
def _all_alive(weights, start, scratch):
    """Take the slots of a run that are not free for candidates; returns how many there are."""
    count = 0
    for s in range(weights.size):
        if not np.isnan(weights[s]):
            scratch.slots[count], scratch.bounds[count] = start + s, 0.0
            count += 1
    return count


@kernel
def _unpack(bits, query, size, pairs):
    """Write the pairs of one query to a list; returns how many there are."""
    four, shift = query // FOUR, query % FOUR * STRIP
    count = 0
    for strip in range((size + STRIP - 1) // STRIP):
        near = (bits[four, strip] >> shift) & ((1 << STRIP) - 1)
        if near:
            for s in range(STRIP):
                if (near >> s) & 1:
                    pairs[count] = query * BLOCK + strip * STRIP + s
                    count += 1
    return count
