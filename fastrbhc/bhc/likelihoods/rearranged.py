"""A likelihood of other columns than those of the rows: some of them, or one for each level."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.scratch import ScratchShapes
from fastrbhc._engine.geometry.contract import Storage
from fastrbhc._engine.records import record, replaced
from fastrbhc.bhc._interface import join, log_marginal, summarise, upper_bounds


@record
class Rearranged:
    """ℓ of an inner likelihood, whose rows are made of those that are observed."""

    inner: Any
    columns: NDArray[np.int64]  # positions of the columns that are taken
    levels: NDArray[np.int64]  # the number of levels of each; 0 for a column of numbers

    def observe(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        rows: NDArray[np.float64] = self.inner.observe(rearranged(X, self.columns, self.levels))
        return rows

    def for_new_rows(self, new: NDArray[np.float64]) -> Rearranged:
        rows = rearranged(new, self.columns, self.levels)
        changed: Rearranged = replaced(self, inner=self.inner.for_new_rows(rows))
        return changed

    def storage(self, n_columns: int) -> Storage:
        stored: Storage = self.inner.storage(n_columns)
        return stored

    def scratch_shapes(self, n_columns: int) -> ScratchShapes:
        shapes: ScratchShapes = self.inner.scratch_shapes(n_columns)
        return shapes

    def join(likelihood, clusters, i, j):
        join(likelihood.inner, clusters, i, j)

    def summarise(likelihood, clusters, i, scratch):
        return summarise(likelihood.inner, clusters, i, scratch)

    def log_marginal(likelihood, clusters, i, j, floor, scratch):
        return log_marginal(likelihood.inner, clusters, i, j, floor, scratch)

    def upper_bounds(likelihood, clusters, i, start, stop, scratch):
        upper_bounds(likelihood.inner, clusters, i, start, stop, scratch)


def rearranged(
    X: NDArray[np.float64], columns: NDArray[np.int64], levels: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The columns as they are, or a 1 in the column of each code, and none for other codes."""
    parts = [
        X[:, [column]] if count == 0 else (X[:, [column]] == np.arange(count)).astype(np.float64)
        for column, count in zip(columns.tolist(), levels.tolist(), strict=True)
    ]
    return np.ascontiguousarray(np.hstack(parts))
