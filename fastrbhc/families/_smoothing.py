"""The paper's two smoothings, as one affine map of the mean statistic.

Some φ are infinite, or have an infinite slope, at the boundary of their domain, where
single observations often lie (a count of zero, one point's covariance). Lee & Choi
replace φ(t) by φ₀(t) = φ((1−α)t + αγ), which contracts the domain towards a point γ
inside it, or, where the domain is a cone, by φ₁(t) = φ(t + αγ), which shifts it.

Both are t ↦ scale·t + offset. They are applied when a dissimilarity is evaluated and
not to the data: x + 0.01 would round away the last digits of a large count x, and with
them the difference of two such counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.observations import column_ranges

# Differences smaller than this share of the smoothing: their squares would underflow.
_NEGLIGIBLE = 1e-120


class Smoothing(NamedTuple):
    """The map t ↦ scale·t + offset, the same for every column."""

    scale: float
    offset: float


NONE = Smoothing(1.0, 0.0)


def contraction(amount: float, towards: float) -> Smoothing:
    """φ₀: move every mean towards an inner point, by the share ``amount`` of the way.

    Parameters
    ----------
    amount : float
        α, between 0 and 1.
    towards : float
        γ, the same in every column.

    Returns
    -------
    Smoothing

    Examples
    --------
    >>> from fastrbhc.families import contraction
    >>> contraction(0.5, towards=0.25)
    Smoothing(scale=0.5, offset=0.125)
    """
    return Smoothing(1.0 - amount, amount * towards)


def shift(amount: float, along: float = 1.0) -> Smoothing:
    """φ₁: move every mean by ``amount`` in a direction that stays inside the cone.

    Parameters
    ----------
    amount : float
        α.
    along : float, default=1.0
        γ, the same in every column.

    Returns
    -------
    Smoothing

    Examples
    --------
    >>> from fastrbhc.families import shift
    >>> shift(0.01)
    Smoothing(scale=1.0, offset=0.01)
    """
    return Smoothing(1.0, amount * along)


def check_contraction(smoothing: float) -> None:
    """Reject an amount of `contraction` outside of [0, 1)."""
    if not 0.0 <= smoothing < 1.0:
        raise ValueError(f"smoothing has to lie in [0, 1), got {smoothing}")


def check_shift(smoothing: float) -> None:
    """Reject an amount of `shift` that is negative, or larger than values may be."""
    if not 0.0 <= smoothing <= 1e120:
        raise ValueError(f"smoothing has to be at most 1e120 and not negative, got {smoothing}")


def check_rows_beside_shift(X: NDArray[np.float64], smoothing: float) -> None:
    """Reject rows whose differences vanish beside the smoothing: all heights would be 0."""
    if smoothing == 0.0 or np.abs(X[0] - X[-1]).max() >= _NEGLIGIBLE * smoothing:
        return
    lowest, highest = column_ranges(X)
    width = (highest - lowest).max()
    if 0.0 < width < _NEGLIGIBLE * smoothing:
        raise ValueError(
            f"The columns are at most {width:.3g} wide, and differences vanish beside the "
            f"smoothing {smoothing:g}. Choose a smaller smoothing, or measure in a smaller unit."
        )


def check_shift_of_covariance(smoothing: float, what: str) -> None:
    """Reject an amount that does not make covariances, or variances, of points positive."""
    if not 0.0 < smoothing <= 1e245:
        raise ValueError(
            f"smoothing has to be positive and at most 1e245, got {smoothing}: "
            f"without it a single point has no {what}"
        )
