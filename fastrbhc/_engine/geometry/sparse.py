"""The geometry of separable families for clusters of sparse rows.

A column in which both clusters are zero has the same value on both sides and adds nothing to d, so
d takes only the columns that one of them has.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastrbhc._engine.clusters.record import LEAF_SIZE, merge_weights
from fastrbhc._engine.clusters.segments import rest_of, unite_segments
from fastrbhc._engine.geometry.contract import ROUNDING, ScratchShapes, Storage, values_of_near
from fastrbhc._engine.geometry.separable_columns import divergence, second_derivative
from fastrbhc._engine.geometry.sparse_entropy import (
    N_FEATURES,
    bound_by_walk,
    bounds_from_overlaps,
    gather_up,
    overlap_with_spread,
    put_costs,
    spread,
)
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.math.double_double import two_product

# Slots whose overlaps with a query are accumulated together, so that they stay in the L1 cache.
SLOTS_AT_A_TIME = 4096


class SparseSeparable(NamedTuple):
    """d = Σⱼ n₀·B(t₀ⱼ, tⱼ) + n₁·B(t₁ⱼ, tⱼ) over the columns that either cluster has."""

    family: Any
    scale: float
    offset: float
    entropy_share: float  # a c for which φ − c·y log y is convex; 0 if none is known
    n_columns: int

    def storage(self, n_features: int) -> Storage:
        return Storage(scan_features=N_FEATURES)

    def scratch_shapes(self, n_features: int) -> ScratchShapes:
        return ScratchShapes(
            matrix=(6, SLOTS_AT_A_TIME), lanes=(1, self.n_columns), bits=(1, self.n_columns)
        )

    def usual_backend(self) -> str:
        # Without bounds, all pairs are evaluated.
        return "inverted" if self.entropy_share > 0.0 else "brute"

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
            sum0, sum1, rest0, rest1 = 0.0, 0.0, 0.0, 0.0
            left = q >= q_end or (p < p_end and columns[p] <= columns[q])
            right = p >= p_end or (q < q_end and columns[q] <= columns[p])
            if left:
                sum0, rest0 = sums[p], rest_of(clusters.segments, p)
                p += 1
            if right:
                sum1, rest1 = sums[q], rest_of(clusters.segments, q)
                q += 1
            step = scale * ((_cross(sum0, sum1, w0, w1) + (rest1 * w0 - rest0 * w1)) / product)
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

    def merge(geometry, clusters, i, j, scratch):
        unite_segments(clusters.segments, i, j)
        merge_weights(clusters, i, j)
        put_costs(clusters, i, geometry.scale, geometry.offset)

    def leaf_values(geometry, clusters, i, start, cutoff, scratch):
        near, bounded = 0, geometry.entropy_share > 0.0
        if bounded:
            spread(clusters, i, geometry.scale, scratch)
        for s in range(LEAF_SIZE):
            j = start + s
            if np.isnan(clusters.weights[j]):
                continue
            if not bounded or bound_from_spread(geometry, clusters, i, j, scratch) <= cutoff:
                near |= 1 << s
        if bounded:
            gather_up(clusters, i, scratch)
        return values_of_near(geometry, clusters, i, start, cutoff, near, scratch)


def sparse_geometry(family: Any, n_columns: int) -> SparseSeparable:
    """The geometry of a separable family for sparse rows."""
    scale, offset = family.smoothing_map(n_columns)
    return SparseSeparable(
        family, float(scale), float(offset), float(family.entropy_share), n_columns
    )


@kernel
def bound(geometry, clusters, i, j):
    """A close lower bound of d of two slots, at a tenth of the cost; 0 if none is known."""
    if geometry.entropy_share == 0.0:
        return 0.0
    value = bound_by_walk(clusters, i, j, geometry.scale, geometry.offset)
    return value * (geometry.entropy_share * ROUNDING)


@kernel
def bound_from_spread(geometry, clusters, i, j, scratch):
    """The same if slot i is spread out over the scratch row; a little lower."""
    overlap = scratch.matrix[0]
    overlap[0] = overlap_with_spread(clusters, i, j, geometry.scale, geometry.offset, scratch)
    bounds_from_overlaps(clusters, i, j, j + 1, geometry.offset, overlap)
    value = overlap[0] * (geometry.entropy_share * ROUNDING)
    return value if value > 0.0 else 0.0  # NaN, if terms overflow


@kernel
def _cross(sum0, sum1, weight0, weight1):
    """sum1·weight0 − sum0·weight1, to the last digit: exactly 0 for equal means."""
    product0, error0 = two_product(sum0, weight1)
    product1, error1 = two_product(sum1, weight0)
    return (product1 - product0) + (error1 - error0)
