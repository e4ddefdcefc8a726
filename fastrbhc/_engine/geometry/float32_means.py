"""Means in single precision, and error bounds of distances between them.

The mirror of a mean is (mean − centre) / radius: it is in [−1, 1], and so are the mirrors of
unions. With half the memory and twice the lanes, scans read the mirrors first, and the means
themselves only if a pair may be near.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.record import Clusters, merge_means
from fastrbhc._engine.geometry.contract import FEW_COLUMNS, ROUNDING
from fastrbhc._engine.jit import fused_kernel, kernel, loose_kernel
from fastrbhc._engine.records import replaced

# The share of the variance that the leading axes of a rotated mirror have.
_LEADING_SHARE = 0.9
# Rotating a union takes the square of the columns; axes are those of the first points.
_MOST_ROTATED, _WORTH_ROTATING, _SAMPLE = 128, 2_000, 2_000
# Slots that are rotated together.
_AT_A_TIME = 1 << 14


def with_centred_mirror(clusters: Clusters) -> Clusters:
    """The clusters with their mirror filled in."""
    mirror = clusters.mirror
    for k in range(mirror.values.shape[0]):
        places = (clusters.means[k] - mirror.centre[k]) + clusters.residuals[k]
        mirror.values[k] = places / mirror.radius
    return clusters


def with_rotated_mirror(clusters: Clusters) -> Clusters:
    """The clusters with their mirror along principal axes, if few of these have most variance."""
    clusters = with_centred_mirror(clusters)
    values, n = clusters.mirror.values, clusters.n_slots
    if not (FEW_COLUMNS < values.shape[0] <= _MOST_ROTATED and n >= _WORTH_ROTATING):
        return clusters
    # Points are in hash order, so the first of them are a sample.
    sample = values[:, : min(n, _SAMPLE)].astype(np.float64)
    sample -= sample.mean(axis=1, keepdims=True)
    # Without BLAS, whose threads would outlast such a small product.
    variances, axes = np.linalg.eigh(np.einsum("ki,mi->km", sample, sample))
    shares = np.cumsum(variances[::-1]) / variances.sum()
    leading = -(-(1 + int(np.searchsorted(shares, _LEADING_SHARE))) // 4) * 4
    if not 2 * leading <= values.shape[0]:
        return clusters
    axes = np.ascontiguousarray(axes.T[::-1])
    for first in range(0, values.shape[1], _AT_A_TIME):
        part = slice(first, first + _AT_A_TIME)
        values[:, part] = np.einsum("km,mi->ki", axes, _places(clusters, part))
    return replaced(clusters, mirror=replaced(clusters.mirror, axes=axes, leading=leading))


def _places(clusters: Clusters, slots: slice) -> NDArray[np.float64]:
    """Means relative to the frame."""
    means, mirror = clusters.means[:, slots], clusters.mirror
    relative = (means - mirror.centre[:, None]) + clusters.residuals[:, slots]
    return np.asarray(relative / mirror.radius)


@kernel
def merge_rotated_means(clusters, i, j, places):
    """The same as `merge_mirrored_means` if the mirror may be along axes of its own."""
    axes, mirror = clusters.mirror.axes, clusters.mirror
    if axes.shape[0] == 0:
        merge_mirrored_means(clusters, i, j)
        return
    merge_means(clusters, i, j)
    per_radius = 1.0 / mirror.radius
    for k in range(mirror.values.shape[0]):
        place = (clusters.means[k, i] - mirror.centre[k]) + clusters.residuals[k, i]
        places[k] = place * per_radius
    for k in range(mirror.values.shape[0]):
        mirror.values[k, i] = _product(axes[k], places)


@loose_kernel
def _product(axis, places):
    total = 0.0
    for k in range(axis.size):
        total += axis[k] * places[k]
    return total


@kernel
def merge_mirrored_means(clusters, i, j):
    """Weight, mean, mirrored mean and rank of the union into slot i; slot j becomes free."""
    merge_means(clusters, i, j)
    mirror = clusters.mirror
    per_radius = 1.0 / mirror.radius
    for k in range(mirror.values.shape[0]):
        place = (clusters.means[k, i] - mirror.centre[k]) + clusters.residuals[k, i]
        mirror.values[k, i] = place * per_radius


@fused_kernel
def mirror_distances(clusters, i, start, stop, distances):
    """Single-precision distances from slot i to a run of slots, and their error bounds.

    Returns (factor, slack) such that factor·distances[s] − slack ≤ ‖t_s − t_i‖².

    Mirrored means are in [−1, 1], each within 2⁻²⁴ of its exact value, so the difference of two is
    off by a vector of length at most e = 2⁻²³√d. With a the distance of the mirrored means,
    (a − e)² ≥ (1−θ)a² − (1/θ − 1)e² for every θ in (0, 1). θ also covers the rounding of the sum of
    d squares, at most (d+2)·2⁻²⁴ of it; e is doubled to cover its own rounding.
    """
    size, mirror, values = stop - start, clusters.mirror, clusters.mirror.values
    n_columns = values.shape[0]
    for s in range(size):
        distances[s] = np.float32(0.0)
    # Four columns at a time, for fewer loads and stores of `distances`.
    whole = n_columns - n_columns % 4
    for k in range(0, whole, 4):
        mean0, mean1 = values[k, i], values[k + 1, i]
        mean2, mean3 = values[k + 2, i], values[k + 3, i]
        means0, means1 = values[k, start:stop], values[k + 1, start:stop]
        means2, means3 = values[k + 2, start:stop], values[k + 3, start:stop]
        for s in range(size):
            step0, step1 = means0[s] - mean0, means1[s] - mean1
            step2, step3 = means2[s] - mean2, means3[s] - mean3
            distances[s] += (step0 * step0 + step1 * step1) + (step2 * step2 + step3 * step3)
    for k in range(whole, n_columns):
        mean = values[k, i]
        means = values[k, start:stop]
        for s in range(size):
            step = means[s] - mean
            distances[s] += step * step
    square = mirror.radius * mirror.radius
    theta = 1e-3 + n_columns * 2.0**-23
    return (1.0 - theta) * square, 4.0 * n_columns * 2.0**-46 / theta * square


@kernel
def mirror_scale(clusters, half_curvature):
    """(scale, slack) for `set_limit`: ``half_cutoff`` is the scale times the cutoff of d.

    As `mirror_distances` says, ‖t_s − t_i‖² in units of the radius is at least
    (1−θ)a² − e²/θ, with a the distance of the mirrored means; here θ covers nothing else. So
    d ≤ c only if a²/2 ≤ scale·c·(1/n₀ + 1/n₁) + slack, with slack for the rounding of d.
    If squares are near the limits of double precision, the scale is NaN and all pairs pass.
    """
    theta = 1e-4
    radius = clusters.mirror.radius
    scale = 1.0 / (2.0 * (1.0 - theta) * ROUNDING * half_curvature * radius * radius)
    if not (1e-120 < radius < 1e120 and 1e-280 < scale < 1e280):
        scale = np.nan
    return scale, clusters.mirror.values.shape[0] * 2.0**-44 / (theta * (1.0 - theta))
