"""Positive measurements whose logarithms are normal: sizes, concentrations, prices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.observations import Observations
from fastrbhc.families._interface import Domain, family
from fastrbhc.families._transformed import logarithms, transformed
from fastrbhc.families.spherical_gaussian import SphericalGaussian, check_variance


@family(
    "log_normal",
    separable=True,
    reducible=True,
    quadratic=True,
    domain=Domain(lower=0.0, includes_lower=False),
)
@transformed(SphericalGaussian)
class LogNormal(NamedTuple):
    """Log-normal with independent columns and a known variance σ² of the logarithms.

    d is that of `SphericalGaussian` for the rows log x, with φ(y) = ‖y‖²/(2σ²) of y = log x: Ward's
    method for logarithms. Its divergence is (log x − log y)²/(2σ²), its variance function σ².
    Ratios matter, and units of columns do not. Means of clusters in the units of the rows are
    geometric means. d is reducible: the proof for `SphericalGaussian` holds for any rows.

    Parameters
    ----------
    variance : float, default=1.0
        σ², which only scales the dissimilarities.

    References
    ----------
    A. Banerjee, S. Merugu, I. S. Dhillon, J. Ghosh (2005), Clustering with Bregman divergences,
    Journal of Machine Learning Research 6, 1705–1749, for the divergences of exponential families.

    Examples
    --------
    >>> from fastrbhc import dissimilarity
    >>> from fastrbhc.families import LogNormal
    >>> round(dissimilarity([[1.0]], [[100.0]], LogNormal(variance=2.0)), 6)
    2.650949
    >>> round(dissimilarity([[5.0]], [[500.0]], LogNormal(variance=2.0)), 6)
    2.650949
    """

    variance: float = 1.0

    def check(self) -> None:
        check_variance(self.variance)

    def transformed(self, X: NDArray[np.float64]) -> Observations:
        return logarithms(X)

    def untransformed(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.exp(values)
