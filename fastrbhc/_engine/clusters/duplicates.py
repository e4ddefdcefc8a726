"""Repeated rows: collapsed into one weighted point, and restored in the finished tree.

They merge at exactly zero, for every family. Collapsing them is faster, and exact: the mean of
equal rows is not computed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.build import clusters_of_points, nearest_clusters
from fastrbhc._engine.clusters.observations import Observations, take
from fastrbhc._engine.clusters.sparse_rows import SparseObservations
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.traversal import renumbered

# Points and nodes are numbered by 32 bits, which halves the memory of these numbers.
_MOST_ROWS = 1 << 30


class Collapsed(NamedTuple):
    """The distinct points, in an order that depends only on their values."""

    points: Any  # Observations or SparseObservations
    point_of_row: NDArray[np.int32]


def collapse(rows: Observations | SparseObservations) -> Collapsed:
    """Collapse repeated rows; O(n log n).

    The points are ordered by a hash of their values. This order breaks ties between
    dissimilarities, so that the tree does not depend on the order of the rows. As the hash scatters
    neighbours, ties on a grid do not lead to one long chain of merges.
    """
    n = rows.shape[0]
    if n > _MOST_ROWS:
        raise ValueError(f"{n:,} rows are more than the {_MOST_ROWS:,} that a tree can have here")
    order, same = rows.order_by_value()
    starts = np.flatnonzero(~same)
    point_of_row = np.empty(n, np.int32)
    places = np.cumsum(~same, dtype=np.int32)
    places -= 1
    point_of_row[order] = places
    del places
    points = take(rows, order[starts])
    if starts.size < n:
        points = points._replace(weights=np.add.reduceat(rows.all_weights()[order], starts))
    return Collapsed(points, point_of_row)


def distinct_points(geometry: Any, rows: Observations | SparseObservations) -> Collapsed:
    """Distinct points; rows of weight 0 belong to the nearest point."""
    if rows.weights is None or rows.weights.all():
        return collapse(rows)
    positive = rows.weights > 0.0
    points, point_of_positive = collapse(take(rows, np.flatnonzero(positive)))
    point_of_row = np.empty(positive.size, np.int32)
    point_of_row[positive] = point_of_positive
    light = take(rows, np.flatnonzero(~positive))
    light = light._replace(weights=np.ones(light.shape[0]))
    clusters = clusters_of_points(geometry, points)
    point_of_row[~positive] = clusters.ranks[nearest_clusters(geometry, clusters, light)]
    return Collapsed(points, point_of_row)


def with_repeated_rows(
    children: NDArray[np.int64],
    heights: NDArray[np.float64],
    point_of_row: NDArray[np.int32],
    n_points: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Put the merges of repeated rows, at height 0, before those of the distinct points.

    The rows of a point are joined in rounds, two by two, so that thousands of copies make a
    shallow tree. Returns the merges, their heights and the node of each point.
    """
    n = point_of_row.size
    if n == n_points:
        nodes = np.empty(n, np.int64)
        nodes[point_of_row] = np.arange(n)
    else:
        nodes = np.empty(n, np.int64)
        starts = np.r_[0, np.bincount(point_of_row, minlength=n_points).cumsum()]
        _sort_by_point(point_of_row, starts, nodes)
    joined: list[NDArray[np.int64]] = []
    next_node = n
    owners = point_of_row[nodes] if n > n_points else point_of_row
    while nodes.size > n_points:
        starts = np.flatnonzero(np.r_[True, owners[1:] != owners[:-1]])
        place = np.arange(nodes.size) - np.repeat(starts, np.diff(np.r_[starts, nodes.size]))
        left = np.flatnonzero((place % 2 == 0) & (np.r_[owners[1:] == owners[:-1], False]))
        pairs = np.column_stack([nodes[left], nodes[left + 1]])
        nodes[left] = next_node + np.arange(left.size)
        next_node += left.size
        joined.append(np.sort(pairs, axis=1))
        nodes, owners = np.delete(nodes, left + 1), np.delete(owners, left + 1)
    children = renumbered(children, nodes, next_node)
    if not joined:
        return children, heights, nodes
    return (
        np.concatenate([*joined, children]),
        np.concatenate([np.zeros(next_node - n), heights]),
        nodes,
    )


@kernel
def _sort_by_point(point_of_row, starts, rows):
    """A stable counting sort of the rows by point."""
    for row in range(point_of_row.size):
        point = point_of_row[row]
        rows[starts[point]] = row
        starts[point] += 1
