"""Measurements with one known variance in every direction: Ward's method."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.observations import Observations, column_ranges
from fastrbhc._engine.geometry.separable import separable_geometry
from fastrbhc.families._advice import counts_among_measurements, unequal_columns
from fastrbhc.families._interface import Domain, family
from fastrbhc.families._scaling import check_columns, scaled, unscaled


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

    The dissimilarity is Ward's cost, d = n₀n₁‖x̄₀ − x̄₁‖² / (2σ²(n₀+n₁)) (paper, section 3.1);
    SciPy's Ward height is 2σ√d. d is reducible: the Lance–Williams recurrence
    (n₀+n₁+n₂)·d(c₀∪c₁, c₂) = (n₀+n₂)·d(c₀,c₂) + (n₁+n₂)·d(c₁,c₂) − n₂·d(c₀,c₁)
    bounds the left side from below by the minimum of d(c₀,c₂) and d(c₁,c₂) whenever
    d(c₀,c₁) is at most both (paper, theorem 2).

    Parameters
    ----------
    variance : float, default=1.0
        σ², which only scales the dissimilarities.
    scale : tuple of float, optional
        A width for every column, by which it is divided first. Standard deviations within clusters
        make all columns count alike, and σ² is 1 then. `fastrbhc.suggest_family` estimates them.

    Examples
    --------
    >>> from fastrbhc import dissimilarity
    >>> from fastrbhc.families import SphericalGaussian
    >>> dissimilarity([[0.0]], [[3.0]], SphericalGaussian(variance=2.0))
    1.125
    >>> dissimilarity([[0.0, 50.0]], [[3.0, 20.0]], SphericalGaussian(scale=(1.0, 10.0)))
    4.5
    """

    variance: float = 1.0
    scale: tuple[float, ...] | None = None

    def check(self) -> None:
        check_variance(self.variance)
        if self.scale is not None and not all(0.0 < width < float("inf") for width in self.scale):
            raise ValueError(
                f"scale has to be positive and finite in every column, got {self.scale}"
            )

    def check_rows(self, X: NDArray[np.float64]) -> None:
        check_columns(X, self.scale)
        lowest, highest = column_ranges(X)
        width = float(np.max((highest - lowest) / (1.0 if self.scale is None else self.scale)))
        if not 0.5 * width * (width / self.variance) < 1e245:  # times columns and weights
            raise ValueError(
                f"a column of width {width:.3g} is too wide for the variance {self.variance:g}: "
                "the dissimilarity overflows. Choose a larger variance, or a larger unit."
            )

    def observe(self, X: NDArray[np.float64]) -> Observations:
        return Observations(scaled(X, self._centre, self.scale))

    def in_units_of_rows(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        return unscaled(means, self._centre, self.scale)

    def geometry(self, n_features: int) -> Any:
        # The rows are scaled by now, and kernels need not know by what.
        return separable_geometry(self._replace(scale=None), n_features)

    @property
    def _centre(self) -> tuple[float, ...] | None:
        """Zeros: differences of means are all that counts."""
        return None if self.scale is None else (0.0,) * len(self.scale)

    def advice(self, X: NDArray[np.float64], names: list[str] | None) -> list[str]:
        if self.scale is not None:  # somebody has thought about units
            return []
        return [
            *counts_among_measurements(X),
            *unequal_columns(X, names, "choose family='auto', which fits any units"),
        ]

    def __repr__(self) -> str:
        parts = [] if self.scale is None else [f"scale={self.scale}"]
        if not parts or self.variance != 1.0:
            parts.insert(0, f"variance={self.variance}")
        return f"SphericalGaussian({', '.join(parts)})"

    def phi(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        return x * x / (2.0 * self.variance)

    def divergence(family, value, mean, step):
        return step * step / (2.0 * family.variance)

    def second_derivative(family, mean):
        return 1.0 / family.variance


def check_variance(variance: float) -> None:
    """Reject variances that are not positive and finite."""
    if not 0.0 < variance < float("inf"):
        raise ValueError(f"variance has to be positive and finite, got {variance}")
