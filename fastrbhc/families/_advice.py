"""Sentences for rows that do not suit a family: what several families say in the same words.

Each function returns a list, empty if there is nothing to say. A warning about ordinary rows would
be worse than none, so in doubt they are silent.

Widths decide most cases, in a fraction of the time that variances take, which matters for trees of
few rows: the variance of n values of width w is between w²/2n and w²/4.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fastrbhc.families._scaling import amount, left_to_data

# Standard deviations of columns, the largest over the smallest.
_MOST_UNEQUAL = 1e3
# Fewer rows say little about the kind of their values: examples typed by hand are whole numbers.
_FEWEST_ROWS = 20
# Counts have many zeros, and a tail: the largest value is rare beside them. A scale of answers
# from 0 to 4 or the cells of a grid have no tail.
_LEAST_ZEROS, _ZEROS_PER_LARGEST = 0.05, 4.0
# The brightest pixel of a picture, if brightness is a byte.
_BYTES = (128.0, 255.0)

Rows = NDArray[np.float64]
Names = list[str] | None


def smoothing_too_large(X: Rows, smoothing: float) -> list[str]:
    """For a smoothing of variances that is larger than all of them."""
    width = float((X.max(axis=0) - X.min(axis=0)).max())
    if width == 0.0 or width * width > 2.0 * len(X) * smoothing:
        return []
    largest = float(X.var(axis=0).max())
    if not largest < smoothing:
        return []
    return [
        f"the smoothing {smoothing:g} is larger than the variance of every column (largest "
        f"{largest:.2g}): all clusters look alike to it. Choose a smaller one, or "
        "smoothing='auto', which fits any scale"
    ]


def unequal_columns(X: Rows, names: Names, otherwise: str) -> list[str]:
    """For columns of very different width, with what to do if they are not to be scaled."""
    widths = X.max(axis=0) - X.min(axis=0)
    if widths.max() * math.sqrt(0.5 * len(X)) <= _MOST_UNEQUAL * widths.min():
        return []
    varied = np.flatnonzero(widths)
    if varied.size < 2:
        return []
    deviations = X.std(axis=0)[varied]
    low, high = int(deviations.argmin()), int(deviations.argmax())
    if not deviations[high] > _MOST_UNEQUAL * deviations[low]:
        return []
    wide, narrow = (_called(int(varied[place]), names) for place in (high, low))
    counting = " (columns count from 0)" if names is None else ""
    return [
        f"{wide} has a standard deviation of {deviations[high]:.3g} and {narrow} one of "
        f"{deviations[low]:.3g}{counting}: beside the one the other hardly matters. Scale the "
        f"columns first (sklearn.preprocessing.StandardScaler does), or {otherwise}"
    ]


def not_whole(X: Rows) -> list[str]:
    """For counts that are none."""
    wrong = X[np.rint(X) != X]
    if wrong.size == 0:
        return []
    return [
        f"this family is for counts, and X has values that are not whole, such as {wrong[0]:.6g}: "
        "their unit changes the clusters. For positive measurements there is "
        "family='exponential', for any others 'auto'"
    ]


def counts_among_measurements(X: Rows) -> list[str]:
    """For counts, or zeros and ones, that are taken for measurements."""
    if len(X) < _FEWEST_ROWS or not _is_whole(X[0]) or not _is_whole(X):
        return []
    lowest, largest = X.min(), X.max()
    if lowest != 0.0 or largest == 0.0:
        return []
    if largest == 1.0:
        return ["all values are 0 or 1, and the family is for measurements: try 'bernoulli'"]
    zeros, at_most = float(np.mean(X == 0.0)), float(np.mean(largest == X))
    is_picture = _BYTES[0] <= largest <= _BYTES[1]
    if is_picture or zeros < _LEAST_ZEROS or _ZEROS_PER_LARGEST * at_most > zeros:
        return []
    return [
        f"X looks like counts (whole numbers, {100 * zeros:.0f} % of them 0), and the family is "
        "for measurements: try 'poisson' if the totals of rows matter, 'multinomial' if only "
        "proportions do"
    ]


def _is_whole(values: Rows) -> bool:
    return bool((np.rint(values) == values).all())


def _called(column: int, names: Names) -> str:
    return f"column {column}" if names is None else f"column {names[column]!r}"


def advice_on_units(
    X: NDArray[np.float64], names: list[str] | None, smoothing: float | str, scaled: bool
) -> list[str]:
    """What to know of rows whose variances are smoothed by a number in the units of the rows."""
    if left_to_data(smoothing):
        return counts_among_measurements(X)
    if scaled:
        return []
    return [
        *smoothing_too_large(X, amount(smoothing)),
        *unequal_columns(X, names, "choose smoothing='auto', which fits any units"),
    ]
