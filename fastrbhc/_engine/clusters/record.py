"""Clusters as arrays of statistics, one slot per cluster.

This is the only module that lists the fields of a cluster. It also copies, moves and frees whole
slots.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.segments import (
    Segments,
    compact,
    copy_segment,
    joined_segments,
    no_segments,
    segments_of_block,
)
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.math.double_double import two_sum, weighted_mean
from fastrbhc._engine.neighbors.ordering import rank_of_union
from fastrbhc._engine.records import record, replaced
from fastrbhc._engine.simd import LANES
from fastrbhc._engine.threads import Threads

# The arrays are padded to full runs of this many slots; such a run is a leaf of the kd-tree.
LEAF_SIZE = LANES

# Bytes that memory is read in at a time.
_LINE = 64

# The largest number of spare slots after those of the points, for copies of clusters.
SPARE = 512


# For mirrors whose rows are columns.
NO_AXES = np.empty((0, 0))


@record
class Mirror:
    """Means in single precision, for scans, and the frame they are relative to."""

    values: NDArray[np.float32]  # (d, n), or (0, n) if not wanted
    order: NDArray[np.int64]  # (d,), the column of each row of values
    centre: NDArray[np.float64]  # (d,), the middle of each column
    radius: float  # the largest distance of a mean from the centre
    slack: float  # the largest error of a bound due to rounded values
    axes: NDArray[np.float64] = NO_AXES  # (d, d), the axis of each row of values, or (0, 0)
    leading: int = 0  # rows that scans compare first; 0 for all


@record
class Clusters:
    """Statistics of all active clusters; in a free slot, weight and means are NaN.

    Means are stored by column (d × n), so that a scan reads adjacent memory. They are stored by
    cluster if scans read the mirror, and only exact values read the means.
    """

    weights: NDArray[np.float64]  # (n,)
    means: NDArray[np.float64]  # (d, n), leading digits; a geometry may store other vectors
    residuals: NDArray[np.float64]  # (d, n), the digits after them
    scatter: NDArray[np.float64]  # (n, q), second moments about the mean; q = 0 if not needed
    cached: NDArray[np.float64]  # (n, r), values derived from the other statistics
    scan_features: NDArray[np.float64]  # (p, n), derived values for scans; p = 0 if not needed
    mirror: Mirror
    segments: Segments  # instead of means, for columns that are sparse
    blocks: tuple[Any, ...]  # views of groups of columns, if these have geometries of their own
    ranks: NDArray[np.int32]  # (n,), which of two equally near clusters comes first
    width: int  # about how many numbers a comparison of two clusters reads
    n_slots: int  # slots in use: all later ones are free


def empty_clusters(
    n: int,
    n_features: int,
    *,
    scatter: int = 0,
    cached: int = 0,
    scan_features: int = 0,
    mirrored: int = 0,
) -> Clusters:
    """Clusters of weight 0, with the given numbers of values per slot."""
    mirror = Mirror(
        values=np.zeros((mirrored, n), np.float32),
        order=np.arange(n_features),
        centre=np.zeros(n_features),
        radius=1.0,
        slack=0.0,
    )
    return Clusters(
        weights=np.zeros(n),
        means=np.zeros((n_features, n)),
        residuals=np.zeros((n_features, n)),
        scatter=np.zeros((n, scatter)),
        cached=np.zeros((n, cached)),
        scan_features=np.zeros((scan_features, n)),
        mirror=mirror,
        segments=no_segments(n),
        blocks=(),
        ranks=np.arange(n, dtype=np.int32),
        width=n_features,
        n_slots=n,
    )


class Widths(NamedTuple):
    """Numbers per cluster of a block of columns, and of the blocks that it consists of."""

    columns: int
    scatter: int
    cached: int
    scan_features: int
    mirrored: int
    segments: int = 0
    sparse_columns: int = 0  # of the segments
    blocks: tuple[Widths, ...] = ()

    def plus(self, other: Widths) -> Widths:
        """The numbers of two blocks together."""
        return Widths(
            self.columns + other.columns,
            self.scatter + other.scatter,
            self.cached + other.cached,
            self.scan_features + other.scan_features,
            self.mirrored + other.mirrored,
            self.segments + other.segments,
            self.sparse_columns + other.sparse_columns,
        )


NO_WIDTHS = Widths(0, 0, 0, 0, 0)


def with_blocks(clusters: Clusters, blocks: tuple[Widths, ...]) -> Clusters:
    """The clusters with views of blocks of columns, which share the memory of all."""
    views, ends = [], NO_WIDTHS
    for widths in blocks:
        starts = ends
        ends = starts.plus(widths)
        order, centre = np.arange(widths.columns), np.zeros(widths.columns)
        mirror = Mirror(
            values=clusters.mirror.values[starts.mirrored : ends.mirrored],
            order=order,
            centre=centre,
            radius=1.0,
            slack=0.0,
        )
        view = replaced(
            clusters,
            means=clusters.means[starts.columns : ends.columns],
            residuals=clusters.residuals[starts.columns : ends.columns],
            scatter=clusters.scatter[:, starts.scatter : ends.scatter],
            cached=clusters.cached[:, starts.cached : ends.cached],
            scan_features=clusters.scan_features[starts.scan_features : ends.scan_features],
            mirror=mirror,
            segments=segments_of_block(
                clusters.segments, starts.segments, widths.segments, widths.sparse_columns
            ),
            width=widths.columns,
        )
        views.append(with_blocks(view, widths.blocks))
    return replaced(clusters, blocks=tuple(views))


def _with_blocks_of(clusters: Clusters, other: Clusters) -> Clusters:
    """The clusters with blocks like those of others, and with copies of their frames."""
    if not other.blocks:
        return clusters
    clusters = with_blocks(clusters, tuple(map(_widths, other.blocks)))
    for block, like in zip(clusters.blocks, other.blocks, strict=True):
        _copy_frame(block, like)
    return clusters


def _copy_frame(block: Clusters, other: Clusters) -> None:
    block.mirror.order[:], block.mirror.centre[:] = other.mirror.order, other.mirror.centre
    block.mirror.radius, block.mirror.slack = other.mirror.radius, other.mirror.slack
    for part, like in zip(block.blocks, other.blocks, strict=True):
        _copy_frame(part, like)


def _widths(block: Clusters) -> Widths:
    return Widths(
        columns=block.means.shape[0],
        scatter=block.scatter.shape[1],
        cached=block.cached.shape[1],
        scan_features=block.scan_features.shape[0],
        mirrored=block.mirror.values.shape[0],
        segments=block.segments.places.shape[1] // 2,
        sparse_columns=block.segments.n_columns,
        blocks=tuple(map(_widths, block.blocks)),
    )


def _by_slot(clusters: Clusters) -> list[NDArray[Any]]:
    """Views of all statistics, slots along the first axis; by column if stored that way."""
    views: list[NDArray[Any]] = [clusters.weights, clusters.ranks]
    columns = (clusters.means, clusters.residuals, clusters.scan_features, clusters.mirror.values)
    for values in columns:
        views += list(values) if values.flags.c_contiguous else [values.T]
    rows = (clusters.scatter, clusters.cached, clusters.segments.places)
    return views + [values for values in rows if values.shape[1]]


def gather(clusters: Clusters, slots: NDArray[np.int64], threads: Threads) -> None:
    """Move the clusters of the given slots to the slots 0, 1, …, and free all others."""
    count, used = slots.size, clusters.n_slots
    views = _by_slot(clusters)

    def move(first: int, last: int, scratch: object) -> None:
        for values in views[first:last]:
            values[:count] = np.take(values, slots, axis=0)

    threads.run(move, len(views), 1e-8 * count)
    clusters.weights[count:used] = np.nan
    clusters.means[:, count:used] = np.nan
    clusters.n_slots = count
    compact(clusters.segments, count)


def selected(clusters: Clusters, slots: NDArray[np.int64]) -> Clusters:
    """A copy with the given slots, in that order."""
    mirror = clusters.mirror
    # Indexing would return different layouts for one column and for several, and so other types.
    chosen = replaced(
        clusters,
        weights=clusters.weights[slots],
        means=_columns(clusters.means, slots),
        residuals=_columns(clusters.residuals, slots),
        scatter=clusters.scatter[slots],
        cached=clusters.cached[slots],
        scan_features=_columns(clusters.scan_features, slots),
        mirror=replaced(
            mirror,
            values=_columns(mirror.values, slots),
            order=mirror.order.copy(),
            centre=mirror.centre.copy(),
        ),
        segments=replaced(clusters.segments, places=clusters.segments.places[slots]),
        ranks=clusters.ranks[slots],
        n_slots=slots.size,
    )
    return _with_blocks_of(chosen, clusters)


def side_by_side(clusters: Clusters) -> Clusters:
    """The clusters with all that d reads of a slot in one place, for pairs in no order.

    Weight, mean, further digits and rank of a cluster follow one another. With three columns they
    are one cache line, where in arrays of their own they are up to eight.
    """
    d, n = clusters.means.shape
    width = -(-(2 * d + 2) // 4) * 4
    memory = np.empty(n * width + _LINE // 8)
    first = -memory.ctypes.data % _LINE // 8
    rows = memory[first : first + n * width].reshape(n, width)
    weights, ranks = rows[:, 0], rows[:, 1].view(np.int64)
    means, residuals = rows[:, 2 : 2 + d].T, rows[:, 2 + d : 2 + 2 * d].T
    weights[:], ranks[:] = clusters.weights, clusters.ranks
    means[:], residuals[:] = clusters.means, clusters.residuals
    moved = replaced(clusters, weights=weights, ranks=ranks, means=means, residuals=residuals)
    return _with_blocks_of(moved, clusters)


def joined(clusters: Clusters, others: Clusters) -> Clusters:
    """The slots of two records of the same geometry, those of the first one coming first.

    For exact values only: mirrors have frames of their own, and are left out.
    """
    return _with_blocks_of(
        replaced(
            clusters,
            weights=np.concatenate([clusters.weights, others.weights]),
            means=np.concatenate([clusters.means, others.means], axis=1),
            residuals=np.concatenate([clusters.residuals, others.residuals], axis=1),
            scatter=np.concatenate([clusters.scatter, others.scatter]),
            cached=np.concatenate([clusters.cached, others.cached]),
            scan_features=np.concatenate([clusters.scan_features, others.scan_features], axis=1),
            segments=joined_segments(clusters.segments, others.segments),
            ranks=np.concatenate([clusters.ranks, others.ranks]),
            n_slots=clusters.weights.size + others.weights.size,
        ),
        clusters,
    )


def _columns(values: NDArray[Any], slots: NDArray[np.int64]) -> NDArray[Any]:
    # Indexing alone would give one row another layout than several rows, and so another type.
    return np.ascontiguousarray(values[:, slots])


@kernel
def copy_slot(clusters, source, target):
    """Copy the cluster of one slot into another."""
    clusters.weights[target] = clusters.weights[source]
    clusters.ranks[target] = clusters.ranks[source]
    for k in range(clusters.means.shape[0]):
        clusters.means[k, target] = clusters.means[k, source]
        clusters.residuals[k, target] = clusters.residuals[k, source]
    mirrored = clusters.mirror.values
    for k in range(mirrored.shape[0]):
        mirrored[k, target] = mirrored[k, source]
    for k in range(clusters.scatter.shape[1]):
        clusters.scatter[target, k] = clusters.scatter[source, k]
    for k in range(clusters.cached.shape[1]):
        clusters.cached[target, k] = clusters.cached[source, k]
    for k in range(clusters.scan_features.shape[0]):
        clusters.scan_features[k, target] = clusters.scan_features[k, source]
    copy_segment(clusters.segments, source, target)


@kernel
def free(clusters, j):
    """Take the cluster out of slot j."""
    clusters.weights[j] = np.nan
    for k in range(clusters.means.shape[0]):
        clusters.means[k, j] = np.nan


@kernel
def difference(clusters, i, j, k):
    """Mean of slot j less that of slot i in column k, to the last digit."""
    leading = clusters.means[k, j] - clusters.means[k, i]
    return leading + (clusters.residuals[k, j] - clusters.residuals[k, i])


@kernel
def precise_difference(clusters, i, j, k):
    """The same in double-double."""
    high, low = two_sum(clusters.means[k, j], -clusters.means[k, i])
    return two_sum(high, low + (clusters.residuals[k, j] - clusters.residuals[k, i]))


@kernel
def merge_means(clusters, i, j):
    """Weight, mean and rank of the union into slot i; slot j becomes free."""
    means, residuals = clusters.means, clusters.residuals
    w0, w1 = clusters.weights[i], clusters.weights[j]
    for k in range(means.shape[0]):
        means[k, i], residuals[k, i] = weighted_mean(
            w0, means[k, i], residuals[k, i], w1, means[k, j], residuals[k, j]
        )
    merge_weights(clusters, i, j)


@kernel
def merge_weights(clusters, i, j):
    """Weight and rank of the union into slot i, whose mean is known; slot j becomes free."""
    clusters.weights[i] = clusters.weights[i] + clusters.weights[j]
    clusters.ranks[i] = rank_of_union(clusters.ranks[i], clusters.ranks[j])
    free(clusters, j)
