"""The likelihood of a product of models, each with columns of its own.

Columns of different blocks are independent given the cluster, so ℓ is the sum over the blocks. As
in `fastrbhc._engine.geometry.product`, more than two blocks are a pair of the first one and of all
others, and blocks are views of the clusters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.scratch import BLOCK, ScratchShapes
from fastrbhc._engine.geometry.contract import Storage
from fastrbhc._engine.records import record, replaced
from fastrbhc.bhc._interface import join, log_marginal, summarise, upper_bounds

# Covers the rounding of a sum of two terms, as a share of them.
_ROUNDING = 1e-15


@record
class Both:
    """ℓ = ℓ₀ + ℓ₁ for two blocks of columns."""

    first: Any
    second: Any
    columns0: NDArray[np.int64]  # of the rows, of the first block
    columns1: NDArray[np.int64]
    split: int  # the number of columns of the first block's statistics
    level: int  # 0 for the last pair, 1 for the one before it, …

    def observe(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        first, second = self._rows_of_blocks(X)
        return np.concatenate([self.first.observe(first), self.second.observe(second)], axis=1)

    def for_new_rows(self, new: NDArray[np.float64]) -> Both:
        first, second = self._rows_of_blocks(new)
        changed: Both = replaced(
            self, first=self.first.for_new_rows(first), second=self.second.for_new_rows(second)
        )
        return changed

    def _rows_of_blocks(self, X: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        return [np.take(X, columns, axis=1) for columns in (self.columns0, self.columns1)]

    def parts(self, n_columns: int) -> tuple[tuple[Any, int], ...]:
        """The likelihoods of the blocks, and the numbers of columns of their statistics."""
        return (self.first, self.split), (self.second, n_columns - self.split)

    def storage(self, n_columns: int) -> Storage:
        parts = [part.storage(columns) for part, columns in self.parts(n_columns)]
        return Storage(mirrored=any(part.mirrored for part in parts))

    def scratch_shapes(self, n_columns: int) -> ScratchShapes:
        parts = [part.scratch_shapes(columns) for part, columns in self.parts(n_columns)]
        shapes = (tuple(np.maximum(*shape).tolist()) for shape in zip(*parts, strict=True))
        return ScratchShapes(*shapes)._replace(pair_sums=(self.level + 1, BLOCK))

    def join(likelihood, clusters, i, j):
        weights, ranks = clusters.weights, clusters.ranks
        weight0, weight1, rank0, rank1 = weights[i], weights[j], ranks[i], ranks[j]
        join(likelihood.first, clusters.blocks[0], i, j)
        # The second block has to find the weights of the parts too.
        weights[i], weights[j], ranks[i], ranks[j] = weight0, weight1, rank0, rank1
        join(likelihood.second, clusters.blocks[1], i, j)

    def summarise(likelihood, clusters, i, scratch):
        first = summarise(likelihood.first, clusters.blocks[0], i, scratch)
        return first + summarise(likelihood.second, clusters.blocks[1], i, scratch)

    def log_marginal(likelihood, clusters, i, j, floor, scratch):
        first = log_marginal(likelihood.first, clusters.blocks[0], i, j, -np.inf, scratch)
        rest = floor - first
        rest -= _ROUNDING * (abs(floor) + abs(first)) if rest > -np.inf else 0.0
        return first + log_marginal(likelihood.second, clusters.blocks[1], i, j, rest, scratch)

    def upper_bounds(likelihood, clusters, i, start, stop, scratch):
        bounds, kept = scratch.bounds, scratch.pair_sums[likelihood.level]
        upper_bounds(likelihood.first, clusters.blocks[0], i, start, stop, scratch)
        for s in range(stop - start):
            kept[s] = bounds[s]
        upper_bounds(likelihood.second, clusters.blocks[1], i, start, stop, scratch)
        for s in range(stop - start):
            # The sum may be much smaller than its terms, whose rounding it has.
            size = abs(kept[s]) + abs(bounds[s])
            bounds[s] = (kept[s] + bounds[s]) + 1e-13 * size
