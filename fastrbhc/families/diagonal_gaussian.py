"""Measurements; each cluster has its own variance in every column."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.observations import column_ranges
from fastrbhc._engine.geometry.diagonal_covariance import DiagonalCovariance
from fastrbhc.families._interface import Domain, family
from fastrbhc.families._scaling import (
    amount,
    check_columns,
    check_scaling,
    describe,
    left_to_data,
)
from fastrbhc.families._sharing import sharing
from fastrbhc.families._smoothing import check_shift_of_covariance
from fastrbhc.families.gaussian import Gaussian


@family(
    "diagonal_gaussian", separable=False, reducible=False, covariance="diagonal", domain=Domain()
)
@sharing(Gaussian, "advice", "candidates", "in_units_of_rows", "observe", "smoothing_map")
class DiagonalGaussian(NamedTuple):
    """Gaussian with a mean and a variance per column: φ(t) = −½ Σⱼ log(E xⱼ² − (E xⱼ)² + ε).

    With v₀, v₁ the smoothed variances of a column, A = (n₀v₀ + n₁v₁)/n and δ the difference of the
    means, a column adds

        ½[n log A − n₀ log v₀ − n₁ log v₁] + ½ n log(1 + (n₀n₁/n²) δ²/A)

    to d: each column is a Gaussian of its own. Not reducible: a third cluster may fill the gap that
    makes two others dissimilar. The rows 0 and 4 of one column are nearest, d = 5.99. Either is at
    d = 6.75 from the pair of rows 2 and 2, and their union at d = 4.61.

    Parameters
    ----------
    smoothing : float or "auto", default=0.01
        ε, added to every variance (the paper's φ₁). Its unit is that of the data, squared: scale
        the columns first, so that it means the same in every column. "auto" derives it from the
        data, as for `Gaussian`.
    centre, scale : tuple of float, optional
        A mean and a standard deviation for every column, as for `Gaussian`.

    Examples
    --------
    >>> from fastrbhc import dissimilarity
    >>> X0, X1 = [[0.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 1.0]]
    >>> round(dissimilarity(X0, X1, "diagonal_gaussian"), 6)
    6.516193
    """

    smoothing: float | str = 0.01
    centre: tuple[float, ...] | None = None
    scale: tuple[float, ...] | None = None

    def check(self) -> None:
        check_scaling(self.centre, self.scale)
        if not left_to_data(self.smoothing):
            check_shift_of_covariance(amount(self.smoothing), "variance")

    def check_rows(self, X: NDArray[np.float64]) -> None:
        check_columns(X, self.scale)
        if left_to_data(self.smoothing):
            return
        lowest, highest = column_ranges(X)
        unit = 1.0 if self.scale is None else np.array(self.scale)
        with np.errstate(over="ignore"):
            width = float(np.max((highest - lowest) / unit))
        if not width * (width / amount(self.smoothing)) < 1e245:
            raise ValueError(
                f"a column of width {width:.3g} is too wide for the smoothing {self.smoothing:g}: "
                "the dissimilarity overflows. Choose a larger smoothing, or a larger unit."
            )

    def n_parameters(self, n_features: int) -> int:
        return 2 * n_features

    def geometry(self, n_features: int) -> DiagonalCovariance:
        return DiagonalCovariance(amount(self.smoothing))

    def __repr__(self) -> str:
        return describe("DiagonalGaussian", self.smoothing, self.scale)
