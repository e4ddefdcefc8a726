"""Positive measurements with a known relative spread: incomes, rainfall, reaction times."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from fastrbhc._engine.math.entropy import log_divergence
from fastrbhc.families._interface import Domain, family
from fastrbhc.families._smoothing import (
    Smoothing,
    check_rows_beside_shift,
    check_shift,
    shift,
)


@family("gamma", separable=True, reducible=False)
class Gamma(NamedTuple):
    """Gamma with independent columns and a known shape k: φ(x) = −k Σⱼ log xⱼ.

    d is k times that of `Exponential`, which is the case k = 1. The divergence of one column is
    k(x/y − log(x/y) − 1), the variance function 1/φ″(m) = m²/k: the standard deviation of a value
    is its mean over √k.

    Not reducible. With k = 1, the rows (1, 9, 9), (9, 1, 9) and (9, 9, 1) are equally near to each
    other, d = 2.04. The union of any two is nearer to the third, d = 1.39.

    Parameters
    ----------
    shape : float, default=1.0
        k, between 1e-15 and 1e15, which only scales the dissimilarities.
    smoothing : float, default=0.0
        Added to every mean (the paper's φ₁). It must be positive if rows contain zeros.

    References
    ----------
    A. Banerjee, S. Merugu, I. S. Dhillon, J. Ghosh (2005), Clustering with Bregman divergences,
    Journal of Machine Learning Research 6, 1705–1749, for the divergences of exponential families.

    B. Jørgensen (1987), Exponential dispersion models, Journal of the Royal Statistical Society B
    49, 127–162, for variance functions.

    Examples
    --------
    >>> from fastrbhc import dissimilarity
    >>> from fastrbhc.families import Gamma
    >>> round(dissimilarity([[1.0]], [[3.0]], Gamma(shape=10)), 6)
    2.876821
    """

    shape: float = 1.0
    smoothing: float = 0.0

    @property
    def domain(self) -> Domain:
        return Domain(lower=0.0, includes_lower=self.smoothing > 0.0)

    def check(self) -> None:
        if not 1e-15 <= self.shape <= 1e15:
            raise ValueError(f"shape has to lie between 1e-15 and 1e15, got {self.shape}")
        check_shift(self.smoothing)

    def check_rows(self, X: NDArray[np.float64]) -> None:
        check_rows_beside_shift(X, self.smoothing)

    def coordinates(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.cbrt(X)  # Wilson & Hilferty (1931): nearly normal

    def smoothing_map(self, n_features: int) -> Smoothing:
        return shift(self.smoothing)

    def draw_one_cluster(self, X: Any, rng: np.random.Generator) -> Any:
        if issparse(X):
            return None
        return rng.gamma(self.shape, X.mean(axis=0) / self.shape, X.shape)

    def phi(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        return -self.shape * np.log(x)

    def divergence(family, value, mean, step):
        return family.shape * log_divergence(value, mean, step)

    def second_derivative(family, mean):
        return family.shape / (mean * mean)

    def variance_function(family, mean):
        # Rounded up, because it must not be too small.
        return mean * mean * np.float32((1.0 + 2.0**-22) / family.shape)
