"""Directions: rows whose lengths do not matter, compared by their angles."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastrbhc._engine.math.bessel import log_bessel
from fastrbhc.bhc._interface import given_or, model, require_positive
from fastrbhc.bhc.likelihoods.directions import SumsOfDirections, unit_vectors
from fastrbhc.families import Domain

# The spread of a cluster, as a share of that of the data: that of the Gaussian models.
_SHARE_OF_SPREAD = 0.04
# Directions that nearly agree would be infinitely concentrated.
_LEAST_SPREAD = 1e-3


@model(
    "von_mises_fisher",
    domain=Domain(needs_nonzero_row=True),
    tunable=("concentration", "strength"),
    aliases=("cosine",),
    family="von_mises_fisher",
)
class VonMisesFisherDirections(NamedTuple):
    """Von Mises–Fisher directions of known concentration, with such a prior of the mean direction.

    A row x stands for its direction x/‖x‖. With C(κ) = κ^ν / ((2π)^(ν+1) I_ν(κ)) the normalising
    constant, ν = d/2 − 1, and s the sum of the directions of n rows,

        p(X) = C(κ)ⁿ · C(κ₀) / C(‖κ₀m₀ + κs‖),

    a density on the unit sphere.

    Parameters
    ----------
    concentration : float, optional
        κ of all clusters. By default directions in a cluster spread a 25th as much as in the data,
        which is the default of the Gaussian models too. It is the most important hyperparameter.
    mean : array-like of shape (d,), optional
        m₀, of any length; by default the mean direction of the data.
    strength : float, optional
        κ₀; by default the concentration of all directions of the data, at most κ.

    Notes
    -----
    log p is a difference of terms as large as nκ. Its absolute error is about 1e-15 of that.

    References
    ----------
    K. V. Mardia, S. A. M. El-Atoum (1976), Bayesian inference for the von Mises-Fisher
    distribution, Biometrika 63, for the conjugate prior.

    A. Banerjee, I. S. Dhillon, J. Ghosh, S. Sra (2005), Clustering on the unit hypersphere using
    von Mises-Fisher distributions, Journal of Machine Learning Research 6, 1345–1382, for the
    estimate of a concentration.

    Examples
    --------
    >>> import fastrbhc
    >>> X = [[1.0, 0.1], [5.0, 0.2], [0.1, 2.0], [0.3, 9.0]]
    >>> fastrbhc.bhc_linkage(X, "von_mises_fisher").cut().tolist()
    [1, 1, 0, 0]
    """

    concentration: float | None = None
    mean: ArrayLike | None = None
    strength: float | None = None

    def with_defaults(self, X: NDArray[np.float64]) -> VonMisesFisherDirections:
        d = X.shape[1]
        sums = unit_vectors(X).mean(axis=0)
        length = float(np.linalg.norm(sums))
        spread = max(1.0 - length * length, _LEAST_SPREAD)
        concentration = given_or(
            self.concentration, max(d - 1.0, 1.0) / (_SHARE_OF_SPREAD * spread)
        )
        overall = length * (d - length * length) / spread
        return VonMisesFisherDirections(
            concentration,
            given_or(self.mean, sums if length > 0.0 else np.eye(1, d)[0]),
            given_or(self.strength, min(max(overall, _LEAST_SPREAD), concentration)),
        )

    def check(self, n_features: int) -> None:
        require_positive("concentration", self.concentration)
        require_positive("strength", self.strength)
        mean = np.asarray(self.mean, np.float64)
        if mean.shape != (n_features,):
            raise ValueError(f"mean has shape {mean.shape}, expected ({n_features},)")
        if not (np.isfinite(mean).all() and mean.any()):
            raise ValueError("mean has to be a direction: finite numbers, not all of them 0")

    def likelihood(self, X: NDArray[np.float64]) -> SumsOfDirections:
        n, d = X.shape
        concentration, strength, order = self._numbers(d)
        sizes = np.arange(n + 2.0)
        return SumsOfDirections(
            prior=strength * unit_vectors(np.asarray(self.mean, np.float64)[None])[0],
            concentration=concentration,
            order=order,
            by_size=-sizes * log_bessel(order, concentration) - log_bessel(order, strength),
        )

    def log_base_measure(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        half = 0.5 * X.shape[1]
        log_area = math.log(2.0) + half * math.log(math.pi) - math.lgamma(half)
        return np.full(X.shape[0], -log_area)

    def _numbers(self, d: int) -> tuple[float, float, float]:
        concentration: Any = self.concentration
        strength: Any = self.strength
        return float(concentration), float(strength), 0.5 * d - 1.0
