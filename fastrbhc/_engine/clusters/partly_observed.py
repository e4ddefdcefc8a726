"""Rows some of whose cells are missing: every column has a weight of its own in every cluster.

A slot of such clusters stores 2d numbers where others store the d columns of a mean. The first half
holds the mean of each column over the rows in which it is observed, the second half the weight of
these rows. So whatever copies, moves, orders or boxes means does the same with the weights. The
mean of a column without any weight is a placeholder: a value of that column in another row.

In a product of families this holds for each block that has gaps. The numbers of a block stay
together, so that its geometry finds them in a view. A block without gaps has the d columns of a
mean, whose weight is that of the cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.observations import Observations
from fastrbhc._engine.clusters.record import merge_weights
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.math.double_double import add, weighted_mean

# Instead of the place of a column's weight: it is that of the cluster, or this is a weight itself.
_OF_THE_CLUSTER, _IS_A_WEIGHT = -1, -2


class PartlyObserved(Observations):
    """Rows with missing cells.

    ``means`` has twice as many columns as the rows: the values, 0 where they are missing, and then
    1 where they are observed and 0 elsewhere. So rows are equal if their values and the pattern of
    their missing cells are.

    ``blocks`` has the number of columns of each block, and whether it has gaps, if ``means`` is
    such only in some blocks of columns. If it is empty, all columns are one block with gaps.
    """

    @property
    def layout(self) -> tuple[tuple[int, bool], ...]:
        """The number of columns of each block, and whether it has gaps."""
        return self.blocks or ((self.means.shape[1] // 2, True),)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of columns."""
        return len(self.means), self.width

    @property
    def width(self) -> int:
        """The number of columns."""
        return sum(columns for columns, _ in self.layout)

    def bytes_per_row(self, sizes: Any) -> int:
        """The same as for other rows, and the weights of the columns with their further digits."""
        return super().bytes_per_row(sizes) + 16 * (self.means.shape[1] - self.width)

    @property
    def observed(self) -> NDArray[np.bool_]:
        """Whether each cell is observed."""
        found = [
            np.ones((len(self.means), values.stop - values.start), bool)
            if weights is None
            else self.means[:, weights] > 0.0
            for values, weights in self._places()
        ]
        return np.concatenate(found, axis=1)

    def slot_values(self) -> NDArray[np.float64]:
        """Means and weights of the columns, each row being a cluster by itself."""
        out = self.means.copy()
        for values, weights in self._places():
            if weights is not None:
                observed = self.means[:, weights] > 0.0
                lowest = np.where(observed, out[:, values], np.inf).min(axis=0, initial=np.inf)
                placeholders = np.where(np.isfinite(lowest), lowest, 0.0)
                out[:, values] = np.where(observed, out[:, values], placeholders)
                if self.weights is not None:
                    out[:, weights] *= self.weights[:, None]
        return out

    def centred_means(self) -> NDArray[np.float64]:
        """The values less the mean of their column; 0, the mean itself, where they are missing."""
        observed = self.observed
        values = np.concatenate([self.means[:, values] for values, _ in self._places()], axis=1)
        counts = np.maximum(observed.sum(axis=0), 1)
        return np.where(observed, values - values.sum(axis=0) / counts, 0.0)

    def places_of_weights(self) -> NDArray[np.int64]:
        """For each of the numbers of a row, where the weight of its column is: see `add_cells`."""
        places = np.full(self.means.shape[1], _OF_THE_CLUSTER)
        for values, weights in self._places():
            if weights is not None:
                places[values] = np.arange(weights.start, weights.stop)
                places[weights] = _IS_A_WEIGHT
        return places

    def _places(self) -> Iterator[tuple[slice, slice | None]]:
        """Where the values of each block are, and their weights if it has gaps."""
        start = 0
        for columns, gaps in self.layout:
            stop = start + columns
            yield slice(start, stop), slice(stop, stop + columns) if gaps else None
            start = stop + columns if gaps else stop


def partly_observed(rows: Observations, observed: NDArray[np.bool_]) -> PartlyObserved:
    """Rows whose missing cells were filled with any values, which are ignored from here on."""
    residuals = None
    if rows.residuals is not None:
        residuals = np.hstack([np.where(observed, rows.residuals, 0.0), np.zeros(observed.shape)])
    means = np.hstack([np.where(observed, rows.means, 0.0), observed.astype(np.float64)])
    return PartlyObserved(means, residuals, rows.weights)


def side_by_side(parts: Sequence[Observations]) -> PartlyObserved:
    """Rows of blocks of columns, some of them with gaps; they have no weights yet."""
    residuals = None
    if any(part.residuals is not None for part in parts):
        residuals = np.hstack(
            [
                np.zeros(part.means.shape) if part.residuals is None else part.residuals
                for part in parts
            ]
        )
    blocks = tuple((part.width, isinstance(part, PartlyObserved)) for part in parts)
    return PartlyObserved(np.hstack([part.means for part in parts]), residuals, blocks=blocks)


@kernel
def add_cells(clusters, i, weight, values, residuals, places):
    """Add the observed cells of a row to the columns of slot i, in double-double.

    ``places`` is what `PartlyObserved.places_of_weights` returns. The weight of the cluster itself
    is not changed.
    """
    means, rests, before = clusters.means, clusters.residuals, clusters.weights[i]
    for k in range(values.size):
        if places[k] >= 0:
            if values[places[k]] > 0.0:
                _add_to_column(clusters, i, k, places[k], weight, 0.0, values[k], residuals[k])
        elif places[k] == _OF_THE_CLUSTER:
            if before == 0.0:
                means[k, i], rests[k, i] = values[k], residuals[k]
            else:
                means[k, i], rests[k, i] = weighted_mean(
                    before, means[k, i], rests[k, i], weight, values[k], residuals[k]
                )


@kernel
def merge_columns(clusters, i, j):
    """Weights, means and rank of the union into slot i; slot j becomes free."""
    means, residuals = clusters.means, clusters.residuals
    columns = means.shape[0] // 2
    for k in range(columns):
        weight, rest = means[columns + k, j], residuals[columns + k, j]
        if weight > 0.0:
            _add_to_column(clusters, i, k, columns + k, weight, rest, means[k, j], residuals[k, j])
    merge_weights(clusters, i, j)


@kernel
def _add_to_column(clusters, i, k, own, weight, rest, mean, residual):
    """Add a mean with a positive weight to column k of slot i, whose weight is at ``own``.

    ``rest`` are further digits of the weight.
    """
    means, residuals = clusters.means, clusters.residuals
    if means[own, i] == 0.0:
        means[k, i], residuals[k, i] = mean, residual
    else:
        means[k, i], residuals[k, i] = weighted_mean(
            means[own, i], means[k, i], residuals[k, i], weight, mean, residual
        )
    means[own, i], residuals[own, i] = add(means[own, i], residuals[own, i], weight, rest)
