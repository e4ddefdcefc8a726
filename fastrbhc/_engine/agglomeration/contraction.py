"""The greedy algorithm if only clusters that are adjacent in a graph may merge.

At every step the nearest of all adjacent pairs merges, ties being decided by the usual rule, and
the union is adjacent to whatever its parts were adjacent to. With a graph no d is reducible: a
union may be nearer to a neighbour of one part than that part was, because the other part was not
compared with it. So there is one order of merging, and no short cut.

Each cluster has a link to the nearest of its *older* neighbours, and a queue orders the links. A
new union is the youngest cluster, so its link covers all pairs that it is part of, and no other
link has to change. A link to a cluster that was merged is stale: the pairs it covers are those it
covered before without some, so its value is a lower bound. It is looked up again once it is first.

A union costs one value of d per neighbour. In an image that is a few per pixel, whatever the size
of the image, because few clusters have many neighbours. A cluster that absorbs thousands of
neighbours one by one, such as the centre of a star, is compared with all the others each time.

The code that chooses the merges is compiled once for all families: merges and comparisons are jobs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.agglomeration.adjacency import (
    Adjacency,
    Graph,
    ask_for_list,
    drop_old_lists,
    find_older,
    new_adjacency,
    room_for_union,
    unite_lists,
)
from fastrbhc._engine.agglomeration.driver import (
    FINISHED,
    OUT_OF_BUDGET,
    WANTS_REBUILD,
    run_interruptibly,
)
from fastrbhc._engine.agglomeration.link_queue import (
    LinkQueue,
    drop_empty,
    empty_queue,
    order_of_pair,
    push,
    refill,
    remove_first,
)
from fastrbhc._engine.agglomeration.merge_log import MergeLog, advance_count, record_merge
from fastrbhc._engine.clusters.record import Clusters
from fastrbhc._engine.clusters.segments import Segments, compact_slots, lacks_room
from fastrbhc._engine.geometry.contract import dissimilarity, merge
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.ordering import comes_before
from fastrbhc._engine.prefetch import prefetch
from fastrbhc._engine.records import Job, call, record
from fastrbhc._engine.threads import Threads


class Remaining(NamedTuple):
    """The clusters that are left."""

    slots: NDArray[np.int64]
    nodes: NDArray[np.int64]
    apart: bool  # whether no two of them are adjacent


@record
class Nearest:
    """The result of a comparison."""

    value: float
    slot: int  # −1: none below the threshold


@record
class Comparisons:
    """The task of the jobs."""

    geometry: Any
    clusters: Clusters
    adjacency: Adjacency
    queue: LinkQueue
    nearest: Nearest
    threshold: float


@record
class Contraction:
    """The state of the algorithm, of the same type for all families."""

    log: MergeLog
    adjacency: Adjacency
    queue: LinkQueue
    nearest: Nearest
    weights: NDArray[np.float64]
    ranks: NDArray[Any]
    segments: Segments
    width: int
    merge: Job  # for one pair, given as its slots
    compare: Job  # of a slot with as many of the neighbours that were found


def contract_graph(
    geometry: Any,
    clusters: Clusters,
    graph: Graph | None,
    log: MergeLog,
    threshold: float,
    threads: Threads,
    report: Callable[[str, int], None],
) -> Remaining:
    """Merge the nearest adjacent pair until none is nearer than the threshold.

    The log has the node of each slot, in ascending order, and merges are added to it. Without a
    graph, all clusters are adjacent.
    """
    n = clusters.n_slots
    adjacency = new_adjacency(graph, log.nodes[:n])
    queue, nearest = empty_queue(n), Nearest(np.inf, -1)
    task = Comparisons(geometry, clusters, adjacency, queue, nearest, threshold)
    scratch = threads.scratches[0]
    own_log = MergeLog(log.children, log.heights, adjacency.nodes, log.n_merges, log.n_alive)
    state = Contraction(
        log=own_log,
        adjacency=adjacency,
        queue=queue,
        nearest=nearest,
        weights=clusters.weights,
        ranks=clusters.ranks,
        segments=clusters.segments,
        width=clusters.width,
        merge=Job(_merge, task, scratch),
        compare=Job(_compare, task, scratch),
    )
    # d to all older clusters, or to some neighbours.
    per_slot = 1e-8 * clusters.width * (n if graph is None else 4)
    threads.run(
        Job(_link_points, task, scratch), n, per_slot, lambda begun: report("neighbours", begun)
    )
    drop_empty(queue.far, n)

    def advance(budget: int) -> int:
        return int(_advance(state, budget, scratch))

    def rebuild() -> None:
        compact_slots(clusters.segments, np.flatnonzero(adjacency.nodes >= 0))
        drop_old_lists(adjacency)

    run_interruptibly(
        advance, {WANTS_REBUILD: rebuild}, lambda: report("merging", own_log.n_merges)
    )
    log.n_merges, log.n_alive = own_log.n_merges, own_log.n_alive
    slots = np.flatnonzero(adjacency.nodes >= 0)
    apart = slots.size < 2 if graph is None else bool((adjacency.counts[slots] == 0).all())
    return Remaining(slots, adjacency.nodes[slots].astype(np.int64), apart)


@kernel
def _link_points(task, first, last, scratch):
    """Link a range of slots, which nothing has been merged into, to neighbours in earlier slots."""
    clusters, adjacency, far = task.clusters, task.adjacency, task.queue.far
    pool, ranks = adjacency.pool, clusters.ranks
    for i in range(first, last):
        best, nearest, rank = task.threshold, np.int64(-1), np.int64(-1)
        # In a complete graph all earlier slots; otherwise those of the list.
        start = np.int64(0) if adjacency.complete else np.int64(adjacency.starts[i])
        length = i if adjacency.complete else np.int64(adjacency.counts[i])
        for place in range(start, start + length):
            j = place if adjacency.complete else np.int64(pool[place])
            if j < i:
                value = dissimilarity(task.geometry, clusters, i, j, best, scratch)
                if comes_before(value, ranks[j], best, rank):
                    best, nearest, rank = value, j, ranks[j]
        far.values[i], far.orders[i] = np.inf, 0
        far.slots[i], far.nodes[i] = i, adjacency.nodes[i]
        if nearest >= 0:
            far.values[i], far.orders[i] = best, order_of_pair(ranks[i], rank)
            adjacency.link_slots[i] = nearest
            adjacency.link_nodes[i] = adjacency.nodes[nearest]


@kernel
def _advance(state, budget, scratch):
    """Take one link after another from the queue, until the budget is spent or none is left."""
    log, queue, adjacency = state.log, state.queue, state.adjacency
    near, nodes, weights = queue.near, adjacency.nodes, state.weights
    n_leaves = log.heights.size + 1
    while budget > 0:
        if near.size == 0:
            budget -= queue.far.size
            refill(queue, nodes)
            if near.size == 0:
                return FINISHED
        if lacks_room(state.segments):
            return WANTS_REBUILD
        i, node, value = np.int64(near.slots[0]), near.nodes[0], near.values[0]
        if nodes[i] != node:  # it was merged with a cluster whose link was before
            remove_first(near)
            continue
        j = np.int64(adjacency.link_slots[i])
        current = nodes[j] == adjacency.link_nodes[i]
        if current and not room_for_union(adjacency, i, j):
            return WANTS_REBUILD
        remove_first(near)
        _ask_for_next(near, adjacency, state.weights)
        if current:
            if weights[i] < weights[j]:  # paths to owners stay short
                i, j = j, i
            record_merge(log, n_leaves, log.n_merges, i, j, i, value)
            advance_count(log, 1)
            call(state.merge, i, j, scratch)
            count = unite_lists(adjacency, state.weights, i, j)
        else:
            count = find_older(adjacency, state.weights, i)
        call(state.compare, i, count, scratch)
        nearest = state.nearest.slot
        if nearest >= 0:
            adjacency.link_slots[i], adjacency.link_nodes[i] = nearest, nodes[nearest]
            order = order_of_pair(state.ranks[i], state.ranks[nearest])
            push(queue, state.nearest.value, order, i, nodes[i])
        budget -= (1 + count) * state.width
    return OUT_OF_BUDGET


@kernel
def _ask_for_next(near, adjacency, weights):
    """Ask for the memory of links that come soon, as far as it is known where.

    The first link of the heap is the next one, the second or third comes after it, and so on. So
    what is asked for here is read here as well, one or two merges later.
    """
    size = min(near.size, 7)
    for place in range(size):
        slot = np.int64(near.slots[place])
        if place >= 3:
            prefetch(adjacency.owners, slot)
            prefetch(weights, slot)
            continue
        start = np.int64(adjacency.starts[slot])
        if place >= 1:
            neighbor = np.int64(adjacency.link_slots[slot])
            prefetch(adjacency.pool, start)
            prefetch(adjacency.owners, neighbor)
            prefetch(weights, neighbor)
            continue
        ask_for_list(adjacency, weights, start, np.int64(adjacency.counts[slot]))


@kernel
def _merge(task, i, j, scratch):
    merge(task.geometry, task.clusters, i, j, scratch)


@kernel
def _compare(task, i, count, scratch):
    """Find the nearest of the neighbours that were found."""
    clusters, found = task.clusters, task.adjacency.found
    best, nearest, rank = task.threshold, np.int64(-1), np.int64(-1)
    for k in range(count):
        j = np.int64(found[k])
        value = dissimilarity(task.geometry, clusters, i, j, best, scratch)
        if comes_before(value, clusters.ranks[j], best, rank):
            best, nearest, rank = value, j, clusters.ranks[j]
    task.nearest.value, task.nearest.slot = best, nearest
