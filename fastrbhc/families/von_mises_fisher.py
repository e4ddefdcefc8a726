"""Directions: rows whose lengths do not matter, compared by their angles."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.observations import Observations
from fastrbhc._engine.clusters.record import Clusters, difference, merge_weights
from fastrbhc._engine.geometry.contract import ROUNDING, Storage, n_features, values_of_near
from fastrbhc._engine.geometry.float32_means import mirror_distances, with_centred_mirror
from fastrbhc._engine.geometry.ward import box_distances, leaf_distances
from fastrbhc._engine.jit import fused_kernel, inlined_kernel, kernel
from fastrbhc._engine.math.double_double import (
    add,
    divide,
    multiply,
    product,
    quotient,
    square,
    square_root,
)
from fastrbhc._engine.simd import at_most, load, store
from fastrbhc.families._interface import Domain, family

# A sum shorter than this share of its parts is 0 up to the rounding of double-double.
_CANCELLED = 1e-28

# Added to lengths that may be 0 before dividing by them.
_TINY = 1e-280


@family(
    "von_mises_fisher",
    aliases=("cosine",),
    separable=False,
    reducible=True,
    domain=Domain(needs_nonzero_row=True),
)
class VonMisesFisher(NamedTuple):
    """Von Mises–Fisher with one known concentration, for directions: φ(t) = κ‖t‖.

    A row x stands for its direction x/‖x‖. With s₀ and s₁ the sums of the directions of two groups,

        d = κ(‖s₀‖ + ‖s₁‖ − ‖s₀ + s₁‖),

    which for two rows at the angle θ is κ(2 − 2 cos(θ/2)): an agglomerative method for cosine
    similarity.

    It is reducible. Let a, b, x be three sums, p = ‖a‖, q = ‖b‖, r = ‖x‖, N = ‖a + b + x‖,
    C = ‖a + b‖, δ = d(a, b) = p + q − C and c = d(a ∪ b, x) = C + r − N, for κ = 1. Multiplied out,
    ‖a + x‖² + ‖b + x‖² + C² = N² + p² + q² + r².

    1. If c is below both d(a, x) and d(b, x), then ‖a + x‖ < p + e and ‖b + x‖ < q + e with e = N −
       C = r − c. Put into the identity, r² − e² < 2eδ. As −r ≤ e ≤ r, it follows that e > 0, and
       from c(r + e) < 2eδ with r ≥ e that c < δ.
    2. If δ is at most d(a, x) and d(b, x), then ‖a + x‖ ≤ p + r − δ and ‖b + x‖ ≤ q + r − δ. Put
       into the identity, c² ≤ 2(c − δ)(r + C), so that c ≥ δ.

    So if a and b are the nearest pair, 2 gives c ≥ δ, and the assumption of 1 does not hold: their
    union is not nearer to x than both of them were. By 2, heights never decrease.

    Parameters
    ----------
    concentration : float, default=1.0
        κ, which only scales the dissimilarities.

    Examples
    --------
    >>> from fastrbhc import dissimilarity
    >>> dissimilarity([[1.0, 0.0]], [[-3.0, 0.0]], "von_mises_fisher")
    2.0
    >>> round(dissimilarity([[1.0, 0.0]], [[0.0, 5.0]], "von_mises_fisher"), 6)
    0.585786
    """

    concentration: float = 1.0

    def check(self) -> None:
        if not 1e-150 <= self.concentration <= 1e150:
            raise ValueError(
                f"concentration has to lie between 1e-150 and 1e150, got {self.concentration}"
            )

    def coordinates(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.observe(X).means

    def observe(self, X: NDArray[np.float64]) -> Observations:
        directions, residuals = np.empty(X.shape), np.empty(X.shape)
        _directions(X, directions, residuals)
        return Observations(directions, residuals)

    def n_parameters(self, n_features: int) -> int:
        return n_features - 1

    def geometry(self, n_features: int) -> Directions:
        return Directions(self.concentration)


class Directions(NamedTuple):
    """The geometry of clusters by the sums of their directions.

    A sum s is kept as its direction u = s/‖s‖, in the place of the mean, and its length a = ‖s‖,
    which is cached; both in double-double. A sum of length 0 has the direction 0.

    **Exact values.** Let h = ab‖u₀ − u₁‖²/(a + b)². As ‖s₀ + s₁‖² = (a + b)²(1 − h),

        d = κ(a + b)(1 − √(1 − h)) = κ(a + b)·h/(1 + √(1 − h)),

    in which nothing cancels for directions that are nearly the same. For h above ½, 1 − h loses
    digits, and √(1 − h) is computed as ‖s₀ + s₁‖/(a + b).

    **Bounds.** d grows with the distance of the directions. It grows with either length as well:
    the derivative along a is κ(1 − cos α), where α is the angle between s₀ and s₀ + s₁. A box
    stores a range of directions and the smallest length. So over a box, d is smallest at the
    nearest direction and that length. Finally, 1 − √(1 − h) ≥ h/2 + h²/8 + h³/16, the beginning of
    a series of positive terms.
    """

    concentration: float
    columns: tuple[int, ...] = ()

    def storage(self, n_features: int) -> Storage:
        return Storage(cached=2, scan_features=1, mirrored=True, by_cluster=True, box_features=(0,))

    def with_mirror(self, clusters: Clusters) -> Clusters:
        # Directions of unions may lie outside the frame of the points, but not outside this one.
        clusters.mirror.centre[:] = 0.0
        clusters.mirror.radius = 1.0
        return with_centred_mirror(clusters)

    def dissimilarity(geometry, clusters, i, j, cutoff, scratch):
        d, means = n_features(geometry, clusters), clusters.means
        length0, length1 = clusters.cached[i, 0], clusters.cached[j, 0]
        length = length0 + length1
        share0, share1 = length0 / (length + _TINY), length1 / (length + _TINY)
        distance = 0.0
        for k in range(d):
            step = difference(clusters, i, j, k)
            distance += step * step
        h = share0 * share1 * distance
        rest = 1.0 - h
        if h > 0.5:
            rest = 0.0
            for k in range(d):
                part = share0 * means[k, i] + share1 * means[k, j]
                rest += part * part
        return geometry.concentration * (length * (h / (1.0 + math.sqrt(rest))))

    def curvature(geometry, clusters, i, j, centre, scratch):
        # φ″ = κ/‖t‖·(I − uuᵀ): the part perpendicular to the direction u of the centre.
        d, means, along, total = n_features(geometry, clusters), clusters.means, 0.0, 0.0
        mean0, mean1 = _mean_length(clusters, i), _mean_length(clusters, j)
        for k in range(d):
            along += (mean1 * means[k, j] - mean0 * means[k, i]) * means[k, centre]
        for k in range(d):
            step = mean1 * means[k, j] - mean0 * means[k, i]
            part = step - along * means[k, centre]
            total += part * part
        return geometry.concentration * total / _mean_length(clusters, centre)

    def merge(geometry, clusters, i, j, scratch):
        means, residuals, cached = clusters.means, clusters.residuals, clusters.cached
        for k in range(n_features(geometry, clusters)):
            part0, rest0 = product(cached[i, 0], cached[i, 1], means[k, i], residuals[k, i])
            part1, rest1 = product(cached[j, 0], cached[j, 1], means[k, j], residuals[k, j])
            means[k, i], residuals[k, i] = add(part0, rest0, part1, rest1)
        _normalise(clusters, i, 1.0, _CANCELLED * (cached[i, 0] + cached[j, 0]))
        merge_weights(clusters, i, j)

    def refresh(geometry, clusters, i, scratch):
        _normalise(clusters, i, clusters.weights[i], _CANCELLED)

    def lower_bounds(geometry, clusters, i, start, stop, scratch):
        _scan(geometry.concentration, clusters, i, start, stop, scratch)

    def leaf_values(geometry, clusters, i, start, cutoff, scratch):
        distance = leaf_distances(clusters, i, start, n_features(geometry, clusters))
        length0, length1 = clusters.cached[i, 0], load(clusters.cached.T, (0, start))
        near = at_most(_bound(geometry.concentration, length0, length1, distance), cutoff)
        return values_of_near(geometry, clusters, i, start, cutoff, near, scratch)

    def box_bounds(geometry, clusters, i, boxes, group, cutoff, scratch):
        d = n_features(geometry, clusters)
        distance = box_distances(clusters, i, boxes, group, d)
        length0, length1 = clusters.cached[i, 0], load(boxes, (group, 2 * d + 1, 0))
        # The length of an empty box is infinite, which makes this NaN.
        bounds = _bound(geometry.concentration, length0, length1, distance)
        store(scratch.bounds, bounds)
        return at_most(bounds, cutoff)


@inlined_kernel
def _bound(concentration, length0, length1, distance):
    """The series for a squared distance of directions, for scalars or vectors."""
    length = (length0 + length1) + _TINY
    h = (length0 / length) * (length1 / length) * distance
    series = 0.5 + h * (0.125 + 0.0625 * h)
    return (concentration * ROUNDING) * (length * (h * series))


@fused_kernel
def _scan(concentration, clusters, i, start, stop, scratch):
    """Bounds for a run of slots, from directions in single precision."""
    factor, slack = mirror_distances(clusters, i, start, stop, scratch.sums)
    distances, bounds, weights = scratch.sums, scratch.bounds, clusters.weights[start:stop]
    length, lengths = clusters.scan_features[0, i], clusters.scan_features[0, start:stop]
    for s in range(stop - start):
        distance = distances[s] * factor - slack
        distance = distance if distance > 0.0 else 0.0
        # The weight of a free slot is NaN.
        bounds[s] = _bound(concentration, length, lengths[s], distance) + 0.0 * weights[s]


@kernel
def _mean_length(clusters, i):
    """The length of the mean of slot i."""
    return clusters.cached[i, 0] / clusters.weights[i]


@kernel
def _normalise(clusters, i, weight, shortest):
    """Turn the vector in the place of the mean of slot i into a direction, and cache its length.

    The length is multiplied by a weight. A vector without an entry above ``shortest`` counts as 0.
    The vector is first divided by its largest entry, so that in a single column the direction is
    exactly 1 or −1.
    """
    means, residuals, cached = clusters.means, clusters.residuals, clusters.cached
    largest, rest = 0.0, 0.0
    for k in range(means.shape[0]):
        if abs(means[k, i]) > largest:
            largest, rest = abs(means[k, i]), math.copysign(1.0, means[k, i]) * residuals[k, i]
    total, error = 0.0, 0.0
    for k in range(means.shape[0]):
        if largest > shortest:
            means[k, i], residuals[k, i] = quotient(means[k, i], residuals[k, i], largest, rest)
        else:
            means[k, i], residuals[k, i] = 0.0, 0.0
        total, error = add(total, error, *square(means[k, i], residuals[k, i]))
    cached[i, 0], cached[i, 1] = 0.0, 0.0
    if largest > shortest:
        root, error = square_root(total, error)
        for k in range(means.shape[0]):
            means[k, i], residuals[k, i] = quotient(means[k, i], residuals[k, i], root, error)
        cached[i, 0], cached[i, 1] = multiply(weight, *product(largest, rest, root, error))
    for k in range(clusters.scan_features.shape[0]):
        clusters.scan_features[k, i] = cached[i, 0]
    for k in range(clusters.mirror.values.shape[0]):
        clusters.mirror.values[k, i] = means[k, i] + residuals[k, i]


@kernel
def _directions(X, high, low):
    """Rows divided by their lengths, in double-double.

    They are divided by their largest entry first. The quotients are then the same, to the bit, for
    a row and its multiples, and their squares do not overflow.
    """
    for i in range(X.shape[0]):
        largest, total, rest = 0.0, 0.0, 0.0
        for k in range(X.shape[1]):
            largest = max(largest, abs(X[i, k]))
        for k in range(X.shape[1]):
            high[i, k], low[i, k] = divide(X[i, k], 0.0, largest)
            total, rest = add(total, rest, *square(high[i, k], low[i, k]))
        length, rest = square_root(total, rest)
        for k in range(X.shape[1]):
            high[i, k], low[i, k] = quotient(high[i, k], low[i, k], length, rest)
