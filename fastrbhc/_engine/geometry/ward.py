"""The geometry of families whose φ has a constant second derivative: Ward's cost."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.record import Clusters, difference
from fastrbhc._engine.clusters.scratch import BLOCK, GROUP
from fastrbhc._engine.geometry.contract import (
    FINITE,
    ROUNDING,
    ScratchShapes,
    Storage,
    candidate_slots,
    n_features,
)
from fastrbhc._engine.geometry.float32_means import (
    merge_rotated_means,
    mirror_distances,
    mirror_scale,
    with_rotated_mirror,
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
    take_chosen,
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
            chosen_block=query_block_shape(n_features, GROUP),
        )

    def with_mirror(self, clusters: Clusters) -> Clusters:
        return with_rotated_mirror(clusters)

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
        merge_rotated_means(clusters, i, j, scratch.direction)

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
        leading = _n_leading(clusters.mirror)
        mirrored, queries = clusters.mirror.values[:leading], scratch.query_block[:, : leading + 4]
        pack_queries(mirrored, clusters.weights, queue, first, last, queries)

    def candidate_pairs(
        geometry, clusters, queue, first, last, wanted, start, stop, cutoffs, scratch
    ):
        per_cutoff, slack = mirror_scale(clusters, geometry.half_curvature)
        leading = _n_leading(clusters.mirror)
        mirrored, queries = clusters.mirror.values[:leading], scratch.query_block[:, : leading + 4]
        block, copies = scratch.packed_block[: leading + 2], scratch.chosen_block[:, : leading + 4]
        chosen = take_chosen(queries, last - first, wanted, scratch.chosen, copies)
        if chosen < last - first:
            queries = copies
        for c in range(chosen):
            # The second term covers values so small that they have lost digits.
            i = np.int64(queue[first + scratch.chosen[c]])
            cutoff = cutoffs[i] + 1e-290 * (1.0 + geometry.half_curvature)
            set_limit(queries, c, cutoff * per_cutoff, slack)
        pack_block(mirrored, clusters.weights, start, stop, block)
        screen(block, stop - start, queries, chosen, scratch.bits)
        count = 0
        for c in range(chosen):
            q = scratch.chosen[c]
            more = _unpack(scratch.bits, c, q, stop - start, scratch.pairs[count:])
            # If the scale is NaN, values are near the limits of double precision too.
            if more > _MANY_CANDIDATES and not np.isnan(per_cutoff):
                i = np.int64(queue[first + q])
                more = candidate_slots(geometry, clusters, i, start, stop, cutoffs[i], scratch)
                for e in range(more):
                    scratch.pairs[count + e] = q * BLOCK + scratch.slots[e] - start
            count += more
        for c in range(count):
            scratch.pair_bounds[c] = 0.0  # d costs as little as a bound
        return count

    def block_coordinates(self, clusters: Clusters) -> NDArray[np.float32]:
        return clusters.mirror.values[: _n_leading(clusters.mirror)]

    def block_bounds(geometry, clusters, i, boxes, group, cutoff, scratch):
        columns, mirror = boxes.shape[1] // 2, clusters.mirror
        total = broadcast(0.0)
        for k in range(columns):
            place = np.float64(mirror.values[k, i])
            low, high = load(boxes, (group, 2 * k, 0)), load(boxes, (group, 2 * k + 1, 0))
            gap = larger(larger(low - place, place - high), 0.0)
            total = total + gap * gap
        # For an empty box, whose weight is infinite, the harmonic mean of the weights is NaN.
        w0, w1 = clusters.weights[i], load(boxes, (group, 2 * columns, 0))
        scale, slack = mirror_scale(clusters, geometry.half_curvature)
        if np.isnan(scale):  # values are near the limits of double precision
            store(scratch.bounds, broadcast(0.0))
            return at_most(w1, FINITE)
        bounds = (total * 0.5 - slack) * (w0 * w1 / (w0 + w1)) * (1.0 / scale)
        store(scratch.bounds, bounds)
        return at_most(bounds, cutoff + 1e-290 * (1.0 + geometry.half_curvature))

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


@inlined_kernel
def _n_leading(mirror):
    """The number of rows of the mirror that scans compare first."""
    return mirror.leading if mirror.leading else mirror.values.shape[0]


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
def _unpack(bits, place, query, size, pairs):
    """Write the pairs of the query at a place of the screen to a list; returns their number."""
    four, shift = place // QUERIES, place % QUERIES * STRIP
    count = 0
    for strip in range((size + STRIP - 1) // STRIP):
        near = (bits[four, strip] >> shift) & ((1 << STRIP) - 1)
        if near:
            for s in range(STRIP):
                if (near >> s) & 1:
                    pairs[count] = query * BLOCK + strip * STRIP + s
                    count += 1
    return count
