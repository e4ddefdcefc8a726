"""Points in coordinates whose Euclidean distances are about d, to find near ones quickly.

Libraries that find neighbours are quick with Euclidean distances. For points that are near,
d ≈ (n₀n₁/2n)·(t₁ − t₀)ᵀφ″(t₁ − t₀). If φ is a sum over columns, that is a squared distance of the
curve lengths ∫√φ″ in each column: roots of counts, logarithms of waiting times. The integral is
tabulated, so that any family has it. For the full covariance, d of two points grows with their
distance, whatever that is. For the diagonal one it does not quite: large differences in one column
count less in d.

Weights are not considered: they are for neighbours to choose from, and d decides among these.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, issparse

from fastrbhc._engine.clusters.sparse_rows import SparseObservations
from fastrbhc._engine.geometry.contract import storage
from fastrbhc.families._interface import Family

# Places at which the integral is tabulated, evenly and by ratios, and the smallest ratio.
_TABULATED, _SMALLEST = 2_000, 1e-9
# Rows that are converted at once.
_TOGETHER = 1_000


def places_of(family: Family, points: Any) -> Any:
    """The points in such coordinates (n, p), single precision: an array, or CSR if any are sparse.

    Parameters
    ----------
    family : record
        A family.
    points : Observations or SparseObservations
        What ``family.observe`` returned, without missing cells.

    Returns
    -------
    ndarray or csr_array of float32

    Examples
    --------
    >>> import numpy as np
    >>> from fastrbhc.families import Poisson
    >>> from fastrbhc.families._places import places_of
    >>> counts = np.array([[0.0], [1.0], [4.0], [9.0]])
    >>> places_of(Poisson(smoothing=0.0001), Poisson().observe(counts)).ravel().round(1)
    array([-1. , -0.3,  0.3,  1. ], dtype=float32)
    """
    parts = _parts(family, points)
    if not any(map(issparse, parts)):
        return _centred(parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1))
    joined = hstack([csr_array(part) for part in parts], format="csr")
    joined.data = joined.data / _width(joined.data)
    return csr_array(joined.astype(np.float32))


def _centred(places: NDArray[np.float64]) -> NDArray[np.float32]:
    """The places about their mean, some rows at a time: whole copies would wait for memory."""
    centre = places.mean(axis=0)
    width = _width(np.array([places.max(axis=0) - centre, places.min(axis=0) - centre]))
    centred = np.empty(places.shape, np.float32)
    for start in range(0, len(places), _TOGETHER):
        rows = slice(start, start + _TOGETHER)
        centred[rows] = (places[rows] - centre) / width
    return centred


def _width(values: NDArray[np.float64]) -> float:
    """The largest value, so that squares in single precision are neither 0 nor infinite."""
    return float(np.abs(values).max(initial=0.0)) or 1.0


def _parts(family: Any, points: Any) -> list[Any]:
    """The coordinates of each block of columns."""
    blocks = getattr(family, "blocks", None)
    if blocks is None:
        return [_of_block(family, points)]
    if len(blocks) == 1:
        return _parts(blocks[0].family, points)
    parts, start, sparse = [], 0, iter(points.sparse)
    for block, columns in zip(blocks, family.widths(), strict=True):
        if storage(block.family.geometry(columns), columns).sparse_columns:
            part = _of_block(block.family, next(sparse))
        else:
            dense = points._replace(
                means=points.means[:, start : start + columns], residuals=None, sparse=()
            )
            part = _of_block(block.family, dense)
            start += columns
        parts.append(part * np.sqrt(block.weight))
    return parts


def _of_block(family: Family, points: Any) -> Any:
    if isinstance(points, SparseObservations):
        means = points.centred_means().copy()
        # What is not stored is 0, and has to be 0 in the new coordinates.
        values = _curve_lengths(family, np.append(means.data, 0.0), points.shape[1])
        means.data = values[:-1] - values[-1]
        return means
    return _curve_lengths(family, points.means, points.shape[1])


def _curve_lengths(
    family: Family, means: NDArray[np.float64], n_columns: int
) -> NDArray[np.float64]:
    """∫√φ″ up to each of the means."""
    scale, offset = family.smoothing_map(n_columns)
    if not family.separable:
        return means / np.sqrt(offset or 1.0)
    kind: Any = type(family)
    second = kind.second_derivative
    lowest, highest = float(means.min()), float(means.max())
    if family.quadratic or lowest == highest:  # √φ″ is the same everywhere
        with np.errstate(all="ignore"):
            root = np.sqrt(second(family, scale * highest + offset))
            return means * (scale * float(np.nan_to_num(root, nan=1.0, posinf=1.0)))
    values = scale * means + offset
    lowest, highest = float(values.min()), float(values.max())
    grid = np.linspace(lowest, highest, _TABULATED)
    if lowest >= 0.0:
        least = max(lowest, _SMALLEST * highest)
        grid = np.unique(np.append(grid, np.geomspace(least, highest, _TABULATED)))
    with np.errstate(all="ignore"):
        roots = np.sqrt([second(family, place) for place in grid])
    finite = np.isfinite(roots)
    if not finite.any():
        return values
    roots = np.interp(grid, grid[finite], roots[finite])
    lengths = np.append(0.0, np.cumsum(0.5 * (roots[1:] + roots[:-1]) * np.diff(grid)))
    return np.interp(values, grid, lengths)
