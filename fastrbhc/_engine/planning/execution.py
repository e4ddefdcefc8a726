"""From points to merges, according to a plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fastrbhc._engine.agglomeration.cell_by_cell import Cell, cells_of_points, merge_cells
from fastrbhc._engine.agglomeration.greedy import greedy
from fastrbhc._engine.agglomeration.levels import levels
from fastrbhc._engine.agglomeration.merge_log import Merges
from fastrbhc._engine.agglomeration.merge_order import by_level
from fastrbhc._engine.agglomeration.nn_chain import nn_chain
from fastrbhc._engine.agglomeration.space import Space
from fastrbhc._engine.clusters.build import clusters_of_points
from fastrbhc._engine.clusters.kd_cells import splits_of
from fastrbhc._engine.clusters.observations import Observations
from fastrbhc._engine.clusters.record import Clusters, gather
from fastrbhc._engine.clusters.scratch import new_scratch
from fastrbhc._engine.clusters.strangers import merge_strangers
from fastrbhc._engine.geometry.contract import (
    blocks_of,
    for_clusters,
    separate_columns,
    storage,
    with_columns,
)
from fastrbhc._engine.neighbors.backends import BACKENDS
from fastrbhc._engine.neighbors.bordered import without_border
from fastrbhc._engine.planning.plan import Plan
from fastrbhc._engine.threads import Threads

ALGORITHMS = {"greedy": greedy, "levels": levels, "nn_chain": nn_chain}

# So many points, by the number of their columns, are merged in cells, one after another. With fewer
# points or more columns too many clusters are near a border and wait for the other cells. Ratio of
# the times with and without cells: 0.95 for 1,000,000 × 2, 0.98 for 500,000 × 2, 1.03 for
# 2,000,000 × 3.
MANY_POINTS = {1: 1_000_000, 2: 1_000_000, 3: 8_000_000}
_CELLS, _SAMPLE = 4, 10_000
# In cells with points much lighter than most, nothing would be safe from what is outside.
_LIGHTEST = 0.1


def planned_clusters(
    plan: Plan, geometry: Any, points: Observations, audited: bool = False
) -> Clusters:
    """One cluster per point, with the statistics that the backend needs."""
    # The kd-tree evaluates so few clusters that it needs no mirror.
    return clusters_of_points(
        geometry, points, padded=True, mirrored=plan.scans, by_cluster=not audited
    )


def planned_space(
    plan: Plan, geometry: Any, clusters: Clusters, threads: Threads, audited: bool = False
) -> Space:
    """The clusters with an index over them."""
    index = BACKENDS[plan.neighbors].make_index(geometry, clusters, threads, audited)
    if plan.algorithm == "levels" and _takes_cells(plan, geometry, clusters.means.shape[0]):
        # The kernels are those of cells, so that many points need no others.
        index = without_border(index, geometry, clusters.means.shape[0])
    # There are more statistics than columns if cells are missing, and fewer if blocks are sparse.
    columns = tuple(range(clusters.means.shape[0])) if plan.columns else ()
    adapted = with_columns(for_clusters(geometry, clusters), columns)
    return Space(adapted, clusters, index)


def _takes_cells(plan: Plan, geometry: Any, n_features: int) -> bool:
    """Whether boxes around cells can be told from ranges of their columns."""
    plain = not blocks_of(geometry, n_features)
    return plan.neighbors == "kd_tree" and plain and not storage(geometry, n_features).box_features


def worth_dividing(plan: Plan, geometry: Any, points: Observations, threshold: float) -> bool:
    """Whether to merge cell by cell, because that takes less memory and no more time."""
    n, n_features = points.shape
    if n < MANY_POINTS.get(n_features, np.inf) or threshold < np.inf:
        return False
    if plan.algorithm != "levels" or not _takes_cells(plan, geometry, n_features):
        return False
    weights = points.weights
    return weights is None or bool(weights.min() >= _LIGHTEST * weights.mean())


def planned_cells(points: Observations) -> list[Cell]:
    """The points in cells of about the same size."""
    # Points are in hash order, so the first of them are a random sample.
    return cells_of_points(points, splits_of(points.means[:_SAMPLE], _CELLS))


def agglomerate_cells(
    plan: Plan, geometry: Any, cells: list[Cell], report: Callable[[str, int], None]
) -> Merges:
    """The merges of the points of all cells, in the order they were made; the list is emptied."""
    return merge_cells(geometry, cells, plan.n_threads, plan.columns, report).made()


def planned_threads(plan: Plan, geometry: Any, clusters: Clusters, most_hits: int = 0) -> Threads:
    """The planned number of threads, each with scratch memory."""
    n_features = clusters.means.shape[0]
    return Threads([new_scratch(geometry, n_features, most_hits) for _ in range(plan.n_threads)])


def agglomerate(
    plan: Plan,
    geometry: Any,
    clusters: Clusters,
    threshold: float,
    report: Callable[[str, int], None],
) -> Merges:
    """The merges in the order they were made; the clusters are overwritten."""
    n, made = clusters.n_slots, None
    separate = separate_columns(geometry, 0, clusters.means.shape[0], 1.0)
    if plan.algorithm == "greedy" and threshold > 0.0 and separate is not None:
        made = merge_strangers(geometry, separate, clusters)
    with planned_threads(plan, geometry, clusters) as threads:
        if made is None:
            space = planned_space(plan, geometry, clusters, threads)
            return ALGORITHMS[plan.algorithm](space, threshold, threads, report)
        # The clusters that are left become points, in the same order of ranks.
        slots = np.flatnonzero(~np.isnan(clusters.weights[:n]))
        gather(clusters, slots, threads)
        clusters.ranks[: slots.size] = np.arange(slots.size)
        first = len(made.children)
        if slots.size == 1:
            return Merges(made.children, np.zeros(first))
        space = planned_space(plan, geometry, clusters, threads)
        rest = ALGORITHMS[plan.algorithm](
            space, threshold, threads, lambda stage, count: report(stage, first + count)
        )
    nodes = np.concatenate([made.nodes[slots], n + first + np.arange(len(rest.heights))])
    return Merges(
        np.concatenate([made.children, np.sort(nodes[rest.children], axis=1)]),
        np.concatenate([np.zeros(first), rest.heights]),
    )


def in_order(plan: Plan, merges: Merges, n: int) -> Merges:
    """The merges of n points in an order that does not depend on how they were found.

    Sorting them takes memory, so that the clusters should have been freed.
    """
    return by_level(merges, n) if plan.algorithm == "levels" else merges
