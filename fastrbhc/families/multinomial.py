"""Counts that share a total: words of a document, votes, compositions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import xlogy

from fastrbhc._engine.clusters.observations import Observations
from fastrbhc._engine.clusters.sparse_rows import SparseObservations, sparse_rows
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.math.double_double import add, divide, two_sum
from fastrbhc._engine.math.entropy import entropy_divergence
from fastrbhc.families._draws import are_counts, sparse_multinomial
from fastrbhc.families._interface import Domain, family
from fastrbhc.families._scaling import roots_of_counts
from fastrbhc.families._smoothing import Smoothing, check_contraction, contraction


@family(
    "multinomial",
    separable=True,
    reducible=False,
    domain=Domain(lower=0.0, needs_positive_total=True),
    entropy_share=1.0,
)
class Multinomial(NamedTuple):
    """Multinomial: φ(x) = Σⱼ xⱼ log(xⱼ/m), contracted towards the uniform proportions.

    A row of total m is m draws of a category: a point of weight m at the proportions x/m. If
    every row has the same m, this is the paper's value. If totals differ, rows with large totals
    count for more, because they carry more information.

    Not reducible. The rows (0, 9, 9), (9, 0, 9) and (9, 9, 0) are equally near to each other,
    d = 8.44. The union of any two is nearer to the third, d = 6.81.

    Parameters
    ----------
    smoothing : float, default=0.1
        How far observed proportions are moved towards uniform ones, as a share of the way (the
        paper's φ₀).
    weight_by_total : bool, default=True
        If False, every row is one observation of its proportions, whatever its total.

    Examples
    --------
    >>> from fastrbhc import dissimilarity
    >>> from fastrbhc.families import Multinomial
    >>> round(dissimilarity([[8, 2]], [[2, 8]], "multinomial"), 6)
    3.077417
    >>> round(dissimilarity([[8, 2]], [[2, 8]], Multinomial(weight_by_total=False)), 6)
    0.307742
    """

    smoothing: float = 0.1
    weight_by_total: bool = True

    def check(self) -> None:
        check_contraction(self.smoothing)

    def observe(self, X: Any) -> Observations | SparseObservations:
        if issparse(X):
            totals = np.asarray(X.sum(axis=1)).ravel()
            rows = sparse_rows(X, totals)
            return rows if self.weight_by_total else rows._replace(weights=np.ones(totals.size))
        totals = np.empty(X.shape[0])
        proportions, residuals = np.empty(X.shape), np.empty(X.shape)
        _proportions(X, totals, proportions, residuals)
        return Observations(proportions, residuals, totals if self.weight_by_total else None)

    def coordinates(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Roots as if all rows had the same total, about as widely spread whatever theirs is.

        Shares add up to 1, so that roots are on a curved surface. Its distance from the tangent
        at the shares of all rows depends on the total as well, and is left out.
        """
        totals = X.sum(axis=1, keepdims=True)
        shares = X / totals
        common = np.average(shares, axis=0, weights=totals[:, 0] / totals.max())
        # A total whose counts vary as much as these do on average.
        total = 1.0 / np.mean(1.0 / totals)
        centre = roots_of_counts(total * common)
        steps = roots_of_counts(total * shares) - centre
        steps -= np.outer(steps @ centre, centre) / (centre @ centre)
        if are_counts(X):
            variances = _variances_of_shares(X, totals, common)
            steps *= np.sqrt(variances.mean() / variances)
        return centre + steps

    def smoothing_map(self, n_features: int) -> Smoothing:
        return contraction(self.smoothing, towards=1.0 / n_features)

    def n_parameters(self, n_features: int) -> int:
        return n_features - 1  # proportions add up to 1

    def draw_one_cluster(self, X: Any, rng: np.random.Generator) -> Any:
        if not are_counts(X):
            return None
        totals = X.sum(axis=1)
        proportions = X.sum(axis=0) / totals.sum()
        chosen = rng.permutation(totals).astype(np.int64)
        if issparse(X):
            return sparse_multinomial(chosen, proportions, rng)
        return rng.multinomial(chosen, proportions).astype(np.float64)

    def if_overdispersed(self, dispersion: float) -> str:
        if not self.weight_by_total:
            return ""
        return (
            "the counts of a row are not independent. Multinomial(weight_by_total=False) does not "
            "take them for it, and counts every row once"
        )

    def phi(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        return xlogy(x, x)

    def divergence(family, value, mean, step):
        return entropy_divergence(mean, step)

    def second_derivative(family, mean):
        return 1.0 / mean

    def variance_function(family, mean):
        return mean


def _variances_of_shares(
    X: NDArray[np.float64], totals: NDArray[np.float64], common: NDArray[np.float64]
) -> NDArray[np.float64]:
    """How widely the shares of each row vary, 1/m + τ for the total m, up to a factor.

    1/m is due to counting. τ is due to all else, clusters above all. It follows from Pearson's
    statistic, whose mean is (columns − 1)(1 + τm).
    """
    expected = totals * common
    squares = np.divide((X - expected) ** 2, expected, out=np.zeros(X.shape), where=expected > 0.0)
    freedom = max(int(np.count_nonzero(common)) - 1, 1)
    excess = max(squares.sum() / (freedom * totals.size) - 1.0, 0.0)
    variances: NDArray[np.float64] = 1.0 / totals + excess / totals.mean()
    return variances


@kernel
def _proportions(X, totals, high, low):
    """Rows divided by their totals, in double-double: near-equal rows keep their difference."""
    for i in range(X.shape[0]):
        total, rest = 0.0, 0.0
        for j in range(X.shape[1]):
            total, rest = add(total, rest, X[i, j], 0.0)
        totals[i] = total
        for j in range(X.shape[1]):
            quotient, error = divide(X[i, j], 0.0, total)
            high[i, j], low[i, j] = two_sum(quotient, error - quotient * (rest / total))
