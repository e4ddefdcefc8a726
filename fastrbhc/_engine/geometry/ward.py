"""The geometry of families whose φ has a constant second derivative: Ward's cost."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.record import Clusters, difference
from fastrbhc._engine.clusters.scratch import BLOCK, GROUP
from fastrbhc._engine.geometry.contract import (
    ROUNDING,
    ScratchShapes,
    Storage,
    candidate_slots,
    n_features,
)
from fastrbhc._engine.geometry.float32_means import (
    merge_mirrored_means,
    mirror_distances,
    mirror_scale,
    with_centred_mirror,
)
from fastrbhc._engine.geometry.float32_screen import (
    QUERIES,
    STRIP,
    bits_shape,
    pack_block,
    pack_queries,
    packed_block_shape,
    query_block_shape,
    screen,
    set_limit,
)
from fastrbhc._engine.jit import inlined_kernel, kernel
from fastrbhc._engine.simd import at_most, broadcast, larger, load, store

# With more candidates in a block than this, testing all of its slots in more detail pays.
_MANY_CANDIDATES = 8


class Ward(NamedTuple):
    """d = n₀n₁/(n₀+n₁) · curvature/2 · ‖t₀ − t₁‖², for φ with a constant second derivative.

    It is reducible, so audits need no bounds.
    """

    half_curvature: float
    columns: tuple[int, ...] = ()

    def storage(self, n_features: int) -> Storage:
        return Storage(mirrored=True, by_cluster=True)

    def scratch_shapes(self, n_features: int) -> ScratchShapes:
        return ScratchShapes(
            bits=bits_shape(GROUP, BLOCK),
            packed_block=packed_block_shape(n_features, BLOCK),
            query_block=query_block_shape(n_features, GROUP),
        )

    def with_mirror(self, clusters: Clusters) -> Clusters:
        return with_centred_mirror(clusters)

    def column_widths(self, clusters: Clusters) -> NDArray[np.float64]:
        return np.full(clusters.means.shape[0], np.sqrt(self.half_curvature))

    def dissimilarity(geometry, clusters, i, j, cutoff, scratch):
        w0, w1 = clusters.weights[i], clusters.weights[j]
        total = 0.0
        for k in range(n_features(geometry, clusters)):
            step = difference(clusters, i, j, k)
            total += step * step
        return total * (w0 * w1 / (w0 + w1)) * geometry.half_curvature

    def merge(geometry, clusters, i, j, scratch):
        merge_mirrored_means(clusters, i, j)

    def curvature(geometry, clusters, i, j, centre, scratch):
        total = 0.0
        for k in range(n_features(geometry, clusters)):
            step = difference(clusters, i, j, k)
            total += step * step
        return 2.0 * geometry.half_curvature * total

    def lower_bounds(geometry, clusters, i, start, stop, scratch):
        factor, slack = mirror_distances(clusters, i, start, stop, scratch.sums)
        distances, bounds = scratch.sums, scratch.bounds
        weight, weights = clusters.weights[i], clusters.weights[start:stop]
        constant = geometry.half_curvature * ROUNDING
        for s in range(stop - start):
            share = weight * weights[s] / (weight + weights[s])
            bounds[s] = (distances[s] * factor - slack) * share * constant

    def candidate_slots(geometry, clusters, i, start, stop, cutoff, scratch):
        # The bound above, D·w₀w₁/(w₀+w₁) ≤ c, without its division: w₁(D·w₀ − c) ≤ c·w₀.
        factor, slack = mirror_distances(clusters, i, start, stop, scratch.sums)
        distances, size = scratch.sums, stop - start
        weight, weights = clusters.weights[i], clusters.weights[start:stop]
        limit = cutoff / (geometry.half_curvature * ROUNDING * ROUNDING)
        if limit == np.inf:
            limit = 1e300
        # Near the limits of double precision, one side or the other loses digits.
        if not (1e-120 < clusters.mirror.radius < 1e120 and limit * min(weight, 1.0) > 1e-250):
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

    def prepare_queries(geometry, clusters, queue, first, last, scratch):
        mirrored = clusters.mirror.values
        pack_queries(mirrored, clusters.weights, queue, first, last, scratch.query_block)

    def candidate_pairs(geometry, clusters, queue, first, last, start, stop, cutoffs, scratch):
        per_cutoff, slack = mirror_scale(clusters, geometry.half_curvature)
        for q in range(first, last):
            # The second term covers values so small that they have lost digits.
            cutoff = cutoffs[np.int64(queue[q])] + 1e-290 * (1.0 + geometry.half_curvature)
            set_limit(scratch.query_block, q - first, cutoff * per_cutoff, slack)
        mirrored, block = clusters.mirror.values, scratch.packed_block
        pack_block(mirrored, clusters.weights, start, stop, block)
        screen(block, stop - start, scratch.query_block, last - first, scratch.bits)
        count = 0
        for q in range(last - first):
            more = _unpack(scratch.bits, q, stop - start, scratch.pairs[count:])
            # If the scale is NaN, values are near the limits of double precision too.
            if more > _MANY_CANDIDATES and not np.isnan(per_cutoff):
                i = np.int64(queue[first + q])
                more = candidate_slots(geometry, clusters, i, start, stop, cutoffs[i], scratch)
                for c in range(more):
                    scratch.pairs[count + c] = q * BLOCK + scratch.slots[c] - start
            count += more
        for c in range(count):
            scratch.pair_bounds[c] = 0.0  # d costs as little as a bound
        return count

    def leaf_values(geometry, clusters, i, start, cutoff, scratch):
        # As in ``dissimilarity``, operation for operation.
        total = leaf_distances(clusters, i, start, n_features(geometry, clusters))
        w0, w1 = clusters.weights[i], load(clusters.weights, (start,))
        values = total * (w0 * w1 / (w0 + w1)) * geometry.half_curvature
        store(scratch.bounds, values)
        return at_most(values, cutoff)

    def box_bounds(geometry, clusters, i, boxes, group, cutoff, scratch):
        columns = n_features(geometry, clusters)
        total = box_distances(clusters, i, boxes, group, columns)
        # For an empty box, whose weight is infinite, this is NaN.
        w0, w1 = clusters.weights[i], load(boxes, (group, 2 * columns, 0))
        bounds = total * (w0 * w1 / (w0 + w1)) * (geometry.half_curvature * ROUNDING)
        store(scratch.bounds, bounds)
        return at_most(bounds, cutoff)


@inlined_kernel
def leaf_distances(clusters, i, start, columns):
    """Squared distances of the mean of slot i from those of the leaf that begins at start."""
    means, residuals = clusters.means, clusters.residuals
    total = broadcast(0.0)
    for k in range(columns):
        leading = load(means, (k, start)) - means[k, i]
        step = leading + (load(residuals, (k, start)) - residuals[k, i])
        total = total + step * step
    return total


@inlined_kernel
def box_distances(clusters, i, boxes, group, columns):
    """Squared distances of the mean of slot i from the boxes of a group."""
    total = broadcast(0.0)
    for k in range(columns):
        mean = clusters.means[k, i]
        low, high = load(boxes, (group, 2 * k, 0)), load(boxes, (group, 2 * k + 1, 0))
        gap = larger(larger(low - mean, mean - high), 0.0)
        total = total + gap * gap
    return total


@kernel
def _all_alive(weights, start, scratch):
    """Make all occupied slots of a run candidates; returns their number."""
    count = 0
    for s in range(weights.size):
        if not np.isnan(weights[s]):
            scratch.slots[count], scratch.bounds[count] = start + s, 0.0
            count += 1
    return count


@kernel
def _unpack(bits, query, size, pairs):
    """Write the pairs of one query to a list; returns their number."""
    four, shift = query // QUERIES, query % QUERIES * STRIP
    count = 0
    for strip in range((size + STRIP - 1) // STRIP):
        near = (bits[four, strip] >> shift) & ((1 << STRIP) - 1)
        if near:
            for s in range(STRIP):
                if (near >> s) & 1:
                    pairs[count] = query * BLOCK + strip * STRIP + s
                    count += 1
    return count
