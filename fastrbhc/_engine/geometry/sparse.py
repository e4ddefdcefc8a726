"""The geometry of separable families for clusters of sparse rows.

A column in which both clusters are zero has the same value on both sides and adds nothing to d, so
d takes only the columns that one of them has.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastrbhc._engine.clusters.record import LEAF_SIZE, merge_weights
from fastrbhc._engine.clusters.segments import next_entries, rest_of, unite_segments
from fastrbhc._engine.geometry.contract import ROUNDING, ScratchShapes, Storage, values_of_near
from fastrbhc._engine.geometry.separable_columns import divergence, second_derivative
from fastrbhc._engine.geometry.sparse_complement import (
    N_MORE_FEATURES,
    complement_by_walk,
    complement_with_spread,
    put_complement_costs,
    subtract_complement_costs,
)
from fastrbhc._engine.geometry.sparse_entropy import (
    N_FEATURES,
    bound_by_walk,
    bounds_from_overlaps,
    gather_up,
    overlap_with_spread,
    put_costs,
    spread,
)
from fastrbhc._engine.geometry.sparse_violations import (
    begin_violations,
    end_violations,
    range_of_weights,
    violation_bound,
)
from fastrbhc._engine.jit import inlined_kernel, kernel
from fastrbhc._engine.math.double_double import two_product

# Slots whose overlaps with a query are accumulated together, so that they stay in the L1 cache.
SLOTS_AT_A_TIME = 4096


class SparseSeparable(NamedTuple):
    """d = Σⱼ n₀·B(t₀ⱼ, tⱼ) + n₁·B(t₁ⱼ, tⱼ) over the columns that either cluster has."""

    family: Any
    scale: float
    offset: float
    entropy_share: float  # a c for which φ − c·y log y is convex; 0 if none is known
    ceiling: float  # 1 − offset if φ − c·(y log y + (1 − y) log(1 − y)) is convex, else 0
    n_columns: int

    def storage(self, n_features: int) -> Storage:
        more = N_MORE_FEATURES if self.ceiling > 0.0 else 0
        return Storage(scan_features=N_FEATURES + more, sparse_columns=self.n_columns)

    def scratch_shapes(self, n_features: int) -> ScratchShapes:
        return ScratchShapes(
            matrix=(7, SLOTS_AT_A_TIME), spread=(2, self.n_columns), bits=(1, self.n_columns)
        )

    def usual_backend(self, n_features: int) -> str:
        # Without bounds, all pairs are evaluated.
        return "inverted" if self.entropy_share > 0.0 else "brute"

    def dissimilarity(geometry, clusters, i, j, cutoff, scratch):
        family, scale, offset = geometry.family, geometry.scale, geometry.offset
        columns, places = clusters.segments.columns, clusters.segments.places
        w0, w1 = clusters.weights[i], clusters.weights[j]
        weight, product = w0 + w1, w0 * w1
        share0, share1 = w0 / weight, w1 / weight
        p, p_end, q, q_end = places[i, 0], places[i, 1], places[j, 0], places[j, 1]
        total = 0.0
        while p < p_end or q < q_end:
            p, q, left, right = next_entries(columns, p, p_end, q, q_end)
            sum0, sum1, cross = _column(clusters.segments, left, right, w0, w1)
            step = scale * (cross / product)
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
            p, q, left, right = next_entries(columns, p, p_end, q, q_end)
            column = columns[left if left >= 0 else right]
            cross = _column(clusters.segments, left, right, w0, w1)[2]
            while c < places[centre, 1] and columns[c] < column:
                c += 1
            found = c < places[centre, 1] and columns[c] == column
            mean = sums[c] / clusters.weights[centre] if found else 0.0
            step = scale * (cross / (w0 * w1))
            if step != 0.0:  # else the term is 0, even if φ″ is infinite
                total += second_derivative(family, scale * mean + offset) * step * step
        return total

    def refresh(geometry, clusters, i, scratch):
        _put_all_costs(geometry, clusters, i)

    def merge(geometry, clusters, i, j, scratch):
        unite_segments(clusters.segments, i, j)
        merge_weights(clusters, i, j)
        _put_all_costs(geometry, clusters, i)

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

    def lower_bounds(geometry, clusters, i, start, stop, scratch):
        weights, bounds, overlaps = clusters.weights, scratch.bounds, scratch.matrix[0]
        if geometry.entropy_share == 0.0:
            for s in range(stop - start):
                bounds[s] = 0.0 * weights[start + s]
            return
        scale, offset, ceiling = geometry.scale, geometry.offset, geometry.ceiling
        spread(clusters, i, scale, scratch)
        for s in range(stop - start):
            overlaps[s] = 0.0
            if not np.isnan(weights[start + s]):
                overlaps[s] = _overlap(geometry, clusters, i, start + s, scratch)
        gather_up(clusters, i, scratch)
        if ceiling > 0.0:
            subtract_complement_costs(clusters, i, start, stop, ceiling, overlaps)
        bounds_from_overlaps(clusters, i, start, stop, offset, overlaps)
        for s in range(stop - start):
            value = overlaps[s] * (geometry.entropy_share * ROUNDING)
            bounds[s] = value if value > 0.0 else 0.0 * weights[start + s]

    def violation_bounds(geometry, clusters, a, b, start, stop, cutoff, scratch):
        lightest, heaviest = range_of_weights(clusters, start, stop)
        if not heaviest > 0.0 or geometry.entropy_share == 0.0:
            for s in range(stop - start):
                scratch.bounds[s] = 0.0 * clusters.weights[start + s]
            return
        knots = begin_violations(geometry, clusters, a, b, lightest, heaviest, scratch)
        for s in range(stop - start):
            x = start + s
            scratch.bounds[s] = np.nan
            if not np.isnan(clusters.weights[x]):
                scratch.bounds[s] = violation_bound(
                    geometry, clusters, a, b, x, cutoff, knots, scratch
                )
        end_violations(clusters, a, b, scratch)


def sparse_geometry(family: Any, n_columns: int) -> SparseSeparable:
    """The geometry of a separable family for sparse rows."""
    scale, offset = family.smoothing_map(n_columns)
    ceiling = 1.0 - offset if family.entropy_of_complement else 0.0
    share = float(family.entropy_share)
    return SparseSeparable(family, float(scale), float(offset), share, float(ceiling), n_columns)


@kernel
def _put_all_costs(geometry, clusters, i):
    """Fill in the scan features of slot i."""
    put_costs(clusters, i, geometry.scale, geometry.offset)
    if geometry.ceiling > 0.0:
        put_complement_costs(clusters, i, geometry.scale, geometry.offset, geometry.ceiling)


@kernel
def bound(geometry, clusters, i, j):
    """A close lower bound of d of two slots, at a tenth of the cost; 0 if none is known."""
    if geometry.entropy_share == 0.0:
        return 0.0
    value = bound_by_walk(clusters, i, j, geometry.scale, geometry.offset)
    if geometry.ceiling > 0.0:
        value += complement_by_walk(clusters, i, j, geometry.scale, geometry.ceiling)
    return value * (geometry.entropy_share * ROUNDING)


@kernel
def bound_from_spread(geometry, clusters, i, j, scratch):
    """The same if slot i is spread out over the scratch row; a little lower."""
    overlap = scratch.matrix[0]
    overlap[0] = _overlap(geometry, clusters, i, j, scratch)
    if geometry.ceiling > 0.0:
        subtract_complement_costs(clusters, i, j, j + 1, geometry.ceiling, overlap)
    bounds_from_overlaps(clusters, i, j, j + 1, geometry.offset, overlap)
    value = overlap[0] * (geometry.entropy_share * ROUNDING)
    return value if value > 0.0 else 0.0  # NaN, if terms overflow


@kernel
def _overlap(geometry, clusters, i, j, scratch):
    """Σ Δ of slot i, which is spread out, and slot j; with that of the complement, if bounded."""
    value = overlap_with_spread(clusters, i, j, geometry.scale, geometry.offset, scratch)
    if geometry.ceiling > 0.0:
        value += complement_with_spread(clusters, i, j, geometry.scale, geometry.ceiling, scratch)
    return value


@inlined_kernel
def _column(segments, left, right, weight0, weight1):
    """The sums of two entries, 0 for −1, and sum1·weight0 − sum0·weight1.

    The last one is good to the last digit, and exactly 0 for equal means.
    """
    sum0, sum1, rest0, rest1 = 0.0, 0.0, 0.0, 0.0
    if left >= 0:
        sum0, rest0 = segments.sums[left], rest_of(segments, left)
    if right >= 0:
        sum1, rest1 = segments.sums[right], rest_of(segments, right)
    product0, error0 = two_product(sum0, weight1)
    product1, error1 = two_product(sum1, weight0)
    rests = rest1 * weight0 - rest0 * weight1
    return sum0, sum1, ((product1 - product0) + (error1 - error0)) + rests
