"""Scaled columns, so that one smoothing means the same in every column and every unit.

The paper's φ₁(t) = φ(t + αγ) leaves the direction γ of the shift open. For covariances it is the
identity if the columns are taken as they are. With γ the diagonal matrix of the variances of the
columns, α is a share of them. That is the same as dividing each column by its standard deviation
first, because all other terms of d are unaffected by such a scaling.

The standard deviation of a column is that of all rows. Clusters that are far apart in one column
are narrow beside it, and the smoothing hides them if the other columns have no clusters. Another
measure of width is e^h/√(2πe), where h is the entropy: the standard deviation of normal rows with
the same entropy. For k clusters that are far apart it is k times the width of one, however far that
is. So if columns have gaps, one of the records to choose from has these scaled by their entropy.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

# Shares of the variance to choose a smoothing from, and the one for columns scaled by entropy.
SHARES = (0.1, 0.3, 1.0)
SHARE_OF_ENTROPIC = 1.0
# A column has gaps if its entropy is so much less than that of the nearest column with one mode. Of
# rows with one mode it is at most 0.1 less, of two clusters six deviations apart 0.2.
_LEAST_GAPS = 0.12
# Gaps are seen between quantiles: so many at most, and each for so many distinct values at least.
_MOST_QUANTILES, _FEWEST_QUANTILES, _VALUES_PER_QUANTILE = 32, 4, 8
# Scaled values beyond this are moved here. Those of rows with weight are far below it.
_FARTHEST = 1e100

Columns = tuple[float, ...] | None
AnyFamily = TypeVar("AnyFamily", bound=Any)


def centre_and_scale(
    X: NDArray[np.float64], sample_weight: NDArray[np.float64] | None
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The mean and the standard deviation of each column; 1 for the latter if it is constant."""
    moments = [_moments(*_distinct(column, sample_weight)) for column in X.T]
    centres, scales = zip(*moments, strict=True)
    return centres, scales


def _moments(values: NDArray[np.float64], shares: NDArray[np.float64]) -> tuple[float, float]:
    centre = (shares * values).sum()
    width = np.abs(values - centre).max()
    if values.size == 1 or width == 0.0:
        return float(values[0]), 1.0
    # Squares of small numbers would underflow.
    scale = width * np.sqrt((shares * ((values - centre) / width) ** 2).sum())
    return float(centre), float(scale) or 1.0  # 0 if it underflows


