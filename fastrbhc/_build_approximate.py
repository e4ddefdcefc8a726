"""From checked rows to an approximate tree: as `_build`, but rows merge with near neighbours first.

A graph of near neighbours is contracted until few clusters are left, and these merge exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from fastrbhc._engine.agglomeration.merge_log import MergeLog, Merges
from fastrbhc._engine.agglomeration.shortlists import merge_along_shortlists
from fastrbhc._engine.clusters.build import clusters_of_points, with_order
from fastrbhc._engine.clusters.duplicates import distinct_points, with_repeated_rows
from fastrbhc._engine.clusters.observations import Observations, take, weighted
from fastrbhc._engine.clusters.principal_axes import rotate_to_principal_axes
from fastrbhc._engine.clusters.record import Clusters, gather
from fastrbhc._engine.geometry.contract import blocks_of, storage, usual_backend
from fastrbhc._engine.geometry.sparse_entropy import TOTAL
from fastrbhc._engine.neighbors.backends import BACKENDS
from fastrbhc._engine.planning.execution import (
    ALGORITHMS,
    in_order,
    planned_clusters,
    planned_space,
    planned_threads,
)
from fastrbhc._engine.planning.plan import Plan, plan
from fastrbhc._engine.threads import Threads
from fastrbhc._near_rows import near_rows, order_by_place
from fastrbhc._options import CheckedOptions
from fastrbhc._progress import Progress
from fastrbhc.families import Family, geometry_of
from fastrbhc.families._places import places_of
from fastrbhc.tree.dendrogram import Dendrogram, dendrogram_of_merges, forest_at
from fastrbhc.tree.origin import Origin

# Near neighbours of each row, and the longest list of those of a cluster.
N_NEIGHBORS, _ROOM = 15, 20
# The share of the rows that merge exactly, as clusters, and their largest number: by whether d is a
# squared distance, needs a covariance matrix, or neither. See docs/wide-rows.md.
SHARE_LEFT = 0.25
_MOST_LEFT = {"quadratic": 20_000, "covariance": 4_000, "other": 10_000}


class _State(NamedTuple):
    """The clusters so far."""

    clusters: Clusters
    places: Any  # (slots, p), the coordinates of each slot
    log: MergeLog
    are_means: bool  # see `_are_means`


def build_approximate(
    X: Any,
    family: Family,
    sample_weight: NDArray[np.float64] | None,
    options: CheckedOptions,
    origin: Origin,
) -> Dendrogram:
    """The approximate tree of rows that have been checked, dense or sparse.

    The whole tree is built and cut at the threshold.
    """
    n = X.shape[0]
    leaf_weights = np.ones(n) if sample_weight is None else sample_weight
    rows = weighted(family.observe(X), sample_weight)
    geometry = geometry_of(family, rows)
    del X
    points, point_of_row = distinct_points(geometry, rows)
    del rows
    n_points = points.shape[0]
    enough = few_enough(family, n_points)
    places = places_of(family, points) if n_points > enough else None
    points = rotate_to_principal_axes(geometry, points)
    order = None if places is None else order_by_place(places)
    if order is not None:
        points = take(points, order)
    algorithm = "levels" if family.reducible else "greedy"
    usual = usual_backend(geometry, points.shape[1])
    chosen = plan(
        family.reducible, enough, points.width, algorithm, "auto", options.n_threads, usual
    )
    are_means = _are_means(geometry, points)
    clusters = _clusters(chosen, geometry, points, are_means)
    del points
    if order is not None:  # ranks, which decide ties, do not depend on it
        clusters.ranks[:n_points] = order[clusters.ranks[:n_points]]
    totals = {"neighbours": n_points, "merging": n_points - 1}
    all_threads = chosen._replace(n_threads=options.n_threads)
    with (
        Progress(options.progress, totals) as report,
        planned_threads(all_threads, geometry, clusters) as threads,
    ):
        report("neighbours", 0)
        state = _begun(clusters, places, are_means)
        while state.log.n_alive > enough:
            before = state.log.n_alive
            state = _contracted(state, geometry, enough, threads, options.n_threads, report)
            if state.log.n_alive == before:
                break
        merges = _rest(state, chosen, geometry, threads, report)
    if merges.heights.size < n_points - 1:
        raise ValueError("the dissimilarity of this family is not finite for these rows")
    children, heights, _ = with_repeated_rows(*merges, point_of_row, n_points)
    origin = replace(origin, algorithm="greedy", approximate=True)
    tree = dendrogram_of_merges(children, heights, leaf_weights, np.inf, origin)
    return tree if options.threshold == np.inf else forest_at(tree, options.threshold)


def _clusters(chosen: Plan, geometry: Any, points: Any, are_means: bool) -> Clusters:
    """One cluster per point, for pairs in no order; scans need more, where clusters are not means.

    A mean that scans read as well would be written to many places in memory for every merge.
    """
    if not are_means:
        return planned_clusters(chosen, geometry, points)
    return with_order(clusters_of_points(geometry, points, mirrored=False), "F")


def _are_means(geometry: Any, points: Any) -> bool:
    """Whether a cluster of these points is its weight and its mean, and so a point again."""
    if not isinstance(points, Observations) or points.sparse:
        return False
    n_features = points.shape[1]
    return not blocks_of(geometry, n_features) and storage(geometry, n_features).scatter == 0


def few_enough(family: Family, n: int) -> int:
    """The number of clusters, of n distinct rows, that merge exactly."""
    if n <= N_NEIGHBORS + 1:  # all are neighbours of one another
        return n
    kind = "covariance" if family.covariance != "none" else "other"
    most = _MOST_LEFT["quadratic" if family.quadratic else kind]
    return max(2, min(int(SHARE_LEFT * n), most))


def _begun(clusters: Clusters, places: Any, are_means: bool) -> _State:
    """All points as clusters. Slots are not always in the order of the points."""
    n = clusters.n_slots
    points = clusters.ranks[:n].astype(np.int64)
    if places is not None and (points[1:] < points[:-1]).any():
        places = places[points]
    log = MergeLog(np.empty((n - 1, 2), np.int64), np.empty(n - 1), points, 0, n)
    return _State(clusters, places, log, are_means)


def _contracted(
    state: _State,
    geometry: Any,
    enough: int,
    threads: Threads,
    n_threads: int,
    report: Callable[[str, int], None],
) -> _State:
    """The clusters that are left once near neighbours have merged, in the first slots."""
    clusters, places, log, are_means = state
    given = near_rows(places, N_NEIGHBORS, n_threads)
    weights = clusters.weights[: clusters.n_slots].copy()
    owners = merge_along_shortlists(geometry, clusters, given, _ROOM, enough, log, threads, report)
    slots, labels = np.unique(owners, return_inverse=True)
    nodes, ranks = log.nodes[slots], clusters.ranks[slots]
    if slots.size > enough:
        places = _averaged(places, weights, labels, slots.size)
    gather(clusters, slots, threads)
    clusters.ranks[np.argsort(ranks)] = np.arange(slots.size)
    log = MergeLog(log.children, log.heights, nodes, log.n_merges, slots.size)
    return _State(clusters, places, log, are_means)


def _averaged(
    places: Any, weights: NDArray[np.float64], labels: NDArray[np.int64], n_groups: int
) -> Any:
    """The mean coordinates of groups of rows."""
    totals = np.bincount(labels, weights, n_groups)
    entries = (weights / totals[labels], (labels, np.arange(labels.size)))
    means = csr_array(entries, shape=(n_groups, labels.size)) @ places
    return means.tocsr().astype(np.float32) if issparse(means) else means.astype(np.float32)


def _rest(
    state: _State,
    chosen: Plan,
    geometry: Any,
    threads: Threads,
    report: Callable[[str, int], None],
) -> Merges:
    """The merges so far, and those of the clusters that are left, all of which may merge."""
    clusters, log = state.clusters, state.log
    made, n, left = log.n_merges, log.heights.size + 1, clusters.n_slots
    if left == 1:
        return Merges(log.children[:made], log.heights[:made])
    ranks = clusters.ranks[:left].astype(np.int64)
    nodes = np.empty(left, np.int64)
    nodes[ranks] = log.nodes[:left]
    # Slots in the order that the backend begins with: by rank, or if sparse the heaviest first.
    sparse = BACKENDS[chosen.neighbors].sparse
    keys = (ranks, -clusters.scan_features[TOTAL, :left]) if sparse else (ranks,)
    order = np.lexsort(keys)
    if state.are_means:
        parts = clusters.means.T[order], clusters.residuals.T[order], clusters.weights[order]
        clusters = planned_clusters(chosen, geometry, Observations(*parts))
    else:
        gather(clusters, order, threads)
    space = planned_space(chosen, geometry, clusters, threads)
    rest = ALGORITHMS[chosen.algorithm](
        space, np.inf, threads, lambda stage, count: report(stage, made + count)
    )
    rest = in_order(chosen, rest, left)
    nodes = np.concatenate([nodes, n + made + np.arange(len(rest.heights))])
    return Merges(
        np.concatenate([log.children[:made], np.sort(nodes[rest.children], axis=1)]),
        np.concatenate([log.heights[:made], rest.heights]),
    )
