"""Rows of one distribution: counts, and sparse rows without a dense matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

# Columns that more than this share of the rows have are drawn row by row.
_MANY_ROWS = 0.125
# After so many rounds the rest is drawn row by row too: a few rows have nearly all chances.
_ROUNDS = 20
# Poisson counts of larger means do not fit NumPy's integers, which end at 9.2e18, nor do totals.
_LARGEST_MEAN = 1e15


def are_counts(X: Any) -> bool:
    """Whether all values are whole numbers, none too large to be drawn at random.

    Parameters
    ----------
    X : ndarray or sparse matrix
        Values.

    Returns
    -------
    bool

    Examples
    --------
    >>> import numpy as np
    >>> from fastrbhc.families._draws import are_counts
    >>> are_counts(np.array([1.0, 2.0])), are_counts(np.array([0.5]))
    (True, False)
    """
    values = X.data if sparse.issparse(X) else X
    return bool((np.round(values) == values).all()) and float(np.abs(values).sum()) < _LARGEST_MEAN


def overdispersed(
    means: NDArray[np.float64], dispersion: float, shape: tuple[int, int], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Dense rows of counts of variance m + αm²: Poisson counts whose means are gamma draws."""
    drawn = np.broadcast_to(means, shape)
    if dispersion > 0.0:
        drawn = np.minimum(rng.gamma(1.0 / dispersion, dispersion * means, shape), _LARGEST_MEAN)
    return rng.poisson(drawn).astype(np.float64)


def sparse_poisson(means: NDArray[np.float64], n: int, rng: np.random.Generator) -> Any:
    """n rows of independent Poisson counts, as a CSR matrix.

    Counts of a column fall on its rows at random, which is the same as Poisson counts in each.
    """
    few = np.flatnonzero((means > 0.0) & (means <= 1.0))
    many = np.flatnonzero(means > 1.0)
    columns = np.repeat(few, rng.poisson(n * means[few]))
    rows = rng.integers(n, size=columns.size)
    large = rng.poisson(means[many], (n, many.size)).astype(np.float64)
    return _matrix(
        np.concatenate([np.ones(columns.size), large.ravel()]),
        np.concatenate([rows, np.repeat(np.arange(n), many.size)]),
        np.concatenate([columns, np.tile(many, n)]),
        (n, means.size),
    )


def sparse_multinomial(
    totals: NDArray[np.int64], proportions: NDArray[np.float64], rng: np.random.Generator
) -> Any:
    """Rows of multinomial counts with these totals, as a CSR matrix."""
    used = np.flatnonzero(proportions)
    shares = proportions[used] / proportions[used].sum()
    few = np.flatnonzero(totals <= used.size)
    rows, below = np.repeat(few, totals[few]), np.cumsum(shares)
    drawn = np.searchsorted(below, rng.random(rows.size) * below[-1], side="right")
    parts = [(np.ones(rows.size), rows, used[np.minimum(drawn, used.size - 1)])]
    for row in np.flatnonzero(totals > used.size).tolist():
        counts = rng.multinomial(totals[row], shares)
        there = np.flatnonzero(counts)
        parts.append((counts[there].astype(np.float64), np.full(there.size, row), used[there]))
    values, places, columns = (np.concatenate(part) for part in zip(*parts, strict=True))
    return _matrix(values, places, columns, (totals.size, proportions.size))


def sparse_binary(means: NDArray[np.float64], n: int, rng: np.random.Generator) -> Any:
    """n rows of independent zeros and ones, as a CSR matrix."""
    counts = rng.binomial(n, np.minimum(means, 1.0))
    rows, columns = distinct_rows(counts, np.ones(n), rng)
    return _matrix(np.ones(rows.size), rows, columns, (n, means.size))


def distinct_rows(
    counts: NDArray[np.int64], chances: NDArray[np.float64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """As many distinct rows for each column as it counts: rows, and their columns in order.

    Rows are drawn one after another, each with its chance, and those that a column has already are
    drawn again. At least as many rows as any column counts have to have a chance.
    """
    n = chances.size
    columns = np.repeat(np.arange(counts.size), counts)
    ends = np.cumsum(counts)
    rows, below = np.empty(columns.size, np.int64), np.cumsum(chances)
    single = np.flatnonzero(counts[columns] <= _MANY_ROWS * n)
    pending = single
    for _ in range(_ROUNDS):
        places = np.searchsorted(below, rng.random(pending.size) * below[-1], side="right")
        rows[pending] = np.minimum(places, n - 1)
        keys = columns[single] * n + rows[single]
        order = np.argsort(keys, kind="stable")
        again = keys[order[1:]] == keys[order[:-1]]
        pending = single[order[1:][again]]
        if not pending.size:
            break
    crowded = np.union1d(columns[pending], np.flatnonzero(counts > _MANY_ROWS * n))
    with np.errstate(divide="ignore"):
        waits = 1.0 / chances
    for column in crowded.tolist():
        # The first of exponential waiting times are such a draw.
        times, count = rng.exponential(size=n) * waits, int(counts[column])
        rows[ends[column] - count : ends[column]] = np.argsort(times)[:count]
    return rows, columns


def _matrix(
    values: NDArray[np.float64],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    shape: tuple[int, int],
) -> Any:
    kept = np.flatnonzero(values)
    return sparse.csr_array((values[kept], (rows[kept], columns[kept])), shape=shape)
