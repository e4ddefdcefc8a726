"""Counts whose columns are independent."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import xlogy

from fastrbhc._engine.math.entropy import entropy_divergence
from fastrbhc.families._advice import not_whole
from fastrbhc.families._draws import are_counts, sparse_poisson
from fastrbhc.families._interface import Domain, family
from fastrbhc.families._scaling import roots_of_counts
from fastrbhc.families._smoothing import (
    Smoothing,
    check_rows_beside_shift,
    check_shift,
    shift,
)


@family("poisson", separable=True, reducible=False, domain=Domain(lower=0.0), entropy_share=1.0)
class Poisson(NamedTuple):
    """Poisson with independent columns: φ(x) = Σⱼ xⱼ log xⱼ − xⱼ, shifted by the smoothing.

    The divergence of one column is the generalised Kullback–Leibler divergence
    x log(x/y) − x + y = y·((1+u) log(1+u) − u) with u = (x−y)/y.

    Not reducible. The rows (0, 9, 9), (9, 0, 9) and (9, 9, 0) are equally near to each other,
    d = 12.3. The union of any two is nearer to the third, d = 9.35.

    Parameters
    ----------
    smoothing : float, default=0.01
        Added to every mean (the paper's φ₁), so that φ has a finite slope at a count of zero.

    Examples
    --------
    >>> from fastrbhc import dissimilarity
    >>> round(dissimilarity([[3, 0]], [[5, 1]], "poisson"), 6)
    0.902837
    """

    smoothing: float = 0.01

    def check(self) -> None:
        check_shift(self.smoothing)

    def check_rows(self, X: NDArray[np.float64]) -> None:
        check_rows_beside_shift(X, self.smoothing)

    def advice(self, X: NDArray[np.float64], names: list[str] | None) -> list[str]:
        return not_whole(X)

    def coordinates(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return roots_of_counts(X)

    def smoothing_map(self, n_features: int) -> Smoothing:
        return shift(self.smoothing)

    def draw_one_cluster(self, X: Any, rng: np.random.Generator) -> Any:
        if not are_counts(X):
            return None
        if issparse(X):
            return sparse_poisson(X.mean(axis=0), X.shape[0], rng)
        return rng.poisson(X.mean(axis=0), X.shape).astype(np.float64)

    def if_overdispersed(self, dispersion: float) -> str:
        return f"NegativeBinomial(dispersion={dispersion:g}) allows that"

    def phi(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        return xlogy(x, x) - x

    def divergence(family, value, mean, step):
        return entropy_divergence(mean, step)

    def second_derivative(family, mean):
        return 1.0 / mean

    def variance_function(family, mean):
        return mean
