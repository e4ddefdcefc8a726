"""Warnings about rows that a tree can be built of, but hardly the one that was meant."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from fastrbhc.families import Family
from fastrbhc.families._missing import has_gaps, used_columns

# Rows and values to look at: enough to see what kind of numbers they are.
_MOST_ROWS, _MOST_VALUES = 10_000, 1_000_000
# Rows of a square matrix that are compared with its columns at a time.
_BLOCK = 256
# Differences beside the largest distance that rounding explains.
_ROUNDING = 1e-8
# Rows whose pairs are compared for observed columns in common, and how many without any are many.
_MOST_COMPARED, _MANY_STRANGERS = 1_000, 0.01
# Callers that are not the user's: this package, and scikit-learn where it calls an estimator.
_INNER = {"fastrbhc", "sklearn"}


class MisfitWarning(UserWarning):
    """The rows look like something else than the family is for, or family="auto" has noticed."""


_deliberate = ContextVar("deliberate", default=False)


@contextmanager
def deliberately() -> Iterator[None]:
    """No warnings for trees of rows that the package has chosen itself."""
    token = _deliberate.set(True)
    try:
        yield
    finally:
        _deliberate.reset(token)


def warn_of_misfits(
    X: Any, family: Family, names: list[str] | None, said: str | None = None
) -> None:
    """Warn, at the user's call, if the rows look like something else than the family takes.

    ``names`` are those of the columns, if they have any. ``said`` is what else there is to say.
    """
    if _deliberate.get():
        return
    if has_gaps(X):
        _warn_of_strangers(used_columns(family, X))
        X = _with_observed_values(X)
    if issparse(X):  # the values that are not zero say enough
        found = list(family.advice(_sample(X).data[:, None], None)) if X.nnz else []
    else:
        found = list(family.advice(_sample(X), names))
    if said is not None:
        found.append(said)
    if not issparse(X) and is_matrix_of_distances(X):
        found.append(
            "X looks like a matrix of distances (square, symmetric, with zeros on the diagonal), "
            "and its rows are clustered as if they were points: give the rows that the distances "
            "were computed from"
        )
    for sentence in found:
        warnings.warn(sentence, MisfitWarning, stacklevel=frames_to_the_user())


def _with_observed_values(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Missing cells replaced by the first value of their column, which is of the same kind."""
    observed = ~np.isnan(X)
    firsts = X[observed.argmax(axis=0), np.arange(X.shape[1])]
    return np.where(observed, X, np.where(np.isnan(firsts), X[observed][0], firsts))


def _warn_of_strangers(X: NDArray[np.float64]) -> None:
    """Warn if many pairs of rows have no observed column in common, because their d is 0."""
    observed = (~np.isnan(_sample(X)[:_MOST_COMPARED])).astype(np.float32)
    n = len(observed)
    share = np.count_nonzero(observed @ observed.T == 0.0) / max(n * (n - 1), 1)
    if share > _MANY_STRANGERS:
        warnings.warn(
            f"{100.0 * share:.0f} % of all pairs of rows have no observed column in common. "
            "Nothing tells them apart, so that they are merged first, at d = 0. Leave out rows or "
            "columns with few observed cells, or fill in values",
            MisfitWarning,
            stacklevel=frames_to_the_user(),
        )


def is_matrix_of_distances(X: NDArray[np.float64]) -> bool:
    """Whether X is square and symmetric, with zeros on the diagonal and hardly any elsewhere.

    Zeros elsewhere belong to links of a graph, whose rows may be clustered.
    """
    n = len(X)
    if n < 3 or X.shape[1] != n or np.diagonal(X).any():
        return False
    few = np.linspace(0, n - 1, min(n, 10)).astype(np.int64)  # most other matrices fail here
    blocks = [few, *(np.arange(start, min(start + _BLOCK, n)) for start in range(0, n, _BLOCK))]
    n_zeros = 0
    for block in blocks:
        rows, columns = X[block], X[:, block].T
        if rows.min() < 0.0 or np.abs(rows - columns).max() > _ROUNDING * rows.max():
            return False
        n_zeros += 0 if block is few else int((rows == 0.0).sum())
    return n_zeros - n < 0.5 * n * (n - 1)


def _sample(X: Any) -> Any:
    """Rows at even distances, all of them if they are few."""
    n, n_features = X.shape
    most = min(_MOST_ROWS, max(100, _MOST_VALUES // n_features))
    return X if n <= most else X[:: -(-n // most)]


def frames_to_the_user() -> int:
    """The ``stacklevel`` of the first caller outside of the library, for who calls this."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in _INNER:
        level, frame = level + 1, frame.f_back
    return level
