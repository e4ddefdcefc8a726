"""Rotation of the points to their principal axes, for rotation-invariant geometries.

Bounds from the leading columns are tighter if these columns have most of the variance, which is
largest along the principal axes. The dissimilarity must not change: points are rotated in
double-double arithmetic, by a matrix that is orthogonal to about 1e-28, so that even clusters that
are flat to twenty digits remain as flat as they were. Everything runs in kernels of this package,
over the points in a fixed order: BLAS and LAPACK round differently with other numbers of threads,
and a tie might then be decided differently.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.observations import Observations, column_ranges
from fastrbhc._engine.geometry.contract import blocks_of, storage
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.math.double_double import add, two_product, two_sum

# Points are in hash order, so the first of them are a sample that determines the axes well enough.
_SAMPLE = 10_000

# The most sweeps of Jacobi's method; it converges quadratically, after about six.
_SWEEPS = 12


# Finding the axes costs about as much as the factorisations of a hundred merges.
_FEW_POINTS = 100


def rotate_to_principal_axes(geometry: Any, points: Observations) -> Observations:
    """The points along their principal axes, if the geometry benefits from it."""
    n, n_features = points.shape
    if isinstance(points, Observations):  # statistics are more than columns if cells are missing
        n_features = points.means.shape[1]
    blocks = blocks_of(geometry, n_features)
    if blocks:
        return _rotate_blocks(blocks, points)
    wanted = storage(geometry, n_features).principal and n >= _FEW_POINTS
    return along_principal_axes(points) if wanted else points


def _rotate_blocks(blocks: tuple[tuple[Any, int], ...], points: Observations) -> Observations:
    """The points with each block of columns along its principal axes, where that is of use."""
    parts, start, rotated = [], 0, False
    for geometry, columns in blocks:
        stop = start + columns
        before = Observations(
            np.ascontiguousarray(points.means[:, start:stop]),
            None if points.residuals is None else points.residuals[:, start:stop].copy(),
        )
        parts.append(rotate_to_principal_axes(geometry, before))
        rotated |= parts[-1] is not before
        start = stop
    if not rotated:
        return points
    residuals = [
        np.zeros(part.shape) if part.residuals is None else part.residuals for part in parts
    ]
    return points._replace(
        means=np.concatenate([part.means for part in parts], axis=1),
        residuals=np.concatenate(residuals, axis=1),
    )


def along_principal_axes(points: Observations) -> Observations:
    """The same points relative to the middle of their range, the widest axis first."""
    lowest, highest = column_ranges(points.means)
    middle, width = 0.5 * lowest + 0.5 * highest, float((highest - lowest).max())
    if not 0.0 < width < np.inf:
        return points
    axes = _axes(points.means[:_SAMPLE], middle, width)
    if not np.isfinite(axes).all():
        return points
    residuals = np.zeros((1, middle.size)) if points.residuals is None else points.residuals
    means, rests = np.empty(points.means.shape), np.empty(points.means.shape)
    _turn(points.means, residuals, middle, axes, _defects(axes), means, rests)
    return points._replace(means=means, residuals=rests)


def _axes(means: NDArray[np.float64], middle: NDArray[np.float64], width: float) -> Any:
    """Principal axes in the columns of a matrix, in order of their variance."""
    covariance = _covariance(means, middle, width)
    axes = np.eye(middle.size)
    _diagonalise(covariance, axes)
    return np.ascontiguousarray(axes[:, np.argsort(-covariance.diagonal(), kind="stable")])


def _covariance(
    means: NDArray[np.float64], middle: NDArray[np.float64], width: float
) -> NDArray[np.float64]:
    """Covariance in units of the width, which keeps squares from overflowing."""
    n, d = means.shape
    total = np.zeros((d, d))
    _add_products(means, middle, width, np.zeros(d), np.empty(d), total)
    return total / n


@kernel
def _add_products(means, middle, width, average, row, total):
    n, d = means.shape
    for i in range(n):
        for k in range(d):
            average[k] += (means[i, k] - middle[k]) / width / n
    for i in range(n):
        for k in range(d):
            row[k] = (means[i, k] - middle[k]) / width - average[k]
        for k in range(d):
            for m in range(d):
                total[k, m] += row[k] * row[m]


@kernel
def _diagonalise(matrix, axes):
    """Jacobi's eigenvalue method: eliminate one entry after another, in cyclic order."""
    d = matrix.shape[0]
    for _ in range(_SWEEPS):
        outside, trace = 0.0, 0.0
        for k in range(d):
            trace += matrix[k, k]
            for m in range(k):
                outside += abs(matrix[k, m])
        if outside <= 1e-14 * trace:  # axes need not be exact, only orthogonal
            return
        for k in range(1, d):
            for m in range(k):
                if matrix[k, m] != 0.0:
                    theta = 0.5 * (matrix[k, k] - matrix[m, m]) / matrix[k, m]
                    tangent = 1.0 / (abs(theta) + math.sqrt(1.0 + theta * theta))
                    if theta < 0.0:
                        tangent = -tangent
                    cosine = 1.0 / math.sqrt(1.0 + tangent * tangent)
                    _rotate(matrix, axes, m, k, cosine, tangent * cosine)


@kernel
def _rotate(matrix, axes, m, k, cosine, sine):
    """Rotate columns m and k of both, and rows m and k of the matrix."""
    for row in range(matrix.shape[0]):
        left, right = matrix[row, m], matrix[row, k]
        matrix[row, m], matrix[row, k] = cosine * left - sine * right, sine * left + cosine * right
        left, right = axes[row, m], axes[row, k]
        axes[row, m], axes[row, k] = cosine * left - sine * right, sine * left + cosine * right
    for column in range(matrix.shape[0]):
        left, right = matrix[m, column], matrix[k, column]
        matrix[m, column] = cosine * left - sine * right
        matrix[k, column] = sine * left + cosine * right


def _defects(axes: NDArray[np.float64]) -> NDArray[np.float64]:
    """The correction that makes the axes Q orthogonal: −½ Q(QᵀQ − I), from exact products."""
    defects = np.zeros_like(axes)
    _find_defects(axes, np.empty_like(axes), defects)
    return defects


@kernel
def _find_defects(axes, excess, defects):
    d = axes.shape[0]
    for k in range(d):
        for m in range(d):
            total, rest = (-1.0 if k == m else 0.0), 0.0
            for row in range(d):
                product, error = two_product(axes[row, k], axes[row, m])
                total, rest = add(total, rest, product, error)
            excess[k, m] = total + rest
    for row in range(d):
        for k in range(d):
            for m in range(d):
                defects[row, m] -= 0.5 * axes[row, k] * excess[k, m]


@kernel
def _turn(means, residuals, middle, axes, defects, turned, rests):
    """(x − middle)ᵀ(Q + defects) for every row; residuals has one row if all are zero."""
    n, d = means.shape
    for i in range(n):
        for k in range(d):
            turned[i, k], rests[i, k] = 0.0, 0.0
        for m in range(d):
            place, rest = two_sum(means[i, m], -middle[m])
            place, rest = two_sum(place, rest + residuals[min(i, residuals.shape[0] - 1), m])
            for k in range(d):
                product, error = two_product(place, axes[m, k])
                error += place * defects[m, k] + rest * axes[m, k]
                turned[i, k], rests[i, k] = add(turned[i, k], rests[i, k], product, error)
