"""A sample of the rows, and its divisions into two halves.

Nothing here is random. Distinct rows are taken in the order of a hash, which is as good as random.
The hash is of the values relative to the range of their column. So the sample and the halves depend
neither on the order of the rows nor on the units of the columns, and rows with weights are treated
as copies are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from fastrbhc._engine.clusters.duplicates import collapse
from fastrbhc._engine.clusters.observations import (
    Observations,
    column_ranges,
    hash_rows,
    take,
    weighted,
)
from fastrbhc._engine.clusters.sparse_rows import SparseObservations
from fastrbhc._validation import HEAVIEST
from fastrbhc.families import Family
from fastrbhc.families._missing import has_gaps, observe

# The most distinct rows in a sample, and about how many rows all halves have together, in 2 to 6
# divisions. For full covariances of many columns, half of that.
MOST_ROWS, _ROWS_IN_ALL = 2_000, 6_000
_FEWEST, _MOST = 2, 6
_MANY_COLUMNS = 20
# Relative values are rounded to this many steps, so that another unit gives the same ones.
_STEPS = 2.0**24


class Sample(NamedTuple):
    """Distinct rows, their places in X, and their weights; the lightest row weighs 1.

    It weighs less if the heaviest would weigh more than rows may.
    """

    rows: Any  # dense or sparse, as X is
    places: NDArray[np.int64]
    weights: NDArray[np.float64]


class Half(NamedTuple):
    """Which rows of a sample a half holds, and with which weights."""

    places: NDArray[np.int64]
    weights: NDArray[np.float64]


def sample_of(family: Family, X: Any, sample_weight: NDArray[np.float64] | None) -> Sample:
    """The first distinct rows in the order of their hashes."""
    observed = observe(family, X)
    rows = weighted(observed, sample_weight)
    kept = np.arange(X.shape[0])
    if rows.weights is not None:
        kept = np.flatnonzero(rows.weights)
        rows = take(rows, kept)
    points, point_of_row = collapse(rows)
    # Of rows with the same mean statistic, such as (1, 2) and (10, 20) as shares, the largest.
    squares = _squares(X)[kept]
    descending = np.argsort(-squares, kind="stable")
    _, largest = np.unique(point_of_row[descending], return_index=True)
    order = _order(points)[: int(MOST_ROWS * _share(family, X.shape[1]))]
    chosen = kept[descending[largest[order]]]
    weights = points.all_weights()[order]
    # Without the weight that a row has in d by itself.
    weights = weights / observed.all_weights()[chosen]
    # Rows are checked to have a finite d with the largest of weights, and no larger.
    unit = max(weights.min(), weights.max() / HEAVIEST)
    return Sample(X[chosen], chosen, weights / unit)


def _squares(X: Any) -> NDArray[np.float64]:
    """The sum of the squares of each row."""
    if issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    if has_gaps(X):  # a missing cell adds nothing
        X = np.where(np.isnan(X), 0.0, X)
    found: NDArray[np.float64] = np.einsum("ij,ij->i", X, X)
    return found


def _order(points: Any) -> NDArray[np.intp]:
    """An order as good as random, the same for every unit and origin of the columns."""
    if isinstance(points, SparseObservations):  # counts have no unit, and points are in hash order
        return np.arange(points.shape[0])
    means = points._replace(weights=None).slot_values()  # what is missing has a place in the range
    lowest, highest = column_ranges(means)
    widths = highest - lowest
    relative = (means - lowest) / np.where(widths > 0.0, widths, 1.0)
    return np.argsort(hash_rows(Observations(np.round(relative * _STEPS))), kind="stable")


def divisions(family: Family, sample: Sample) -> list[tuple[Half, Half]]:
    """Several divisions of a sample into halves.

    A row of weight 2 or more, which stands for copies, is in both halves with half its weight. So
    is the only row of a sample.
    """
    n = sample.weights.size
    wanted = int(_ROWS_IN_ALL * _share(family, sample.rows.shape[1]) / n)
    repeated = (sample.weights >= 2.0) | (n == 1)
    found = []
    for division in range(min(max(wanted, _FEWEST), _MOST)):
        ranks = np.column_stack([np.arange(n), np.full(n, division)])
        side = np.empty(n, np.int64)
        side[np.argsort(hash_rows(Observations(ranks.astype(np.float64))))] = np.arange(n) % 2
        first, second = (_half(sample, repeated, side == one) for one in (0, 1))
        found.append((first, second))
    return found


def _half(sample: Sample, repeated: NDArray[np.bool_], own: NDArray[np.bool_]) -> Half:
    places = np.flatnonzero(repeated | own)
    return Half(places, sample.weights[places] * np.where(repeated[places], 0.5, 1.0))


def _share(family: Family, n_features: int) -> float:
    """Which share of rows to use: trees of full covariances of many columns take long."""
    return 0.5 if family.covariance == "full" and n_features > _MANY_COLUMNS else 1.0
