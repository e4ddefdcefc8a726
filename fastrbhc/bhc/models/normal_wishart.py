"""Measurements with a separate covariance per cluster."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastrbhc._validation import check_covariance
from fastrbhc.bhc._interface import model
from fastrbhc.bhc.likelihoods.full import Scatter, in_units_of_prior
from fastrbhc.bhc.likelihoods.rising import log_rising_table
from fastrbhc.bhc.likelihoods.units import (
    DEGREES_BEYOND,
    check_gaussian,
    covariance_of,
    middle_of,
    reach_of,
    with_gaussian_defaults,
)
from fastrbhc.families import Domain

# With at most this many columns factors are small, and principal axes do not pay.
_FEW_COLUMNS = 8


@model(
    "gaussian",
    domain=Domain(),
    tunable=("scale_factor", "strength"),
    aliases=("normal_wishart",),
    family="gaussian",
)
class NormalWishart(NamedTuple):
    """Gaussian with full covariance and a normal-Wishart prior of mean and precision.

    The precision Λ is drawn from W(ν, Ψ⁻¹) and the mean from N(m, (rΛ)⁻¹). With x̄ the mean of n
    rows, S their scatter about it and Ψₙ = Ψ + S + rn/(r + n)·(x̄ − m)(x̄ − m)ᵀ,

        p(X) = π^(−nd/2) Γ_d((ν+n)/2)/Γ_d(ν/2) det(Ψ)^(ν/2)/det(Ψₙ)^((ν+n)/2) (r/(r+n))^(d/2).

    Parameters
    ----------
    mean : float or array-like of shape (d,), optional
        m; by default the mean of the data.
    strength : float, optional
        r, the weight of the prior mean in rows; by default 0.1, as in Lee & Choi (2015).
    degrees : float, optional
        ν > d − 1; by default d + 6, as there.
    scale_factor : float, optional
        k in Ψ = k·S, where S is the covariance of the data, if ``scale`` is not given; by default
        0.2. The expected covariance of a cluster is then k/5 of that of the data. This is the
        most important hyperparameter, and the one that the paper tunes.
    scale : array-like of shape (d, d), optional
        Ψ itself; the factor is then ignored.

    Examples
    --------
    >>> import numpy as np, fastrbhc
    >>> from fastrbhc.bhc import NormalWishart
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (30, 2)), rng.normal(9, 1, (30, 2))])
    >>> tree = fastrbhc.bhc_linkage(X, NormalWishart(scale_factor=0.5))
    >>> int(tree.cut().max()) + 1
    2
    """

    mean: float | ArrayLike | None = None
    strength: float | None = None
    degrees: float | None = None
    scale_factor: float | None = None
    scale: ArrayLike | None = None

    def with_defaults(self, X: NDArray[np.float64]) -> NormalWishart:
        degrees = X.shape[1] + DEGREES_BEYOND
        complete: NormalWishart = with_gaussian_defaults(self, X, degrees, covariance_of)
        return complete

    def check(self, n_features: int) -> None:
        check_gaussian(self, n_features)
        degrees: Any = self.degrees
        if degrees <= n_features - 1:
            raise ValueError(
                f"degrees has to be more than {n_features - 1} with {n_features} columns, "
                f"got {degrees}"
            )
        assert self.scale is not None
        try:
            np.linalg.cholesky(check_covariance(self.scale, n_features))
        except np.linalg.LinAlgError as error:
            raise ValueError("scale is not positive definite") from error

    def likelihood(self, X: NDArray[np.float64]) -> Scatter:
        n, n_features = X.shape
        strength, degrees = float(self.strength or 0.0), float(self.degrees or 0.0)
        factor, centre = self._factor(), middle_of(X)
        mean = np.broadcast_to(np.asarray(self.mean, np.float64), (1, n_features))
        axes = np.empty((0, 0))
        rows = in_units_of_prior(X, centre, factor, axes)
        if n_features > _FEW_COLUMNS:
            # Not `rowvar=False`: older NumPy takes a single row for one variable all the same.
            _, vectors = np.linalg.eigh(np.cov(rows.T, bias=True))
            axes = np.ascontiguousarray(vectors[:, ::-1])  # the widest first
            rows = in_units_of_prior(X, centre, factor, axes)
        prior_mean = in_units_of_prior(mean, centre, factor, axes)[0]
        reach = reach_of(rows, prior_mean)
        sizes = np.arange(n + 2.0)
        gammas = sum(
            log_rising_table(0.5 * (degrees - column), 0.5 * sizes) for column in range(n_features)
        )
        return Scatter(
            centre=centre,
            factor=factor,
            axes=axes,
            prior_mean=prior_mean,
            strength=strength,
            degrees=degrees,
            by_size=gammas - 0.5 * n_features * np.log1p(sizes / strength),
            reach=reach,
        )

    def log_base_measure(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        log_volume = float(np.log(self._factor().diagonal()).sum())  # of Ψ^½
        return np.full(X.shape[0], -0.5 * X.shape[1] * math.log(math.pi) - log_volume)

    def _factor(self) -> NDArray[np.float64]:
        return np.ascontiguousarray(np.linalg.cholesky(np.asarray(self.scale, np.float64)))
