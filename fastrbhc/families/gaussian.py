"""Measurements; each cluster has its own covariance matrix."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.observations import column_ranges
from fastrbhc._engine.geometry.full_covariance import FullCovariance
from fastrbhc.families._interface import Domain, family
from fastrbhc.families._smoothing import Smoothing, check_shift_of_covariance, shift

# Variance over smoothing: beyond this even double-double cannot tell flat clusters apart.
_MAX_CONDITION = 1e20


@family("gaussian", separable=False, reducible=False, covariance="full", domain=Domain())
class Gaussian(NamedTuple):
    """Gaussian with full covariance: φ(x, X) = −½ log det(X − xxᵀ + εI).

    With Σ₀, Σ₁ the smoothed covariances, A = (n₀Σ₀ + n₁Σ₁)/n and δ the difference of the means,

        d = ½[n log det A − n₀ log det Σ₀ − n₁ log det Σ₁] + ½ n log(1 + (n₀n₁/n²) δᵀA⁻¹δ).

    Not reducible: a third cluster may fill the gap that makes two others dissimilar.

    Parameters
    ----------
    smoothing : float, default=0.01
        ε, added to the covariance (the paper's φ₁: a shift along the identity, which stays
        inside the cone of covariances). Its unit is that of the data, squared: scale the columns
        first, so that it means the same in every column.

    Examples
    --------
    >>> from fastrbhc import dissimilarity
    >>> round(dissimilarity([[0.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 1.0]], "gaussian"), 6)
    6.516193
    """

    smoothing: float = 0.01

    def check(self) -> None:
        check_shift_of_covariance(self.smoothing, "covariance")

    def check_rows(self, X: NDArray[np.float64]) -> None:
        lowest, highest = column_ranges(X)
        widths = highest - lowest
        column = int(np.argmax(widths))
        excess = (0.5 * widths[column]) ** 2 / self.smoothing
        if X.shape[1] > 1 and excess > _MAX_CONDITION:
            raise ValueError(
                f"Column {column} is {widths[column]:.3g} wide: its variance may exceed the "
                f"smoothing {self.smoothing:g} by a factor of {excess:.1g}, and the determinants "
                "of small clusters cannot be told from 0. Scale the columns first "
                "(sklearn.preprocessing.StandardScaler does) or choose a larger smoothing."
            )

    def smoothing_map(self, n_features: int) -> Smoothing:
        return shift(self.smoothing)

    def n_parameters(self, n_features: int) -> int:
        return n_features * (n_features + 3) // 2  # a mean, and a triangle of covariances

    def geometry(self, n_features: int) -> FullCovariance:
        return FullCovariance(self.smoothing_map(n_features).offset)
