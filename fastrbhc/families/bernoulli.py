"""Binary columns, or proportions between 0 and 1."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import xlogy

from fastrbhc._engine.math.entropy import entropy_divergence
from fastrbhc.families._draws import are_counts, sparse_binary
from fastrbhc.families._interface import Domain, family
from fastrbhc.families._smoothing import Smoothing, check_contraction, contraction


@family(
    "bernoulli",
    separable=True,
    reducible=False,
    domain=Domain(lower=0.0, upper=1.0),
    entropy_share=1.0,
    entropy_of_complement=True,
)
class Bernoulli(NamedTuple):
    """Bernoulli with independent columns: φ(p) = Σⱼ pⱼ log pⱼ + (1−pⱼ) log(1−pⱼ).

    Not reducible. The rows (0, ½, ½), (½, 0, ½) and (½, ½, 0) are equally near to each other,
    d = 0.569. The union of any two is nearer to the third, d = 0.503. The same holds for pairs of
    rows of zeros and ones with these means.

    Parameters
    ----------
    smoothing : float, default=0.1
        How far observed proportions are moved towards ½, as a share of the way (the paper's φ₀).
        Without smoothing, proportions that differ from 1 by less than 10⁻⁶ lose digits; 0 and 1
        do not.

    Examples
    --------
    >>> from fastrbhc import dissimilarity
    >>> round(dissimilarity([[1, 0, 1]], [[1, 1, 1]], "bernoulli"), 6)
    0.989264
    """

    smoothing: float = 0.1

    def check(self) -> None:
        check_contraction(self.smoothing)

    def smoothing_map(self, n_features: int) -> Smoothing:
        return contraction(self.smoothing, towards=0.5)

    def draw_one_cluster(self, X: Any, rng: np.random.Generator) -> Any:
        if not are_counts(X):
            return None
        if issparse(X):
            return sparse_binary(X.mean(axis=0), X.shape[0], rng)
        return rng.binomial(1, X.mean(axis=0), X.shape).astype(np.float64)

    def phi(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        return xlogy(x, x) + xlogy(1.0 - x, 1.0 - x)

    def divergence(family, value, mean, step):
        # A mean may be rounded to 1 although one of its parts is far from 1.
        rest = max(1.0 - mean, 2.0**-54)
        return entropy_divergence(mean, step) + entropy_divergence(rest, -step)

    def second_derivative(family, mean):
        return 1.0 / (mean * (1.0 - mean))

    def variance_function(family, mean):
        # Slightly too large, because 1 − mean loses digits.
        return mean * (np.float32(1.0) - mean) + np.float32(2.0**-19)
