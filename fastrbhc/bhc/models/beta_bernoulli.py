"""Binary columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastrbhc.bhc._interface import given_or, model, require_positive
from fastrbhc.bhc.likelihoods.counts import Counts, counts
from fastrbhc.bhc.likelihoods.entries import entries, n_values, place_of
from fastrbhc.bhc.likelihoods.rising import sums_by_size
from fastrbhc.bhc.likelihoods.sparse_counts import SparseCounts
from fastrbhc.families import Domain


@model(
    "bernoulli",
    domain=Domain(lower=0.0, upper=1.0),
    tunable=("yes", "no"),
    aliases=("beta_bernoulli",),
    family="bernoulli",
    takes_sparse_rows=True,
)
class BetaBernoulli(NamedTuple):
    """Bernoulli columns, each with a beta prior of its probability.

    With s the number of ones in each of the d columns of n rows,

        p(X) = Π_k B(yes + s_k, no + n − s_k) / B(yes, no),

    with B the beta function.

    Parameters
    ----------
    yes, no : float or array-like of shape (d,), optional
        Parameters of the beta distribution: pseudocounts of ones and zeros. By default their sum is
        two, with the share of ones in the data.

    Examples
    --------
    >>> import fastrbhc
    >>> X = [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]] * 3
    >>> fastrbhc.bhc_linkage(X, "bernoulli").cut().tolist()
    [0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1]
    """

    yes: float | ArrayLike | None = None
    no: float | ArrayLike | None = None

    def with_defaults(self, X: Any) -> BetaBernoulli:
        share = (float(X.sum()) + 1.0) / (n_values(X) + 2.0)  # inside (0, 1) for all data
        return BetaBernoulli(
            given_or(self.yes, 2.0 * share), given_or(self.no, 2.0 * (1.0 - share))
        )

    def check(self, n_features: int) -> None:
        require_positive("yes", self.yes, n_features)
        require_positive("no", self.no, n_features)

    def check_rows(self, X: Any) -> None:
        values = entries(X)
        between = (values != 0.0) & (values != 1.0)
        if between.any():
            row, column = place_of(X, between)
            raise ValueError(
                f"The model 'bernoulli' takes zeros and ones: row {row}, column {column} is "
                f"{X[row, column]:g}. Compare with a limit first, as in X > 0.5."
            )

    def likelihood(self, X: Any) -> Counts | SparseCounts:
        n, n_features = X.shape
        yes, no = (
            np.broadcast_to(np.asarray(field, np.float64), (n_features,))
            for field in (self.yes, self.no)
        )
        # Zeros are counted in separate columns.
        sizes = np.arange(n + 2.0)
        by_size = -sums_by_size(yes + no, sizes)
        return counts(X, np.concatenate([yes, no]), by_size=by_size, complement=True)

    def log_base_measure(self, X: Any) -> NDArray[np.float64]:
        return np.zeros(X.shape[0])
