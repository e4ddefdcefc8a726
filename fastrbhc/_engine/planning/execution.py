"""From points to merges, according to a plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fastrbhc._engine.agglomeration.greedy import greedy
from fastrbhc._engine.agglomeration.levels import levels
from fastrbhc._engine.agglomeration.merge_log import Merges
from fastrbhc._engine.agglomeration.merge_order import by_level
from fastrbhc._engine.agglomeration.nn_chain import nn_chain
from fastrbhc._engine.agglomeration.space import Space
from fastrbhc._engine.clusters.build import clusters_of_points
from fastrbhc._engine.clusters.observations import Observations
from fastrbhc._engine.clusters.record import Clusters, gather
from fastrbhc._engine.clusters.scratch import new_scratch
from fastrbhc._engine.clusters.strangers import merge_strangers
from fastrbhc._engine.geometry.contract import for_clusters, separate_columns, with_columns
from fastrbhc._engine.neighbors.backends import BACKENDS
from fastrbhc._engine.planning.plan import Plan
from fastrbhc._engine.threads import Threads

ALGORITHMS = {"greedy": greedy, "levels": levels, "nn_chain": nn_chain}


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
    # There are more statistics than columns if cells are missing, and fewer if blocks are sparse.
    columns = tuple(range(clusters.means.shape[0])) if plan.columns else ()
    adapted = with_columns(for_clusters(geometry, clusters), columns)
    return Space(adapted, clusters, index)


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
