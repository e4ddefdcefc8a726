"""Measurements whose clusters each have a shape of their own."""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._jit import kernel
from fastrbhc.families._interface import Domain, family
from fastrbhc.families._smoothing import Smoothing, shift
from fastrbhc.geometry import (
    ROUNDING,
    Sizes,
    coarse_distances,
    difference,
    merge_means,
)

# Variance over smoothing: beyond these, small clusters keep fewer than 7 digits, or than 3.
_DOUBTFUL, _HOPELESS = 1e9, 1e13


@family("gaussian", separable=False, reducible=False, domain=Domain())
class Gaussian(NamedTuple):
    """Gaussian with full covariance: φ(x, X) = −½ log det(X − xxᵀ + εI).

    With Σ₀, Σ₁ the smoothed covariances, A = (n₀Σ₀ + n₁Σ₁)/n and δ the difference of the means,

        d = ½[n log det A − n₀ log det Σ₀ − n₁ log det Σ₁] + ½ n log(1 + (n₀n₁/n²) δᵀA⁻¹δ).

    Not reducible: a third cluster may fill the gap that makes two others dissimilar.

    Parameters
    ----------
    smoothing : float, default=0.01
        ε, added to the covariance (the paper's φ₁: a shift along the identity, which stays
        inside the cone of covariances). It is in the squared unit of the data, so scale the
        columns first: clusters of fewer rows than columns lose a digit for every factor of 10 by
        which their variance exceeds the smoothing (10⁴ leaves 12 of 16). A warning tells when
        fewer than 7 are left.

    Examples
    --------
    >>> from fastrbhc import dissimilarity
    >>> round(dissimilarity([[0.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 1.0]], "gaussian"), 6)
    6.516193
    """

    smoothing: float = 0.01

    def check(self) -> None:
        if not 0.0 < self.smoothing < float("inf"):
            raise ValueError(
                f"smoothing has to be positive and finite, got {self.smoothing}: "
                "without it a single point has no covariance"
            )

    def check_rows(self, X: NDArray[np.float64]) -> None:
        # A cluster of few rows is flat in some direction, where only the smoothing is left. The
        # rounding of its scatter, about 2⁻⁵² of its largest variance, hides there.
        widths = X.max(axis=0) - X.min(axis=0)
        column = int(np.argmax(widths))
        excess = (0.5 * widths[column]) ** 2 / self.smoothing
        advice = (
            f"Column {column} is {widths[column]:.3g} wide, and its variance may exceed the "
            f"smoothing {self.smoothing:g} by the factor {excess:.1g}. Scale the columns first "
            "(sklearn.preprocessing.StandardScaler does) or choose a larger smoothing."
        )
        if excess > _HOPELESS:
            raise ValueError(f"the determinants of small clusters cannot be told from 0. {advice}")
        if excess > _DOUBTFUL:
            digits = int(-math.log10(excess * 2.0**-52))
            warnings.warn(
                f"dissimilarities of small clusters will have about {digits} correct digits. "
                f"{advice}",
                UserWarning,
                stacklevel=5,
            )

    def smoothing_map(self, n_features: int) -> Smoothing:
        return shift(self.smoothing)

    def geometry(self, n_features: int) -> FullCovariance:
        return FullCovariance(self.smoothing_map(n_features).offset)


class FullCovariance(NamedTuple):
    """The geometry of clusters with a mean and a scatter matrix.

    Moments: the scatter Σ(x−x̄)(x−x̄)ᵀ by rows of its lower triangle; never X − xxᵀ, which
    cancels. Cached: the log determinants of the leading k×k blocks of the smoothed covariance,
    k = 1…d, then a bound of its largest eigenvalue, then 1 for a cluster without extent.
    """

    ridge: float

    def sizes(self, n_features: int) -> Sizes:
        return Sizes(
            moments=n_features * (n_features + 1) // 2,
            cached=n_features + 2,
            coarse=True,
            matrix=(n_features, n_features + 1),  # a Cholesky factor and a solution
        )

    def dissimilarity(geometry, clusters, i, j, cutoff, scratch):
        n_features = clusters.means.shape[0]
        w0, w1 = clusters.weights[i], clusters.weights[j]
        weight = w0 + w1
        product = (w0 / weight) * (w1 / weight)
        if clusters.cached[i, n_features + 1] + clusters.cached[j, n_features + 1] == 2.0:
            distance = 0.0  # two points: A = εI
            for k in range(n_features):
                step = difference(clusters, i, j, k)
                distance += step * step
            return 0.5 * weight * math.log1p(product * distance / geometry.ridge)
        return _of_shapes(geometry, clusters, i, j, weight, product, cutoff, scratch.matrix)

    def lower_bounds(geometry, clusters, i, start, stop, scratch):
        # The bracket is not negative, and δᵀA⁻¹δ ≥ ‖δ‖²/λmax(A), λmax being convex.
        factor, slack = coarse_distances(clusters, i, start, stop, scratch.coarse)
        bounds, spread = scratch.bounds, clusters.means.shape[0]
        w0, spread0 = clusters.weights[i], clusters.cached[i, spread]
        for s in range(stop - start):
            w1 = clusters.weights[start + s]
            weight = w0 + w1
            largest = (w0 * spread0 + w1 * clusters.cached[start + s, spread]) / weight
            distance = max(scratch.coarse[s] * factor - slack, 0.0)
            gap = (w0 / weight) * (w1 / weight) * distance / largest
            bounds[s] = 0.5 * weight * math.log1p(gap) * ROUNDING

    def merge(geometry, clusters, i, j, scratch):
        w0, w1 = clusters.weights[i], clusters.weights[j]
        factor = w0 * w1 / (w0 + w1)
        entry = 0
        for k in range(clusters.means.shape[0]):
            step = factor * difference(clusters, i, j, k)
            for m in range(k + 1):
                pooled = clusters.moments[i, entry] + clusters.moments[j, entry]
                clusters.moments[i, entry] = pooled + step * difference(clusters, i, j, m)
                entry += 1
        merge_means(clusters, i, j)
        _refresh_shape(geometry, clusters, i, scratch.matrix)

    def refresh(geometry, clusters, i, scratch):
        _refresh_shape(geometry, clusters, i, scratch.matrix)


