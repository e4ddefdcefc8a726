"""The geometry of a product of families, each with columns of its own.

If φ(t) = Σ c·φ_b(t_b) over blocks of columns, all with the weight n of the cluster, then d is the
sum of c·d_b over the blocks, and lower bounds of the d_b add up to one of d. A product of more than
two blocks is a pair of the first block and the product of all others.

The blocks of a pair are views of the clusters (`Clusters.blocks`), which share their memory, and
their weights and ranks too. In a box the numbers of the first block come before those of the
second.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.record import Clusters
from fastrbhc._engine.clusters.scratch import BLOCK, ScratchShapes, scratch_shapes
from fastrbhc._engine.geometry.contract import (
    Storage,
    add_row,
    box_bounds,
    box_rows,
    box_violation_bound,
    column_widths,
    curvature,
    dissimilarity,
    for_clusters,
    leaf_values,
    lower_bounds,
    merge,
    refresh,
    separate_columns,
    storage,
    violation_bounds,
    with_columns,
)
from fastrbhc._engine.jit import contract, kernel
from fastrbhc._engine.simd import at_most, load, lowest_set_bit, rows_from, store

# Added to the cutoff of the second block, as a share of that of both, so that a value above it is
# still above in the sum.
_ROUNDING = 1e-15


@contract
def rest(geometry, clusters, i, j, total, cutoff, scratch):
    """The part of the second block in d, given that of the first."""


class Pair(NamedTuple):
    """d = c₀·d₀ + c₁·d₁ for two blocks of columns."""

    first: Any
    second: Any
    factor0: float
    factor1: float
    split: int  # the number of columns of the first block
    rows: int  # of the first block in a box
    level: int  # 0 for the last pair, 1 for the one before it, …

    def dissimilarity(geometry, clusters, i, j, cutoff, scratch):
        total = geometry.factor0 * dissimilarity(
            geometry.first, clusters.blocks[0], i, j, cutoff / geometry.factor0, scratch
        )
        if total <= cutoff:
            total += rest(geometry, clusters, i, j, total, cutoff, scratch)
        return total

    # A contract, and not a kernel: Numba takes a kernel that is called for the inner pair while it
    # is being compiled for the outer one for a recursive function.
    def rest(geometry, clusters, i, j, total, cutoff, scratch):
        left = ((cutoff - total) + _ROUNDING * cutoff) / geometry.factor1
        value = dissimilarity(geometry.second, clusters.blocks[1], i, j, left, scratch)
        return geometry.factor1 * value

    def merge(geometry, clusters, i, j, scratch):
        weights, ranks = clusters.weights, clusters.ranks
        weight0, weight1, rank0, rank1 = weights[i], weights[j], ranks[i], ranks[j]
        merge(geometry.first, clusters.blocks[0], i, j, scratch)
        # The second block has to find the weights of the parts too.
        weights[i], weights[j], ranks[i], ranks[j] = weight0, weight1, rank0, rank1
        merge(geometry.second, clusters.blocks[1], i, j, scratch)

    def refresh(geometry, clusters, i, scratch):
        refresh(geometry.first, clusters.blocks[0], i, scratch)
        refresh(geometry.second, clusters.blocks[1], i, scratch)

    def add_row(geometry, clusters, i, weight, values, residuals, scratch):
        split = geometry.split
        add_row(
            geometry.first,
            clusters.blocks[0],
            i,
            weight,
            values[:split],
            residuals[:split],
            scratch,
        )
        add_row(
            geometry.second,
            clusters.blocks[1],
            i,
            weight,
            values[split:],
            residuals[split:],
            scratch,
        )

    def curvature(geometry, clusters, i, j, centre, scratch):
        part0 = curvature(geometry.first, clusters.blocks[0], i, j, centre, scratch)
        part1 = curvature(geometry.second, clusters.blocks[1], i, j, centre, scratch)
        return geometry.factor0 * part0 + geometry.factor1 * part1

    def lower_bounds(geometry, clusters, i, start, stop, scratch):
        bounds, kept = scratch.bounds, scratch.pair_sums[geometry.level]
        lower_bounds(geometry.first, clusters.blocks[0], i, start, stop, scratch)
        for s in range(stop - start):
            kept[s] = bounds[s]
        lower_bounds(geometry.second, clusters.blocks[1], i, start, stop, scratch)
        for s in range(stop - start):
            bounds[s] = geometry.factor0 * kept[s] + geometry.factor1 * bounds[s]

    def leaf_values(geometry, clusters, i, start, cutoff, scratch):
        near = leaf_values(
            geometry.first, clusters.blocks[0], i, start, cutoff / geometry.factor0, scratch
        )
        left = near
        while left:
            s = lowest_set_bit(left)
            left &= left - 1
            total = geometry.factor0 * scratch.bounds[s]
            if total <= cutoff:
                total += rest(geometry, clusters, i, start + s, total, cutoff, scratch)
            scratch.bounds[s] = total
            if not total <= cutoff:
                near -= 1 << s
        return near

    def box_bounds(geometry, clusters, i, boxes, group, cutoff, scratch):
        near = box_bounds(
            geometry.first,
            clusters.blocks[0],
            i,
            boxes,
            group,
            cutoff / geometry.factor0,
            scratch,
        )
        total = load(scratch.bounds, (0,)) * geometry.factor0
        near &= box_bounds(
            geometry.second,
            clusters.blocks[1],
            i,
            rows_from(boxes, geometry.rows),
            group,
            cutoff / geometry.factor1,
            scratch,
        )
        total = total + load(scratch.bounds, (0,)) * geometry.factor1
        store(scratch.bounds, total)
        return near & at_most(total, cutoff)

    def violation_bounds(geometry, clusters, a, b, start, stop, cutoff, scratch):
        bounds, kept = scratch.bounds, scratch.pair_sums[geometry.level]
        violation_bounds(
            geometry.first,
            clusters.blocks[0],
            a,
            b,
            start,
            stop,
            cutoff / geometry.factor0,
            scratch,
        )
        for s in range(stop - start):
            kept[s] = bounds[s]
        violation_bounds(
            geometry.second,
            clusters.blocks[1],
            a,
            b,
            start,
            stop,
            cutoff / geometry.factor1,
            scratch,
        )
        for s in range(stop - start):
            bounds[s] = _larger_sum(geometry.factor0 * kept[s], geometry.factor1 * bounds[s])

    def box_violation_bound(geometry, clusters, a, b, boxes, node, heaviest, cutoff, scratch):
        bound0 = box_violation_bound(
            geometry.first,
            clusters.blocks[0],
            a,
            b,
            boxes,
            node,
            heaviest,
            cutoff / geometry.factor0,
            scratch,
        )
        bound1 = box_violation_bound(
            geometry.second,
            clusters.blocks[1],
            a,
            b,
            rows_from(boxes, geometry.rows),
            node,
            heaviest,
            cutoff / geometry.factor1,
            scratch,
        )
        return _larger_sum(geometry.factor0 * bound0, geometry.factor1 * bound1)

    def blocks_of(self, n_features: int) -> tuple[tuple[Any, int], ...]:
        return (self.first, self.split), (self.second, n_features - self.split)

    def block_factors(self) -> tuple[float, float]:
        return self.factor0, self.factor1

    def usual_backend(self, n_features: int) -> str | None:
        return None if n_features else "brute"  # nothing for boxes, if all blocks are sparse

    def storage(self, n_features: int) -> Storage:
        parts = [storage(block, columns) for block, columns in self.blocks_of(n_features)]
        return Storage(
            scatter=sum(part.scatter for part in parts),
            cached=sum(part.cached for part in parts),
            scan_features=sum(part.scan_features for part in parts),
            mirrored=any(part.mirrored for part in parts),
            points_alike=all(
                part.points_alike or not (part.cached or part.sparse_columns) for part in parts
            ),
            sparse_columns=sum(part.sparse_columns for part in parts),
        )

    def scratch_shapes(self, n_features: int) -> ScratchShapes:
        parts = [scratch_shapes(block, columns) for block, columns in self.blocks_of(n_features)]
        shapes = (tuple(np.maximum(*shape).tolist()) for shape in zip(*parts, strict=True))
        return ScratchShapes(*shapes)._replace(pair_sums=(self.level + 1, BLOCK))

    def for_clusters(self, clusters: Clusters) -> Pair:
        first, second = clusters.blocks
        return self._replace(
            first=for_clusters(self.first, first), second=for_clusters(self.second, second)
        )

    def with_columns(self, columns: tuple[int, ...]) -> Pair:
        return self._replace(
            first=with_columns(self.first, columns[: self.split]),
            second=with_columns(self.second, columns[self.split :]),
        )

    def separate_columns(self, start: int, stop: int, factor: float) -> Any:
        middle = start + self.split
        first = separate_columns(self.first, start, middle, factor * self.factor0)
        second = separate_columns(self.second, middle, stop, factor * self.factor1)
        return None if first is None or second is None else [*first, *second]

    def column_widths(self, clusters: Clusters) -> NDArray[np.float64]:
        first, second = clusters.blocks
        return np.concatenate(
            [
                np.sqrt(self.factor0) * column_widths(self.first, first),
                np.sqrt(self.factor1) * column_widths(self.second, second),
            ]
        )


def product_geometry(blocks: list[tuple[Any, int, float]]) -> Any:
    """The geometry of blocks (geometry, number of columns, factor), at least two."""
    (second, columns, factor1), level = blocks[-1], 0
    for first, split, factor0 in reversed(blocks[:-1]):
        rows = box_rows(first, split)
        second = Pair(first, second, float(factor0), float(factor1), split, rows, level)
        columns, factor1, level = columns + split, 1.0, level + 1
    return second


@kernel
def _larger_sum(bound0, bound1):
    """At most the larger of two sums, from bounds of the larger terms of each block.

    It is not less than either bound, nor than half of their sum.
    """
    return max(bound0, bound1, 0.5 * (bound0 + bound1)) + 0.0 * (bound0 + bound1)
