"""The methods of a family that defines none of its own; see `_interface` for what they mean."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from fastrbhc._engine.clusters.observations import Observations
from fastrbhc._engine.clusters.sparse_rows import SparseObservations, sparse_rows
from fastrbhc._engine.geometry.separable import separable_geometry
from fastrbhc.families._scaling import centre_and_scale, scaled
from fastrbhc.families._smoothing import NONE, Smoothing


def _no_smoothing(self: Any, n_features: int) -> Smoothing:
    return NONE


def _one_per_column(self: Any, n_features: int) -> int:
    return n_features


def _no_draw(self: Any, X: Any, rng: np.random.Generator) -> None:
    """No rows: other references have to do."""


def _rows_as_they_are(self: Any, X: Any) -> Observations | SparseObservations:
    return sparse_rows(X) if issparse(X) else Observations(X)


def _unchanged(self: Any, values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values


def _standardised(self: Any, X: NDArray[np.float64]) -> NDArray[np.float64]:
    return scaled(X, *centre_and_scale(X, None))


def _no_candidates(self: Any, X: Any, sample_weight: Any) -> tuple[()]:
    return ()


def _no_advice(self: Any, X: Any, names: Any) -> tuple[()]:
    return ()


def _no_remedy(self: Any, dispersion: float) -> str:
    return ""


def _no_check(self: Any, X: Any = None) -> None:
    """Accept all parameters, and all rows in the domain."""


DEFAULTS: dict[str, Any] = {
    "base": None,
    "smoothing_map": _no_smoothing,
    "n_parameters": _one_per_column,
    "observe": _rows_as_they_are,
    "in_units_of_rows": _unchanged,
    "coordinates": _standardised,
    "candidates": _no_candidates,
    "draw_one_cluster": _no_draw,
    "advice": _no_advice,
    "if_overdispersed": _no_remedy,
    "check": _no_check,
    "check_rows": _no_check,
    "geometry": separable_geometry,
}
