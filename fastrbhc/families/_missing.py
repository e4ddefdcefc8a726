"""Rows with missing cells: which families take them, and how they are observed.

If the columns of a family are separate, the likelihood of a row is a product over its columns, and
the likelihood of the cells that are observed is the product over these. Other families would have
to integrate over what is missing, or lose the total or the length of a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from fastrbhc._engine.clusters.observations import Observations
from fastrbhc._engine.clusters.partly_observed import partly_observed
from fastrbhc._engine.clusters.sparse_rows import SparseObservations
from fastrbhc.families._interface import Family, as_family, registered


def takes_missing(family: Any) -> bool:
    """Whether the family can ignore missing cells: its columns are separate, without totals."""
    domain = family.domain
    whole_rows = domain.needs_positive_total or domain.needs_nonzero_row
    return bool(getattr(family, "separable", False)) and not whole_rows


def names_of_those_that_take_missing() -> list[str]:
    """The names of all families that can ignore missing cells."""
    classes: Any = registered().values()
    # Those that have to know which column is which are not separable.
    found = {cls.name: cls for cls in classes if not hasattr(cls, "place")}
    return sorted(name for name, cls in found.items() if takes_missing(as_family(cls)))


def has_gaps(X: Any) -> bool:
    """Whether a cell is NaN; never in sparse rows, which have been checked."""
    return not issparse(X) and X.size > 0 and bool(np.isnan(X.min()))


def filled(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """X with the mean of the column where a value is missing.

    If a whole column is missing, with a value of another one: some value of the domain.
    """
    observed = ~np.isnan(X)
    some = X[observed][0] if observed.any() else 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.where(observed, X, 0.0).sum(axis=0)
        means = sums / np.maximum(observed.sum(axis=0), 1)
    lowest = np.where(observed, X, np.inf).min(axis=0)
    highest = np.where(observed, X, -np.inf).max(axis=0)
    means = np.where(observed.any(axis=0), np.clip(means, lowest, highest), some)
    return np.where(observed, X, means)


def observe(family: Family, X: Any, *, gaps: bool = False) -> Observations | SparseObservations:
    """What ``family.observe`` returns, also for rows with missing cells.

    ``gaps`` asks for rows of that kind even if no cell is missing.
    """
    if not (gaps or has_gaps(X)):
        rows: Observations | SparseObservations = family.observe(X)
        return rows
    return partly_observed(family.observe(filled(X)), ~np.isnan(X))
