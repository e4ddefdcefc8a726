"""Categories: countries, colours, answers to a question."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc.bhc._interface import given_or, model, require_positive
from fastrbhc.bhc.likelihoods.counts import counts
from fastrbhc.bhc.likelihoods.rearranged import Rearranged, rearranged
from fastrbhc.bhc.likelihoods.rising import sums_by_size
from fastrbhc.families import Categorical, Domain
from fastrbhc.families._columns import Table


@model(
    "categorical",
    domain=Domain(lower=-1.0),  # the code of a level that the rows of the fit did not have
    tunable=("concentration",),
    aliases=("dirichlet_categorical",),
)
class DirichletCategorical(NamedTuple):
    """Categories, each column with a Dirichlet prior of the shares of its levels.

    With s_kl the number of the n rows that have level l of the L_k levels of column k,

        p(X) = Π_k Γ(L_k a)/Γ(L_k a + n) · Π_l Γ(a + s_kl)/Γ(a).

    Parameters
    ----------
    concentration : float, optional
        a, the pseudocount of every level; by default 1, so that all shares are equally likely.
    levels : tuple of tuples of str
        The levels of each column; by default those that occur in the rows of the fit. A level of
        new rows that is not among them is as likely in all clusters of the same size.

    Examples
    --------
    >>> import fastrbhc
    >>> X = [["red", "small"], ["blue", "large"]] * 6
    >>> fastrbhc.bhc_linkage(X, "categorical").cut().tolist()
    [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]
    """

    concentration: float | None = None
    levels: tuple[tuple[str, ...], ...] = ()

    def place(self, table: Table) -> DirichletCategorical:
        """The same with the levels of these columns, if they are not given."""
        return self._replace(levels=Categorical(levels=self.levels).place(table).levels)

    def encode(self, table: Table) -> NDArray[np.float64]:
        """The position of each level, and −1 for others."""
        return Categorical(levels=self.levels).encode(table)

    def with_defaults(self, X: NDArray[np.float64]) -> DirichletCategorical:
        return self._replace(concentration=given_or(self.concentration, 1.0))

    def check(self, n_features: int) -> None:
        require_positive("concentration", self.concentration)

    def likelihood(self, X: NDArray[np.float64]) -> Rearranged:
        n_levels = np.array([len(column) for column in self.levels])
        columns: Any = np.arange(n_levels.size)
        concentration = float(self.concentration or 0.0)
        # Every row has one level of each column.
        by_size = -sums_by_size(concentration * n_levels, np.arange(X.shape[0] + 2.0))
        of_levels = np.full(int(n_levels.sum()), concentration)
        rows = rearranged(X, columns, n_levels)
        return Rearranged(counts(rows, of_levels, by_size=by_size), columns, n_levels)

    def log_base_measure(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.zeros(X.shape[0])
