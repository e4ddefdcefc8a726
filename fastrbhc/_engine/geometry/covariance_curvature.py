"""φ″ of full covariances, along the difference of two clusters."""

from __future__ import annotations

import numpy as np

from fastrbhc._engine.clusters.record import difference
from fastrbhc._engine.geometry.contract import n_features
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.math.cholesky import (
    PANEL,
    RECIPROCAL_ROOT,
    factor_rows,
    factor_rows_precisely,
)


@kernel
def curvature_by_cholesky(geometry, clusters, i, j, centre, work, precise):
    """φ″ along (u, U), the difference of mean and second moment: uᵀM⁻¹u + ½ tr((M⁻¹M′)²).

    M = Σ + εI and the mean x are those of the centre, and M′ = U − uxᵀ − xuᵀ. With a and b the
    means of the two as seen from x, that is Σ₁ − Σ₀ + ½(u(a+b)ᵀ + (a+b)uᵀ), where nothing large
    cancels. The trace is the sum of squares of L⁻¹M′L⁻ᵀ, LLᵀ = M. NaN if floats are not precise
    enough for L.
    """
    d, scatter = n_features(geometry, clusters), clusters.scatter
    w0, w1, weight = clusters.weights[i], clusters.weights[j], clusters.weights[centre]
    ridge = weight * geometry.ridge
    for first in range(0, d, PANEL):  # of weight·M, as scatter is not divided
        if precise:
            factor_rows_precisely(scatter, centre, -1, d, first, ridge, work)
        elif not factor_rows(scatter, centre, -1, d, first, ridge, work):
            return np.nan
    matrix = work[d:]  # what stood there was for the factor alone
    for k in range(d):
        step = difference(clusters, i, j, k)
        both = difference(clusters, centre, i, k) + difference(clusters, centre, j, k)
        work[k, d], work[k, d + 1] = step, both
        for m in range(k + 1):
            entry = k * (k + 1) // 2 + m
            of_means = 0.5 * (step * work[m, d + 1] + both * work[m, d])
            matrix[k, m] = (scatter[j, entry] / w1 - scatter[i, entry] / w0) + of_means
            matrix[m, k] = matrix[k, m]
    mahalanobis, squares = 0.0, 0.0
    for k in range(d):
        for m in range(k):
            work[k, d] -= work[k, m] * work[m, d]
            for column in range(d):
                matrix[k, column] -= work[k, m] * matrix[m, column]
        work[k, d] *= work[k, d + RECIPROCAL_ROOT]
        mahalanobis += work[k, d] * work[k, d]
        for column in range(d):
            matrix[k, column] *= work[k, d + RECIPROCAL_ROOT]
    for row in range(d):
        for k in range(d):
            value = matrix[row, k]
            for m in range(k):
                value -= work[k, m] * matrix[row, m]
            matrix[row, k] = value * work[k, d + RECIPROCAL_ROOT]
            squares += matrix[row, k] * matrix[row, k]
    return weight * mahalanobis + 0.5 * (weight * weight) * squares
