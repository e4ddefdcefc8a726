"""Rows some of whose cells are missing: every column has a weight of its own in every cluster.

A slot of such clusters stores 2d numbers where others store the d columns of a mean. The first half
holds the mean of each column over the rows in which it is observed, the second half the weight of
these rows. So whatever copies, moves, orders or boxes means does the same with the weights. The
mean of a column without any weight is a placeholder: a value of that column in another row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.observations import Observations
from fastrbhc._engine.clusters.record import merge_weights
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.math.double_double import add, weighted_mean


class PartlyObserved(Observations):
    """Rows with missing cells.

    ``means`` has twice as many columns as the rows: the values, 0 where they are missing, and then
    1 where they are observed and 0 elsewhere. So rows are equal if their values and the pattern of
    their missing cells are.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of columns."""
        n, doubled = self.means.shape
        return n, doubled // 2

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.means.shape[1] // 2

    def bytes_per_row(self, sizes: Any) -> int:
        """The same as for other rows, and the weights of the columns with their further digits."""
        return super().bytes_per_row(sizes) + 16 * self.width

    @property
    def observed(self) -> NDArray[np.bool_]:
        """Whether each cell is observed."""
        return self.means[:, self.width :] > 0.0

    def slot_values(self) -> NDArray[np.float64]:
        """Means and weights of the columns, each row being a cluster by itself."""
        values, d = self.means.copy(), self.width
        lowest = np.where(self.observed, values[:, :d], np.inf).min(axis=0, initial=np.inf)
        placeholders = np.where(np.isfinite(lowest), lowest, 0.0)
        values[:, :d] = np.where(self.observed, values[:, :d], placeholders)
        if self.weights is not None:
            values[:, d:] *= self.weights[:, None]
        return values

    def centred_means(self) -> NDArray[np.float64]:
        """The values less the mean of their column; 0, the mean itself, where they are missing."""
        values, observed = self.means[:, : self.width], self.observed
        counts = np.maximum(observed.sum(axis=0), 1)
        return np.where(observed, values - values.sum(axis=0) / counts, 0.0)


def partly_observed(rows: Observations, observed: NDArray[np.bool_]) -> PartlyObserved:
    """Rows whose missing cells were filled with any values, which are ignored from here on."""
    residuals = None
    if rows.residuals is not None:
        residuals = np.hstack([np.where(observed, rows.residuals, 0.0), np.zeros(observed.shape)])
    means = np.hstack([np.where(observed, rows.means, 0.0), observed.astype(np.float64)])
    return PartlyObserved(means, residuals, rows.weights)


@kernel
def add_cells(clusters, i, weight, values, residuals):
    """Add the observed cells of a row to the columns of slot i, in double-double."""
    columns = values.size // 2
    for k in range(columns):
        if values[columns + k] > 0.0:
            _add_to_column(clusters, i, k, weight, 0.0, values[k], residuals[k])


@kernel
def merge_columns(clusters, i, j):
    """Weights, means and rank of the union into slot i; slot j becomes free."""
    means, residuals = clusters.means, clusters.residuals
    columns = means.shape[0] // 2
    for k in range(columns):
        weight, rest = means[columns + k, j], residuals[columns + k, j]
        if weight > 0.0:
            _add_to_column(clusters, i, k, weight, rest, means[k, j], residuals[k, j])
    merge_weights(clusters, i, j)


@kernel
def _add_to_column(clusters, i, k, weight, rest, mean, residual):
    """Add a mean with a positive weight to column k of slot i; ``rest`` are further digits."""
    means, residuals = clusters.means, clusters.residuals
    own = means.shape[0] // 2 + k
    if means[own, i] == 0.0:
        means[k, i], residuals[k, i] = mean, residual
    else:
        means[k, i], residuals[k, i] = weighted_mean(
            means[own, i], means[k, i], residuals[k, i], weight, mean, residual
        )
    means[own, i], residuals[own, i] = add(means[own, i], residuals[own, i], weight, rest)
