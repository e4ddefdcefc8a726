"""Batches of merges for the greedy algorithm: chosen, made, looked up, and confirmed or undone.

`greedy` says what a batch is, and why the tree is that of single merges. The functions here take
its state, a record `Greedy`, and the batch in it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.agglomeration.heap import insert, remove
from fastrbhc._engine.agglomeration.links import Links, link
from fastrbhc._engine.agglomeration.merge_log import advance_count, record_merge
from fastrbhc._engine.clusters.record import LEAF_SIZE, Clusters, copy_slot, free
from fastrbhc._engine.clusters.segments import most_entries
from fastrbhc._engine.geometry.contract import leaf_values, merge
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.contract import UNKNOWN, as_hint
from fastrbhc._engine.records import Job, call, record
from fastrbhc._engine.simd import lowest_set_bit

# Number of consecutive confirmed batches after which the batch size doubles.
_GROW_AFTER = 8


@record
class Batch:
    """The next merges, and the slots that have to be looked up after them."""

    pairs: NDArray[np.int64]  # (…, 2), slots
    heights: NDArray[np.float64]  # (…,), in their order
    nearest: NDArray[np.float64]  # (…,), the smallest d from each union
    queue: NDArray[np.int64]  # (…,), the unions, then slots with stale links
    pair_of_slot: NDArray[np.int64]  # (…,), the pair of each slot, or −1
    copies: int  # the first slot with a copy of a pair's cluster
    n_pairs: int
    n_queued: int
    n_looked_up: int  # number of look-ups made in kernels so far
    unsettled: bool  # whether look-ups distributed by Python have yet to be settled
    most_pairs: int  # current limit of the batch size
    n_held: int  # number of fully confirmed batches of that size


@record
class BatchWork:
    """The task of `merge_pairs` and `look_up_queue`."""

    geometry: Any
    clusters: Clusters
    batch: Batch
    links: Links
    look_up: Job  # for a range of the queue, among the clusters of the index


def empty_batch(n: int, capacity: int) -> Batch:
    # Half of the spare slots are for copies of all pairs but the first, half for unions.
    copies = (capacity - n) // 2 // LEAF_SIZE * LEAF_SIZE
    largest = 1 + copies // 2
    return Batch(
        pairs=np.empty((largest, 2), np.int64),
        heights=np.empty(largest),
        nearest=np.empty(largest),
        queue=np.empty(max(n, 3 * largest), np.int64),
        pair_of_slot=np.full(capacity, -1),
        copies=capacity - copies,
        n_pairs=0,
        n_queued=0,
        n_looked_up=0,
        unsettled=False,
        most_pairs=largest,
        n_held=0,
    )


@kernel
def choose(state):
    """Take the next pairs from the heap, and the stale links among and shortly after them.

    The first link that is stale, or will be once the pairs have merged, ends the batch: it may
    lead to a pair that comes before the next one. Stale links slightly further down are looked up
    in advance, so that the next batch does not end as soon as it begins. Without this, most batches
    had one pair, with as many look-ups in total.
    """
    log, links, heap, batch = state.log, state.links, state.heap, state.batch
    threshold, ranks, nodes, queue = state.threshold, state.clusters.ranks, log.nodes, batch.queue
    pairs, most = 0, batch_size(log, batch)
    segments = state.clusters.segments
    room = segments.columns.size - segments.end[0]
    while heap.size > 0 and pairs < min(most, batch.most_pairs):
        i = heap.slots[0]
        j = links.neighbors[i]
        if j < 0 or links.values[i] >= threshold or _is_stale(nodes, links, batch, i):
            break
        room -= most_entries(segments, i, j)
        if room < 0:
            break
        remove(heap, links, ranks, i)
        remove(heap, links, ranks, j)
        batch.pairs[pairs, 0], batch.pairs[pairs, 1] = i, j
        batch.heights[pairs] = links.values[i]
        batch.pair_of_slot[i] = batch.pair_of_slot[j] = pairs
        pairs += 1
    queued = pairs
    # The first entries of a heap are not quite its smallest, but cheap to find.
    for position in range(min(heap.size, 2 * most)):
        i = heap.slots[position]
        if (
            links.neighbors[i] >= 0
            and links.values[i] < threshold
            and _is_stale(nodes, links, batch, i)
        ):
            queue[queued] = i
            queued += 1
    for q in range(pairs, queued):
        remove(heap, links, ranks, queue[q])
    batch.n_pairs, batch.n_queued = pairs, queued


@kernel
def _is_stale(nodes, links, batch, i):
    """Whether the neighbour of slot i was merged, or will be with the pairs of the batch."""
    j = links.neighbors[i]
    return nodes[j] != links.nodes[i] or batch.pair_of_slot[j] >= 0


@kernel
def batch_size(log, batch):
    """The largest number of pairs, and of links to look ahead."""
    return min(max(16, log.n_alive // 128), batch.pairs.shape[0])


@kernel
def merge_pairs(work, first, last, scratch):
    """Merge a range of the pairs, which have no slot in common; copy all but the first."""
    clusters, batch, copies = work.clusters, work.batch, work.batch.copies - 2
    for p in range(first, last):
        i, j = batch.pairs[p, 0], batch.pairs[p, 1]
        if p > 0:
            copy_slot(clusters, i, copies + 2 * p)
            copy_slot(clusters, j, copies + 2 * p + 1)
        merge(work.geometry, clusters, i, j, scratch)


@kernel
def after_merging(state, scratch):
    """Update the index, queue the unions of the pairs, and leave hints for look-ups."""
    clusters, links, batch = state.clusters, state.links, state.batch
    queue, pairs, pair_of_slot = batch.queue, batch.n_pairs, batch.pair_of_slot
    for p in range(pairs):
        i, j = batch.pairs[p, 0], batch.pairs[p, 1]
        union = i
        if state.unions_in_new_slots:
            union = clusters.n_slots
            clusters.n_slots += 1
            copy_slot(clusters, i, union)
            free(clusters, i)
        call(state.note_merge, union, j, scratch)
        queue[p] = union
        # The older part's neighbour was farther than the younger part, but perhaps not much.
        likely = links.neighbors[j]
        links.neighbors[union] = as_hint(likely) if likely >= 0 and likely != i else UNKNOWN
    for q in range(pairs, batch.n_queued):
        j = links.neighbors[queue[q]]
        # The union of the batch that contains the neighbour, or the slot where it used to be.
        likely = queue[pair_of_slot[j]] if pair_of_slot[j] >= 0 else j
        links.neighbors[queue[q]] = as_hint(likely) if likely != queue[q] else UNKNOWN
    for p in range(pairs):
        pair_of_slot[batch.pairs[p, 0]] = pair_of_slot[batch.pairs[p, 1]] = -1


@kernel
def look_up_queue(work, first, last, scratch):
    """Look up a range of the queue; compare unions with the parts of later pairs too."""
    geometry, clusters, batch = work.geometry, work.clusters, work.batch
    queue, copies, pairs = batch.queue, batch.copies, batch.n_pairs
    call(work.look_up, first, last, scratch)
    for p in range(first, min(last, pairs)):
        nearest, highest = batch.nearest[p], batch.heights[pairs - 1]
        for start in range(2 * p // LEAF_SIZE * LEAF_SIZE, 2 * (pairs - 1), LEAF_SIZE):
            near = leaf_values(geometry, clusters, queue[p], copies + start, highest, scratch)
            while near:
                s = lowest_set_bit(near)
                near &= near - 1
                if 2 * p <= start + s < 2 * (pairs - 1) and scratch.bounds[s] < nearest:
                    nearest = scratch.bounds[s]
        batch.nearest[p] = nearest


@kernel
def settle(state, scratch):
    """Record the confirmed pairs, restore the others, and insert all links into the heap.

    Returns whether the first pair, if there is one, was confirmed, as it has to be.
    """
    log, clusters, links, heap = state.log, state.clusters, state.links, state.heap
    batch, ranks, nodes = state.batch, clusters.ranks, log.nodes
    queue, pairs, queued = batch.queue, batch.n_pairs, batch.n_queued
    holding, nearest = 0, np.inf
    while holding < pairs and batch.heights[holding] < nearest:
        nearest = min(nearest, batch.nearest[holding])
        holding += 1
    n_leaves = log.heights.size + 1
    for p in range(holding):
        i, j = batch.pairs[p, 0], batch.pairs[p, 1]
        record_merge(log, n_leaves, log.n_merges, i, j, queue[p], batch.heights[p])
        advance_count(log, 1)
    adapt(batch, holding)
    if holding < pairs:
        copies = batch.copies - 2
        for p in range(holding, pairs):
            i, j = batch.pairs[p, 0], batch.pairs[p, 1]
            free(clusters, queue[p])
            copy_slot(clusters, copies + 2 * p, i)
            copy_slot(clusters, copies + 2 * p + 1, j)
            call(state.note_merge, i, j, scratch)
            link(clusters, nodes, links, i, batch.heights[p], j)
            insert(heap, links, ranks, i)
            insert(heap, links, ranks, j)
        # Other look-ups saw unions that were undone, and are repeated, with no pairs pending.
        for q in range(pairs, queued):
            queue[q - pairs + holding] = queue[q]
        queued -= pairs - holding
        for q in range(queued):
            links.neighbors[queue[q]] = UNKNOWN
        batch.n_pairs = 0
        batch.n_looked_up += queued
        state.queries.again = True
        call(state.look_up, 0, queued, scratch)
        state.queries.again = False
    for q in range(queued):
        i = queue[q]
        link(clusters, nodes, links, i, links.values[i], links.neighbors[i])
        insert(heap, links, ranks, i)
    _lower_links(state, scratch)
    return holding > 0 or pairs == 0


@kernel
def _lower_links(state, scratch):
    """Make links stale that come later than the pair of their slot and a new union may come."""
    links, lowered, clusters = state.links, state.lowered, state.clusters
    call(state.note_merge, 0, 0, scratch)
    for e in range(lowered.count):
        i = lowered.slots[e]
        if lowered.bounds[i] <= links.values[i]:
            remove(state.heap, links, clusters.ranks, i)
            link(clusters, state.log.nodes, links, i, lowered.bounds[i], i)
            insert(state.heap, links, clusters.ranks, i)
        lowered.bounds[i] = np.inf
    lowered.count = 0


@kernel
def adapt(batch, holding):
    """Reduce the batch size if a pair was not confirmed, and increase it later.

    In Bayesian trees the next partner of a union is mostly nearer than any pair before.
    """
    if holding < batch.n_pairs:
        batch.most_pairs, batch.n_held = holding, 0
    elif holding == batch.most_pairs and holding < batch.pairs.shape[0]:
        batch.n_held += 1
        if batch.n_held == _GROW_AFTER:
            batch.most_pairs, batch.n_held = 2 * holding, 0
