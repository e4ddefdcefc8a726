"""Positive measurements whose ratios matter: durations, power spectra."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastrbhc.bhc._interface import given_or, model, require_positive
from fastrbhc.bhc.likelihoods.rising import sums_by_size
from fastrbhc.bhc.likelihoods.waiting import Waiting, shape_of_events
from fastrbhc.families import Domain


@model(
    "exponential",
    domain=Domain(lower=0.0, includes_lower=False),
    tunable=("shape",),
    aliases=("gamma_exponential",),
    family="exponential",
)
class GammaExponential(NamedTuple):
    """Exponential columns, each with a gamma prior of its rate.

    With s the totals of the d columns in n rows,

        p(X) = Π_k b_k^a / (b_k + s_k)^(a + n) · Γ(a + n)/Γ(a).

    Parameters
    ----------
    shape : float or array-like of shape (d,), optional
        a. By default the shape for which single rows, each column in units of its mean, have the
        variance of the data.
    waited : float or array-like of shape (d,), optional
        b, the rate parameter of the gamma distribution: a time, in the units of the column. By
        default (shape − 1)·mean of each column, so that single rows have the mean of the data; a
        shape of at most 1.5 counts as 1.5 there.

    References
    ----------
    J. M. Bernardo, A. F. M. Smith (1994), Bayesian Theory, Wiley.

    Examples
    --------
    >>> import fastrbhc
    >>> from fastrbhc.bhc import GammaExponential
    >>> X = [[1.0, 2.0], [2.0, 1.0], [900.0, 1100.0], [1200.0, 800.0]]
    >>> fastrbhc.bhc_linkage(X, GammaExponential(shape=1.0, waited=10.0)).cut().tolist()
    [1, 1, 0, 0]
    """

    shape: float | ArrayLike | None = None
    waited: float | ArrayLike | None = None

    def with_defaults(self, X: NDArray[np.float64]) -> GammaExponential:
        means = X.mean(axis=0)
        shape = given_or(self.shape, shape_of_events(float(np.mean((X / means).var(axis=0)))))
        return GammaExponential(
            shape, given_or(self.waited, np.maximum(np.asarray(shape) - 1.0, 0.5) * means)
        )

    def check(self, n_features: int) -> None:
        require_positive("shape", self.shape, n_features)
        require_positive("waited", self.waited, n_features)

    def likelihood(self, X: NDArray[np.float64]) -> Waiting:
        n, n_features = X.shape
        shapes = np.array(np.broadcast_to(np.asarray(self.shape, np.float64), (n_features,)))
        return Waiting(
            events=shapes,
            waited=self._waited(n_features),
            by_size=sums_by_size(shapes, np.arange(n + 2.0)),
            in_steps=False,
        )

    def log_base_measure(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.full(X.shape[0], -float(np.log(self._waited(X.shape[1])).sum()))

    def _waited(self, n_features: int) -> NDArray[np.float64]:
        return np.array(np.broadcast_to(np.asarray(self.waited, np.float64), (n_features,)))
