"""Sparse blocks of a product of families: the segments of points and of groups of rows.

The dense columns of all blocks are means, as in other clusters. Every sparse block has a segment in
each slot, in the pool that all of them share.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.build_sparse import put_sparse
from fastrbhc._engine.clusters.observations import Observations
from fastrbhc._engine.clusters.record import Clusters
from fastrbhc._engine.clusters.segments import Segments, new_segments, no_segments
from fastrbhc._engine.clusters.sparse_rows import SparseObservations


def segments_for_points(points: Observations, capacity: int, n_unions: int = 0) -> Segments:
    """An empty pool for points, with room for the next unions, and for so many at least."""
    if not points.sparse:
        return no_segments(capacity)
    return new_segments(
        capacity,
        tuple(part.n_columns for part in points.sparse),
        tuple(part.n_entries for part in points.sparse),
        whole=all(part.weighted(points.weights).are_whole() for part in points.sparse),
        n_unions=n_unions,
    )


def put_sparse_points(clusters: Clusters, points: Observations) -> None:
    """Put one point into each of the first slots."""
    weights = points.all_weights()
    for view, part in zip(sparse_views(clusters), points.sparse, strict=True):
        put_sparse(view.segments, part, weights)


class SparseGroups:
    """Groups of the rows of sparse blocks."""

    def __init__(self, rows: Observations, labels: NDArray[np.int64], n_groups: int) -> None:
        self.parts: list[SparseObservations] = []
        self.rests: list[NDArray[np.float64]] = []
        self.n_groups = n_groups
        for part in rows.sparse:
            found, rests, _ = part.weighted(rows.weights).group_sums(labels, n_groups)
            self.parts.append(found)
            self.rests.append(rests)

    def segments(self) -> Segments:
        """An empty pool with room for the groups."""
        if not self.parts:
            return no_segments(self.n_groups)
        return new_segments(
            self.n_groups,
            tuple(part.n_columns for part in self.parts),
            tuple(part.n_entries for part in self.parts),
            whole=not any(rests.size for rests in self.rests),
        )

    def put(self, clusters: Clusters) -> None:
        """Put one group into each slot."""
        for view, part, rests in zip(sparse_views(clusters), self.parts, self.rests, strict=True):
            start = int(view.segments.end[0])
            put_sparse(view.segments, part, np.ones(self.n_groups))
            view.segments.rests[start : start + rests.size] = rests


def sparse_views(clusters: Clusters) -> list[Clusters]:
    """The clusters as each of the sparse blocks sees them."""
    if clusters.blocks:
        return [view for block in clusters.blocks for view in sparse_views(block)]
    return [clusters] if clusters.segments.places.shape[1] else []
