"""Numbers of failures before a success: counts as spread out as their mean."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastrbhc.bhc._interface import given_or, model, require_positive
from fastrbhc.bhc.likelihoods.entries import place_of
from fastrbhc.bhc.likelihoods.rising import log_rising_table, sums_by_size
from fastrbhc.bhc.likelihoods.waiting import Waiting, shape_of_events
from fastrbhc.families import Domain


@model(
    "geometric",
    domain=Domain(lower=0.0),
    tunable=("yes", "no"),
    aliases=("beta_geometric",),
    family="geometric",
)
class BetaGeometric(NamedTuple):
    """Geometric counts with a beta prior of the probability of success in every column.

    With s the totals of the d columns in n rows,

        p(X) = Π_k B(yes + n, no + s_k) / B(yes, no),

    with B the beta function. Counts start at 0: subtract 1 if they are numbers of trials, the
    success included.

    Parameters
    ----------
    yes, no : float or array-like of shape (d,), optional
        Parameters of the beta distribution: pseudocounts of successes and failures. By default
        those for which single rows have the mean and the variance of the data, all columns taken
        together; a mean of all rows needs ``yes`` above 1.

    References
    ----------
    J. M. Bernardo, A. F. M. Smith (1994), Bayesian Theory, Wiley.

    Examples
    --------
    >>> import fastrbhc
    >>> from fastrbhc.bhc import BetaGeometric
    >>> X = [[1, 0], [0, 2], [900, 1100], [1200, 800]]
    >>> fastrbhc.bhc_linkage(X, BetaGeometric(yes=1.0, no=10.0)).cut().tolist()
    [1, 1, 0, 0]
    """

    yes: float | ArrayLike | None = None
    no: float | ArrayLike | None = None

    def with_defaults(self, X: NDArray[np.float64]) -> BetaGeometric:
        mean = max(float(X.mean()), 0.5 / X.size)
        # In units of the variance at one probability, m + m².
        yes = given_or(self.yes, shape_of_events(float(X.var()) / (mean * (1.0 + mean))))
        return BetaGeometric(yes, given_or(self.no, np.maximum(np.asarray(yes) - 1.0, 0.5) * mean))

    def check(self, n_features: int) -> None:
        require_positive("yes", self.yes, n_features)
        require_positive("no", self.no, n_features)

    def check_rows(self, X: NDArray[np.float64]) -> None:
        wrong = np.floor(X) != X
        if wrong.any():
            row, column = place_of(X, wrong)
            raise ValueError(
                f"The model 'geometric' takes whole numbers: row {row}, column {column} is "
                f"{X[row, column]:g}. For positive measurements there is the model 'exponential'."
            )

    def likelihood(self, X: NDArray[np.float64]) -> Waiting:
        n, n_features = X.shape
        yes, no = (
            np.array(np.broadcast_to(np.asarray(field, np.float64), (n_features,)))
            for field in (self.yes, self.no)
        )
        # B(yes + n, no + s)/B(yes, no) = (yes)_n · (no)_yes / (no + s)_{yes + n}.
        before = sum(
            float(log_rising_table(b, np.array([a]))[0]) for a, b in zip(yes, no, strict=True)
        )
        by_size = sums_by_size(yes, np.arange(n + 2.0)) + before
        return Waiting(events=yes, waited=no, by_size=by_size, in_steps=True)

    def log_base_measure(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.zeros(X.shape[0])
