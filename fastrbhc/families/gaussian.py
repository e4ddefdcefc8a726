"""Measurements; each cluster has its own covariance matrix."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.observations import Observations, column_ranges
from fastrbhc._engine.geometry.full_covariance import FullCovariance
from fastrbhc.families._advice import advice_on_units
from fastrbhc.families._interface import Domain, family
from fastrbhc.families._scaling import (
    amount,
    check_columns,
    check_scaling,
    describe,
    left_to_data,
    scaled,
    shares_of_variance,
    unscaled,
)
from fastrbhc.families._smoothing import Smoothing, check_shift_of_covariance, shift

# Variance over smoothing: beyond this even double-double cannot tell flat clusters apart.
_MAX_CONDITION = 1e20
# The same for a single column, where nothing cancels: only overflow has to be avoided.
_MAX_RATIO = 1e250
_SCALE_FIRST = "Scale the columns first (sklearn.preprocessing.StandardScaler does)"
_SCALED_ALREADY = "Give far rows of negligible weight the weight 0,"


@family("gaussian", separable=False, reducible=False, covariance="full", domain=Domain())
class Gaussian(NamedTuple):
    """Gaussian with full covariance: φ(x, X) = −½ log det(X − xxᵀ + εI).

    With Σ₀, Σ₁ the smoothed covariances, A = (n₀Σ₀ + n₁Σ₁)/n and δ the difference of the means,

        d = ½[n log det A − n₀ log det Σ₀ − n₁ log det Σ₁] + ½ n log(1 + (n₀n₁/n²) δᵀA⁻¹δ).

    Not reducible: a third cluster may fill the gap that makes two others dissimilar. The rows 0 and
    4 of one column are nearest, d = 5.99. Either is at d = 6.75 from the pair of rows 2 and 2, and
    their union at d = 4.61.

    Parameters
    ----------
    smoothing : float or "auto", default=0.01
        ε, added to the covariance (the paper's φ₁: a shift along the identity, which stays
        inside the cone of covariances). Its unit is that of the data, squared: scale the columns
        first, so that it means the same in every column. "auto" derives it from the data: ε is a
        share of the variance of each column, 0.1, 0.3 or 1, whichever predicts held-out rows best
        (see `fastrbhc.selection`). Units and origins of the columns then do not matter. Columns
        with gaps may be scaled by their entropy instead, if that predicts clearly better.
    centre, scale : tuple of float, optional
        A mean and a standard deviation, or another width, for every column. Rows are scaled by them
        before anything else. "auto" finds them; they are seldom given by hand.

    Examples
    --------
    >>> from fastrbhc import dissimilarity
    >>> round(dissimilarity([[0.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 1.0]], "gaussian"), 6)
    6.516193

    The same clusters in any unit:

    >>> import fastrbhc
    >>> from fastrbhc.families import Gaussian
    >>> X = [[0.0, 1.0], [0.2, 1.1], [0.1, 0.8], [2.0, 5.0], [2.1, 5.2], [2.3, 5.1]]
    >>> grams = [[1000.0 * row[0], row[1]] for row in X]
    >>> trees = [fastrbhc.linkage(rows, Gaussian(smoothing="auto")) for rows in (X, grams)]
    >>> trees[0].cut(n_clusters=2).tolist() == trees[1].cut(n_clusters=2).tolist()
    True
    """

    smoothing: float | str = 0.01
    centre: tuple[float, ...] | None = None
    scale: tuple[float, ...] | None = None

    def check(self) -> None:
        check_scaling(self.centre, self.scale)
        if not left_to_data(self.smoothing):
            check_shift_of_covariance(amount(self.smoothing), "covariance")

    def check_rows(self, X: NDArray[np.float64]) -> None:
        check_columns(X, self.scale)
        if left_to_data(self.smoothing):
            return
        lowest, highest = column_ranges(X)
        with np.errstate(over="ignore"):
            widths = (highest - lowest) / (1.0 if self.scale is None else np.array(self.scale))
        column = int(np.argmax(widths))
        width = float(widths[column])
        variance = (0.5 * width) * (0.5 * width)  # infinite if it overflows
        most = _MAX_CONDITION if X.shape[1] > 1 else _MAX_RATIO
        if variance > most * amount(self.smoothing):
            wide, remedy = f"{width:.3g} wide", _SCALE_FIRST
            if self.scale is not None:
                wide, remedy = f"{width:.3g} times as wide as its scale", _SCALED_ALREADY
            raise ValueError(
                f"Column {column} is {wide}: its variance may be more than "
                f"{most:g} times the smoothing {self.smoothing:g}, and the determinants "
                f"of small clusters cannot be told from 0. {remedy} or choose a larger smoothing."
            )

    def advice(self, X: NDArray[np.float64], names: list[str] | None) -> list[str]:
        return advice_on_units(X, names, self.smoothing, self.scale is not None)

    def observe(self, X: NDArray[np.float64]) -> Observations:
        return Observations(scaled(X, self.centre, self.scale))

    def in_units_of_rows(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        return unscaled(means, self.centre, self.scale)

    def candidates(
        self, X: NDArray[np.float64], sample_weight: NDArray[np.float64] | None
    ) -> tuple[Gaussian, ...]:
        return shares_of_variance(self, X, sample_weight)

    def smoothing_map(self, n_features: int) -> Smoothing:
        return shift(amount(self.smoothing))

    def n_parameters(self, n_features: int) -> int:
        return n_features * (n_features + 3) // 2  # a mean, and a triangle of covariances

    def geometry(self, n_features: int) -> FullCovariance:
        return FullCovariance(self.smoothing_map(n_features).offset)

    def __repr__(self) -> str:
        return describe("Gaussian", self.smoothing, self.scale)
