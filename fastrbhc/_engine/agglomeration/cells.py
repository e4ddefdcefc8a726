"""Merges within a cell of space, whatever the clusters of other cells do at the same time.

A cell merges pairs that are each other's nearest neighbours, as long as nothing outside can be
nearer (`neighbors.bordered`). If d is reducible such pairs may be merged at any time, and all
merges together are those of the greedy tree. If it is not, they are a tree of reciprocal pairs, as
the nearest-neighbour chain makes them. What is left of several cells is merged in the same way,
with the cells that are still apart outside, and at last without any.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.agglomeration.levels import log_of_levels
from fastrbhc._engine.agglomeration.merge_log import Merges, finished
from fastrbhc._engine.agglomeration.nn_chain import log_of_chain
from fastrbhc._engine.agglomeration.space import Space
from fastrbhc._engine.clusters.build import clusters_of_points
from fastrbhc._engine.clusters.observations import Observations, column_ranges
from fastrbhc._engine.clusters.scratch import new_scratch
from fastrbhc._engine.geometry.contract import for_clusters, with_columns
from fastrbhc._engine.neighbors.bordered import bordered, boxes_around
from fastrbhc._engine.neighbors.kd_tree import kd_tree
from fastrbhc._engine.threads import Threads


class Border(NamedTuple):
    """The box around the rows of a cell, which holds the means of all its clusters."""

    lowest: NDArray[np.float64]  # (d,)
    highest: NDArray[np.float64]  # (d,)
    lightest: float  # the smallest weight of a row; infinite if there is none


class LocalMerges(NamedTuple):
    """The merges of a cell in the order they were made, and what is left.

    Nodes are those of the cell's clusters, 0 to n − 1, and then of the merges.
    """

    merges: Merges
    points: Observations  # of the clusters left, in the order of their keys
    ranks: NDArray[Any]  # the rank of each among the clusters of the cell
    nodes: NDArray[Any]  # which nodes these are


def border_of(points: Observations) -> Border:
    """The box around points."""
    n, d = points.shape
    if n == 0:
        return Border(np.full(d, np.inf), np.full(d, -np.inf), np.inf)
    lowest, highest = column_ranges(points.means)
    return Border(lowest, highest, float(points.all_weights().min()))


def joined_border(borders: Sequence[Border]) -> Border:
    """The box around the rows of several cells."""
    return Border(
        np.min([border.lowest for border in borders], axis=0),
        np.max([border.highest for border in borders], axis=0),
        min(border.lightest for border in borders),
    )


def merge_locally(
    geometry: Any,
    points: Observations,
    others: Sequence[Border],
    reducible: bool,
    n_threads: int = 1,
    columns: tuple[int, ...] = (),
    report: Callable[[str, int], None] = lambda *_: None,
) -> LocalMerges:
    """Merge reciprocal nearest neighbours of a cell, of which nothing in other cells is nearer.

    ``columns`` has one entry per column if kernels are to know their number.
    """
    n, d = points.shape
    if n < 2:
        nothing = Merges(np.empty((0, 2), np.int64), np.empty(0))
        return LocalMerges(nothing, points, np.arange(n), np.arange(n))
    clusters = clusters_of_points(geometry, points, padded=True, mirrored=False)
    del points
    outside = boxes_around(
        geometry,
        np.array([border.lowest for border in others]).reshape(-1, d),
        np.array([border.highest for border in others]).reshape(-1, d),
        np.array([border.lightest for border in others]),
    )
    with Threads([new_scratch(geometry, d) for _ in range(n_threads)]) as threads:
        index = bordered(kd_tree(geometry, clusters, threads, False), outside)
        space = Space(with_columns(for_clusters(geometry, clusters), columns), clusters, index)
        algorithm = log_of_levels if reducible else log_of_chain
        log = algorithm(space, np.inf, threads, report)
    slots = np.flatnonzero(~np.isnan(clusters.weights[: clusters.n_slots]))
    slots = slots[np.argsort(clusters.ranks[slots])]
    left = Observations(
        np.ascontiguousarray(clusters.means[:, slots].T),
        np.ascontiguousarray(clusters.residuals[:, slots].T),
        clusters.weights[slots],
    )
    return LocalMerges(finished(log), left, clusters.ranks[slots], log.nodes[slots])
