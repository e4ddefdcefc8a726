"""Clusters of sparse rows: one per point or per group of rows, and d of new rows to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, issparse

from fastrbhc._engine.clusters.portions import portions
from fastrbhc._engine.clusters.record import LEAF_SIZE, SPARE, Clusters, empty_clusters, selected
from fastrbhc._engine.clusters.scratch import new_scratch
from fastrbhc._engine.clusters.segments import Segments, new_segments
from fastrbhc._engine.clusters.sparse_rows import SparseObservations, put_rows
from fastrbhc._engine.geometry.contract import dissimilarity, refresh, storage
from fastrbhc._engine.geometry.sparse import bound
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.records import replaced


def clusters_of_sparse_points(
    geometry: Any, points: SparseObservations, padded: bool = False, heaviest_first: bool = True
) -> Clusters:
    """One slot per point; the order of the points decides ties.

    If padded, free slots fill up the last leaf, and spare slots follow, as for dense points. The
    first slots have the heaviest points, or the first ones.
    """
    order = _heaviest_first(points) if heaviest_first else np.arange(points.which.size)
    points = points.take(order)
    n = points.which.size
    leaves = -(-n // LEAF_SIZE) * LEAF_SIZE
    capacity = leaves + min(SPARE, leaves) if padded else n
    clusters = _empty(geometry, capacity, points, points.are_whole())
    clusters.weights[:n] = points.all_weights()
    clusters.weights[n:] = np.nan
    clusters.ranks[:n] = order
    clusters.n_slots = n
    put_sparse(clusters.segments, points, clusters.weights[:n])
    _refresh(geometry, clusters, 0, n, new_scratch(geometry, 0))
    return clusters


def put_sparse(segments: Segments, rows: SparseObservations, weights: NDArray[np.float64]) -> None:
    """Put rows with these weights into the first slots, one after another."""
    sizes = np.ones(1) if rows.sizes is None else rows.sizes
    put_rows(rows.columns, rows.values, rows.starts, sizes, rows.which, weights, segments, 0)


def clusters_of_sparse_groups(
    geometry: Any, rows: SparseObservations, labels: NDArray[np.int64], n_groups: int
) -> Clusters:
    """One slot per group of rows; the slot of a group without weight is free."""
    groups, rests, weights = rows.group_sums(labels, n_groups)
    clusters = _empty(geometry, n_groups, groups, whole=rests.size == 0)
    put_sparse(clusters.segments, groups, np.ones(n_groups))
    clusters.segments.rests[: rests.size] = rests
    clusters.weights[:] = weights
    for i in np.flatnonzero(weights > 0.0):
        _refresh(geometry, clusters, i, i + 1, new_scratch(geometry, 0))
    clusters.weights[weights == 0.0] = np.nan
    return clusters


def nearest_sparse_clusters(
    geometry: Any, clusters: Clusters, rows: SparseObservations
) -> NDArray[np.int64]:
    """For every row, as a cluster of its own, the slot with the smallest d; the first of ties."""
    labels = np.empty(rows.which.size, np.int64)
    _compare(geometry, clusters, rows, _assign, labels)
    return labels


def sparse_row_dissimilarities(
    geometry: Any, clusters: Clusters, rows: SparseObservations
) -> NDArray[np.float64]:
    """d of every row, as a cluster of its own, to every slot; infinite to free slots."""
    out = np.empty((rows.which.size, clusters.weights.size))
    _compare(geometry, clusters, rows, _fill, out)
    out[:, np.isnan(clusters.weights)] = np.inf
    return out


class Contrast(NamedTuple):
    """A cluster, all others together and those before it: sums of all columns that any has."""

    slot: int
    columns: NDArray[np.int32]  # the same for all clusters
    own: NDArray[np.float64]
    rest: NDArray[np.float64]
    before: NDArray[np.float64]


def sparse_contrasts(clusters: Clusters, slots: NDArray[np.int64]) -> Iterator[Contrast]:
    """Each of the given clusters, with the sums of the others.

    The rest is all less the cluster. Sums are in double-double, so that nothing is left of a column
    that only this cluster has, and what others have keeps its digits.
    """
    segments = [_segment(clusters, slot) for slot in slots]
    columns = np.unique(np.concatenate([found for found, _ in segments]))
    high, low, before = np.zeros(columns.size), np.zeros(columns.size), np.zeros(columns.size)
    places = [np.searchsorted(columns, found) for found, _ in segments]
    for place, (_, sums) in zip(places, segments, strict=True):
        high[place], low[place] = _precise_sums(high[place], low[place], sums)
    for slot, place, (_, sums) in zip(slots, places, segments, strict=True):
        own, rest = np.zeros(columns.size), high + low
        own[place] = sums
        difference, error = _precise_sums(high[place], low[place], -sums)
        rest[place] = np.maximum(difference + error, 0.0)
        yield Contrast(int(slot), columns, own, rest, before)
        before = before + own


def _precise_sums(
    high: NDArray[np.float64], low: NDArray[np.float64], values: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Add values to numbers in double-double, for arrays."""
    total = high + values
    share = total - high
    return total, low + ((high - (total - share)) + (values - share))


