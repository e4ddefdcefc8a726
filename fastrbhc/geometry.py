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
``merge(geometry, clusters, i, j, scratch)``
    Puts the union into slot i and frees slot j.

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
from fastrbhc._jit import contract, kernel

# Covers the rounding of a bound and of the value it bounds, for millions of columns;
# it lets through one pair in a billion that the exact bound would have stopped.
ROUNDING = 1.0 - 1e-9


# Slots whose bounds are computed together, so that they stay in the first cache.
# 64 cost a fifth more time, 1024 the same.
BLOCK = 256


class Clusters(NamedTuple):
    """Statistics of all clusters alive, one a slot; a free slot has weight NaN.

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


@contract
def divergence(family, value, mean, step):
    """Bregman divergence of one column, a method of every separable family."""


@contract
def divergence_bound(family, value, mean, step):
    """A quick lower bound of the divergence, a method of every separable family."""


@contract
def dissimilarity(geometry, clusters, i, j, cutoff, scratch):
    """d of two slots; see the module's documentation."""


@contract
def lower_bounds(geometry, clusters, i, start, stop, scratch):
    """Lower bounds of d from slot i to a run of slots; see the module's documentation."""


@contract
def merge(geometry, clusters, i, j, scratch):
    """Replace slots i and j by their union in i; see the module's documentation."""


@contract
def refresh(geometry, clusters, i, scratch):
    """Recompute the cached values of slot i; see the module's documentation."""


@kernel
def difference(clusters, i, j, k):
    """Mean of slot j less that of slot i in column k, to the last digit."""
    leading = clusters.means[k, j] - clusters.means[k, i]
    return leading + (clusters.residuals[k, j] - clusters.residuals[k, i])


@kernel
def merge_means(clusters, i, j):
    """Weight, mean and rank of the union into slot i; slot j becomes free."""
    weights, means, residuals = clusters.weights, clusters.means, clusters.residuals
    for k in range(means.shape[0]):
        means[k, i], residuals[k, i] = weighted_mean(
            weights[i], means[k, i], residuals[k, i], weights[j], means[k, j], residuals[k, j]
        )
    for k in range(clusters.coarse.shape[0]):
        place = (means[k, i] - clusters.centre[k]) + residuals[k, i]
        clusters.coarse[k, i] = place / clusters.radius[0]
    weights[i] += weights[j]
    weights[j] = np.nan
    # The larger rank, so that no union comes before a neighbour that it replaces.
    clusters.ranks[i] = max(clusters.ranks[i], clusters.ranks[j])


class Quadratic(NamedTuple):
    """d = n₀n₁/(n₀+n₁) · curvature/2 · ‖t₀ − t₁‖², for φ with a constant second derivative."""

    half_curvature: float

    def dissimilarity(geometry, clusters, i, j, cutoff, scratch):
        w0, w1 = clusters.weights[i], clusters.weights[j]
        total = 0.0
        for k in range(clusters.means.shape[0]):
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

    def merge(geometry, clusters, i, j, scratch):
        merge_means(clusters, i, j)

    def refresh(geometry, clusters, i, scratch):
        return

    def sizes(self, n_features: int) -> Sizes:
        return Sizes(coarse=True)


@kernel
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
    # Two columns at a time halve the traffic on `distances`.
    for k in range(0, n_columns - 1, 2):
        mean0, mean1 = clusters.coarse[k, i], clusters.coarse[k + 1, i]
        means0, means1 = clusters.coarse[k, start:stop], clusters.coarse[k + 1, start:stop]
        for s in range(size):
            step0, step1 = means0[s] - mean0, means1[s] - mean1
            distances[s] += step0 * step0 + step1 * step1
    if n_columns % 2 == 1:
        mean = clusters.coarse[n_columns - 1, i]
        means = clusters.coarse[n_columns - 1, start:stop]
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
        for k in range(clusters.means.shape[0]):
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
        for k in range(clusters.means.shape[0]):
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
    )
