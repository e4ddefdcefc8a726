"""Lifetimes that end faster or slower with age, wind speeds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.observations import Observations
from fastrbhc.families._interface import Domain, family
from fastrbhc.families._smoothing import check_shift
from fastrbhc.families._transformed import powers, transformed
from fastrbhc.families.exponential import Exponential


@family("weibull", separable=True, reducible=False)
@transformed(Exponential)
class Weibull(NamedTuple):
    """Weibull with independent columns and a known shape k: `Exponential` for the rows xᵏ.

    φ(y) = −Σⱼ log yⱼ of y = xᵏ, so that d is that of the transformed rows. The divergence of one
    column is (x/y)ᵏ − k log(x/y) − 1, the variance function 1/φ″(m) = m² for a mean m of xᵏ. Units
    of columns do not matter. Means of clusters in the units of the rows are (mean of xᵏ)^(1/k),
    which is the estimate of the scale of the distribution.

    Not reducible. With k = 1, the rows (1, 9, 9), (9, 1, 9) and (9, 9, 1) are equally near to each
    other, d = 2.04. The union of any two is nearer to the third, d = 1.39.

    Parameters
    ----------
    shape : float, default=1.0
        k, between 0.01 and 100; 1 is the exponential distribution, 2 that of `Rayleigh`.
    smoothing : float, default=0.0
        Added to every mean of xᵏ (the paper's φ₁). It must be positive if rows contain zeros.

    References
    ----------
    W. Weibull (1951), A statistical distribution function of wide applicability, Journal of Applied
    Mechanics 18, 293–297.

    F. Nielsen, V. Garcia (2009), Statistical exponential families: a digest with flash cards,
    arXiv:0911.4863, for the exponential family.

    Examples
    --------
    >>> from fastrbhc import dissimilarity
    >>> from fastrbhc.families import Weibull
    >>> round(dissimilarity([[1.0]], [[3.0]], Weibull(shape=1.5)), 6)
    0.613644
    """

    shape: float = 1.0
    smoothing: float = 0.0

    @property
    def domain(self) -> Domain:
        return Domain(lower=0.0, includes_lower=self.smoothing > 0.0)

    def check(self) -> None:
        if not 0.01 <= self.shape <= 100.0:
            raise ValueError(f"shape has to lie between 0.01 and 100, got {self.shape}")
        check_shift(self.smoothing)

    def transformed(self, X: NDArray[np.float64]) -> Observations:
        return powers(X, self.shape)

    def untransformed(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values ** (1.0 / self.shape)
