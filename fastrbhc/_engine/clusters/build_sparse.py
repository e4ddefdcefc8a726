"""Clusters of sparse rows: one cluster per point."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrbhc._engine.clusters.record import LEAF_SIZE, SPARE, Clusters, empty_clusters
from fastrbhc._engine.clusters.scratch import new_scratch
from fastrbhc._engine.clusters.segments import Segments
from fastrbhc._engine.clusters.sparse_rows import SparseObservations, put_rows
from fastrbhc._engine.geometry.contract import refresh, storage
from fastrbhc._engine.geometry.sketches import groups_of_columns
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.records import replaced


def clusters_of_sparse_points(
    geometry: Any, points: SparseObservations, padded: bool = False
) -> Clusters:
    """One slot per point; the order of the points decides ties.

    If padded, free slots fill up the last leaf, and spare slots follow, as for dense points.
    """
    n = points.which.size
    leaves = -(-n // LEAF_SIZE) * LEAF_SIZE
    capacity = leaves + min(SPARE, leaves) if padded else n
    clusters = _empty(geometry, capacity, points)
    clusters.weights[:n] = points.all_weights()
    clusters.weights[n:] = np.nan
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
    clusters.mirror.radius = _largest_root(geometry, clusters)
    _refresh(geometry, clusters, n, new_scratch(geometry, 0))
    return clusters


def _empty(geometry: Any, capacity: int, points: SparseObservations) -> Clusters:
    entries, n_groups = points.n_entries, geometry.n_groups
    clusters = empty_clusters(capacity, 0, cached=storage(geometry, 0).cached)
    longest = min(entries, points.n_columns)
    groups = groups_of_columns(points.n_columns, max(n_groups, 1))
    segments = Segments(
        columns=np.empty(2 * entries + longest, np.int32),
        sums=np.empty(2 * entries + longest),
        places=np.zeros((capacity, 2), np.int64),
        end=np.zeros(1, np.int64),
        groups=groups,
        group_sizes=np.bincount(groups, minlength=max(n_groups, 1)).astype(np.float64),
        longest=longest,
    )
    mirror = replaced(
        clusters.mirror,
        values=np.zeros((n_groups, capacity), np.float32),
        order=np.arange(n_groups),
        centre=np.zeros(n_groups),
    )
    width = n_groups + entries // max(points.which.size, 1) + 1
    return replaced(clusters, segments=segments, mirror=mirror, width=width)


def _largest_root(geometry: Any, clusters: Clusters) -> float:
    """The largest root of a group sum, which unions never exceed."""
    n_groups = geometry.n_groups
    if n_groups == 0:
        return 1.0
    segments = clusters.segments
    largest = _largest_sum(segments, clusters.weights, clusters.n_slots, np.empty(n_groups))
    value = geometry.scale * largest + geometry.offset * segments.group_sizes.max()
    return float(np.sqrt(value)) if value > 0.0 else 1.0


@kernel
def _largest_sum(segments, weights, n, sums):
    """The largest sum of the means of a group of columns."""
    largest = 0.0
    for i in range(n):
        for g in range(sums.size):
            sums[g] = 0.0
        for p in range(segments.places[i, 0], segments.places[i, 1]):
            sums[segments.groups[segments.columns[p]]] += segments.sums[p]
        for g in range(sums.size):
            largest = max(largest, sums[g] / weights[i])
    return largest


@kernel
def _refresh(geometry, clusters, count, scratch):
    for i in range(count):
        refresh(geometry, clusters, i, scratch)