def _distinct(
    column: NDArray[np.float64], sample_weight: NDArray[np.float64] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The distinct values in ascending order, each with the share of all its rows.

    So another order of the rows, or copies in place of weights, change no bit of sums over them.
    They would decide ties between dissimilarities of scaled rows otherwise.
    """
    if sample_weight is not None:  # weights of one value are added up in ascending order too
        order = np.lexsort((sample_weight, column))
        column, sample_weight = column[order], sample_weight[order]
    values, place = np.unique(column, return_inverse=True)
    weights = np.bincount(place, sample_weight)
    values, weights = values[weights > 0], weights[weights > 0]
    return values, weights / weights.sum()


def _entropic_scale(
    values: NDArray[np.float64], shares: NDArray[np.float64], scale: float
) -> float:
    """The width of a column by its entropy if it has gaps, and its standard deviation otherwise.

    Quantiles for equal shares say how dense the values are: the density is inverse to the distance
    between neighbours. It has one mode if the distances fall and then rise. The entropy is compared
    with that of the nearest such column, whose distances are averaged where they do not; if it is
    much less, there are gaps. The width is that of normal rows with the same entropy.
    """
    count = min(values.size // _VALUES_PER_QUANTILE, _MOST_QUANTILES)
    if count < _FEWEST_QUANTILES:
        return scale
    levels = (np.arange(count) + 0.5) / count
    distances = np.diff(values[np.searchsorted(np.cumsum(shares), levels)]) / scale
    if not distances.min() > 0.0:  # one value has a larger share, and no density
        return scale
    rising = [_log_means(distances[mode:]) for mode in range(count)]
    falling = [_log_means(distances[:mode][::-1]) for mode in range(count)]
    one_mode = min(map(sum, zip(rising, falling, strict=True))) / distances.size
    entropy = np.log(distances).mean()
    if one_mode - entropy < _LEAST_GAPS:
        return scale
    return scale * float(np.exp(entropy - np.log(np.diff(ndtri(levels))).mean()))


def _log_means(distances: NDArray[np.float64]) -> float:
    """The sum of the logarithms of distances, averaged with the next ones until they rise."""
    blocks: list[tuple[float, int]] = []
    for distance in distances:
        total, size = float(distance), 1
        while blocks and blocks[-1][0] * size >= total * blocks[-1][1]:
            before, number = blocks.pop()
            total, size = total + before, size + number
        blocks.append((total, size))
    return float(sum(size * np.log(total / size) for total, size in blocks))


def shares_of_variance(
    family: AnyFamily, X: NDArray[np.float64], sample_weight: NDArray[np.float64] | None
) -> tuple[AnyFamily, ...]:
    """The records to choose from if the smoothing of this one is left to the data."""
    if not left_to_data(family.smoothing):
        return ()
    columns = [_distinct(column, sample_weight) for column in X.T]
    centre, scale = zip(*(_moments(*column) for column in columns), strict=True)
    entropic = tuple(
        _entropic_scale(*column, width) for column, width in zip(columns, scale, strict=True)
    )
    offered = [type(family)(share, centre, scale) for share in SHARES]
    if entropic != scale:
        offered.append(type(family)(SHARE_OF_ENTROPIC, centre, entropic))
    return _those_that_take(offered, X if sample_weight is None else X[sample_weight > 0.0])


def _those_that_take(records: list[AnyFamily], X: NDArray[np.float64]) -> tuple[AnyFamily, ...]:
    """Records whose scales suit these rows; an error says what is wrong if none does.

    Rows are many scales wide if nearly all weight is on a few that agree, or if gaps are far wider
    than clusters.
    """
    taking, refusal = [], None
    for record in records:
        try:
            record.check_rows(X)
        except ValueError as error:
            refusal = error
        else:
            taking.append(record)
    if refusal is not None and not taking:
        raise refusal
    return tuple(taking)


def scaled(X: NDArray[np.float64], centre: Columns, scale: Columns) -> NDArray[np.float64]:
    """Rows with their columns centred and divided by their scale, if there is one.

    Rows without weight and new rows may be anywhere: they are moved to where squares are finite.
    """
    if scale is None:
        return X
    with np.errstate(over="ignore"):
        values = (X - np.array(centre)) / np.array(scale)
    return np.clip(values, -_FARTHEST, _FARTHEST, out=values)


def unscaled(means: NDArray[np.float64], centre: Columns, scale: Columns) -> NDArray[np.float64]:
    """Means of scaled rows, in the units of the rows."""
    if scale is None:
        return means
    return means * np.array(scale) + np.array(centre)


def roots_of_counts(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """2√(x + ⅜), whose variance is about 1 for Poisson counts of any mean (Anscombe 1948)."""
    return 2.0 * np.sqrt(X + 0.375)


def check_scaling(centre: Columns, scale: Columns) -> None:
    """Reject a centre without a scale, different lengths, and scales that are not positive."""
    if centre is None and scale is None:
        return
    if centre is None or scale is None or len(centre) != len(scale):
        raise ValueError("centre and scale are given together, with one number for every column")
    if not (np.isfinite(centre).all() and np.isfinite(scale).all() and min(scale) > 0.0):
        raise ValueError("centre has to be finite, and scale positive and finite in every column")


def check_columns(X: NDArray[np.float64], scale: Columns) -> None:
    """Reject rows with another number of columns than there are scales."""
    if scale is not None and X.shape[1] != len(scale):
        raise ValueError(f"X has {X.shape[1]} columns, and the family has scales for {len(scale)}")


def left_to_data(smoothing: float | str) -> bool:
    """Whether the smoothing is "auto"; raises an error for any other word."""
    if isinstance(smoothing, str) and smoothing != "auto":
        raise ValueError(f"smoothing has to be a number or 'auto', got {smoothing!r}")
    return smoothing == "auto"


def amount(smoothing: float | str) -> float:
    """The smoothing as a number; one that is left to the data needs data."""
    if isinstance(smoothing, str):
        raise ValueError(
            "smoothing='auto' is derived from all rows of a tree: give a number here, or the "
            "family of such a tree, tree.family"
        )
    return smoothing


def describe(name: str, smoothing: float | str, scale: Columns) -> str:
    """The record in one line, without a number for each column."""
    columns = "" if scale is None else f", scaled in {len(scale)} columns"
    return f"{name}(smoothing={smoothing!r}{columns})"
