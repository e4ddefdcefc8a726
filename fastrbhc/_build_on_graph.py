"""From checked rows and a graph to a tree: as `_build`, but only adjacent clusters merge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._connectivity import Connections
from fastrbhc._engine.agglomeration.contraction import contract_graph
from fastrbhc._engine.agglomeration.merge_log import MergeLog, Merges, finished
from fastrbhc._engine.clusters.build import clusters_of_points
from fastrbhc._engine.clusters.build_sparse import clusters_of_sparse_points
from fastrbhc._engine.clusters.observations import take, weighted
from fastrbhc._engine.clusters.principal_axes import rotate_to_principal_axes
from fastrbhc._engine.clusters.record import Clusters, selected, side_by_side
from fastrbhc._engine.clusters.scratch import new_scratch
from fastrbhc._engine.clusters.sparse_rows import SparseObservations
from fastrbhc._engine.geometry.contract import (
    FEW_COLUMNS,
    WORTH_COMPILING,
    blocks_of,
    storage,
    with_columns,
)
from fastrbhc._engine.threads import Threads
from fastrbhc._options import CheckedOptions
from fastrbhc._progress import Progress
from fastrbhc.families import Family, geometry_of
from fastrbhc.families._missing import observe
from fastrbhc.tree.dendrogram import Dendrogram, dendrogram_of_merges, forest_at
from fastrbhc.tree.origin import Origin


class _Made(NamedTuple):
    """Merges, and how a tree remembers the graph."""

    merges: Merges
    how: str


def build_on_graph(
    X: Any,
    family: Family,
    sample_weight: NDArray[np.float64] | None,
    options: CheckedOptions,
    origin: Origin,
) -> Dendrogram:
    """The tree of rows that have been checked, dense or sparse, of which only adjacent ones merge.

    Repeated rows are not collapsed: they may be in different places of the graph.
    """
    n, connections = X.shape[0], options.connections
    leaf_weights = np.ones(n) if sample_weight is None else sample_weight
    rows = weighted(observe(family, X), sample_weight)
    geometry = geometry_of(family, rows)
    del X
    clusters = _clusters(geometry, rows)
    del rows
    d = clusters.means.shape[0]
    known = tuple(range(d)) if n >= WORTH_COMPILING and d <= FEW_COLUMNS else ()
    geometry = with_columns(geometry, known)
    # Clusters of different pieces may be nearer than those of one, and still merge after them.
    level = np.inf if connections.connect else options.threshold
    totals = {"neighbours": n, "merging": n - 1}
    with (
        Progress(options.progress, totals) as report,
        Threads([new_scratch(geometry, d) for _ in range(options.n_threads)]) as threads,
    ):
        report("neighbours", 0)
        merges = _merges(geometry, clusters, connections, level, threads, report)
    origin = replace(origin, algorithm="greedy", connectivity=merges.how)
    tree = dendrogram_of_merges(*merges.merges, leaf_weights, level, origin)
    return tree if level == options.threshold else forest_at(tree, options.threshold)


def _clusters(geometry: Any, rows: Any) -> Clusters:
    """A cluster for each row, in the slot of that number.

    Ranks follow the order by value, as they do without a graph, and equal rows the order of rows.
    """
    order, _ = rows.order_by_value()
    ranks = np.empty(order.size, np.int64)
    ranks[order] = np.arange(order.size)
    if isinstance(rows, SparseObservations):
        clusters = clusters_of_sparse_points(geometry, rows, heaviest_first=False)
    else:
        if _is_rotated(geometry, rows):
            # In the order by value, so that rounding does not depend on the order of rows.
            rows = take(rotate_to_principal_axes(geometry, take(rows, order)), ranks)
        clusters = clusters_of_points(geometry, rows, mirrored=False)
    clusters.ranks[:] = ranks
    return side_by_side(clusters)


def _is_rotated(geometry: Any, rows: Any) -> bool:
    d = rows.means.shape[1]
    return bool(blocks_of(geometry, d)) or storage(geometry, d).principal


def _merges(
    geometry: Any,
    clusters: Clusters,
    connections: Connections,
    threshold: float,
    threads: Threads,
    report: Callable[[str, int], None],
) -> _Made:
    """The merges within each piece of the graph, and then those of the pieces, if wanted."""
    n = clusters.n_slots
    log = MergeLog(np.empty((n - 1, 2), np.int64), np.empty(n - 1), np.arange(n), 0, n)
    given = threshold, threads, report
    left = contract_graph(geometry, clusters, connections.graph, log, *given)
    how = "graph"
    if left.apart and connections.connect and left.slots.size > 1:
        how = "joined"
        order = np.argsort(left.nodes)
        pieces = side_by_side(selected(clusters, left.slots[order]))
        log = MergeLog(log.children, log.heights, left.nodes[order], log.n_merges, left.slots.size)
        left = contract_graph(geometry, pieces, None, log, *given)
    if threshold == np.inf and not left.apart:
        raise ValueError("the dissimilarity of this family is not finite for these rows")
    return _Made(finished(log), how)
