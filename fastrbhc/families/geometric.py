"""Numbers of failures before a success: counts as spread out as their mean."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import xlog1py

from fastrbhc._engine.math.entropy import overdispersed_divergence
from fastrbhc.families._advice import not_whole
from fastrbhc.families._draws import are_counts, overdispersed
from fastrbhc.families._interface import Domain, family
from fastrbhc.families._smoothing import (
    Smoothing,
    check_rows_beside_shift,
    check_shift,
    shift,
)

_TINY = 1e-300


@family("geometric", separable=True, reducible=False, domain=Domain(lower=0.0))
class Geometric(NamedTuple):
    """Geometric with independent columns: φ(x) = Σⱼ xⱼ log xⱼ − (xⱼ + 1) log(xⱼ + 1).

    Counts start at 0: subtract 1 if they are numbers of trials, the success included. φ is shifted
    by the smoothing. This is the `NegativeBinomial` with dispersion 1. The divergence of one column
    is x log(x/y) − (x + 1) log((x + 1)/(y + 1)), the variance function 1/φ″(m) = m + m².

    Not reducible. The rows (0, 9, 9), (9, 0, 9) and (9, 9, 0) are equally near to each other,
    d = 3.82. The union of any two is nearer to the third, d = 2.35.

    Parameters
    ----------
    smoothing : float, default=0.01
        Added to every mean (the paper's φ₁), so that φ has a finite slope at a count of zero.

    References
    ----------
    A. Banerjee, S. Merugu, I. S. Dhillon, J. Ghosh (2005), Clustering with Bregman divergences,
    Journal of Machine Learning Research 6, 1705–1749, for the divergences of exponential families.

    Examples
    --------
    >>> from fastrbhc import dissimilarity
    >>> round(dissimilarity([[3, 0]], [[5, 1]], "geometric"), 6)
    0.53316
    """

    smoothing: float = 0.01

    def check(self) -> None:
        check_shift(self.smoothing)

    def check_rows(self, X: NDArray[np.float64]) -> None:
        check_rows_beside_shift(X, self.smoothing)

    def advice(self, X: NDArray[np.float64], names: list[str] | None) -> list[str]:
        return not_whole(X)

    def coordinates(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.cbrt(X + 0.375)  # nearly normal, as for `Exponential`

    def smoothing_map(self, n_features: int) -> Smoothing:
        return shift(self.smoothing)

    def draw_one_cluster(self, X: Any, rng: np.random.Generator) -> Any:
        if issparse(X) or not are_counts(X):
            return None
        return overdispersed(X.mean(axis=0), 1.0, X.shape, rng)

    def if_overdispersed(self, dispersion: float) -> str:
        return f"NegativeBinomial(dispersion={dispersion:g}) allows that"

    def phi(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        # Both terms have the same sign, and nothing cancels.
        return -xlog1py(x, 1.0 / np.maximum(x, _TINY)) - np.log1p(x)

    def divergence(family, value, mean, step):
        return overdispersed_divergence(1.0, value, mean, step)

    def second_derivative(family, mean):
        return 1.0 / (mean * (1.0 + mean))

    def variance_function(family, mean):
        return mean * (np.float32(1.0) + mean)
