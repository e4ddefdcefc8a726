"""Positive measurements with long tails: times of arrival."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from fastrbhc.families._interface import Domain, family
from fastrbhc.families._smoothing import (
    Smoothing,
    check_rows_beside_shift,
    check_shift,
    shift,
)


@family("inverse_gaussian", aliases=("wald",), separable=True, reducible=False)
class InverseGaussian(NamedTuple):
    """Inverse Gaussian with independent columns and a known shape λ: φ(x) = Σⱼ λ/(2xⱼ).

    It is the distribution of the time that a drifting particle takes to arrive. The divergence of
    one column is λ(x − y)²/(2xy²), the variance function 1/φ″(m) = m³/λ.

    Not reducible. With λ = 1, the rows (1, 9, 9), (9, 1, 9) and (9, 9, 1) are equally near to each
    other, d = 0.711. The union of any two is nearer to the third, d = 0.412.

    Parameters
    ----------
    shape : float, default=1.0
        λ, between 1e-100 and 1e100, in the unit of the rows. It only scales the dissimilarities.
    smoothing : float, default=0.0
        Added to every mean (the paper's φ₁). It must be positive if rows contain zeros.

    References
    ----------
    M. C. K. Tweedie (1957), Statistical properties of inverse Gaussian distributions I, Annals of
    Mathematical Statistics 28, 362–377.

    B. Jørgensen (1987), Exponential dispersion models, Journal of the Royal Statistical Society B
    49, 127–162, for variance functions.

    Examples
    --------
    >>> from fastrbhc import dissimilarity
    >>> round(dissimilarity([[1.0]], [[3.0]], "inverse_gaussian"), 6)
    0.166667
    """

    shape: float = 1.0
    smoothing: float = 0.0

    @property
    def domain(self) -> Domain:
        return Domain(lower=0.0, includes_lower=self.smoothing > 0.0)

    def check(self) -> None:
        if not 1e-100 <= self.shape <= 1e100:
            raise ValueError(f"shape has to lie between 1e-100 and 1e100, got {self.shape}")
        check_shift(self.smoothing)

    def check_rows(self, X: NDArray[np.float64]) -> None:
        check_rows_beside_shift(X, self.smoothing)

    def coordinates(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return -1.0 / np.sqrt(X + self.smoothing)  # about as widely spread for any mean

    def smoothing_map(self, n_features: int) -> Smoothing:
        return shift(self.smoothing)

    def draw_one_cluster(self, X: Any, rng: np.random.Generator) -> Any:
        means = X.mean(axis=0)
        if issparse(X) or not (means > 0.0).all():
            return None
        return rng.wald(means, self.shape, X.shape)

    def phi(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.shape / (2.0 * x)

    def divergence(family, value, mean, step):
        relative = step / mean
        return 0.5 * relative * (relative * (family.shape / value))

    def second_derivative(family, mean):
        return family.shape / mean / mean / mean
