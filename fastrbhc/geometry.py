"""Clusters as arrays of statistics, and the dissimilarity between two of them.

For a cluster c of weight n and mean statistic t let f(c) = n·φ(t). The dissimilarity is
(paper, eq. bhc_dis_star)

    d(a, b) = f(a) + f(b) − f(a∪b) = n_a·B_φ(t_a, t) + n_b·B_φ(t_b, t),

t being the mean of the union. The right-hand form, a sum of terms that are not negative,
is the one evaluated: the left one is a small difference of large numbers.

A *geometry* is what a family becomes once the number of columns is known: a record with
these methods, run inside kernels.

``dissimilarity(geometry, clusters, i, j, cutoff, scratch)``
    d of slots i and j: the same bits for (j, i), never negative. Where d ≥ cutoff any value
    that is not below the cutoff may be returned, so that hopeless pairs are given up early.
``lower_bounds(geometry, clusters, i, start, stop, scratch)``
    Fills scratch.bounds[:stop−start] with values not above what ``dissimilarity`` returns for
    slot i and the slots start…stop−1; NaN for free slots.
``candidates(geometry, clusters, i, start, stop, cutoff, scratch)``
    Writes to scratch.slots those of the slots start…stop−1 whose d from slot i may be at most the
    cutoff, and returns how many they are.
``tile_values(geometry, clusters, i, start, cutoff, scratch)``
    Fills scratch.bounds[:TILE] with d from slot i to the slots of the tile that begins at start,
    where d ≤ cutoff, and with anything above the cutoff, or NaN, where it is not.
``box_bound(geometry, clusters, i, boxes, node, cutoff)``
    At most what ``dissimilarity`` returns for slot i and any cluster in the box of that node, or
    anything above the cutoff where that would be above it:
    its mean within the low and high of each column, its weight at least the smallest one,
    its extents (see below) within their low and high. A box has these numbers in this order.
    NaN for an empty box, whose weight is infinite.
``merge(geometry, clusters, i, j, scratch)``
    Puts the union into slot i and frees slot j.

``n_extents(geometry)`` and ``extent(geometry, clusters, i, e)``
    How many measures of a cluster, beside its mean and weight, ``box_bound`` wants to know the
    smallest and largest of, and the e-th of them.

Two more are asked for outside the agglomerators: ``refresh(geometry, clusters, i, scratch)``
recomputes what is cached from the moments, and ``sizes(n_features)``, plain Python, tells what a
cluster stores beside its mean.
There are three: `Quadratic`, `Separable`, and the full-covariance one beside its family.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._double_double import weighted_mean
from fastrbhc._jit import contract, fused_kernel, inlined_contract, kernel, length

# Covers the rounding of a bound and of the value it bounds, for millions of columns;
# it lets through one pair in a billion that the exact bound would have stopped.
ROUNDING = 1.0 - 1e-9


# Slots come in tiles of this many; a tile is a leaf of the kd-tree.
TILE = 8

# Slots whose bounds are computed together, so that they stay in the first cache.
# 64 cost a fifth more time, 1024 the same.
BLOCK = 256

# Queries that look at a block together, while it is in the cache.
GROUP = 16


class Clusters(NamedTuple):
    """Statistics of all clusters alive, one a slot; in a free slot weight and means are NaN.

    Means are stored by column (d × n), so that a scan runs over neighbouring slots.
    """

    weights: NDArray[np.float64]  # (n,)
    means: NDArray[np.float64]  # (d, n), the leading digits
    residuals: NDArray[np.float64]  # (d, n), the digits after them
    coarse: NDArray[np.float32]  # (d, n), (means − centre) / radius; d = 0 if not wanted
    centre: NDArray[np.float64]  # (d,), the middle of each column
    radius: NDArray[np.float64]  # (1,), the farthest that a mean lies from the centre
    moments: NDArray[np.float64]  # (n, q), scatter, see families/_cholesky; q = 0 if not needed
    cached: NDArray[np.float64]  # (n, r), values that follow from the moments
    ranks: NDArray[np.int64]  # (n,), which of two equally near clusters comes first
    columns: tuple[int, ...]  # d entries, so that kernels know d; or none


class Sizes(NamedTuple):
    """What a geometry stores and needs, beside weights and means."""

    moments: int = 0  # numbers a cluster
    cached: int = 0  # numbers a cluster
    coarse: bool = False  # whether bounds use the means in single precision
    matrix: tuple[int, int] = (0, 0)  # scratch for one evaluation


class Scratch(NamedTuple):
    """Memory that one thread may write to."""

    bounds: NDArray[np.float64]  # (BLOCK,)
    shares: NDArray[np.float64]  # (2, BLOCK)
    coarse: NDArray[np.float32]  # (BLOCK,)
    matrix: NDArray[np.float64]
    slots: NDArray[np.int64]  # (BLOCK,), candidates
    nodes: NDArray[np.int64]  # (64,), nodes of a tree that are yet to be visited
    node_bounds: NDArray[np.float64]  # (64,), their bounds


@inlined_contract
def divergence(family, value, mean, step):
    """Bregman divergence of one column, a method of every separable family."""


@inlined_contract
def divergence_bound(family, value, mean, step):
    """A quick lower bound of the divergence, a method of every separable family."""


@contract
def dissimilarity(geometry, clusters, i, j, cutoff, scratch):
    """d of two slots; see the module's documentation."""


