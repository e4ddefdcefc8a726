"""A sample of the rows, and its divisions into two halves.

Nothing here is random. Distinct rows are taken in the order of a hash of their values, which is as
good as random. So the sample and the halves depend on the values alone, not on the order of the
rows, and rows with weights are treated as copies are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.duplicates import collapse
from fastrbhc._engine.clusters.observations import take, weighted
from fastrbhc.families import Family

# The most distinct rows in a sample. For full covariances of many columns, half of that.
MOST_ROWS = 2_000
_MANY_COLUMNS = 20
# All halves together have about this many rows; there are 2 to 6 divisions.
_ROWS_IN_ALL = 6_000
_FEWEST, _MOST = 2, 6


class Sample(NamedTuple):
    """Distinct rows, their places in X, and their weights; the lightest row weighs 1."""

    rows: NDArray[np.float64]
    places: NDArray[np.int64]
    weights: NDArray[np.float64]


class Half(NamedTuple):
    """Which rows of a sample a half holds, and with which weights."""

    places: NDArray[np.int64]
    weights: NDArray[np.float64]


def sample_of(
    family: Family, X: NDArray[np.float64], sample_weight: NDArray[np.float64] | None
) -> Sample:
    """The first distinct rows in the order of a hash."""
    observed = family.observe(X)
    rows = weighted(observed, sample_weight)
    kept = np.arange(X.shape[0])
    if rows.weights is not None:
        kept = np.flatnonzero(rows.weights)
        rows = take(rows, kept)
    points, point_of_row = collapse(rows)
    n = points.means.shape[0]
    first = np.full(n, X.shape[0])
    np.minimum.at(first, point_of_row, kept)
    many = family.covariance == "full" and X.shape[1] > _MANY_COLUMNS
    chosen = first[: MOST_ROWS // 2 if many else MOST_ROWS]
    weights = np.ones(n) if points.weights is None else points.weights
    if observed.weights is not None:  # the weight of a row in d, apart from its sample weight
        weights = weights / observed.weights[first]
    weights = weights[: chosen.size]
    return Sample(X[chosen], chosen, weights / weights.min())


def divisions(sample: Sample) -> list[tuple[Half, Half]]:
    """Several divisions of a sample into halves.

    A row of weight 2 or more, which stands for copies, is in both halves with half its weight.
    """
    n = sample.weights.size
    found = []
    for division in range(int(np.clip(_ROWS_IN_ALL // n, _FEWEST, _MOST))):
        side = (np.arange(n) >> division) & 1
        repeated = sample.weights >= 2.0
        halves = []
        for one in (0, 1):
            places = np.flatnonzero(repeated | (side == one))
            shares = np.where(repeated[places], 0.5, 1.0)
            halves.append(Half(places, sample.weights[places] * shares))
        found.append((halves[0], halves[1]))
    return found
