"""Positive measurements whose ratios matter: durations, power spectra."""

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


@family("exponential", aliases=("itakura_saito",), separable=True, reducible=False)
class Exponential(NamedTuple):
    """Exponential with independent columns: φ(x) = −Σⱼ log xⱼ.

    The divergence of one column is the Itakura–Saito divergence, x/y − log(x/y) − 1. Without
    smoothing it does not depend on the unit of the column.

    Not reducible. The rows (1, 9, 9), (9, 1, 9) and (9, 9, 1) are equally near to each other,
    d = 2.04. The union of any two is nearer to the third, d = 1.39.

    Parameters
    ----------
    smoothing : float, default=0.0
        Added to every mean (the paper's φ₁). It must be positive if rows contain zeros.

    Examples
    --------
    >>> from fastrbhc import dissimilarity
    >>> round(dissimilarity([[1.0]], [[3.0]], "exponential"), 6)
    0.287682
    """

    smoothing: float = 0.0

    @property
    def domain(self) -> Domain:
        return Domain(lower=0.0, includes_lower=self.smoothing > 0.0)

    def check(self) -> None:
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
        return rng.exponential(X.mean(axis=0), X.shape)

    def phi(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        return -np.log(x)

    def divergence(family, value, mean, step):
        return log_divergence(value, mean, step)

    def second_derivative(family, mean):
        return 1.0 / (mean * mean)

    def variance_function(family, mean):
        return mean * mean
