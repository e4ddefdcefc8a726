"""Counts of successes in a known number of trials."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import xlogy

from fastrbhc._engine.math.entropy import entropy_divergence
from fastrbhc.families._draws import are_counts
from fastrbhc.families._interface import Domain, family
from fastrbhc.families._smoothing import Smoothing, check_contraction, contraction


@family("binomial", separable=True, reducible=False, entropy_share=1.0)
class Binomial(NamedTuple):
    """Binomial with independent columns and N trials: φ(x) = Σⱼ xⱼ log xⱼ + (N−xⱼ) log(N−xⱼ).

    Values are numbers of successes from 0 to N. d is N times that of `Bernoulli` for the
    proportions x/N. The divergence of one column is x log(x/y) + (N−x) log((N−x)/(N−y)), the
    variance function 1/φ″(m) = m(1 − m/N).

    Not reducible. With N = 2, the rows (0, 1, 1), (1, 0, 1) and (1, 1, 0) are equally near to each
    other, d = 1.14. The union of any two is nearer to the third, d = 1.01.

    Parameters
    ----------
    trials : float, default=1.0
        N, a whole number up to 1e15 and the same for all rows and columns. For zeros and ones it
        is 1.
    smoothing : float, default=0.1
        How far observed counts are moved towards N/2, as a share of the way (the paper's φ₀). The
        digits that are lost without smoothing are those of `Bernoulli`.

    References
    ----------
    A. Banerjee, S. Merugu, I. S. Dhillon, J. Ghosh (2005), Clustering with Bregman divergences,
    Journal of Machine Learning Research 6, 1705–1749, for the divergences of exponential families.

    F. J. Anscombe (1948), The transformation of Poisson, binomial and negative-binomial data,
    Biometrika 35, 246–254, for the coordinates.

    Examples
    --------
    >>> from fastrbhc import dissimilarity
    >>> from fastrbhc.families import Binomial
    >>> round(dissimilarity([[2, 7]], [[9, 8]], Binomial(trials=10)), 6)
    4.441353
    """

    trials: float = 1.0
    smoothing: float = 0.1

    @property
    def domain(self) -> Domain:
        return Domain(lower=0.0, upper=self.trials)

    def check(self) -> None:
        if not (1.0 <= self.trials <= 1e15 and self.trials == np.floor(self.trials)):
            raise ValueError(f"trials has to be a whole number from 1 to 1e15, got {self.trials}")
        check_contraction(self.smoothing)

    def coordinates(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        # The variance is about 1 for any mean.
        shares = (X + 0.375) / (self.trials + 0.75)
        return 2.0 * np.sqrt(self.trials) * np.arcsin(np.sqrt(shares))

    def smoothing_map(self, n_features: int) -> Smoothing:
        return contraction(self.smoothing, towards=0.5 * self.trials)

    def draw_one_cluster(self, X: Any, rng: np.random.Generator) -> Any:
        if issparse(X) or not are_counts(X):
            return None
        shares = X.mean(axis=0) / self.trials
        return rng.binomial(int(self.trials), np.minimum(shares, 1.0), X.shape).astype(np.float64)

    def if_overdispersed(self, dispersion: float) -> str:
        return "the trials of a row are not independent, or there are more clusters"

    def phi(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        rest = self.trials - x
        return xlogy(x, x / self.trials) + xlogy(rest, rest / self.trials)

    def divergence(family, value, mean, step):
        # A mean may be rounded to N although one of its parts is far from N.
        rest = max(family.trials - mean, family.trials * 2.0**-54)
        return entropy_divergence(mean, step) + entropy_divergence(rest, -step)

    def second_derivative(family, mean):
        return family.trials / (mean * (family.trials - mean))

    def variance_function(family, mean):
        # Slightly too large, because N − mean loses digits.
        share = mean * np.float32(1.0 / family.trials)
        return mean * (np.float32(1.0) - share) + np.float32(family.trials * 2.0**-19)
