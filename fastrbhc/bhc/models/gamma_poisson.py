"""Counts whose columns are independent."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from fastrbhc.bhc._interface import given_or, model, require_positive
from fastrbhc.bhc.likelihoods.counts import Counts, counts
from fastrbhc.bhc.likelihoods.entries import n_values, row_sums, variance
from fastrbhc.bhc.likelihoods.sparse_counts import SparseCounts
from fastrbhc.families import Domain


@model(
    "poisson",
    domain=Domain(lower=0.0),
    tunable=("shape", "rate"),
    aliases=("gamma_poisson",),
    family="poisson",
    takes_sparse_rows=True,
)
class GammaPoisson(NamedTuple):
    """Poisson counts with a gamma prior of the rate of every column.

    With s the totals of the d columns in n rows,

        p(X) = Π_k b^a / (b + n)^(a + s_k) · Γ(a + s_k)/Γ(a) · Π_i 1/x_ik!.

    Counts need not be integers: x! is then Γ(x + 1), which does not affect merging.

    Parameters
    ----------
    shape : float or array-like of shape (d,), optional
        a. By default the shape for which single rows have the mean and the variance of the data,
        all columns taken together.
    rate : float, optional
        b, the inverse of the scale. By default shape / mean.

    Examples
    --------
    >>> import fastrbhc
    >>> from fastrbhc.bhc import GammaPoisson
    >>> X = [[3, 0], [4, 1], [40, 22], [38, 25]]
    >>> fastrbhc.bhc_linkage(X, GammaPoisson(shape=1.0, rate=0.1)).cut().tolist()
    [1, 1, 0, 0]
    """

    shape: float | ArrayLike | None = None
    rate: float | None = None

    def with_defaults(self, X: Any) -> GammaPoisson:
        mean = max(float(X.mean()), 0.5 / n_values(X))
        # The variance of a count is the variance of its rate plus its mean. If the difference is
        # zero or tiny, rates are assumed to vary by a tenth.
        spread = max(variance(X) - mean, 0.01 * mean * mean)
        shape = given_or(self.shape, mean * mean / spread)
        return GammaPoisson(shape, given_or(self.rate, float(np.mean(shape)) / mean))

    def check(self, n_features: int) -> None:
        require_positive("shape", self.shape, n_features)
        require_positive("rate", self.rate)

    def likelihood(self, X: Any) -> Counts | SparseCounts:
        shapes = np.broadcast_to(np.asarray(self.shape, np.float64), (X.shape[1],))
        rate: Any = self.rate
        sizes = np.arange(X.shape[0] + 2.0)
        return counts(
            X,
            shapes,
            by_size=-float(shapes.sum()) * np.log1p(sizes / rate),
            slopes=np.log(rate + sizes),
        )

    def log_base_measure(self, X: Any) -> NDArray[np.float64]:
        return -row_sums(X, lambda values: gammaln(values + 1.0))
