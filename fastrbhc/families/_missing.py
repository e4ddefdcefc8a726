"""Rows with missing cells: which families take them, and how they are observed.

If the columns of a family are separate, the likelihood of a row is a product over its columns, and
the likelihood of the cells that are observed is the product over these. Other families would have
to integrate over what is missing, or lose the total or the length of a row. In a product of
families this is a matter of each block.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from fastrbhc._engine.clusters.observations import Observations
from fastrbhc._engine.clusters.partly_observed import partly_observed, side_by_side
from fastrbhc._engine.clusters.sparse_rows import SparseObservations
from fastrbhc.families._interface import as_family, registered


def takes_missing(family: Any) -> bool:
    """Whether the family can ignore missing cells: its columns are separate, without totals.

    A product can, as long as the blocks with gaps can.
    """
    domain = family.domain
    whole_rows = domain.needs_positive_total or domain.needs_nonzero_row
    return hasattr(family, "observed_geometry") and not whole_rows


def names_of_those_that_take_missing() -> list[str]:
    """The names of all families that can ignore missing cells."""
    classes: Any = registered().values()
    found = {cls.name: cls for cls in classes if not hasattr(cls, "parts")}
    return sorted(name for name, cls in found.items() if takes_missing(as_family(cls)))


def has_gaps(X: Any) -> bool:
    """Whether a cell is NaN; never in sparse rows, which have been checked."""
    return not issparse(X) and X.size > 0 and bool(np.isnan(X.min()))


def used_columns(family: Any, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """The columns that take part: those of the blocks of a product, else all."""
    if not hasattr(family, "blocks"):
        return X
    return X[:, sorted(k for block in family.blocks for k in block.columns)]


def filled(X: NDArray[np.float64], family: Any = None) -> NDArray[np.float64]:
    """X with the mean of the column where a value is missing.

    If a whole column is missing, with a value of another one: some value of the domain. Categories
    become the most frequent level of their column.
    """
    if hasattr(family, "parts"):
        out = X.copy()
        for block, (distribution, part) in zip(family.blocks, family.parts(X), strict=True):
            out[:, list(block.columns)] = filled(part, distribution)
        return out
    observed = ~np.isnan(X)
    if hasattr(family, "levels"):
        return np.where(observed, X, _most_frequent(X, observed))
    some = X[observed][0] if observed.any() else 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.where(observed, X, 0.0).sum(axis=0)
        means = sums / np.maximum(observed.sum(axis=0), 1)
    lowest = np.where(observed, X, np.inf).min(axis=0)
    highest = np.where(observed, X, -np.inf).max(axis=0)
    means = np.where(observed.any(axis=0), np.clip(means, lowest, highest), some)
    return np.where(observed, X, means)


def in_words(X: NDArray[np.float64], family: Any) -> NDArray[Any]:
    """Rows with levels in the place of their codes, as they were before they were numbers."""
    if hasattr(family, "levels"):
        out = np.empty(X.shape, object)
        for k, levels in enumerate(family.levels):
            codes = X[:, k].astype(np.int64)
            out[:, k] = np.array([*levels, ""], object)[codes]  # "" for −1, a level of none
        return out
    if not any(hasattr(block.family, "levels") for block in getattr(family, "blocks", ())):
        return X
    words = X.astype(object)
    for block, (distribution, part) in zip(family.blocks, family.parts(X), strict=True):
        words[:, list(block.columns)] = in_words(part, distribution)
    return words


def _most_frequent(X: NDArray[np.float64], observed: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The most frequent code of each column, the smallest of several."""
    out = np.zeros(X.shape[1])
    for k in range(X.shape[1]):
        codes, counts = np.unique(X[observed[:, k], k], return_counts=True)
        if codes.size:
            out[k] = codes[np.argmax(counts)]
    return out


def observe(family: Any, X: Any, *, gaps: bool = False) -> Observations | SparseObservations:
    """What ``family.observe`` returns, also for rows with missing cells.

    ``gaps`` asks for rows of that kind even if no cell is missing. In a product, blocks without
    gaps stay as they are, unless that is asked for and they could have some.
    """
    if not (gaps or has_gaps(X)):
        rows: Observations | SparseObservations = family.observe(X)
        return rows
    if hasattr(family, "parts"):
        parts: list[Any] = [
            # Levels are sparse only if no cell of the rows is missing.
            observe(block, part, gaps=(gaps or hasattr(block, "levels")) and takes_missing(block))
            for block, part in family.parts(X)
        ]
        return parts[0] if len(parts) == 1 else side_by_side(parts)
    observed = ~np.isnan(X)
    if hasattr(family, "levels"):  # one column for each level, and one for all others
        of_levels = np.repeat(observed, [len(column) for column in family.levels], axis=1)
        levels: Observations = family.indicators(filled(X, family))
        return partly_observed(levels, np.hstack([of_levels, observed]))
    whole: Observations = family.observe(filled(X, family))
    return partly_observed(whole, observed)
