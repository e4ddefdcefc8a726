"""Measurements with one known variance in every direction: Ward's method."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.observations import column_ranges
from fastrbhc.families._advice import counts_among_measurements, unequal_columns
from fastrbhc.families._interface import Domain, family


@family(
    "spherical_gaussian",
    aliases=("ward",),
    separable=True,
    reducible=True,
    quadratic=True,
    domain=Domain(),
)
class SphericalGaussian(NamedTuple):
    """Gaussian with covariance σ²I: φ(x) = ‖x‖²/(2σ²).

    The dissimilarity is Ward's cost, d = n₀n₁‖x̄₀ − x̄₁‖² / (2σ²(n₀+n₁)) (paper, eq. ward);
    SciPy's Ward height is 2σ√d. d is reducible: the Lance–Williams recurrence
    (n₀+n₁+n₂)·d(c₀∪c₁, c₂) = (n₀+n₂)·d(c₀,c₂) + (n₁+n₂)·d(c₁,c₂) − n₂·d(c₀,c₁)
    bounds the left side from below by the minimum of d(c₀,c₂) and d(c₁,c₂) whenever
    d(c₀,c₁) is at most both (paper, theorem 2).

    Parameters
    ----------
    variance : float, default=1.0
        σ², which only scales the dissimilarities.

    Examples
    --------
    >>> from fastrbhc import dissimilarity
    >>> from fastrbhc.families import SphericalGaussian
    >>> dissimilarity([[0.0]], [[3.0]], SphericalGaussian(variance=2.0))
    1.125
    """

    variance: float = 1.0

    def check(self) -> None:
        if not 0.0 < self.variance < float("inf"):
            raise ValueError(f"variance has to be positive and finite, got {self.variance}")

    def check_rows(self, X: NDArray[np.float64]) -> None:
        lowest, highest = column_ranges(X)
        width = float(np.max(highest - lowest))
        if not 0.5 * width * (width / self.variance) < 1e245:  # times columns and weights
            raise ValueError(
                f"a column of width {width:.3g} is too wide for the variance {self.variance:g}: "
                "the dissimilarity overflows. Choose a larger variance, or a larger unit."
            )

    def advice(self, X: NDArray[np.float64], names: list[str] | None) -> list[str]:
        return [
            *counts_among_measurements(X),
            *unequal_columns(X, names, "choose family='auto', which fits any units"),
        ]

    def phi(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        return x * x / (2.0 * self.variance)

    def divergence(family, value, mean, step):
        return step * step / (2.0 * family.variance)

    def second_derivative(family, mean):
        return 1.0 / family.variance
