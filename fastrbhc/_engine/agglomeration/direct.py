"""The textbook greedy algorithm, for few points: one kernel, no index, no threads.

Every cluster has a link to the nearest older cluster, as in `greedy`. A linear search finds the
smallest link. If its neighbour has been merged, the link is a lower bound and is looked up again.
Otherwise the two are merged, and the nearest neighbour of the union is looked up. Unions go to new
slots after all others, so that all older clusters of a slot are before it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrbhc._engine.agglomeration.heap import pair_before
from fastrbhc._engine.agglomeration.links import Links, no_links
from fastrbhc._engine.agglomeration.merge_log import MergeLog, Merges, advance_count, record_merge
from fastrbhc._engine.clusters.build import cache_of_points, clusters_of_points, put_points
from fastrbhc._engine.clusters.observations import Observations
from fastrbhc._engine.clusters.record import LEAF_SIZE, Clusters, copy_slot, free
from fastrbhc._engine.clusters.scratch import Scratch, new_scratch
from fastrbhc._engine.geometry.contract import leaf_values, merge
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.ordering import comes_before
from fastrbhc._engine.records import record
from fastrbhc._engine.simd import lowest_set_bit

# The largest number of points that are merged this way; the memory that is kept has room for them.
MOST_POINTS = 200

# States that are not in use, at most one per geometry and number of columns: making a new one takes
# longer than a tree of 50 points.
_KEPT: dict[Any, Direct] = {}
_MOST_KEPT = 16


@record
class Direct:
    """The state of the algorithm, with room for MOST_POINTS points and their unions."""

    geometry: Any
    clusters: Clusters
    log: MergeLog
    links: Links
    scratch: Scratch
    threshold: float


def direct(geometry: Any, points: Observations, threshold: float) -> Merges:
    """Merge the globally nearest pair of points until none is nearer than the threshold."""
    n, n_features = points.means.shape
    key = _with_types(geometry), n_features
    if points.sparse:  # the room that entries need depends on the points
        state = _new_state(geometry, points)
    else:
        # Removed while it is in use, so that another thread makes its own.
        kept = _KEPT.pop(key, None)
        room = Observations(np.zeros((MOST_POINTS, n_features)))
        state = _new_state(geometry, room) if kept is None else kept
        _put(state, points)
    clusters, log = state.clusters, state.log
    ranks = np.arange(clusters.ranks.size)
    clusters.ranks[:], log.nodes[:] = ranks, ranks
    log.n_merges, log.n_alive, state.threshold = 0, n, threshold
    _merge_all(state, n)
    m = log.n_merges
    merges = Merges(log.children[:m].copy(), log.heights[:m].copy())
    if len(_KEPT) < _MOST_KEPT and not points.sparse:
        _KEPT[key] = state
    return merges


def _put(state: Direct, points: Observations) -> None:
    """Put the points into a state that may have been used before."""
    clusters = state.clusters
    clusters.scatter[:] = 0.0
    clusters.residuals[:] = 0.0
    put_points(clusters, points)
    if clusters.cached.shape[1]:
        cache_of_points(state.geometry, clusters, state.scratch)


def _with_types(value: Any) -> Any:
    """A tuple with its class, because tuples of different classes can be equal."""
    return (type(value), *map(_with_types, value)) if isinstance(value, tuple) else value


def _new_state(geometry: Any, points: Observations) -> Direct:
    """A state with room for as many points; its pool is never compacted."""
    n, n_features = points.means.shape
    clusters = clusters_of_points(geometry, points, padded=True, mirrored=False, n_unions=n)
    log = MergeLog(
        children=np.empty((n - 1, 2), np.int64),
        heights=np.empty(n - 1),
        nodes=clusters.ranks.copy(),
        n_merges=0,
        n_alive=0,
    )
    links, scratch = no_links(clusters.weights.size), new_scratch(geometry, n_features)
    return Direct(geometry, clusters, log, links, scratch, np.inf)


@kernel
def _merge_all(state, n):
    clusters, log, links, scratch = state.clusters, state.log, state.links, state.scratch
    for i in range(clusters.n_slots):
        _look_up(state, i, scratch)
    while log.n_alive > 1:
        i = _smallest_link(state)
        if i < 0:
            return
        j = links.neighbors[i]
        if log.nodes[j] != links.nodes[i]:
            _look_up(state, i, scratch)
            continue
        union = clusters.n_slots
        clusters.n_slots += 1
        record_merge(log, n, log.n_merges, i, j, union, links.values[i])
        advance_count(log, 1)
        links.values[i] = links.values[j] = np.inf
        merge(state.geometry, clusters, i, j, scratch)
        copy_slot(clusters, i, union)
        free(clusters, i)
        _look_up(state, union, scratch)


@kernel
def _smallest_link(state):
    """The slot whose pair comes first, or −1 if none is below the threshold."""
    links, values, ranks = state.links, state.links.values, state.clusters.ranks
    smallest, best = np.inf, np.int64(-1)
    for i in range(state.clusters.n_slots):
        if values[i] < smallest:
            smallest, best = values[i], i
        elif values[i] == smallest and best >= 0 and pair_before(links, ranks, i, best):
            best = i
    return best


@kernel
def _look_up(state, i, scratch):
    """Link slot i to the nearest cluster in the slots before it."""
    geometry, clusters, links = state.geometry, state.clusters, state.links
    best, slot, rank = state.threshold, -1, -1
    for start in range(0, i, LEAF_SIZE):
        near = leaf_values(geometry, clusters, i, start, best, scratch)
        while near:
            s = lowest_set_bit(near)
            near &= near - 1
            j = start + s
            if j < i and comes_before(scratch.bounds[s], clusters.ranks[j], best, rank):
                best, slot, rank = scratch.bounds[s], j, clusters.ranks[j]
    links.values[i] = best if slot >= 0 else np.inf
    links.neighbors[i], links.ranks[i] = slot, rank
    links.nodes[i] = state.log.nodes[slot] if slot >= 0 else -1
