"""Sums over rows of counts, dense or sparse: zeros that are not stored add nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse


def entries(X: Any) -> NDArray[np.float64]:
    """All values that may differ from zero."""
    values: NDArray[np.float64] = X.data if issparse(X) else X
    return values


def place_of(X: Any, found: NDArray[np.bool_]) -> tuple[int, int]:
    """The row and the column of the first of `entries` that was found."""
    place = tuple(int(index) for index in np.argwhere(found)[0])
    if issparse(X):
        return int(np.searchsorted(X.indptr, place[0], side="right")) - 1, int(X.indices[place[0]])
    return place[0], place[1]


def n_values(X: Any) -> int:
    """The number of values, zeros included."""
    n, n_columns = X.shape
    return int(n) * int(n_columns)


def row_sums(
    X: Any, of: Callable[[NDArray[np.float64]], NDArray[np.float64]] | None = None
) -> NDArray[np.float64]:
    """The sum of each row, or of a function of its values that is 0 at 0."""
    if of is not None:
        X = csr_array((of(X.data), X.indices, X.indptr), X.shape) if issparse(X) else of(X)
    return np.asarray(X.sum(axis=1)).ravel()


def column_sums(X: Any) -> NDArray[np.float64]:
    """The sum of each column."""
    return np.asarray(X.sum(axis=0)).ravel()


def variance(X: Any) -> float:
    """The variance of all values taken together."""
    if not issparse(X):
        return float(X.var())
    size, mean = n_values(X), float(X.sum()) / n_values(X)
    around = float(np.square(X.data - mean).sum()) + (size - X.data.size) * mean * mean
    return around / size