def _segment(clusters: Clusters, slot: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """The columns of a cluster, and their sums."""
    start, stop = clusters.segments.places[slot]
    return clusters.segments.columns[start:stop], clusters.segments.sums[start:stop]


def means_of(clusters: Clusters) -> Any:
    """The means of all slots (k, d): an array, NaN for free slots, or if any are sparse, CSR."""
    if clusters.blocks:
        parts = [means_of(block) for block in clusters.blocks]
        if any(map(issparse, parts)):
            return hstack([csr_array(part) for part in parts], format="csr")
        return np.concatenate(parts, axis=1)
    if not clusters.segments.places.shape[1]:
        return np.where(np.isnan(clusters.weights), np.nan, clusters.means).T
    slots = range(clusters.weights.size)
    segments = [_segment(clusters, slot) for slot in slots]
    sizes = [columns.size for columns, _ in segments]
    sums = np.concatenate([sums for _, sums in segments])
    return csr_array(
        (
            sums / np.repeat(clusters.weights, sizes),
            np.concatenate([columns for columns, _ in segments]),
            np.cumsum([0, *sizes]),
        ),
        shape=(len(slots), clusters.segments.n_columns),
    )


def _compare(
    geometry: Any, clusters: Clusters, rows: SparseObservations, work: Any, out: Any
) -> None:
    """Put one row after another into a further slot, and compare it with all the others."""
    k, segments = clusters.weights.size, clusters.segments
    longest = int(np.diff(rows.starts).max(initial=0))
    end = int(segments.end[0])
    enlarged = selected(clusters, np.append(np.arange(k), 0))
    enlarged = replaced(
        enlarged,
        segments=replaced(
            enlarged.segments,
            columns=np.append(segments.columns[:end], np.zeros(longest, np.int32)),
            sums=np.append(segments.sums[:end], np.zeros(longest)),
            rests=np.append(segments.rests[:end], np.zeros(longest if segments.rests.size else 0)),
            end=np.array([end]),
        ),
    )
    sizes = np.ones(1) if rows.sizes is None else rows.sizes
    weights, scratch = rows.all_weights(), new_scratch(geometry, 0)
    each = (k + 1) * (rows.width + end // max(k, 1))
    for start, stop in portions(rows.which.size, each):
        for row in range(start, stop):
            enlarged.segments.end[0] = end
            enlarged.weights[k] = weights[row]
            put_rows(
                rows.columns,
                rows.values,
                rows.starts,
                sizes,
                rows.which[row : row + 1],
                weights[row : row + 1],
                enlarged.segments,
                k,
            )
            work(geometry, enlarged, row, scratch, out)


def _heaviest_first(points: SparseObservations) -> NDArray[np.intp]:
    """The points by their totals, the largest first.

    Small rows are near to everything and are merged early. In the greedy algorithm each pair is
    covered by its cluster in the later slot. If small rows came first, they would be the neighbours
    of most others, which would have to be looked up again and again.
    """
    sums = np.add.reduceat(np.append(points.values, 0.0), points.starts[:-1])
    sums[points.starts[:-1] == points.starts[1:]] = 0.0
    totals = sums[points.which] * points.all_weights()
    if points.sizes is not None:
        totals /= points.sizes[points.which]
    return np.argsort(-totals, kind="stable")


def _empty(geometry: Any, capacity: int, points: SparseObservations, whole: bool) -> Clusters:
    sizes = storage(geometry, 0)
    clusters = empty_clusters(capacity, 0, cached=sizes.cached, scan_features=sizes.scan_features)
    segments = new_segments(capacity, (points.n_columns,), (points.n_entries,), whole)
    return replaced(clusters, segments=segments, width=points.width)


@kernel
def _refresh(geometry, clusters, first, last, scratch):
    for i in range(first, last):
        refresh(geometry, clusters, i, scratch)


@kernel
def _assign(geometry, clusters, row, scratch, labels):
    """Find the slot nearest to the last one."""
    last = clusters.weights.size - 1
    refresh(geometry, clusters, last, scratch)
    best, label = np.inf, 0
    for j in range(last):
        if np.isnan(clusters.weights[j]) or bound(geometry, clusters, j, last) > best:
            continue
        value = dissimilarity(geometry, clusters, j, last, best, scratch)
        if value < best:
            best, label = value, j
    labels[row] = label


@kernel
def _fill(geometry, clusters, row, scratch, out):
    """Compare the last slot with all the others."""
    last = clusters.weights.size - 1
    refresh(geometry, clusters, last, scratch)
    for j in range(last):
        if not np.isnan(clusters.weights[j]):
            out[row, j] = dissimilarity(geometry, clusters, j, last, np.inf, scratch)
