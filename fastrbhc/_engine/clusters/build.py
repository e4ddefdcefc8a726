"""Statistics of clusters: one cluster per point, or one per group of rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.build_sparse import (
    clusters_of_sparse_groups,
    clusters_of_sparse_points,
    nearest_sparse_clusters,
)
from fastrbhc._engine.clusters.observations import Observations
from fastrbhc._engine.clusters.partly_observed import PartlyObserved, add_cells
from fastrbhc._engine.clusters.portions import portions
from fastrbhc._engine.clusters.record import (
    LEAF_SIZE,
    NO_WIDTHS,
    SPARE,
    Clusters,
    Widths,
    empty_clusters,
    joined,
    selected,
    with_blocks,
)
from fastrbhc._engine.clusters.scratch import new_scratch
from fastrbhc._engine.clusters.segments import Segments
from fastrbhc._engine.clusters.sparse_blocks import (
    SparseGroups,
    put_sparse_points,
    segments_for_points,
)
from fastrbhc._engine.clusters.sparse_rows import SparseObservations
from fastrbhc._engine.geometry.contract import (
    add_row,
    blocks_of,
    dissimilarity,
    refresh,
    storage,
    with_mirror,
)
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.math.double_double import two_sum, weighted_mean
from fastrbhc._engine.records import replaced

# Means are divided by the radius of all: below this its reciprocal, squared, would overflow.
_SMALLEST_RADIUS = 1e-150

# New rows that are put beside clusters together.
_ROWS_AT_A_TIME = 1024


def clusters_of_points(
    geometry: Any,
    points: Observations | SparseObservations,
    padded: bool = False,
    mirrored: bool = True,
    by_cluster: bool = False,
    n_unions: int = 0,
) -> Clusters:
    """One slot per point; the order of the points decides ties.

    If padded, free slots fill up the last leaf, and spare slots follow. Without a mirror there are
    no scan features either, and no ``lower_bounds``. If a mirror is scanned instead of the means,
    the means can be stored by cluster. This makes exact values faster with many columns, because
    the columns of a mean share cache lines. There is room for the entries of so many unions at
    least, in sparse blocks.
    """
    if isinstance(points, SparseObservations):
        return clusters_of_sparse_points(geometry, points, padded)
    n, n_features = points.means.shape
    leaves = -(-n // LEAF_SIZE) * LEAF_SIZE
    capacity = leaves + min(SPARE, leaves) if padded else n
    segments = segments_for_points(points, capacity, n_unions)
    clusters = _empty_clusters(geometry, segments, n_features, mirrored)
    if by_cluster and mirrored and storage(geometry, n_features).by_cluster:
        clusters = with_order(clusters, "F")
    put_points(clusters, points)
    put_sparse_points(clusters, points)
    clusters.width = points.width
    if mirrored:
        clusters = _with_frame(geometry, clusters)
        if not (clusters.mirror.values.shape[0] or clusters.blocks):  # means are scanned after all
            clusters = with_order(clusters, "C")
    if clusters.cached.shape[1] or points.sparse:
        cache_of_points(geometry, clusters, new_scratch(geometry, n_features))
    return clusters


def put_points(clusters: Clusters, points: Observations) -> None:
    """Put one point into each of the first slots, and free all others."""
    n = points.means.shape[0]
    clusters.n_slots = n
    clusters.weights[:n] = 1.0 if points.weights is None else points.weights
    clusters.means[:, :n] = points.slot_values().T
    if points.residuals is not None:
        clusters.residuals[:, :n] = points.residuals.T
    clusters.weights[n:] = np.nan
    clusters.means[:, n:] = np.nan


def cache_of_points(geometry: Any, clusters: Clusters, scratch: Any) -> None:
    """Fill in the cached values of clusters that are single points."""
    alike = storage(geometry, clusters.means.shape[0]).points_alike
    _refresh(geometry, clusters, 1 if alike else clusters.n_slots, scratch)
    if alike:
        clusters.cached[1:] = clusters.cached[0]
        clusters.scan_features[:, 1:] = clusters.scan_features[:, :1]


def clusters_of_groups(
    geometry: Any,
    rows: Observations | SparseObservations,
    labels: NDArray[np.int64],
    n_groups: int,
) -> Clusters:
    """One slot per group of rows; the slot of a group without weight is free."""
    if isinstance(rows, SparseObservations):
        return clusters_of_sparse_groups(geometry, rows, labels, n_groups)
    n, n_features = rows.means.shape
    groups = SparseGroups(rows, labels, n_groups)
    clusters = _empty_clusters(geometry, groups.segments(), n_features)
    groups.put(clusters)
    weights = np.ones(n) if rows.weights is None else rows.weights
    residuals = np.zeros((1, n_features)) if rows.residuals is None else rows.residuals
    errors, scratch = np.zeros(n_groups), new_scratch(geometry, n_features)
    for start, stop in portions(n, n_features):
        given = (clusters, errors, rows.means, residuals, weights, labels, start, stop)
        if isinstance(rows, PartlyObserved):
            _add_observed_means(*given, rows.places_of_weights())
        else:
            _add_means(*given)
    clusters.weights[:] += errors
    if clusters.scatter.shape[1]:
        for start, stop in portions(n, clusters.scatter.shape[1]):
            _add_scatter(
                geometry, clusters, rows.means, residuals, weights, labels, start, stop, scratch
            )
    clusters = _with_frame(geometry, clusters)
    _refresh(geometry, clusters, n_groups, scratch)
    clusters.weights[clusters.weights == 0.0] = np.nan
    return clusters


def dissimilarities(geometry: Any, clusters: Clusters) -> NDArray[np.float64]:
    """d of all pairs of slots i < j, row by row; n(n − 1)/2 values, so for few clusters only."""
    n = clusters.weights.size
    out, n_features = np.empty(n * (n - 1) // 2), clusters.means.shape[0]
    scratch = new_scratch(geometry, n_features)
    for start, stop in portions(n, n * max(n_features, 1)):
        _all_pairs(geometry, clusters, scratch, out, start, stop)
    return out


def nearest_clusters(
    geometry: Any, clusters: Clusters, rows: Observations | SparseObservations
) -> NDArray[np.int64]:
    """For every row, as a cluster of its own, the slot with the smallest d; the first of ties."""
    if isinstance(rows, SparseObservations):
        return nearest_sparse_clusters(geometry, clusters, rows)
    n, n_features = rows.means.shape
    labels = np.empty(n, np.int64)
    if rows.sparse:
        scratch = new_scratch(geometry, n_features)
        for start, stop, enlarged in with_new_rows(geometry, clusters, rows):
            _assign_last(geometry, enlarged, scratch, labels[start:stop])
        return labels
    weights = np.ones(n) if rows.weights is None else rows.weights
    residuals = np.zeros((1, n_features)) if rows.residuals is None else rows.residuals
    scratch, alike = new_scratch(geometry, n_features), storage(geometry, n_features).points_alike
    k = clusters.weights.size
    enlarged = selected(clusters, np.append(np.arange(k), 0))  # one more slot, for the row
    values = rows.slot_values()
    for start, stop in portions(n, k * (n_features + clusters.scatter.shape[1])):
        _assign(geometry, enlarged, values, residuals, weights, alike, scratch, labels, start, stop)
    return labels


def with_new_rows(
    geometry: Any, clusters: Clusters, rows: Observations
) -> Iterator[tuple[int, int, Clusters]]:
    """Runs of rows, with the clusters and, in slots after them, each of these rows."""
    n, k = rows.shape[0], clusters.weights.size
    for first, last in portions(n, k * (rows.width + clusters.scatter.shape[1])):
        for start in range(first, last, _ROWS_AT_A_TIME):
            stop = min(start + _ROWS_AT_A_TIME, last)
            points = clusters_of_points(geometry, rows.take(np.arange(start, stop)))
            yield start, stop, joined(clusters, points)


def variances_at(family: Any, means: NDArray[np.float64]) -> NDArray[np.float64]:
    """1/φ″ of a separable family, without smoothing, for every mean; 0 where φ″ is infinite.

    This is the variance of a row with that mean.
    """
    second = type(family).second_derivative
    with np.errstate(all="ignore"):
        curvatures = np.array([second(family, mean) for mean in means.ravel()])
        variances = np.nan_to_num(1.0 / curvatures, nan=0.0, posinf=0.0)
    return variances.reshape(means.shape)


def _empty_clusters(
    geometry: Any, segments: Segments, n_features: int, mirrored: bool = True
) -> Clusters:
    widths = _widths(geometry, n_features, mirrored)
    clusters = empty_clusters(
        segments.places.shape[0],
        n_features,
        scatter=widths.scatter,
        cached=widths.cached,
        scan_features=widths.scan_features,
        mirrored=widths.mirrored,
    )
    return with_blocks(replaced(clusters, segments=segments), widths.blocks)


def _widths(geometry: Any, n_features: int, mirrored: bool) -> Widths:
    """The numbers that a cluster has, in all and in each block of columns."""
    blocks = tuple(
        _widths(block, columns, mirrored) for block, columns in blocks_of(geometry, n_features)
    )
    if blocks:
        return reduce(Widths.plus, blocks, NO_WIDTHS)._replace(blocks=blocks)
    sizes = storage(geometry, n_features)
    return Widths(
        columns=n_features,
        scatter=sizes.scatter,
        cached=sizes.cached,
        scan_features=sizes.scan_features if mirrored or sizes.sparse_columns else 0,
        mirrored=n_features if sizes.mirrored and mirrored else 0,
        segments=int(sizes.sparse_columns > 0),
        sparse_columns=sizes.sparse_columns,
    )


def with_order(clusters: Clusters, order: Literal["C", "F"]) -> Clusters:
    """The clusters with their means by column ("C") or by cluster ("F")."""
    return replaced(
        clusters,
        means=np.asarray(clusters.means, order=order),
        residuals=np.asarray(clusters.residuals, order=order),
    )


def _with_frame(geometry: Any, clusters: Clusters) -> Clusters:
    """The clusters with a mirror in the frame of all means, which unions never leave."""
    if clusters.blocks:
        for view in clusters.blocks:
            view.n_slots = clusters.n_slots
        pairs = zip(blocks_of(geometry, clusters.means.shape[0]), clusters.blocks, strict=True)
        blocks = tuple(_with_frame(block, view) for (block, _), view in pairs)
        return replaced(clusters, blocks=blocks)
    if not clusters.means.shape[0]:
        return clusters
    mirror = clusters.mirror
    lowest, highest = np.fmin.reduce(clusters.means, axis=1), np.fmax.reduce(clusters.means, axis=1)
    mirror.centre[:] = 0.5 * lowest + 0.5 * highest
    farthest = np.maximum(highest - mirror.centre, mirror.centre - lowest).max()
    # Means that differ by less all have the mirror image 0: bounds are loose, not infinite. What is
    # left of a single large mean is its further digits.
    if farthest <= _SMALLEST_RADIUS:
        farthest = max(1.0, np.abs(clusters.residuals).max(initial=0.0))
    mirror.radius = farthest
    if mirror.values.shape[0]:
        return with_mirror(geometry, clusters)
    return clusters


@kernel
def _refresh(geometry, clusters, count, scratch):
    for i in range(count):
        if clusters.weights[i] != 0.0:
            refresh(geometry, clusters, i, scratch)


@kernel
def _add_means(clusters, errors, means, residuals, weights, labels, start, stop):
    """Add rows to weights and means of groups, in double-double.

    The further digits of the weights are in errors; residuals has one row if all are zero.
    """
    for row in range(start, stop):
        if weights[row] == 0.0:
            continue
        group = labels[row]
        rest = min(row, residuals.shape[0] - 1)
        for k in range(means.shape[1]):
            if clusters.weights[group] == 0.0:
                clusters.means[k, group] = means[row, k]
                clusters.residuals[k, group] = residuals[rest, k]
            else:
                clusters.means[k, group], clusters.residuals[k, group] = weighted_mean(
                    clusters.weights[group],
                    clusters.means[k, group],
                    clusters.residuals[k, group],
                    weights[row],
                    means[row, k],
                    residuals[rest, k],
                )
        clusters.weights[group], error = two_sum(clusters.weights[group], weights[row])
        errors[group] += error


@kernel
def _add_observed_means(clusters, errors, means, residuals, weights, labels, start, stop, places):
    """The same for rows with missing cells: each column has a weight and a mean of its own."""
    for row in range(start, stop):
        if weights[row] == 0.0:
            continue
        group = labels[row]
        rests = residuals[min(row, residuals.shape[0] - 1)]
        add_cells(clusters, group, weights[row], means[row], rests, places)
        clusters.weights[group], error = two_sum(clusters.weights[group], weights[row])
        errors[group] += error


@kernel
def _add_scatter(geometry, clusters, means, residuals, weights, labels, start, stop, scratch):
    """Add rows to the scatter of groups about their means."""
    for row in range(start, stop):
        rests = residuals[min(row, residuals.shape[0] - 1)]
        add_row(geometry, clusters, labels[row], weights[row], means[row], rests, scratch)


@kernel
def _all_pairs(geometry, clusters, scratch, out, start, stop):
    n = clusters.weights.size
    entry = start * (2 * n - start - 1) // 2
    for i in range(start, stop):
        for j in range(i + 1, n):
            out[entry] = dissimilarity(geometry, clusters, i, j, np.inf, scratch)
            entry += 1


@kernel
def _assign_last(geometry, clusters, scratch, labels):
    """Find the nearest of the first slots to each of the last ones."""
    k = clusters.weights.size - labels.size
    for row in range(labels.size):
        best, labels[row] = np.inf, 0
        for j in range(k):
            value = dissimilarity(geometry, clusters, j, k + row, best, scratch)
            if value < best:
                best, labels[row] = value, j


@kernel
def place_row(geometry, clusters, means, residuals, weights, row, is_first, alike, scratch):
    """Make a row the cluster in the last slot; what is alike for all points is computed once."""
    last = clusters.weights.size - 1
    clusters.weights[last] = weights[row]
    for k in range(means.shape[1]):
        clusters.means[k, last] = means[row, k]
        clusters.residuals[k, last] = residuals[min(row, residuals.shape[0] - 1), k]
    if is_first or not alike:
        clusters.scatter[last] = 0.0
        refresh(geometry, clusters, last, scratch)


@kernel
def _assign(geometry, clusters, means, residuals, weights, alike, scratch, labels, start, stop):
    """Put each row into the last slot, and find the nearest of the other slots."""
    last = clusters.weights.size - 1
    for row in range(start, stop):
        place_row(geometry, clusters, means, residuals, weights, row, row == start, alike, scratch)
        best, label = np.inf, 0
        for j in range(last):
            value = dissimilarity(geometry, clusters, j, last, best, scratch)
            if value < best:
                best, label = value, j
        labels[row] = label
