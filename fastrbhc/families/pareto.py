"""Values above a known minimum whose tails follow a power law: wealth, sizes of cities."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.observations import Observations
from fastrbhc.families._interface import Domain, family
from fastrbhc.families._smoothing import check_shift
from fastrbhc.families._transformed import logarithms, transformed
from fastrbhc.families.exponential import Exponential


@family("pareto", separable=True, reducible=False)
@transformed(Exponential)
class Pareto(NamedTuple):
    """Pareto with independent columns and a known minimum: `Exponential` for log(x/minimum).

    φ(y) = −Σⱼ log yⱼ of y = log(x/minimum), so that d is that of the transformed rows. The
    divergence of one column is u/v − log(u/v) − 1 with u and v the transformed values, the variance
    function 1/φ″(m) = m² for a mean m of them. Means of clusters in the units of the rows are
    geometric means; 1/log(mean/minimum) is the estimate of the exponent of the tail.

    Not reducible. The rows (e, e⁹, e⁹), (e⁹, e, e⁹) and (e⁹, e⁹, e) are equally near to each other,
    d = 2.04. The union of any two is nearer to the third, d = 1.39.

    Parameters
    ----------
    minimum : float, default=1.0
        The smallest possible value, the same in every column.
    smoothing : float, default=0.0
        Added to every mean of log(x/minimum) (the paper's φ₁). It must be positive if rows contain
        the minimum itself, as they do if it was taken from them.

    References
    ----------
    A. Banerjee, S. Merugu, I. S. Dhillon, J. Ghosh (2005), Clustering with Bregman divergences,
    Journal of Machine Learning Research 6, 1705–1749, for the divergences of exponential families.

    Examples
    --------
    >>> from fastrbhc import dissimilarity
    >>> from fastrbhc.families import Pareto
    >>> round(dissimilarity([[20.0]], [[80.0]], Pareto(minimum=10.0)), 6)
    0.287682
    """

    minimum: float = 1.0
    smoothing: float = 0.0

    @property
    def domain(self) -> Domain:
        return Domain(lower=self.minimum, includes_lower=self.smoothing > 0.0)

    def check(self) -> None:
        if not 1e-100 <= self.minimum <= 1e100:
            raise ValueError(f"minimum has to lie between 1e-100 and 1e100, got {self.minimum}")
        check_shift(self.smoothing)

    def transformed(self, X: NDArray[np.float64]) -> Observations:
        return logarithms(X, self.minimum)

    def untransformed(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.minimum * np.exp(values)
