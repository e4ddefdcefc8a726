"""Rows as points for estimates of density.

Counts, shares and measurements become points whose clusters are roughly Gaussian: the family gives
the coordinates (roots of counts, for example). If there are many, only the principal axes are kept.

Values that repeat need care. A column of zeros and ones has a density without bound once a cluster
holds only ones, and so every division of the rows would seem to predict well. Therefore each column
has a floor, a variance that is added to that of every cluster. Dividing a column of variance v into
its distinct values raises the logarithm of its density by at most

    ½ [log(1 + v/f) + v/(v + f)],

where f is the floor, and it costs the entropy H of the values, the logarithm of the weights of so
many clusters. The floor is such that the gain is 0.8 H; for counts, all of whose columns repeat
values, 0.5 H. Values that are all different have a large entropy, and no floor to speak of.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from fastrbhc.families import Family

# The most coordinates; of more, the principal axes.
MOST_COORDINATES = 30
# The most columns of sparse rows that the axes are sought in.
_MOST_COLUMNS = 500
# Values that differ by less than this share are the same.
_ROUNDING = 1e-12
# A smaller variance leaves no digits for what is computed from it.
_SMALLEST_VARIANCE = 1e-280
# The gain of dividing a column into its distinct values, as a share of the entropy it costs: of
# measurements, and of counts.
_SHARE_OF_ENTROPY, _SHARE_OF_COUNTS = 0.8, 0.5


class Points(NamedTuple):
    """Points (n, q) and the floor of their covariances (q, q)."""

    values: NDArray[np.float64]
    floor: NDArray[np.float64]


def points_of_rows(family: Family, X: Any, weights: NDArray[np.float64]) -> Points:
    """The rows in the coordinates of their family, or in their principal axes."""
    from sklearn.utils.extmath import randomized_svd

    if issparse(X):
        X = _fewer_columns(family, X, weights)
    values = family.coordinates(X)
    # Codes of levels are not the columns that these coordinates are of.
    cells = values if hasattr(family, "encode") else X
    # Shares of a single column are all 1, up to rounding. And a family may move what is the same in
    # all rows, as projections do: it says nothing about them.
    varies = np.ptp(values, axis=0) > _ROUNDING * np.abs(values).max(axis=0)
    kept = np.flatnonzero(varies & (np.ptp(cells, axis=0) > 0.0))
    values = values - np.average(values, axis=0, weights=weights)
    variances = np.average(values**2, axis=0, weights=weights)
    kept = kept[variances[kept] > _SMALLEST_VARIANCE]
    values, variances = values[:, kept], variances[kept]
    share = _SHARE_OF_COUNTS if known_spread(family) else _SHARE_OF_ENTROPY
    floors = np.array([_floor(column, weights, share) for column in cells[:, kept].T])
    floor = np.diag(floors * variances)
    if kept.size <= MOST_COORDINATES:
        return Points(values, floor)
    roots = np.sqrt(weights)[:, None]
    _, _, axes = randomized_svd(roots * values, MOST_COORDINATES, random_state=0)
    return Points(values @ axes.T, axes @ floor @ axes.T)


def _fewer_columns(family: Family, X: Any, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The columns of sparse counts whose roots vary most, and the sum of all others.

    The others hardly matter to the principal axes. Their sum keeps the totals of the rows as they
    are; zeros and ones have no sum of the same kind.
    """
    if X.shape[1] <= _MOST_COLUMNS:
        return np.asarray(X.toarray())
    shares = weights / weights.sum()
    variances = shares @ X - (shares @ X.sqrt()) ** 2
    chosen = np.sort(np.argsort(-variances, kind="stable")[:_MOST_COLUMNS])
    kept = X[:, chosen].toarray()
    if np.isfinite(family.domain.upper):
        return np.asarray(kept)
    rest = np.asarray(X.sum(axis=1)).ravel() - kept.sum(axis=1)
    return np.column_stack([kept, np.maximum(rest, 0.0)])


def known_spread(family: Family) -> bool:
    """Whether the mean of a cluster says how widely its rows vary, as for counts."""
    return family.separable and not family.quadratic


def _floor(column: NDArray[np.float64], weights: NDArray[np.float64], share: float) -> float:
    """The floor of a column as a share of its variance."""
    _, value = np.unique(column, return_inverse=True)
    shares = np.bincount(value, weights) / weights.sum()
    wanted = -share * float(shares @ np.log(shares))
    low, high = -60.0, 60.0  # of log f/v; the gain falls from 30 to 0
    for _ in range(60):
        middle = 0.5 * (low + high)
        gain = 0.5 * (np.log1p(np.exp(-middle)) + 1.0 / (1.0 + np.exp(middle)))
        low, high = (middle, high) if gain > wanted else (low, middle)
    return float(np.exp(0.5 * (low + high)))
