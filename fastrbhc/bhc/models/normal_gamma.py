"""Measurements whose columns are independent within a cluster."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastrbhc.bhc._interface import model, require_positive
from fastrbhc.bhc.likelihoods.diagonal import Columns
from fastrbhc.bhc.likelihoods.rising import log_rising_table
from fastrbhc.bhc.likelihoods.units import (
    DEGREES_BEYOND,
    check_gaussian,
    middle_of,
    reach_of,
    variances_of,
    with_gaussian_defaults,
)
from fastrbhc.families import Domain


@model(
    "diagonal_gaussian",
    domain=Domain(),
    tunable=("scale_factor", "strength"),
    aliases=("normal_gamma",),
    family="diagonal_gaussian",
)
class NormalGamma(NamedTuple):
    """Gaussian with independent columns and a normal-gamma prior of mean and precision.

    In each column the precision λ is drawn from a gamma distribution of shape ν/2 and rate ψ/2, and
    the mean from N(m, 1/(rλ)): the normal-Wishart distribution of one column. With x̄ the mean of n
    rows, S the sum of squares about it and ψₙ = ψ + S + rn/(r + n)·(x̄ − m)²,

        p(X) = Π π^(−n/2) · Γ((ν + n)/2)/Γ(ν/2) · ψ^(ν/2) / ψₙ^((ν + n)/2) · (r/(r + n))^½.

    Parameters
    ----------
    mean : float or array-like of shape (d,), optional
        m; by default the mean of the data.
    strength : float, optional
        r, the weight of the prior mean in rows; by default 0.1.
    degrees : float, optional
        ν, twice the shape of the gamma distribution; by default 7, that is d + 6 for one column.
    scale_factor : float, optional
        k in ψ = k·variance of the data, if ``scale`` is not given; by default 0.2.
    scale : float or array-like of shape (d,), optional
        ψ itself, twice the rate of the gamma distribution; the factor is then ignored.

    Examples
    --------
    >>> import numpy as np, fastrbhc
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (30, 2)), rng.normal(9, 1, (30, 2))])
    >>> tree = fastrbhc.bhc_linkage(X, "diagonal_gaussian")
    >>> int(tree.cut().max()) + 1
    2
    """

    mean: float | ArrayLike | None = None
    strength: float | None = None
    degrees: float | None = None
    scale_factor: float | None = None
    scale: float | ArrayLike | None = None

    def with_defaults(self, X: NDArray[np.float64]) -> NormalGamma:
        complete: NormalGamma = with_gaussian_defaults(self, X, 1.0 + DEGREES_BEYOND, variances_of)
        return complete

    def check(self, n_features: int) -> None:
        check_gaussian(self, n_features)
        require_positive("scale", self.scale, n_features)

    def likelihood(self, X: NDArray[np.float64]) -> Columns:
        n, n_features = X.shape
        strength, degrees = float(self.strength or 0.0), float(self.degrees or 0.0)
        centre, units = middle_of(X), self._units(n_features)
        prior_mean = (np.asarray(self.mean, np.float64) - centre) / units
        sizes = np.arange(n + 2.0)
        gammas = log_rising_table(0.5 * degrees, 0.5 * sizes)
        return Columns(
            centre=centre,
            units=units,
            prior_mean=prior_mean,
            strength=strength,
            degrees=degrees,
            by_size=n_features * (gammas - 0.5 * np.log1p(sizes / strength)),
            reach=reach_of((X - centre) / units, prior_mean),
        )

    def log_base_measure(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        n, n_features = X.shape
        log_volume = float(np.log(self._units(n_features)).sum())
        return np.full(n, -0.5 * n_features * math.log(math.pi) - log_volume)

    def _units(self, n_features: int) -> NDArray[np.float64]:
        scale = np.broadcast_to(np.asarray(self.scale, np.float64), (n_features,))
        return np.sqrt(scale)
