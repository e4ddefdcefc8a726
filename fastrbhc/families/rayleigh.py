"""Lengths of random vectors in a plane: amplitudes, wave heights, wind speeds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.observations import Observations
from fastrbhc.families._interface import Domain, family
from fastrbhc.families._smoothing import check_shift
from fastrbhc.families._transformed import powers, transformed
from fastrbhc.families.exponential import Exponential


@family("rayleigh", separable=True, reducible=False)
@transformed(Exponential)
class Rayleigh(NamedTuple):
    """Rayleigh with independent columns: `Exponential` for the rows x².

    φ(y) = −Σⱼ log yⱼ of y = x², so that d is that of the transformed rows. The divergence of one
    column is (x/y)² − 2 log(x/y) − 1, the variance function 1/φ″(m) = m² for a mean m of x². Units
    of columns do not matter. Means of clusters in the units of the rows are roots of the mean
    square, which is √2 times the estimate of the parameter σ. This is `Weibull` with shape 2.

    Not reducible. The rows (1, 3, 3), (3, 1, 3) and (3, 3, 1) are equally near to each other,
    d = 2.04. The union of any two is nearer to the third, d = 1.39.

    Parameters
    ----------
    smoothing : float, default=0.0
        Added to every mean of x² (the paper's φ₁). It must be positive if rows contain zeros.

    References
    ----------
    F. Nielsen, V. Garcia (2009), Statistical exponential families: a digest with flash cards,
    arXiv:0911.4863, for the exponential family.

    Examples
    --------
    >>> from fastrbhc import dissimilarity
    >>> round(dissimilarity([[1.0]], [[3.0]], "rayleigh"), 6)
    1.021651
    """

    smoothing: float = 0.0

    @property
    def domain(self) -> Domain:
        return Domain(lower=0.0, includes_lower=self.smoothing > 0.0)

    def check(self) -> None:
        check_shift(self.smoothing)

    def transformed(self, X: NDArray[np.float64]) -> Observations:
        return powers(X, 2.0)

    def untransformed(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.sqrt(values)
