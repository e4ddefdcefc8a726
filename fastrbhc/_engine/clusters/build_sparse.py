"""Clusters of sparse rows: one cluster per point."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.record import LEAF_SIZE, SPARE, Clusters, empty_clusters
from fastrbhc._engine.clusters.scratch import new_scratch
from fastrbhc._engine.clusters.segments import Segments
from fastrbhc._engine.clusters.sparse_rows import SparseObservations, put_rows
from fastrbhc._engine.geometry.contract import refresh, storage
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.records import replaced


def clusters_of_sparse_points(
    geometry: Any, points: SparseObservations, padded: bool = False
) -> Clusters:
    """One slot per point; the order of the points decides ties.

    If padded, free slots fill up the last leaf, and spare slots follow, as for dense points.
    """
    order = _heaviest_first(points)
    points = points.take(order)
    n = points.which.size
    leaves = -(-n // LEAF_SIZE) * LEAF_SIZE
    capacity = leaves + min(SPARE, leaves) if padded else n
    clusters = _empty(geometry, capacity, points)
    clusters.weights[:n] = points.all_weights()
    clusters.weights[n:] = np.nan
    clusters.ranks[:n] = order
    clusters.n_slots = n
    sizes = np.ones(1) if points.sizes is None else points.sizes
    put_rows(
        points.columns,
        points.values,
        points.starts,
        sizes,
        points.which,
        clusters.weights[:n],
        clusters.segments,
        0,
    )
    _refresh(geometry, clusters, n, new_scratch(geometry, 0))
    return clusters


def _heaviest_first(points: SparseObservations) -> NDArray[np.intp]:
    """The points by their totals, the largest first.

    In the greedy algorithm each pair is covered by its younger cluster, the one in the later slot.
    Small rows are near to everything and are merged early. If they came first, they would be the
    neighbours of most others, which would have to be looked up again and again.
    """
    sums = np.add.reduceat(np.append(points.values, 0.0), points.starts[:-1])
    sums[points.starts[:-1] == points.starts[1:]] = 0.0
    totals = sums[points.which] * points.all_weights()
    if points.sizes is not None:
        totals /= points.sizes[points.which]
    return np.argsort(-totals, kind="stable")


def _empty(geometry: Any, capacity: int, points: SparseObservations) -> Clusters:
    entries, sizes = points.n_entries, storage(geometry, 0)
    clusters = empty_clusters(capacity, 0, scan_features=sizes.scan_features)
    longest = min(entries, points.n_columns)
    segments = Segments(
        columns=np.empty(2 * entries + longest, np.int32),
        sums=np.empty(2 * entries + longest),
        places=np.zeros((capacity, 2), np.int64),
        end=np.zeros(1, np.int64),
        n_columns=points.n_columns,
        longest=longest,
    )
    width = 1 + entries // max(points.which.size, 1)
    return replaced(clusters, segments=segments, width=width)


@kernel
def _refresh(geometry, clusters, count, scratch):
    for i in range(count):
        refresh(geometry, clusters, i, scratch)
