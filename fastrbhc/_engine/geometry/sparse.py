"""The geometry of separable families for clusters of sparse rows.

A column in which both clusters are zero has the same value on both sides and adds nothing to d, so d
takes only the columns that one of them has. Bounds come in two steps, `sketches` and then
`sparse_entropy`, for families that are at least as curved as y log y; the sum of divergences decides.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastrbhc._engine.clusters.record import LEAF_SIZE, merge_weights
from fastrbhc._engine.clusters.scratch import BLOCK, GROUP
from fastrbhc._engine.clusters.segments import unite_segments
from fastrbhc._engine.geometry.contract import ROUNDING, ScratchShapes, Storage, values_of_near
from fastrbhc._engine.geometry.float32_screen import (
    bits_shape,
    pack_queries,
    packed_block_shape,
    query_block_shape,
    unpack,
)
from fastrbhc._engine.geometry.separable_columns import divergence, second_derivative
from fastrbhc._engine.geometry.sketches import (
    put_sketch,
    screen_sketches,
    sketch_bounds,
    towards_sketch_bounds,
)
from fastrbhc._engine.geometry.sparse_entropy import (
    N_CACHED,
    N_KNOTS,
    entropy_bound,
    forget_knots,
    gather_up,
    pair_bound_by_walk,
    put_costs,
    spread,
)
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.math.double_double import two_product


class SparseSeparable(NamedTuple):
    """d = Σⱼ n₀·B(t₀ⱼ, tⱼ) + n₁·B(t₁ⱼ, tⱼ) over the columns that either cluster has."""

    family: Any
    scale: float
    offset: float
    entropy_share: float  # a c for which φ − c·y log y is convex; 0 if there is none
    n_columns: int
    n_groups: int

    def storage(self, n_features: int) -> Storage:
        return Storage(cached=N_CACHED)

    def scratch_shapes(self, n_features: int) -> ScratchShapes:
        return ScratchShapes(
            matrix=(GROUP, 2 * N_KNOTS),
            lanes=(1, self.n_columns),
            bits=bits_shape(GROUP, BLOCK),
            packed_block=packed_block_shape(self.n_groups, BLOCK),
            query_block=query_block_shape(self.n_groups, GROUP),
        )

    def dissimilarity(geometry, clusters, i, j, cutoff, scratch):
        family, scale, offset = geometry.family, geometry.scale, geometry.offset
        columns, sums = clusters.segments.columns, clusters.segments.sums
        places = clusters.segments.places
        w0, w1 = clusters.weights[i], clusters.weights[j]
        weight, product = w0 + w1, w0 * w1
        share0, share1 = w0 / weight, w1 / weight
        p, p_end, q, q_end = places[i, 0], places[i, 1], places[j, 0], places[j, 1]
        total = 0.0
        while p < p_end or q < q_end:
            sum0, sum1 = 0.0, 0.0
            left = q >= q_end or (p < p_end and columns[p] <= columns[q])
            right = p >= p_end or (q < q_end and columns[q] <= columns[p])
            if left:
                sum0 = sums[p]
                p += 1
            if right:
                sum1 = sums[q]
                q += 1
            step = scale * (_cross(sum0, sum1, w0, w1) / product)
            if step == 0.0:
                continue
            mean = scale * ((sum0 + sum1) / weight) + offset
            value0, value1 = scale * (sum0 / w0) + offset, scale * (sum1 / w1) + offset
            total += w0 * divergence(family, value0, mean, -share1 * step) + w1 * divergence(
                family, value1, mean, share0 * step
            )
            if total > cutoff:  # no term is negative: the sum stays above
                break
        return total

    def curvature(geometry, clusters, i, j, centre, scratch):
        family, scale, offset = geometry.family, geometry.scale, geometry.offset
        columns, sums = clusters.segments.columns, clusters.segments.sums
        places, c = clusters.segments.places, clusters.segments.places[centre, 0]
        w0, w1 = clusters.weights[i], clusters.weights[j]
        p, p_end, q, q_end = places[i, 0], places[i, 1], places[j, 0], places[j, 1]
        total = 0.0
        while p < p_end or q < q_end:
            left = q >= q_end or (p < p_end and columns[p] <= columns[q])
            right = p >= p_end or (q < q_end and columns[q] <= columns[p])
            sum0, sum1 = sums[p] if left else 0.0, sums[q] if right else 0.0
            column = columns[p] if left else columns[q]
            p, q = p + np.int64(left), q + np.int64(right)
            while c < places[centre, 1] and columns[c] < column:
                c += 1
            found = c < places[centre, 1] and columns[c] == column
            mean = sums[c] / clusters.weights[centre] if found else 0.0
            step = scale * (_cross(sum0, sum1, w0, w1) / (w0 * w1))
            if step != 0.0:  # else the term is 0, even if φ″ is infinite
                total += second_derivative(family, scale * mean + offset) * step * step
        return total

    def refresh(geometry, clusters, i, scratch):
        put_costs(clusters, i, geometry.scale, geometry.offset)
        put_sketch(clusters, i, geometry.scale, geometry.offset, scratch)

    def merge(geometry, clusters, i, j, scratch):
        unite_segments(clusters.segments, i, j)
        merge_weights(clusters, i, j)
        put_costs(clusters, i, geometry.scale, geometry.offset)
        put_sketch(clusters, i, geometry.scale, geometry.offset, scratch)

    def lower_bounds(geometry, clusters, i, start, stop, scratch):
        sketch_bounds(clusters, i, start, stop, geometry.entropy_share, scratch)

    def candidate_slots(geometry, clusters, i, start, stop, cutoff, scratch):
        sketch_bounds(clusters, i, start, stop, geometry.entropy_share, scratch)
        count = 0
        for s in range(stop - start):
            if scratch.bounds[s] <= cutoff and start + s != i:
                scratch.slots[count] = start + s
                count += 1
        if geometry.entropy_share == 0.0:
            for c in range(count):
                scratch.bounds[c] = 0.0
            return count
        forget_knots(scratch, 1)
        spread(clusters, i, geometry.scale, scratch)
        kept = 0
        for c in range(count):
            j = scratch.slots[c]
            bound = _refined(geometry, clusters, 0, i, j, scratch)
            if bound <= cutoff:
                scratch.slots[kept], scratch.bounds[kept] = j, bound
                kept += 1
        gather_up(clusters, i, scratch)
        return kept

    def prepare_queries(geometry, clusters, queue, first, last, scratch):
        if geometry.n_groups > 0:
            mirrored = clusters.mirror.values
            pack_queries(mirrored, clusters.weights, queue, first, last, scratch.query_block)
        forget_knots(scratch, last - first)

    def candidate_pairs(geometry, clusters, queue, first, last, start, stop, cutoffs, scratch):
        share, size, pairs = geometry.entropy_share, stop - start, scratch.pairs
        if geometry.n_groups > 0:
            screen_sketches(
                clusters, queue, first, last, start, stop, cutoffs, share, scratch
            )
        count = 0
        for q in range(last - first):
            i = np.int64(queue[first + q])
            if geometry.n_groups > 0:
                more = unpack(scratch.bits, q, size, pairs[count:])
            else:
                more = _all_alive(clusters.weights, q, start, stop, pairs[count:])
            if more > 0:
                count += _nearer_first(
                    geometry, clusters, q, i, start, cutoffs[i], count, more, scratch
                )
        return count

    def leaf_values(geometry, clusters, i, start, cutoff, scratch):
        sketch_bounds(clusters, i, start, start + LEAF_SIZE, geometry.entropy_share, scratch)
        near = 0
        for s in range(LEAF_SIZE):
            if scratch.bounds[s] <= cutoff and start + s != i:
                if geometry.entropy_share > 0.0:
                    bound = pair_bound_by_walk(
                        clusters, i, start + s, geometry.scale, geometry.offset
                    )
                    if bound * (geometry.entropy_share * ROUNDING) > cutoff:
                        continue
                near |= 1 << s
        return values_of_near(geometry, clusters, i, start, cutoff, near, scratch)

    def violation_bounds(geometry, clusters, a, b, start, stop, cutoff, scratch):
        bounds, others, share = scratch.bounds, scratch.other_bounds, geometry.entropy_share
        towards_sketch_bounds(clusters, a, b, start, stop, share, scratch, bounds)
        towards_sketch_bounds(clusters, b, a, start, stop, share, scratch, others)
        for s in range(stop - start):
            bounds[s] = bounds[s] if bounds[s] > others[s] else others[s]


@kernel
def _cross(sum0, sum1, weight0, weight1):
    """sum1·weight0 − sum0·weight1, to the last digit: exactly 0 for equal means of whole numbers."""
    product0, error0 = two_product(sum0, weight1)
    product1, error1 = two_product(sum1, weight0)
    return (product1 - product0) + (error1 - error0)


@kernel
def _refined(geometry, clusters, q, i, j, scratch):
    """The second bound of a pair, whose first slot is query q and spread out."""
    bound = entropy_bound(clusters, q, i, j, geometry.scale, geometry.offset, scratch)
    return bound * (geometry.entropy_share * ROUNDING)


@kernel
def _nearer_first(geometry, clusters, q, i, start, cutoff, first, count, scratch):
    """Refine the bounds of the pairs of query q, and keep those up to the cutoff; how many.

    The one with the smallest bound comes first: its d mostly rejects the others.
    """
    pairs, bounds = scratch.pairs, scratch.pair_bounds
    if geometry.entropy_share == 0.0:
        for c in range(first, first + count):
            bounds[c] = 0.0
        return count
    spread(clusters, i, geometry.scale, scratch)
    kept, least = first, first
    for c in range(first, first + count):
        j = start + pairs[c] % BLOCK
        if j == i:
            continue
        bound = _refined(geometry, clusters, q, i, j, scratch)
        if bound <= cutoff:
            pairs[kept] = pairs[c]
            bounds[kept] = bound * (1.0 - 1e-6) if bound > 0.0 else 0.0
            if bounds[kept] < bounds[least]:
                least = kept
            kept += 1
    gather_up(clusters, i, scratch)
    if kept > first:
        pairs[first], pairs[least] = pairs[least], pairs[first]
        bounds[first], bounds[least] = bounds[least], bounds[first]
    return kept - first


@kernel
def _all_alive(weights, q, start, stop, pairs):
    """The pairs of query q with all occupied slots; how many."""
    count = 0
    for s in range(stop - start):
        if not np.isnan(weights[start + s]):
            pairs[count] = q * BLOCK + s
            count += 1
    return count
