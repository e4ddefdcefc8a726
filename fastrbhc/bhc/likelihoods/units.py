"""Hyperparameters of the two Gaussian models: defaults from the data, and checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.observations import column_ranges
from fastrbhc.bhc._interface import given_or, require_positive

# The values of Lee & Choi (2015), section 4.1: r = 0.1 and ν = d + 6.
_STRENGTH, DEGREES_BEYOND = 0.1, 6.0

# k in Ψ = kS, which the paper tunes for each data set and does not print. Six sets drawn as in its
# Table 2, 1,000 × 3 and 2,000 × 6, had the largest evidence at 0.3 in a grid of factors of three,
# and clusters nearly as good at 0.1; at 1 they were merged.
_SCALE_FACTOR = 0.2

# Added to the covariance, as a share of the mean variance: a column may be constant, and there may
# be more columns than rows.
_RIDGE = 1e-6

# Products of two squares of larger values would overflow.
_FARTHEST = 1e60


def with_gaussian_defaults(
    model: Any,
    X: NDArray[np.float64],
    degrees: float,
    spread_of: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> Any:
    """The model with open fields from the data; Ψ is a multiple of their spread."""
    factor, scale = model.scale_factor, model.scale
    if scale is None:
        factor = given_or(factor, _SCALE_FACTOR)
        scale = factor * spread_of(X)
    return model._replace(
        mean=given_or(model.mean, X.mean(axis=0)),
        strength=given_or(model.strength, _STRENGTH),
        degrees=given_or(model.degrees, degrees),
        scale_factor=factor,
        scale=given_or(scale, None),
    )


def check_gaussian(model: Any, n_features: int) -> None:
    """Reject hyperparameters out of range; those on which the models differ are left to them."""
    _check_mean(model.mean, n_features)
    require_positive("strength", model.strength)
    require_positive("degrees", model.degrees)
    if model.scale_factor is not None:
        require_positive("scale_factor", model.scale_factor)


def middle_of(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """The middle of each column: near the data, so that subtracting it loses nothing."""
    lowest, highest = column_ranges(X)
    return 0.5 * lowest + 0.5 * highest


def covariance_of(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """The covariance of the rows, with a small multiple of I added."""
    covariance = np.atleast_2d(np.cov((X - middle_of(X)).T, bias=True))
    mean_variance = float(covariance.diagonal().mean())
    ridge = _RIDGE * mean_variance if mean_variance > 0.0 else 1.0
    result: NDArray[np.float64] = covariance + ridge * np.eye(X.shape[1])
    return result


def variances_of(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """The variance of each column, with a little added where there is none."""
    variances = (X - middle_of(X)).var(axis=0)
    mean_variance = float(variances.mean())
    result: NDArray[np.float64] = variances + (
        _RIDGE * mean_variance if mean_variance > 0.0 else 1.0
    )
    return result


def _check_mean(mean: Any, n_features: int) -> None:
    """Reject a prior mean that is not finite, or does not have one value per column."""
    given = np.asarray(mean, np.float64)
    if given.ndim and given.shape != (n_features,):
        raise ValueError(f"mean has shape {given.shape}, expected ({n_features},)")
    if not np.isfinite(given).all():
        raise ValueError("mean contains NaN or infinity")


def reach_of(rows: NDArray[np.float64], prior_mean: NDArray[np.float64]) -> float:
    """The largest number among rows and prior mean; its square has to be finite."""
    reach = max(float(np.abs(rows).max()), float(np.abs(prior_mean).max()))
    if not reach < _FARTHEST:
        raise ValueError(
            f"the data extend over {reach:.3g} times the scale of the prior, and squares of that "
            "overflow: choose a larger scale"
        )
    return reach
