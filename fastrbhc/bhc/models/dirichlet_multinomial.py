"""Counts that share a total: words of a document, votes, compositions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from fastrbhc.bhc._interface import given_or, model, require_positive
from fastrbhc.bhc.likelihoods.counts import Counts, counts
from fastrbhc.bhc.likelihoods.entries import entries, row_sums
from fastrbhc.bhc.likelihoods.sparse_counts import SparseCounts
from fastrbhc.families import Domain


@model(
    "multinomial",
    domain=Domain(lower=0.0, needs_positive_total=True),
    tunable=("concentration",),
    aliases=("dirichlet_multinomial",),
    family="multinomial",
    takes_sparse_rows=True,
)
class DirichletMultinomial(NamedTuple):
    """Multinomial counts with a Dirichlet prior of the proportions.

    With s the totals of the d columns, S their sum and A that of the concentrations a,

        p(X) = Γ(A)/Γ(A + S) · Π_k Γ(a_k + s_k)/Γ(a_k) · Π_i m_i! / Π_k x_ik!,

    with m_i the total of row i, which is taken as given. Counts need not be integers: x! is then
    Γ(x + 1), which does not affect merging.

    Parameters
    ----------
    concentration : float or array-like of shape (d,), optional
        a, one number for all columns or one for each. By default the number under which two draws
        of one row agree as often as they do in the data.

    Examples
    --------
    >>> import fastrbhc
    >>> from fastrbhc.bhc import DirichletMultinomial
    >>> X = [[9, 1, 0], [8, 2, 0], [0, 1, 9], [1, 0, 9]]
    >>> fastrbhc.bhc_linkage(X, DirichletMultinomial(concentration=0.5)).cut().tolist()
    [0, 0, 1, 1]
    """

    concentration: float | ArrayLike | None = None

    def with_defaults(self, X: Any) -> DirichletMultinomial:
        return DirichletMultinomial(given_or(self.concentration, _of_agreeing_draws(X)))

    def check(self, n_features: int) -> None:
        require_positive("concentration", self.concentration, n_features)

    def likelihood(self, X: Any) -> Counts | SparseCounts:
        concentrations = np.broadcast_to(np.asarray(self.concentration, np.float64), (X.shape[1],))
        return counts(X, concentrations, pooled=True)

    def log_base_measure(self, X: Any) -> NDArray[np.float64]:
        of_rows: NDArray[np.float64] = gammaln(row_sums(X) + 1.0)
        return of_rows - row_sums(X, lambda values: gammaln(values + 1.0))


def _of_agreeing_draws(X: Any) -> float:
    """The concentration under which two draws of one row agree as often as they do.

    Σ_k p_k² has the mean (a + 1)/(da + 1) under a symmetric Dirichlet distribution, and
    Σ_k x_k(x_k − 1)/(m(m − 1)) estimates it from a row.
    """
    n_features, totals, values = X.shape[1], row_sums(X), entries(X)
    pairs = float((totals * (totals - 1.0)).clip(min=0.0).sum())
    if n_features == 1 or pairs == 0.0:
        return 1.0
    agreeing = float((values * (values - 1.0)).clip(min=0.0).sum()) / pairs
    # Between the agreement of nearly equal shares and that of one column alone.
    agreeing = min(max(agreeing, (1.0 + 1e-3) / n_features), 1.0 - 1e-3)
    return (1.0 - agreeing) / (n_features * agreeing - 1.0)
