"""Scaled columns, so that one smoothing means the same in every column and every unit.

The paper's φ₁(t) = φ(t + αγ) leaves the direction γ of the shift open. For covariances it is the
identity if the columns are taken as they are. With γ the diagonal matrix of the variances of the
columns, α is a share of them. That is the same as dividing each column by its standard deviation
first, because all other terms of d are unaffected by such a scaling.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

# Shares of the variance to choose a smoothing from.
SHARES = (0.1, 0.3, 1.0)
# Scaled values beyond this are moved here. Those of rows with weight are far below it.
_FARTHEST = 1e100

Columns = tuple[float, ...] | None
AnyFamily = TypeVar("AnyFamily", bound=Any)


def centre_and_scale(
    X: NDArray[np.float64], sample_weight: NDArray[np.float64] | None
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The mean and the standard deviation of each column; 1 for the latter if it is constant."""
    centres, scales = zip(*(_moments(column, sample_weight) for column in X.T), strict=True)
    return centres, scales


def _moments(
    column: NDArray[np.float64], sample_weight: NDArray[np.float64] | None
) -> tuple[float, float]:
    """Sums over the distinct values in ascending order, each with the weight of all its rows.

    So another order of the rows, or copies in place of weights, change no bit. They would decide
    ties between dissimilarities of scaled rows otherwise.
    """
    if sample_weight is not None:  # weights of one value are added up in ascending order too
        order = np.lexsort((sample_weight, column))
        column, sample_weight = column[order], sample_weight[order]
    values, place = np.unique(column, return_inverse=True)
    weights = np.bincount(place, sample_weight)
    values, weights = values[weights > 0], weights[weights > 0]
    shares = weights / weights.sum()
    centre = (shares * values).sum()
    width = np.abs(values - centre).max()
    if values.size == 1 or width == 0.0:
        return float(values[0]), 1.0
    # Squares of small numbers would underflow.
    scale = width * np.sqrt((shares * ((values - centre) / width) ** 2).sum())
    return float(centre), float(scale) or 1.0  # 0 if it underflows


def shares_of_variance(
    family: AnyFamily, X: NDArray[np.float64], sample_weight: NDArray[np.float64] | None
) -> tuple[AnyFamily, ...]:
    """The records to choose from if the smoothing of this one is left to the data."""
    if not left_to_data(family.smoothing):
        return ()
    columns = centre_and_scale(X, sample_weight)
    return tuple(type(family)(share, *columns) for share in SHARES)


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
