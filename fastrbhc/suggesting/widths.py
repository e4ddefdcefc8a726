"""How much columns of different kinds vary within clusters that are not known yet.

In a product of families a column counts by its variance over what the family allows. So the widths
of measurements have to be those within clusters: over all rows, a column that tells clusters apart
is wide because it does. Here coarse mixtures of k clusters, k = 1 to 16, are fitted to all columns
together: numbers are normal, with one covariance for all clusters, and categories have shares in
each cluster. The Bayesian information criterion decides on k. Variances, and dispersions of counts,
then follow by moments within the components of that mixture.

One covariance for all clusters is on the safe side. Columns that go together within clusters would
be cut into slices by a mixture of independent columns, and their widths would come out too small.

All is a function of the distinct rows and their weights: neither their order nor copies in place of
weights matter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from threadpoolctl import threadpool_limits

from fastrbhc.families._scaling import roots_of_counts
from fastrbhc.suggesting.dispersion import Dispersion, by_moments
from fastrbhc.suggesting.samples import distinct, sampled

_CLUSTERS = (1, 2, 3, 4, 6, 8, 12, 16)
_STEPS, _ENOUGH = 30, 1e-3
# Distinct rows, columns of numbers and of categories that are looked at.
_MOST_ROWS, _MOST_COLUMNS = 1_000, 60
# Categories with more levels say little about so few clusters.
_MOST_LEVELS = 20
# Rows for each cluster, and for each column of a covariance; fewer have variances only.
_ROWS_PER_CLUSTER, _ROWS_PER_COLUMN = 5, 10
# The least share of the variance that is within clusters.
_LEAST_SHARE = 1e-3
# Added to covariances, as a share of variances: columns may repeat each other.
_RIDGE = 1e-3
_TINY = 1e-9

Floats = NDArray[np.float64]


class Within(NamedTuple):
    """Standard deviations of numbers within clusters, and the dispersion of counts."""

    deviations: Floats
    dispersion: Dispersion | None
    n_clusters: int


class _Rows(NamedTuple):
    """What a mixture is fitted to: numbers in units of their deviations, and levels as 0 and 1."""

    numbers: Floats
    least: Floats  # of the variance of each
    levels: list[Floats]
    weights: Floats

    @property
    def total(self) -> float:
        return float(self.weights.sum())

    @property
    def n_shares(self) -> int:
        """Free shares of levels of one cluster."""
        return sum(level.shape[1] - 1 for level in self.levels)


def within_clusters(
    numbers: Floats,
    counts: Floats,
    codes: Floats,
    resolutions: Floats,
    weights: Floats | None = None,
) -> Within:
    """Deviations of the numbers and dispersion of the counts, with categories to help.

    ``codes`` are the positions of levels. ``resolutions`` are the steps of numbers that take few
    values, 0 for others: a cluster of equal ratings is not of width 0.
    """
    n_numbers, n_counts = numbers.shape[1], counts.shape[1]
    table = np.concatenate([numbers, counts, codes], axis=1)
    weights = np.ones(len(table)) if weights is None else weights
    table, weights = table[weights > 0.0], weights[weights > 0.0]
    ranges = np.ptp(table, axis=0)
    table, weights = distinct(table, weights, table / np.where(ranges > 0.0, ranges, 1.0))
    table, weights = sampled(table, weights, _MOST_ROWS)
    numbers, counts, codes = np.split(table, [n_numbers, n_numbers + n_counts], axis=1)
    values = np.concatenate([numbers, roots_of_counts(counts)], axis=1)
    centred = values - weights @ values / weights.sum()
    deviations = np.sqrt(weights @ np.square(centred) / weights.sum())
    deviations = np.where(deviations > 0.0, deviations, 1.0)
    least = np.zeros(values.shape[1])
    least[:n_numbers] = np.square(0.5 * resolutions / deviations[:n_numbers])
    least = np.clip(least, _LEAST_SHARE, 1.0)
    levels = [_as_zeros_and_ones(column) for column in codes.T]
    levels = [level for level in levels if 1 < level.shape[1] <= _MOST_LEVELS]
    seen = np.linspace(0, least.size - 1, min(least.size, _MOST_COLUMNS)).astype(int)
    scaled = centred / deviations
    with threadpool_limits(1):  # more threads only slow such small matrices down
        shares = _best_mixture(_Rows(scaled[:, seen], least[seen], levels[:_MOST_COLUMNS], weights))
    variances = np.maximum(_variances(scaled, weights, shares), least)
    dispersion = by_moments(counts, weights, shares) if n_counts else None
    found = deviations * np.sqrt(variances)
    return Within(found[:n_numbers], dispersion, shares.shape[1])


def _as_zeros_and_ones(codes: Floats) -> Floats:
    present, places = np.unique(codes, return_inverse=True)
    if present.size > _MOST_LEVELS:
        return np.empty((codes.size, present.size))  # is not looked at
    return np.eye(present.size)[places]


def _best_mixture(rows: _Rows) -> Floats:
    """Memberships of the rows in the components of the best mixture: (rows, k)."""
    from sklearn.cluster import KMeans

    coordinates = np.concatenate([rows.numbers, *rows.levels], axis=1)
    n_columns = rows.numbers.shape[1]
    is_full = rows.total >= _ROWS_PER_COLUMN * n_columns
    n_variances = n_columns * (n_columns + 1) // 2 if is_full else n_columns
    best, least, worse = np.ones((len(coordinates), 1)), np.inf, 0
    for k in _CLUSTERS:
        if k > 1 and (_ROWS_PER_CLUSTER * k > rows.total or k >= len(coordinates)):
            break
        labels = np.zeros(len(coordinates), dtype=np.int64)
        if k > 1:
            grouping = KMeans(k, n_init=1, random_state=0)
            labels = grouping.fit(coordinates, sample_weight=rows.weights).labels_
        shares, likelihood = _mixture(rows, np.eye(k)[labels], is_full)
        n_parameters = k * n_columns + n_variances + k - 1 + k * rows.n_shares
        criterion = n_parameters * np.log(rows.total) - 2.0 * likelihood
        worse = 0 if criterion < least else worse + 1
        if criterion < least:
            best, least = shares, criterion
        if worse == 2:  # further clusters explain nothing
            break
    return best


def _mixture(rows: _Rows, shares: Floats, is_full: bool) -> tuple[Floats, float]:
    """Memberships and the log likelihood, by steps of the EM algorithm."""
    reached, kept = -np.inf, shares
    for _ in range(_STEPS):
        belonging = shares * rows.weights[:, None]
        sizes = belonging.sum(axis=0) + _TINY
        logs = np.log(sizes / sizes.sum()) + _normal(rows, belonging, sizes, is_full)
        for level in rows.levels:
            # One row more, with the shares of all rows, so that no share is 0.
            counted = belonging.T @ level + rows.weights @ level / rows.total
            logs += level @ np.log(counted / counted.sum(axis=1, keepdims=True)).T
        highest = logs.max(axis=1, keepdims=True)
        shares = np.exp(logs - highest)
        sums = shares.sum(axis=1, keepdims=True)
        shares /= sums
        likelihood = float(rows.weights @ (highest + np.log(sums))[:, 0])
        if likelihood - reached < _ENOUGH:
            break
        reached, kept = likelihood, shares
    return kept, reached


def _normal(rows: _Rows, belonging: Floats, sizes: Floats, is_full: bool) -> Floats:
    """The log density of each row's numbers in each component, up to a constant: (rows, k)."""
    values = rows.numbers
    means = belonging.T @ values / sizes[:, None]
    covariance = (values.T * rows.weights) @ values / rows.total
    covariance -= (means.T * (sizes / rows.total)) @ means
    variances = np.maximum(np.diag(covariance), rows.least)
    if not is_full:
        covariance = np.zeros(covariance.shape)
    np.fill_diagonal(covariance, (1.0 + _RIDGE) * variances)
    factor = np.linalg.cholesky(covariance)
    values, means = (solve_triangular(factor, x.T, lower=True).T for x in (values, means))
    squares = (values**2).sum(axis=1)[:, None] - 2.0 * values @ means.T + (means**2).sum(axis=1)
    densities: Floats = -0.5 * squares - np.log(np.diag(factor)).sum()
    return densities


def _variances(values: Floats, weights: Floats, shares: Floats) -> Floats:
    """The variance of each column within components."""
    belonging = shares * weights[:, None]
    sizes = belonging.sum(axis=0) + _TINY
    means = belonging.T @ values / sizes[:, None]
    squares = weights @ values**2 - sizes @ means**2
    found: Floats = squares / max(weights.sum() - len(sizes), 1.0)
    return found