@kernel
def _of_shapes(geometry, clusters, i, j, weight, product, cutoff, work):
    """d by a Cholesky factorisation of nA that stops once the leading columns reach the cutoff.

    Restricted to the leading k columns d can only be smaller, so each row of the factor gives
    a lower bound of the whole. Rounding must not turn that into a wrong verdict: the bound has
    to pass the cutoff by more than the logarithms can be off.
    """
    n_features = clusters.means.shape[0]
    w0, w1 = clusters.weights[i], clusters.weights[j]
    log_det, magnitude, mahalanobis, value = 0.0, 0.0, 0.0, 0.0
    # Pivots may be off by the rounding of the largest variance, which is much to a small pivot.
    spread = w0 * clusters.cached[i, n_features] + w1 * clusters.cached[j, n_features]
    doubt = 1e-12 + 1e-15 * n_features * (spread / weight) / geometry.ridge
    entry = 0
    for k in range(n_features):
        solution = difference(clusters, i, j, k)
        for m in range(k + 1):
            total = clusters.moments[i, entry] + clusters.moments[j, entry]
            entry += 1
            if m == k:
                total += weight * geometry.ridge
            for column in range(m):
                total -= work[k, column] * work[m, column]
            if m < k:
                work[k, m] = total / work[m, m]
                solution -= work[k, m] * work[m, n_features]
            else:
                total = max(total, weight * geometry.ridge)  # as it is but for rounding
                work[k, k] = math.sqrt(total)
        solution /= work[k, k]
        work[k, n_features] = solution
        mahalanobis += solution * solution
        log_pivot = math.log(total / weight)
        log_det += log_pivot
        magnitude += abs(log_pivot)
        own = w0 * clusters.cached[i, k] + w1 * clusters.cached[j, k]
        bracket = max(weight * log_det - own, 0.0)
        value = 0.5 * (bracket + weight * math.log1p(weight * product * mahalanobis))
        if k + 1 < n_features and value * ROUNDING - doubt * weight * (1.0 + magnitude) > cutoff:
            return value
    return value


@kernel
def _refresh_shape(geometry, clusters, i, work):
    """Cached values of slot i from its scatter."""
    n_features = clusters.means.shape[0]
    weight = clusters.weights[i]
    trace, entry = 0.0, -1
    for k in range(n_features):
        entry += k + 1
        trace += clusters.moments[i, entry] / weight
    log_det, squares = 0.0, 0.0
    entry = 0
    for k in range(n_features):
        for m in range(k + 1):
            total = clusters.moments[i, entry] / weight
            entry += 1
            if trace > 0.0:  # relative to the trace, as fourth powers may overflow
                squares += (total / trace) ** 2 * (1.0 if m == k else 2.0)
            if m == k:
                total += geometry.ridge
            for column in range(m):
                total -= work[k, column] * work[m, column]
            if m < k:
                work[k, m] = total / work[m, m]
            else:
                total = max(total, geometry.ridge)
                work[k, k] = math.sqrt(total)
                log_det += math.log(total)
        clusters.cached[i, k] = log_det
    # Largest eigenvalue from trace and Frobenius norm: Wolkowicz & Styan (1980). The added
    # term covers what cancels in the deviation.
    deviation = max(squares / n_features - 1.0 / n_features**2, 0.0) + 1e-14
    largest = trace * (1.0 / n_features + math.sqrt((n_features - 1) * deviation))
    clusters.cached[i, n_features] = largest * (1.0 + 1e-9) + geometry.ridge
    clusters.cached[i, n_features + 1] = 1.0 if trace == 0.0 else 0.0
