"""d from rows to clusters, and from each cluster to all the others together, also by column."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.build import place_row, with_new_rows
from fastrbhc._engine.clusters.build_sparse import sparse_contrasts, sparse_row_dissimilarities
from fastrbhc._engine.clusters.observations import Observations
from fastrbhc._engine.clusters.portions import portions
from fastrbhc._engine.clusters.record import Clusters, copy_slot, selected
from fastrbhc._engine.clusters.scratch import new_scratch
from fastrbhc._engine.clusters.sparse_rows import SparseObservations
from fastrbhc._engine.geometry.contract import (
    block_factors,
    blocks_of,
    dissimilarity,
    merge,
    storage,
)
from fastrbhc._engine.geometry.separable_columns import divergence
from fastrbhc._engine.jit import kernel


def row_dissimilarities(
    geometry: Any, clusters: Clusters, rows: Observations | SparseObservations
) -> NDArray[np.float64]:
    """d of every row, as a cluster of its own, to every slot; infinite to free slots."""
    if isinstance(rows, SparseObservations):
        return sparse_row_dissimilarities(geometry, clusters, rows)
    n, n_features = rows.means.shape
    k = clusters.weights.size
    out = np.empty((n, k))
    if rows.sparse:
        scratch = new_scratch(geometry, n_features)
        for start, stop, enlarged in with_new_rows(geometry, clusters, rows):
            _compare_last(geometry, enlarged, scratch, out[start:stop])
        out[:, np.isnan(clusters.weights)] = np.inf
        return out
    weights = np.ones(n) if rows.weights is None else rows.weights
    residuals = np.zeros((1, n_features)) if rows.residuals is None else rows.residuals
    scratch, alike = new_scratch(geometry, n_features), storage(geometry, n_features).points_alike
    enlarged = selected(clusters, np.append(np.arange(k), 0))  # one more slot, for the row
    values = rows.slot_values()
    for start, stop in portions(n, k * (n_features + clusters.scatter.shape[1])):
        _fill(geometry, enlarged, values, residuals, weights, alike, scratch, out, start, stop)
    out[:, np.isnan(clusters.weights)] = np.inf
    return out


def separations(geometry: Any, clusters: Clusters) -> tuple[NDArray[np.float64], float]:
    """d of every slot to the union of all the others, and the cost of joining all of them.

    The slots of clusters without weight are free: their d is 0.
    """
    n_features, k = clusters.means.shape
    out, taken = np.zeros(k), np.flatnonzero(clusters.weights > 0.0)
    if taken.size < 2:
        return out, 0.0
    if clusters.blocks:
        return _separations_of_blocks(geometry, clusters)
    if clusters.segments.n_columns:
        return _sparse_separations(geometry, clusters, taken, out)
    # The clusters, the unions of each with all later ones, and three more slots.
    slots = np.concatenate([taken, taken, taken[[0, 0, 0]]])
    found = np.empty(taken.size)
    total = _separate(geometry, selected(clusters, slots), new_scratch(geometry, n_features), found)
    out[taken] = found
    return out, float(total)


def _separations_of_blocks(geometry: Any, clusters: Clusters) -> tuple[NDArray[np.float64], float]:
    """The same for a product, whose d is a sum over blocks."""
    out, total = np.zeros(clusters.weights.size), 0.0
    blocks = zip(
        blocks_of(geometry, clusters.means.shape[0]),
        clusters.blocks,
        block_factors(geometry),
        strict=True,
    )
    for (block, _), view, factor in blocks:
        found, together = separations(block, view)
        out, total = out + factor * found, total + factor * together
    return out, total


def _sparse_separations(
    geometry: Any, clusters: Clusters, taken: NDArray[np.int64], out: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    smoothing, weights = (geometry.scale, geometry.offset), clusters.weights
    all_weight, weight_before, total = float(weights[taken].sum()), 0.0, 0.0
    for slot, columns, own, rest, before in sparse_contrasts(clusters, taken):
        centre, weight = np.zeros(columns.size), float(weights[slot])
        terms = column_terms(
            geometry.family, smoothing, centre, own, weight, rest, all_weight - weight
        )
        out[slot] = terms.sum()
        if weight_before:
            chain = column_terms(
                geometry.family, smoothing, centre, before, weight_before, own, weight
            )
            total += float(chain.sum())
        weight_before += weight
    return out, total


def column_terms(
    family: Any,
    smoothing: tuple[float, float],
    centre: NDArray[np.float64],
    sums0: NDArray[np.float64],
    weight0: float | NDArray[np.float64],
    sums1: NDArray[np.float64],
    weight1: float | NDArray[np.float64],
) -> NDArray[np.float64]:
    """The term of each column in d between two clusters of a separable family; they add up to d.

    Sums are those of the rows less the centre. The smoothing is a scale and an offset. If cells are
    missing, the weights are those of the columns, which are 0 where no cell is observed.
    """
    out, (scale, offset) = np.empty(centre.size), smoothing
    weights0, weights1 = (np.full(out.size, weight) for weight in (weight0, weight1))
    _put_terms(family, float(scale), float(offset), centre, sums0, weights0, sums1, weights1, out)
    return out


@kernel
def _put_terms(family, scale, offset, centre, sums0, weights0, sums1, weights1, out):
    for k in range(out.size):
        out[k], weight0, weight1 = 0.0, weights0[k], weights1[k]
        if weight0 == 0.0 or weight1 == 0.0:
            continue
        weight = weight0 + weight1
        share0, share1 = weight0 / weight, weight1 / weight
        mean0, mean1 = sums0[k] / weight0, sums1[k] / weight1
        step = scale * (mean1 - mean0)
        if step != 0.0:
            mean = scale * ((sums0[k] + sums1[k]) / weight + centre[k]) + offset
            value0 = scale * (mean0 + centre[k]) + offset
            value1 = scale * (mean1 + centre[k]) + offset
            out[k] = weight0 * divergence(family, value0, mean, -share1 * step)
            out[k] += weight1 * divergence(family, value1, mean, share0 * step)


@kernel
def _fill(geometry, clusters, means, residuals, weights, alike, scratch, out, start, stop):
    """Put each row into the last slot, and compare it with all the other slots."""
    last = clusters.weights.size - 1
    for row in range(start, stop):
        place_row(geometry, clusters, means, residuals, weights, row, row == start, alike, scratch)
        for j in range(last):
            out[row, j] = dissimilarity(geometry, clusters, j, last, np.inf, scratch)


@kernel
def _compare_last(geometry, clusters, scratch, out):
    """Compare each of the last slots with the first ones."""
    for row in range(out.shape[0]):
        for j in range(out.shape[1]):
            last = out.shape[1] + row
            out[row, j] = dissimilarity(geometry, clusters, j, last, np.inf, scratch)


@kernel
def _separate(geometry, clusters, scratch, out):
    """d of each of the first slots to the rest; returns the sum of d along a chain of unions."""
    count = out.size
    before, rest, spare = 2 * count, 2 * count + 1, 2 * count + 2
    for j in range(count - 2, -1, -1):
        copy_slot(clusters, count + j + 1, spare)
        merge(geometry, clusters, count + j, spare, scratch)
    total = 0.0
    for j in range(count):
        if j == 0:
            copy_slot(clusters, count + 1, rest)
        else:
            copy_slot(clusters, before, rest)
            if j + 1 < count:
                copy_slot(clusters, count + j + 1, spare)
                merge(geometry, clusters, rest, spare, scratch)
        out[j] = dissimilarity(geometry, clusters, j, rest, np.inf, scratch)
        if j == 0:
            copy_slot(clusters, j, before)
        else:
            total += dissimilarity(geometry, clusters, before, j, np.inf, scratch)
            copy_slot(clusters, j, spare)
            merge(geometry, clusters, before, spare, scratch)
    return total
