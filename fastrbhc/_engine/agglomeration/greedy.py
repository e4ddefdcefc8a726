"""The greedy algorithm (the paper's Algorithm 1 with λ), in O(n) memory, many merges at a time.

Each cluster has a *link* to the nearest older cluster, and a heap orders the links. A link whose
neighbour has been merged is stale: it is a lower bound, and is looked up again when it reaches the
top. Every pair is covered by the link of its younger cluster, so the top of the heap is the global
minimum at every step. This holds even if d is not reducible and a union is nearer to some cluster
than both of its parts were: the union is the younger one, and no other link has to change.

Single merges would leave nothing for a second thread to do. So merges are made in *batches*: the
pairs that come next unless a union of the batch intervenes. The neighbours of the unions are looked
up together, on all threads, along with stale links near the top. A pair is confirmed if no union of
an earlier pair has a cluster within the height of that pair. The first pair that is not confirmed,
and all pairs after it, are restored from copies. The first pair of a batch is always confirmed, and
the tree is the same to the bit as with single merges.

The code that chooses the merges is compiled once for all families: look-ups and merges are jobs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.agglomeration.driver import (
    FINISHED,
    LONG_SECONDS,
    OUT_OF_BUDGET,
    PIECES_PER_THREAD,
    STUCK,
    WANTS_LOOK_UP,
    WANTS_REBUILD,
    run_interruptibly,
)
from fastrbhc._engine.agglomeration.heap import Heap, empty_heap, heapify, insert, remove
from fastrbhc._engine.agglomeration.links import Links, link, link_all, no_links, relocate_links
from fastrbhc._engine.agglomeration.merge_log import (
    MergeLog,
    Merges,
    advance_count,
    close_gaps,
    empty_log,
    finished,
    many_free,
    new_places,
    record_merge,
)
from fastrbhc._engine.agglomeration.space import Space
from fastrbhc._engine.clusters.record import LEAF_SIZE, Clusters, copy_slot, free
from fastrbhc._engine.clusters.segments import most_entries
from fastrbhc._engine.geometry.contract import leaf_values, merge
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.contract import (
    UNKNOWN,
    Lowered,
    Queries,
    Search,
    as_hint,
    look_up,
    refitting,
)
from fastrbhc._engine.records import Job, call, record
from fastrbhc._engine.simd import lowest_set_bit
from fastrbhc._engine.team import Team, parallel_for, team_of
from fastrbhc._engine.threads import Threads

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
class Greedy:
    """The state of the algorithm, of the same type for all families."""

    log: MergeLog
    clusters: Clusters
    links: Links
    heap: Heap
    batch: Batch
    queries: Queries
    threshold: float
    look_up: Job  # for a range of the queue
    merge: Job  # for a range of the pairs
    note_merge: Job  # for one pair, given as its slots
    rebuild_below: float
    unions_in_new_slots: bool
    lowered: Lowered
    team: Team


@record
class BatchWork:
    """The task of `_merge_pairs` and `_look_up`."""

    geometry: Any
    clusters: Clusters
    batch: Batch
    links: Links
    look_up: Job  # for a range of the queue, among the clusters of the index


def greedy(
    space: Space,
    threshold: float,
    threads: Threads,
    report: Callable[[str, int], None],
) -> Merges:
    """Merge the globally nearest pair until none is nearer than the threshold."""
    log = empty_log(space.clusters)
    state = _initial_state(space, threshold, log, threads)
    clusters, links, heap, batch = state.clusters, state.links, state.heap, state.batch
    n = log.n_alive
    seconds = threads.run(
        state.look_up,
        n,
        1e-9 * n * clusters.width,
        lambda begun: report("neighbours", begun),
    )
    link_all(clusters, log.nodes, links, n)
    heapify(heap, links, clusters.ranks, n)

    def advance(budget: int) -> int:
        nonlocal seconds
        before, start = batch.n_looked_up, time.perf_counter()
        longest = max(1, int(LONG_SECONDS / seconds))
        with threads.helping(state.team) as scratch:
            status = _advance(state, longest, budget, scratch)
        looked_up = batch.n_looked_up - before
        if looked_up > 0:
            seconds = (time.perf_counter() - start) / looked_up
        return int(status)

    def look_up_batch() -> None:
        nonlocal seconds
        seconds = threads.run(state.look_up, batch.n_queued, seconds)

    def rebuild() -> None:
        used = clusters.n_slots
        slots = close_gaps(clusters, space.index, log, threads)
        relocate_links(links, slots, new_places(slots, used))
        heapify(heap, links, clusters.ranks, clusters.n_slots)

    requests = {WANTS_LOOK_UP: look_up_batch, WANTS_REBUILD: rebuild}
    run_interruptibly(advance, requests, lambda: report("merging", log.n_merges))
    return finished(log)


def _initial_state(space: Space, threshold: float, log: MergeLog, threads: Threads) -> Greedy:
    clusters, capacity, n = space.clusters, space.clusters.weights.size, log.n_alive
    links, batch, scratch = no_links(capacity), _empty_batch(n, capacity), threads.scratches[0]
    batch.queue[:n] = np.arange(n)[::-1]  # the last slots have the most older clusters
    batch.n_queued = n
    queries = Queries(batch.queue, links.values, links.neighbors, batch.nearest, threshold, True)
    search = Search(space.index, space.geometry, clusters, queries)
    in_index = Job(look_up, search, scratch)
    work = BatchWork(space.geometry, clusters, batch, links, in_index)
    return Greedy(
        log=log,
        clusters=clusters,
        links=links,
        heap=empty_heap(capacity),
        batch=batch,
        queries=queries,
        threshold=threshold,
        look_up=Job(_look_up, work, scratch),
        merge=Job(_merge_pairs, work, scratch),
        note_merge=refitting(space.index, clusters, scratch).merge,
        rebuild_below=space.index.rebuild_below,
        unions_in_new_slots=space.index.unions_in_new_slots,
        lowered=space.index.lowered,
        team=team_of(threads.count),
    )


def _empty_batch(n: int, capacity: int) -> Batch:
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
def _advance(state, longest, budget, scratch):
    """Run batches until one has more than ``longest`` look-ups."""
    log, clusters, batch, team = state.log, state.clusters, state.batch, state.team
    if batch.unsettled:
        batch.unsettled = False
        if not _settle(state, scratch):
            return STUCK
    while budget > 0:
        room = batch.copies - clusters.n_slots
        if many_free(log, clusters, state.rebuild_below) or room < _batch_size(log, batch):
            return WANTS_REBUILD
        _choose(state)
        if batch.n_queued == 0:
            return FINISHED
        parallel_for(team, state.merge, batch.n_pairs, _n_pieces(batch.n_pairs, team), scratch)
        _after_merging(state, scratch)
        queued = batch.n_queued
        if queued > longest:
            batch.unsettled = True
            return WANTS_LOOK_UP
        budget -= queued * clusters.n_slots * clusters.width
        batch.n_looked_up += queued
        parallel_for(team, state.look_up, queued, _n_pieces(queued, team), scratch)
        if not _settle(state, scratch):
            return STUCK
    return OUT_OF_BUDGET


@kernel
def _n_pieces(count, team):
    """The number of pieces for the look-ups or merges of a batch."""
    return min(count, PIECES_PER_THREAD * team.size)


@kernel
def _choose(state):
    """Take the next pairs from the heap, and the stale links among and shortly after them.

    The first link that is stale, or will be once the pairs have merged, ends the batch: it may
    lead to a pair that comes before the next one. Stale links slightly further down are looked up
    in advance, so that the next batch does not end as soon as it begins. Without this, most batches
    had one pair, with as many look-ups in total.
    """
    log, links, heap, batch = state.log, state.links, state.heap, state.batch
    threshold, ranks, nodes, queue = state.threshold, state.clusters.ranks, log.nodes, batch.queue
    pairs, most = 0, _batch_size(log, batch)
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
def _batch_size(log, batch):
    """The largest number of pairs, and of links to look ahead."""
    return min(max(16, log.n_alive // 128), batch.pairs.shape[0])


@kernel
def _merge_pairs(work, first, last, scratch):
    """Merge a range of the pairs, which have no slot in common; copy all but the first."""
    clusters, batch, copies = work.clusters, work.batch, work.batch.copies - 2
    for p in range(first, last):
        i, j = batch.pairs[p, 0], batch.pairs[p, 1]
        if p > 0:
            copy_slot(clusters, i, copies + 2 * p)
            copy_slot(clusters, j, copies + 2 * p + 1)
        merge(work.geometry, clusters, i, j, scratch)


@kernel
def _after_merging(state, scratch):
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
def _look_up(work, first, last, scratch):
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
def _settle(state, scratch):
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
    _adapt(batch, holding)
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
def _adapt(batch, holding):
    """Reduce the batch size if a pair was not confirmed, and increase it later.

    In Bayesian trees the next partner of a union is mostly nearer than any pair before.
    """
    if holding < batch.n_pairs:
        batch.most_pairs, batch.n_held = holding, 0
    elif holding == batch.most_pairs and holding < batch.pairs.shape[0]:
        batch.n_held += 1
        if batch.n_held == _GROW_AFTER:
            batch.most_pairs, batch.n_held = 2 * holding, 0