@contract
def lower_bounds(geometry, clusters, i, start, stop, scratch):
    """Lower bounds of d from slot i to a run of slots; see the module's documentation."""


@inlined_contract
def tile_values(geometry, clusters, i, start, cutoff, scratch):
    """d from slot i to the slots of a tile; see the module's documentation."""


@inlined_contract
def n_extents(geometry):
    """How many extents a box keeps; see the module's documentation."""


@inlined_contract
def extent(geometry, clusters, i, e):
    """The e-th extent of slot i; see the module's documentation."""


@inlined_contract
def box_bound(geometry, clusters, i, boxes, node, cutoff):
    """Lower bound of d from slot i to whatever a box holds; see the module's documentation."""


@contract
def candidates(geometry, clusters, i, start, stop, cutoff, scratch):
    """The slots of a run that may be within the cutoff; see the module's documentation."""


@contract
def merge(geometry, clusters, i, j, scratch):
    """Replace slots i and j by their union in i; see the module's documentation."""


@contract
def refresh(geometry, clusters, i, scratch):
    """Recompute the cached values of slot i; see the module's documentation."""


@kernel
def n_columns(clusters):
    """d."""
    return length(clusters.columns, clusters.means.shape[0])


@kernel
def difference(clusters, i, j, k):
    """Mean of slot j less that of slot i in column k, to the last digit."""
    leading = clusters.means[k, j] - clusters.means[k, i]
    return leading + (clusters.residuals[k, j] - clusters.residuals[k, i])


@kernel
def merge_means(clusters, i, j):
    """Weight, mean and rank of the union into slot i; slot j becomes free."""
    means, residuals = clusters.means, clusters.residuals
    w0, w1 = clusters.weights[i], clusters.weights[j]
    for k in range(n_columns(clusters)):
        means[k, i], residuals[k, i] = weighted_mean(
            w0, means[k, i], residuals[k, i], w1, means[k, j], residuals[k, j]
        )
    per_radius = 1.0 / clusters.radius[0]
    for k in range(clusters.coarse.shape[0]):
        place = (means[k, i] - clusters.centre[k]) + residuals[k, i]
        clusters.coarse[k, i] = place * per_radius
    clusters.weights[i] = w0 + w1
    free(clusters, j)
    # The larger rank, so that no union comes before a neighbour that it replaces.
    clusters.ranks[i] = max(clusters.ranks[i], clusters.ranks[j])


@kernel
def free(clusters, j):
    """Take the cluster out of slot j."""
    clusters.weights[j] = np.nan
    for k in range(n_columns(clusters)):
        clusters.means[k, j] = np.nan


@kernel
def candidates_by_bounds(geometry, clusters, i, start, stop, cutoff, scratch):
    """The candidates of geometries that have nothing quicker than their bounds."""
    lower_bounds(geometry, clusters, i, start, stop, scratch)
    size, bounds = stop - start, scratch.bounds
    # As an integer: five times as fast as a boolean.
    found = np.int64(0)
    for s in range(size):
        found |= np.int64(bounds[s] <= cutoff)
    count = 0
    if found:
        for s in range(size):
            if bounds[s] <= cutoff:
                scratch.slots[count] = start + s
                count += 1
    return count


