"""Counts that vary more than Poisson counts do: genes, words."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import xlog1py, xlogy

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


@family("negative_binomial", separable=True, reducible=False, domain=Domain(lower=0.0))
class NegativeBinomial(NamedTuple):
    """Negative binomial with independent columns and a known dispersion α.

    φ(x) = Σⱼ xⱼ log xⱼ − (xⱼ + r) log(xⱼ + r) with r = 1/α, up to a linear function, shifted by
    the smoothing. The divergence of one column is x log(x/y) − (x + r) log((x + r)/(y + r)). The
    variance of a count with mean m is the variance function 1/φ″(m) = m + αm²: differences of
    large counts matter less than with `Poisson`, which is the case α = 0.

    Not reducible. The rows (0, 9, 9), (9, 0, 9) and (9, 9, 0) are equally near to each other,
    d = 7.91. The union of any two is nearer to the third, d = 5.36.

    Parameters
    ----------
    dispersion : float, default=0.2
        α, which is 0 or between 1e-15 and 1e15. R and SciPy call 1/α the size.
    smoothing : float, default=0.01
        Added to every mean (the paper's φ₁), so that φ has a finite slope at a count of zero.

    Notes
    -----
    φ″ falls as 1/x² for large x, so there is no multiple of x log x that could be taken from φ and
    leave it convex. Hence no bounds for sparse rows are known: all pairs of them are evaluated.

    References
    ----------
    F. J. Anscombe (1950), Sampling theory of the negative binomial and logarithmic series
    distributions, Biometrika 37, 358–382.

    B. Jørgensen (1987), Exponential dispersion models, Journal of the Royal Statistical Society B
    49, 127–162, for variance functions.

    Examples
    --------
    >>> from fastrbhc import dissimilarity
    >>> from fastrbhc.families import NegativeBinomial
    >>> round(dissimilarity([[30]], [[50]], NegativeBinomial(dispersion=0.5)), 6)
    0.122679
    >>> round(dissimilarity([[30]], [[50]], "poisson"), 6)
    2.52607
    """

    dispersion: float = 0.2
    smoothing: float = 0.01

    def check(self) -> None:
        if not (self.dispersion == 0.0 or 1e-15 <= self.dispersion <= 1e15):
            raise ValueError(
                f"dispersion has to be 0 or between 1e-15 and 1e15, got {self.dispersion}"
            )
        check_shift(self.smoothing)

    def check_rows(self, X: NDArray[np.float64]) -> None:
        check_rows_beside_shift(X, self.smoothing)

    def advice(self, X: NDArray[np.float64], names: list[str] | None) -> list[str]:
        return not_whole(X)

    def coordinates(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.cbrt(X + 0.375)  # nearly normal, as for `Gamma`

    def smoothing_map(self, n_features: int) -> Smoothing:
        return shift(self.smoothing)

    def draw_one_cluster(self, X: Any, rng: np.random.Generator) -> Any:
        if issparse(X) or not are_counts(X):
            return None
        return overdispersed(X.mean(axis=0), self.dispersion, X.shape, rng)

    def if_overdispersed(self, dispersion: float) -> str:
        return f"dispersion={dispersion:g} allows that"

    def phi(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.dispersion == 0.0:
            return xlogy(x, x) - x
        # With another linear part, both terms have the same sign, and nothing cancels.
        scaled = self.dispersion * x
        inverse = 1.0 / np.maximum(scaled, _TINY)
        return -(xlog1py(scaled, inverse) + np.log1p(scaled)) / self.dispersion

    def divergence(family, value, mean, step):
        return overdispersed_divergence(family.dispersion, value, mean, step)

    def second_derivative(family, mean):
        return 1.0 / (mean * (1.0 + family.dispersion * mean))

    def variance_function(family, mean):
        # Rounded up, because it must not be too small.
        return mean + np.float32(family.dispersion * (1.0 + 2.0**-22)) * mean * mean
