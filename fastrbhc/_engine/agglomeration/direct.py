"""The greedy algorithm by the book, for few points: one kernel, no index, no threads.

Every cluster knows the nearest of the clusters older than itself, as in `greedy`. The smallest of these
links is found by looking at all of them. If its neighbour has been merged away, it was a lower bound,
and is looked up again; else the two are merged, and the union looks at all others. Unions go to new
slots after all others, so that the older clusters are those in the slots before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastrbhc._engine.agglomeration.heap import pair_before
from fastrbhc._engine.agglomeration.links import Links, no_links
from fastrbhc._engine.agglomeration.merge_log import (
    MergeLog,
    advance_count,
    empty_log,
    record_merge,
)
from fastrbhc._engine.clusters.record import LEAF_SIZE, Clusters, copy_slot, free
from fastrbhc._engine.geometry.contract import leaf_values, merge
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.ordering import comes_before
from fastrbhc._engine.records import record
from fastrbhc._engine.simd import lowest_set_bit


@record
class Direct:
    """All that the algorithm works on."""

    geometry: Any
    clusters: Clusters
    log: MergeLog
    links: Links
    threshold: float


def direct(
    geometry: Any,
    clusters: Clusters,
    threshold: float,
    scratch: Any,
    report: Callable[[str, int], None],
) -> MergeLog:
    """Merge the globally nearest pair until none is nearer than the threshold.

    The clusters have to have as many spare slots as there are points.
    """
    log = empty_log(clusters)
    state = Direct(geometry, clusters, log, no_links(clusters.weights.size), threshold)
    _merge_all(state, scratch)
    report("merging", log.n_merges)
    return log


@kernel
def _merge_all(state, scratch):
    clusters, log, links = state.clusters, state.log, state.links
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
        record_merge(log, log.n_merges, i, j, union, links.values[i])
        advance_count(log, 1)
        merge(state.geometry, clusters, i, j, scratch)
        copy_slot(clusters, i, union)
        free(clusters, i)
        _look_up(state, union, scratch)


@kernel
def _smallest_link(state):
    """The slot whose pair comes first, or −1 if none is below the threshold."""
    log, links, ranks, best = state.log, state.links, state.clusters.ranks, -1
    for i in range(state.clusters.n_slots):
        if log.nodes[i] >= 0 and links.neighbors[i] >= 0:
            if best < 0 or pair_before(links, ranks, i, best):
                best = i
    return best


@kernel
def _look_up(state, i, scratch):
    """Link slot i to the nearest of the clusters in the slots before it."""
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
    links.values[i], links.neighbors[i], links.ranks[i] = best, slot, rank
    links.nodes[i] = state.log.nodes[slot] if slot >= 0 else -1