@kernel
def values_behind_bounds(geometry, clusters, i, start, cutoff, scratch):
    """The tile_values of geometries whose bounds are much quicker than their values."""
    lower_bounds(geometry, clusters, i, start, start + TILE, scratch)
    for s in range(TILE):
        if scratch.bounds[s] <= cutoff:
            value = dissimilarity(geometry, clusters, i, start + s, cutoff, scratch)
            scratch.bounds[s] = value


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
        factor *= weight
        rest, right = slack * weight + limit, limit * weight
        found = np.int64(0)
        for s in range(size):
            found |= np.int64((distances[s] * factor - rest) * weights[s] <= right)
        count = 0
        if found:
            for s in range(size):
                if (distances[s] * factor - rest) * weights[s] <= right:
                    scratch.slots[count] = start + s
                    count += 1
        return count

    def tile_values(geometry, clusters, i, start, cutoff, scratch):
        n_features = n_columns(clusters)
        weight = clusters.weights[i]
        for s in range(start, start + TILE):
            total = 0.0
            for k in range(n_features):
                step = difference(clusters, i, s, k)
                total += step * step
            other = clusters.weights[s]
            share = weight * other / (weight + other)
            scratch.bounds[s - start] = total * share * geometry.half_curvature

    def n_extents(geometry):
        return 0

    def extent(geometry, clusters, i, e):
        return 0.0

    def box_bound(geometry, clusters, i, boxes, node, cutoff):
        n_features = n_columns(clusters)
        total = 0.0
        for k in range(n_features):
            mean = clusters.means[k, i]
            gap = max(max(boxes[node, 2 * k] - mean, mean - boxes[node, 2 * k + 1]), 0.0)
            total += gap * gap
        w0, w1 = clusters.weights[i], boxes[node, 2 * n_features]
        if w1 == np.inf:
            return np.nan
        return total * (w0 * w1 / (w0 + w1)) * (geometry.half_curvature * ROUNDING)

    def merge(geometry, clusters, i, j, scratch):
        merge_means(clusters, i, j)

    def refresh(geometry, clusters, i, scratch):
        return

    def sizes(self, n_features: int) -> Sizes:
        return Sizes(coarse=True)


@fused_kernel
def coarse_distances(clusters, i, start, stop, distances):
    """Single-precision distances from slot i to a run of slots, and what they are worth.

    Returns (factor, slack) such that factor·distances[s] − slack ≤ ‖t_s − t_i‖².

    Coarse means lie in [−1, 1], each within 2⁻²⁴ of its true place, so two of them differ from
    the true difference by a vector of length at most e = 2⁻²³√d. With a the coarse distance,
    (a − e)² ≥ (1−θ)a² − (1/θ − 1)e² for every θ in (0, 1). θ also pays for the rounding of the
    sum of d squares, at most (d+2)·2⁻²⁴ of it; e is taken twice as large for its own rounding.
    """
    size = stop - start
    n_columns = clusters.coarse.shape[0]
    for s in range(size):
        distances[s] = np.float32(0.0)
    # Four columns at a time, for less traffic on `distances`.
    whole = n_columns - n_columns % 4
    for k in range(0, whole, 4):
        mean0, mean1 = clusters.coarse[k, i], clusters.coarse[k + 1, i]
        mean2, mean3 = clusters.coarse[k + 2, i], clusters.coarse[k + 3, i]
        means0, means1 = clusters.coarse[k, start:stop], clusters.coarse[k + 1, start:stop]
        means2, means3 = clusters.coarse[k + 2, start:stop], clusters.coarse[k + 3, start:stop]
        for s in range(size):
            step0, step1 = means0[s] - mean0, means1[s] - mean1
            step2, step3 = means2[s] - mean2, means3[s] - mean3
            distances[s] += (step0 * step0 + step1 * step1) + (step2 * step2 + step3 * step3)
    for k in range(whole, n_columns):
        mean = clusters.coarse[k, i]
        means = clusters.coarse[k, start:stop]
        for s in range(size):
            step = means[s] - mean
            distances[s] += step * step
    square = clusters.radius[0] * clusters.radius[0]
    theta = 1e-3 + n_columns * 2.0**-23
    return (1.0 - theta) * square, 4.0 * n_columns * 2.0**-46 / theta * square


class Separable(NamedTuple):
    """d = Σⱼ n₀·B(t₀ⱼ, tⱼ) + n₁·B(t₁ⱼ, tⱼ) with the family's divergence B, smoothed."""

    family: Any
    scale: float
    offset: float

    def dissimilarity(geometry, clusters, i, j, cutoff, scratch):
        family, scale, offset = geometry.family, geometry.scale, geometry.offset
        w0, w1 = clusters.weights[i], clusters.weights[j]
        share0, share1 = w0 / (w0 + w1), w1 / (w0 + w1)
        total = 0.0
        for k in range(n_columns(clusters)):
            mean0, mean1 = clusters.means[k, i], clusters.means[k, j]
            step = scale * difference(clusters, i, j, k)
            mean = scale * (share0 * mean0 + share1 * mean1) + offset
            value0, value1 = scale * mean0 + offset, scale * mean1 + offset
            total += w0 * divergence(family, value0, mean, -share1 * step) + w1 * divergence(
                family, value1, mean, share0 * step
            )
            if total > cutoff:  # terms are not negative: the sum cannot come back
                break
        return total

    def lower_bounds(geometry, clusters, i, start, stop, scratch):
        family, scale, offset = geometry.family, geometry.scale, geometry.offset
        size = stop - start
        bounds, shares, others = scratch.bounds, scratch.shares[0], scratch.shares[1]
        weight, weights = clusters.weights[i], clusters.weights[start:stop]
        for s in range(size):
            bounds[s] = 0.0
            shares[s] = weight / (weight + weights[s])
            others[s] = weights[s] / (weight + weights[s])
        for k in range(n_columns(clusters)):
            mean0, rest0 = clusters.means[k, i], clusters.residuals[k, i]
            means, rests = clusters.means[k, start:stop], clusters.residuals[k, start:stop]
            value0 = scale * mean0 + offset
            for s in range(size):
                step = scale * ((means[s] - mean0) + (rests[s] - rest0))
                mean = scale * (shares[s] * mean0 + others[s] * means[s]) + offset
                value1 = scale * means[s] + offset
                bound0 = divergence_bound(family, value0, mean, -others[s] * step)
                bound1 = divergence_bound(family, value1, mean, shares[s] * step)
                bounds[s] += weight * bound0 + weights[s] * bound1
        for s in range(size):
            bounds[s] *= ROUNDING

    def candidates(geometry, clusters, i, start, stop, cutoff, scratch):
        return candidates_by_bounds(geometry, clusters, i, start, stop, cutoff, scratch)

    def tile_values(geometry, clusters, i, start, cutoff, scratch):
        values_behind_bounds(geometry, clusters, i, start, cutoff, scratch)

    def n_extents(geometry):
        return 0

    def extent(geometry, clusters, i, e):
        return 0.0

    def box_bound(geometry, clusters, i, boxes, node, cutoff):
        # d grows with either weight and along every ray from the mean of slot i, column by
        # column: its minimum over the box is at that mean, clamped into the box.
        family, scale, offset = geometry.family, geometry.scale, geometry.offset
        n_features = n_columns(clusters)
        w0, w1 = clusters.weights[i], boxes[node, 2 * n_features]
        if w1 == np.inf:
            return np.nan
        share0, share1 = w0 / (w0 + w1), w1 / (w0 + w1)
        total = 0.0
        for k in range(n_features):
            mean0 = clusters.means[k, i]
            mean1 = min(max(mean0, boxes[node, 2 * k]), boxes[node, 2 * k + 1])
            if mean1 != mean0:
                step = scale * (mean1 - mean0)
                mean = scale * (share0 * mean0 + share1 * mean1) + offset
                bound0 = divergence_bound(family, scale * mean0 + offset, mean, -share1 * step)
                bound1 = divergence_bound(family, scale * mean1 + offset, mean, share0 * step)
                total += w0 * bound0 + w1 * bound1
        return total * ROUNDING

    def merge(geometry, clusters, i, j, scratch):
        merge_means(clusters, i, j)

    def refresh(geometry, clusters, i, scratch):
        return

    def sizes(self, n_features: int) -> Sizes:
        return Sizes()


def separable_geometry(family: Any, n_features: int) -> Quadratic | Separable:
    """The geometry that every separable family gets."""
    scale, offset = family.smoothing_map(n_features)
    if family.quadratic:
        # φ″/2 is the divergence of a unit step, wherever it starts.
        return Quadratic(divergence(family, 1.0, 0.0, 1.0) * scale * scale)
    return Separable(family, float(scale), float(offset))


def new_scratch(geometry: Any, n_features: int) -> Scratch:
    """Scratch memory for one thread."""
    return Scratch(
        bounds=np.empty(BLOCK),
        shares=np.empty((2, BLOCK)),
        coarse=np.empty(BLOCK, np.float32),
        matrix=np.empty(geometry.sizes(n_features).matrix),
        slots=np.empty(BLOCK, np.int64),
        nodes=np.empty(64, np.int64),
        node_bounds=np.empty(64),
    )
